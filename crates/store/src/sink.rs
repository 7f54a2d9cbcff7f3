//! The sink of a receiver: from manifest parts, byte ranges and digests to files under their final names.
//!
//! ```text
//! messages ─ Manifest ─ Admission ─ wanted ranges     blocks ─ Writer ─ staged files ┐
//!                                                    digests ─ Verifier ─────────────┴─ Publisher ─ final names
//! ```
//!
//! A file is written in a staging directory inside the target ([`super::staging`]). When every block of it matches its
//! digest, and the disk has it, it is moved to its final name: no unverified file, no partial file and nothing that a
//! loss of power could take back has a final name. Directories and links are created under their final names at once.
//! The next run of an interrupted transfer resumes: files in place are found unchanged, and staged data is on record in
//! the journal ([`super::journal`]). A verified batch leaves no state in memory, and nothing is allocated, in memory or
//! on disk, from a claimed size.
//!
//! Each part has its own state and lock; [`FileSink`] ties them. Their shared state, above all the request and the
//! report, is in `shared`.

mod aim;
pub(crate) mod announcement_check;
pub(crate) mod batch;
mod claims;
mod cross_device;
mod differences;
mod entries;
mod entry_action;
mod finish;
mod links;
pub(crate) mod manifest;
mod name_collisions;
mod partial_data;
mod phase;
mod preflight;
mod publisher;
mod reference;
pub(crate) mod report;
mod room;
mod shared;
mod stored;
mod stored_entries;
mod target;
mod usable;
pub(crate) mod verifier;
mod writer;

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use request::{ReceiveRequest, TargetPath, check_path};

use self::announcement_check::AnnouncedNames;
use self::batch::OpenBatch;
use self::differences::Differences;
use self::entries::Admission;
use self::manifest::{CompleteManifest, Manifest};
use self::publisher::{Pipeline, Publisher};
pub use self::report::{FailReason, Failed, ReceiveOutcome};
use self::shared::Shared;
use self::verifier::Verifier;
use self::writer::Writer;
use super::error::FilesError;
use super::lock::lock;
use super::object::TreeObject;
use super::staged_id::path_hash;
use crate::messages::{
    Attributes, Chunks, Digest, Entry, IdName, ManifestPart, Notice, SkipReason, Skipped, SourceId, StoredEntry,
    TransferEnd, Void, Wanted,
};

/// Receives one transfer.
///
/// The messages of flow 0 ([`FileSink::begin`], [`FileSink::add_manifest_part`], [`FileSink::expect_digest`],
/// [`FileSink::void`], [`FileSink::skipped`], [`FileSink::finish`]) are passed in their order, by one thread at a
/// time; writes and local digests by any thread at any time once the batch's manifest is complete. After any error the
/// transfer is lost: stop the threads and call [`FileSink::abandon`]. Dropped, or with its process killed, it keeps the
/// partial data from which the next run of the same transfer resumes.
#[derive(Debug)]
pub struct FileSink {
    shared: Shared,
    manifest: Manifest,
    writer: Writer,
    verifier: Verifier,
    differences: Differences,
    publisher: Publisher,
    /// The batch, and the position in its object, that was written last.
    written: Mutex<Option<(u32, u64)>>,
}

/// The state of a batch's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestState {
    /// More parts follow.
    More,
    /// These bytes of the batch are wanted, and may be written.
    Complete(Wanted),
    /// All bytes of the batch are sent and may be written; these are wanted.
    Whole(Wanted),
    /// The target has other versions of these files, given by their indices in the batch. The wanted ranges are known
    /// when all their chunks have been given to [`FileSink::add_chunks`], in this order.
    Compare(Vec<u32>),
}

impl FileSink {
    /// Prepares to receive, and changes nothing yet.
    ///
    /// # Errors
    /// [`FilesError::TargetNotADirectory`], a target whose name is refused, or one whose parent is missing or
    /// inaccessible.
    pub fn new(spec: ReceiveRequest) -> Result<Self, FilesError> {
        let target_is_directory = spec.target.is_dir();
        Self::with_target(Arc::new(spec), target_is_directory)
    }

    /// As [`FileSink::new`], for another attempt of a transfer that started when the target was a directory, or was
    /// none: names made by an earlier attempt do not change the destination.
    ///
    /// # Errors
    /// As [`FileSink::new`]'s.
    pub fn with_target(spec: Arc<ReceiveRequest>, target_is_directory: bool) -> Result<Self, FilesError> {
        let shared = Shared::new(spec, target_is_directory)?;
        Ok(Self {
            manifest: Manifest::new(&shared.spec),
            writer: Writer::new(shared.modes, shared.extras),
            verifier: Verifier::default(),
            differences: Differences::default(),
            publisher: Publisher::default(),
            written: Mutex::default(),
            shared,
        })
    }

    /// Returns the request.
    #[must_use]
    pub fn spec(&self) -> &ReceiveRequest {
        &self.shared.spec
    }

    /// Returns the destination of the items; before it is decided, the one without further evidence.
    #[must_use]
    pub fn destination(&self) -> &TargetPath {
        self.shared.destination()
    }

    /// Whether the destination of the items is decided.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.shared.aim.is_decided()
    }

    /// Whether the target may hold some of the data, as of the creation of this value. If so, the caller asks the
    /// sender to wait for the wanted ranges of each batch; if not, each batch's [`Wanted`] is everything.
    #[must_use]
    pub fn may_have_data(&self) -> bool {
        self.shared.may_have_data
    }

    /// Takes the message that begins a transfer. Looks for partial data of an earlier run, and makes nothing new.
    ///
    /// # Errors
    /// [`FilesError::Busy`] while another process receives the same into the same directory, which the caller may try
    /// again; a failure of the disk.
    pub fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        let mut intake = self.manifest.intake();
        if intake.source.is_some() {
            return Err(FilesError::Protocol { batch: 0, reason: "began the transfer twice" });
        }
        // Called again while another process uses the staging directory, so nothing has begun before this.
        self.shared.begin(source)?;
        self.shared.staged().into_iter().for_each(|place| self.publisher.continue_from(place));
        intake.begin(source)
    }

    /// Returns the bytes of an earlier run in the staging directory that are read and compared before they count. Zero
    /// before [`FileSink::begin`], and as long as the destination is not decided.
    #[must_use]
    pub fn bytes_to_check(&self) -> u64 {
        let staged = self.shared.staged().filter(|_| !self.shared.spec.trust_staging);
        staged.map_or(0, |place| place.staging.held().bytes())
    }

    /// Decides the destination, if it depends on the first item; `None` if there is none, or none soon. Later items do
    /// not count.
    ///
    /// # Errors
    /// As [`FileSink::begin`]'s, and [`FilesError::TargetNotADirectory`] for a target that has to be a directory.
    pub fn decide(&self, first: Option<&Entry>) -> Result<(), FilesError> {
        let source = self.manifest.intake().source;
        if self.shared.decide(first, source)? {
            self.shared.staged().into_iter().for_each(|place| self.publisher.continue_from(place));
        }
        Ok(())
    }

    /// Takes mode and time of the directory whose contents are sent, for the target, if it corresponds to that
    /// directory and modes are exact.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if they are sent twice, or before the beginning; [`FilesError::TargetNotADirectory`] in
    /// a comparison with a file.
    pub fn top(&self, top: Attributes) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        let TargetPath { directory, rename } = self.destination();
        if let Some(name) = rename.as_ref().filter(|_| self.shared.spec.compare_trees) {
            // The target is a file, not a directory whose contents could be compared.
            return Err(FilesError::TargetNotADirectory { path: directory.join(OsStr::from_bytes(name)) });
        }
        self.manifest.intake().top(top)
    }

    /// Takes the name of a user or group of the entries that follow.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if it was named already, or too many were.
    pub fn id_name(&self, name: &IdName) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        self.manifest.intake().id_name(name)
    }

    /// Checks the first parts of the manifest before the user is asked about them, and changes nothing.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`] with every item that exists already and must not be replaced
    /// ([`Existing::Refuse`](super::Existing::Refuse)), [`FilesError::BadName`], [`FilesError::NotPermitted`], or a
    /// target that cannot be accessed.
    pub fn check_offer<'a>(&self, parts: impl IntoIterator<Item = &'a ManifestPart>) -> Result<(), FilesError> {
        let permitted = &self.shared.spec.permitted;
        let mut announced = AnnouncedNames::new(permitted);
        for part in parts {
            for entry in &part.entries {
                check_path(&entry.path).map_err(|reason| FilesError::bad_name(&entry.path, reason))?;
                announced.add(entry, permitted)?;
            }
            self.shared.check_outputs(&part.entries)?;
            self.shared.check_conflicts(&part.entries)?;
        }
        Ok(())
    }

    /// Returns the notices for the sender since the last call; called after each other call. At most 65,536 wait;
    /// further ones are only counted, in the [`ReceiveOutcome`].
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        self.shared.report.take_notices()
    }

    /// Returns the entries that became durable under their final names since the last call, if the request asks for
    /// them ([`ReceiveRequest::report_stored`]): batches, each with its entries in ascending order. Each batch is
    /// returned once, after [`FileSink::settle`], and those with hard links once more, after [`FileSink::finish`].
    #[must_use]
    pub fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)> {
        self.shared.take_stored()
    }

    /// Takes the next manifest part: checks every name and number in it, makes its directories and links, and
    /// determines which bytes of its files are present. When the batch's manifest is complete [`FileSink::settle`] may
    /// have work: empty files need no block. If contents are compared ([`Compare::Checksum`](super::Compare::Checksum))
    /// this reads them, and also the files staged by an earlier run, whose bytes count only if they are still as they
    /// were received.
    ///
    /// A dry run returns the wanted ranges, and nothing may be written of them: the caller asks the sender for nothing.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`] with every existing name of the part, [`FilesError::TargetNotADirectory`]
    /// for a directory that is to get the name of something else, [`FilesError::BadName`],
    /// [`FilesError::NotPermitted`], [`FilesError::Protocol`]; nothing of the part was made then, except before a
    /// duplicate. Or a failure of the disk.
    pub fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError> {
        self.shared.phase.check_going()?;
        let mut intake = self.manifest.intake();
        let open = self.verifier.open_batches() + self.differences.len();
        let source = intake.check(part, &self.shared.spec.permitted, open)?;
        self.shared.check_named(&part.entries)?;
        self.shared.check_outputs(&part.entries)?;
        self.shared.check_chosen(&part.entries)?;
        self.shared.check_conflicts(&part.entries)?;
        intake.hash(|out| part.encode(out))?;
        if !self.shared.spec.dry_run {
            self.shared.make_place(source)?;
        }
        intake.batches.building(part);
        Admission { shared: &self.shared }.take_entries(&mut intake, part)?;
        let Some(CompleteManifest { batch, wanted, whole, compared }) =
            intake.batches.done(part, !self.shared.may_have_data)?
        else {
            return Ok(ManifestState::More);
        };
        self.shared.check_room(intake.batches.wanted);
        if compared.is_empty() {
            self.open(batch);
            return Ok(if whole { ManifestState::Whole(wanted) } else { ManifestState::Complete(wanted) });
        }
        let entries = compared.iter().map(|at| batch.files[*at].entry).collect();
        self.differences.add(batch, wanted, compared);
        Ok(ManifestState::Compare(entries))
    }

    /// Opens a batch whose wanted ranges are known.
    fn open(&self, batch: OpenBatch) {
        if batch.files.is_empty() {
            self.shared.batch_stored(batch.number);
        }
        self.verifier.open(batch);
    }

    /// Announces that the sender lists the chunks of files; they are then requested if the request permits it
    /// ([`ReceiveRequest::differences`]). Called before the first manifest part.
    pub fn sender_lists(&self) {
        self.shared.sender_lists.store(true, Ordering::Relaxed);
    }

    /// Takes chunks of a file that [`ManifestState::Compare`] named, and copies those that the target's version has.
    /// The first ones cause that version to be read. After the last list of the batch returns its wanted ranges.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] for chunks that were not requested; a failure of the disk.
    pub fn add_chunks(&self, chunks: &Chunks) -> Result<Option<Wanted>, FilesError> {
        self.shared.phase.check_going()?;
        self.manifest.hash(|out| chunks.encode(out))?;
        let Some((batch, wanted)) = self.differences.take(&self.shared, &self.writer, chunks)? else {
            return Ok(None);
        };
        self.open(batch);
        Ok(Some(wanted))
    }

    /// Writes a range of a batch's object: of its wanted ranges one after another. Bytes behind the object's end are
    /// padding and dropped; windows of zeros become holes.
    ///
    /// # Errors
    /// A failure of the disk, or a batch that is not open.
    pub fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        let batch = self.verifier.batch(batch)?;
        let place = self.shared.place()?;
        *lock(&self.written) = Some((batch.number, offset));
        self.writer.write(place, &batch, offset, bytes).map_err(|error| error.of(&batch, place))
    }

    /// Takes a range of a batch's object from its local source: the kernel copies as much as it can.
    ///
    /// # Errors
    /// As [`FileSink::write`]'s.
    pub fn copy(&self, batch: u32, range: Range<u64>, from: &dyn TreeObject) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        let batch = self.verifier.batch(batch)?;
        let place = self.shared.place()?;
        *lock(&self.written) = Some((batch.number, range.start));
        self.writer.copy(place, &batch, range, from).map_err(|error| error.of(&batch, place))
    }

    /// Notes that a range was copied completely, and that the files voided by that were announced. Returns true if
    /// [`FileSink::settle`] has work.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if the batch is not open, or some of it counts already.
    pub fn copied(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError> {
        self.shared.phase.check_going()?;
        self.verifier.trust(batch, range)
    }

    /// Returns the name of the file that was written last, beneath the target.
    #[must_use]
    pub fn current(&self) -> Option<Vec<u8>> {
        let (number, offset) = (*lock(&self.written))?;
        // Its batch may be closed.
        let batch = self.verifier.batch(number).ok()?;
        let piece = batch.pieces(offset, 1).next()?;
        batch.files.get(piece.file).map(|file| file.path.to_vec())
    }

    /// Returns the number of regular files that are in place, or would be.
    #[must_use]
    pub fn in_place(&self) -> u64 {
        self.shared.report.files()
    }

    /// Takes a block's digest from the sender. Returns true if it verified something and [`FileSink::settle`] has work;
    /// this call itself does not touch the disk.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    pub fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError> {
        self.shared.phase.check_going()?;
        self.verifier.batch(digest.batch)?;
        self.manifest.hash(|out| digest.encode(out))?;
        self.verifier.expect(digest.batch, digest.block, digest.digest)
    }

    /// Takes the digest of a received block; `range` is its position in the object. Called once for a block, after its
    /// bytes were written. Returns the same as [`FileSink::expect_digest`].
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    pub fn found_digest(
        &self,
        batch: u32,
        block: u32,
        range: Range<u64>,
        digest: [u8; 32],
    ) -> Result<bool, FilesError> {
        self.shared.phase.check_going()?;
        self.verifier.found(batch, block, range, digest)
    }

    /// Drops a file that the sender could not read unchanged, and lists it as failed. Returns its path as the sender
    /// named it; `None` if it has failed already, or is not received.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if the batch is not open or has no such entry; a failure of the disk.
    pub fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError> {
        self.shared.phase.check_going()?;
        let batch = self.verifier.batch(void.batch)?;
        self.manifest.hash(|out| void.encode(out))?;
        let Some(at) = self.verifier.voided(&batch, void.entry)? else { return Ok(None) };
        let place = self.shared.place()?;
        let discarded = self.writer.discard(place, &batch, at);
        let was_due = discarded.map_err(|error| FilesError::system(place.staging.path(), error))?;
        let path = self.shared.sent_as(&batch.files[at].path);
        if void.reason.may_pass() && !batch.again {
            let size = batch.files[at].size;
            self.manifest.intake().voided.entry(path_hash(&path)).or_insert((was_due, size));
        }
        if !was_due {
            return Ok(None);
        }
        self.shared.report.update(|outcome| outcome.present = outcome.present.saturating_sub(batch.held(at)));
        self.shared.report.fail(&path, FailReason::Voided(void.reason));
        Ok(Some(path))
    }

    /// Lists a name that the sender skipped.
    ///
    /// # Errors
    /// [`FilesError::Over`].
    pub fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError> {
        self.shared.phase.check_going()?;
        let mut intake = self.manifest.intake();
        intake.skip(skipped)?;
        // A name that no entry could have needs no protection.
        let is_sent = skipped.reason == SkipReason::LargeXattrs;
        if let (Some(sent), Ok(path), false) = (&mut intake.sent, self.shared.target_path(&skipped.path, 0), is_sent) {
            sent.add_unread(&path);
        }
        self.shared.report.fail(&skipped.path, FailReason::Skipped(skipped.reason));
        Ok(())
    }

    /// Records verified ranges in the journal, and moves complete files to their final names, in groups, once the disk
    /// has them: all of a batch when the batch is complete. Also handles files verified meanwhile. Each published file
    /// is passed to `placed`, with its path as the sender named it and its length. May block on the disk for a long
    /// time: call it on a thread of its own.
    ///
    /// # Errors
    /// A failure of the disk, or [`FilesError::TargetExists`] for the name of an item that appeared during the
    /// transfer.
    pub fn settle(&self, mut placed: impl FnMut(&[u8], u64)) -> Result<(), FilesError> {
        self.publisher.settle(self.pipeline(), &mut placed)?;
        self.shared.sync_stored()
    }

    /// Makes durable all that counts as received, so that not even a loss of power costs it. Called from any thread
    /// when the program has to exit. It waits for a running [`FileSink::settle`], which syncs no further groups once
    /// [`FileSink::stop`] was called, and then syncs once: the data verified since, in one group of any size.
    ///
    /// # Errors
    /// As [`FileSink::settle`]'s.
    pub fn flush(&self) -> Result<(), FilesError> {
        self.publisher.flush(self.pipeline())
    }

    /// Makes long operations end soon, with [`FilesError::Over`]: the comparing of contents in
    /// [`FileSink::add_manifest_part`], and the links, deletions and directories of [`FileSink::finish`]. May be called
    /// from any thread, at any time; [`FileSink::flush`] and [`FileSink::abandon`] still do their work.
    pub fn stop(&self) {
        self.shared.phase.stop();
    }

    /// Returns the number of batches not yet verified.
    #[must_use]
    pub fn unverified(&self) -> u64 {
        // In this order, as in all other places: a batch completed meanwhile counts twice rather than not at all.
        let building = u64::from(self.manifest.intake().batches.is_building());
        building + (self.differences.len() + self.verifier.open_batches()) as u64
    }

    /// Compares the sender's last message with its announcements: nothing may be missing.
    ///
    /// # Errors
    /// [`FilesError::Protocol`], [`FilesError::Root`].
    pub fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError> {
        self.manifest.intake().check_end(end)
    }

    /// Ends the transfer: checks the counts and the root, makes the hard links, deletes extra names, gives the
    /// directories their modes and times, makes everything durable and removes the staging directory. The caller has
    /// seen [`FileSink::unverified`] fall to zero.
    ///
    /// # Errors
    /// [`FilesError::Incomplete`], [`FilesError::Protocol`], [`FilesError::Root`], [`FilesError::Over`] once
    /// [`FileSink::stop`] was called, or a failure of the disk.
    pub fn finish(&self, end: &TransferEnd) -> Result<ReceiveOutcome, FilesError> {
        self.shared.phase.check_going()?;
        self.shared.phase.check_stopped()?;
        let unverified = self.unverified();
        if unverified > 0 {
            return Err(FilesError::Incomplete { unverified });
        }
        let intake = self.manifest.intake();
        intake.check_end(end)?;
        if let Some(source) = intake.source
            && self.shared.wants_target()
            && !self.shared.spec.dry_run
        {
            // An empty directory has no entries, and all names in the target may be extra.
            self.shared.make_place(source)?;
        }
        self.flush()?;
        self.shared.phase.end();
        self.shared.finish(&intake)?;
        Ok(self.shared.report.outcome())
    }

    /// Ends a transfer that failed or was interrupted, after its threads have stopped. Partial data for resuming is
    /// kept in the staging directory, whose path is returned; with `remove` the data of this run is removed. Files that
    /// have their final names stay.
    ///
    /// # Errors
    /// A staging directory that could not be removed.
    pub fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError> {
        self.shared.phase.end();
        // Open files cannot be removed on every file system.
        self.writer.close();
        let Some(place) = self.shared.staged() else { return Ok(None) };
        let staging = &place.staging;
        // They may fill the disk. Those that cannot be removed stay, like the rest.
        for batch in self.verifier.all() {
            batch.unrecorded().into_iter().for_each(|at| drop(staging.remove_file(batch.files[at].id)));
        }
        if staging.is_removed() {
            return Ok(None);
        }
        let useless = staging.is_useless().map_err(|error| FilesError::system(staging.path(), error))?;
        if useless || (remove && staging.is_new) {
            return place.remove().map(|()| None);
        }
        Ok(Some(staging.path().to_owned()))
    }

    /// Returns the staging directory, if it exists yet.
    #[must_use]
    pub fn staging_path(&self) -> Option<PathBuf> {
        self.shared.staged().map(|place| place.staging.path().to_owned())
    }

    fn pipeline(&self) -> Pipeline<'_> {
        Pipeline { shared: &self.shared, verifier: &self.verifier, writer: &self.writer }
    }
}
