//! Receives files: from manifest parts, byte ranges and digests to files under their final names.
//!
//! A file is written in a staging folder inside the target ([`super::staging`]). When every block it has a part in matches its digest, and
//! the disk has it, it is moved to its final name: nothing unverified, no half file and nothing that a loss of power could take back stands
//! there. Folders and links are made under their final names at once. What a broken transfer leaves, the next run of it goes on
//! with: files in place are seen to be there, what is staged stands in the journal ([`super::journal`]). Nothing is remembered
//! of a batch once it is verified, and nothing is allocated, in memory or on disk, from a claimed size.

mod batch;
mod before;
mod entries;
mod fate;
mod finish;
mod group;
mod links;
mod manifest;
mod outcome;
mod place;
mod settle;
mod write;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use self::batch::{OpenBatch, Verified};
use self::before::{check_usable, holds_staging};
use self::group::Group;
use self::manifest::Manifest;
pub use self::outcome::{FailReason, Failed, Outcome};
use self::place::{Place, open_target, sent_as};
use super::delete::SentPaths;
use super::entry::{Attributes, Entry, Mtime, Skipped, SourceId};
use super::error::FilesError;
use super::journal::Record;
use super::metadata::ModeRule;
use super::names::check_path;
use super::notice::{Notice, NoticeKind};
use super::open::OpenFiles;
use super::sandbox::DirectorySandbox;
use super::spec::{Destination, Evidence, First, ReceiveSpec};
use super::wanted::Wanted;
use crate::messages::{Digest, MAX_OPEN_BATCHES, ManifestPart, RootHasher, Void};

/// Most notices that wait to be taken.
const MAX_NOTICES: usize = 65_536;

/// A transfer being received into one folder.
///
/// What stands on flow 0 ([`FileSink::begin`], [`FileSink::add_manifest_part`], [`FileSink::expect_digest`], [`FileSink::void`],
/// [`FileSink::skipped`], [`FileSink::finish`]) is handed over in its order, by one thread at a time; writes and found
/// digests by any thread at any time once the batch's manifest is complete. After any error the transfer is lost:
/// stop the threads and call [`FileSink::abandon`]. Dropped, or with its process killed, it leaves what the same transfer goes on
/// with the next time.
#[derive(Debug)]
pub struct FileSink {
    spec: Arc<ReceiveSpec>,
    /// The target was a directory when the transfer started.
    target_is_directory: bool,
    destination: OnceLock<Destination>,
    may_hold_some: bool,
    modes: ModeRule,
    control: Mutex<Control>,
    place: OnceLock<Place>,
    /// The target as a dry run sees it, if there is one.
    seen: OnceLock<Option<DirectorySandbox>>,
    /// What the sender calls the item that has another name here.
    renamed: Arc<OnceLock<Vec<u8>>>,
    open: Mutex<BTreeMap<u32, Arc<OpenBatch>>>,
    /// Paths of files that are to be received and not yet in place, in 64 bits each.
    live: Mutex<HashSet<u64>>,
    /// Verified files to be given mode and time.
    ready: Mutex<VecDeque<(Arc<OpenBatch>, usize)>>,
    /// Verified ranges to be put on record.
    unrecorded: Mutex<Vec<Record>>,
    group: Mutex<Group>,
    /// By batch and index in the batch's files.
    files: OpenFiles<(u32, usize)>,
    /// Held to make a staged file, and to remove one.
    making: Mutex<()>,
    outcome: Mutex<Outcome>,
    notices: Mutex<Vec<Notice>>,
    /// When this began, in seconds since 1970.
    started: i64,
    /// Something was made, moved or deleted that is to be durable at the end.
    changed: AtomicBool,
    over: AtomicBool,
    /// What takes long is to end at once.
    stopped: AtomicBool,
}

/// What follows the order of flow 0.
#[derive(Debug, Default)]
struct Control {
    source: Option<SourceId>,
    /// Mode and time of the folder whose content comes.
    top: Option<Attributes>,
    manifest: Manifest,
    root: RootHasher,
    skipped: u64,
    /// The sender has left out names that it should send.
    incomplete: bool,
    /// If names that do not come are to be deleted: those that came.
    sent: Option<SentPaths>,
    /// In a dry run: paths of the files that would stand, in 64 bits each.
    standing: HashSet<u64>,
    /// Reused to encode messages for the root.
    encoded: Vec<u8>,
}

/// Where the manifest of a batch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestState {
    /// More parts follow.
    More,
    /// These bytes of the batch are wanted, and may be written.
    Complete(Wanted),
}

impl FileSink {
    /// Prepares to receive, and changes nothing yet.
    ///
    /// # Errors
    /// [`FilesError::TargetNotAFolder`], a target whose name is refused, or one whose parent is missing or inaccessible.
    pub fn new(spec: ReceiveSpec) -> Result<Self, FilesError> {
        let target_is_directory = spec.target.is_dir();
        Self::with_target(Arc::new(spec), target_is_directory)
    }

    /// As [`FileSink::new`], for another attempt of a transfer that started when the target was a directory, or was none: what an earlier
    /// attempt has made does not change where the items go.
    ///
    /// # Errors
    /// As [`FileSink::new`]'s.
    pub fn with_target(spec: Arc<ReceiveSpec>, target_is_directory: bool) -> Result<Self, FilesError> {
        let destination = OnceLock::new();
        let may_hold_some = match (spec.destination(&Evidence::before(target_is_directory)), spec.named()) {
            (Some(decided), _) => {
                let may_hold_some = check_usable(&spec, &decided)?;
                destination.get_or_init(|| decided);
                may_hold_some
            }
            // Either the items go into the target, or they continue in its parent what an earlier run has begun there.
            (None, Some(named)) if target_is_directory => {
                let may_continue = holds_staging(&named.directory).unwrap_or(false);
                check_usable(&spec, &spec.in_target())? || (may_continue && check_usable(&spec, &named).is_ok())
            }
            // The first item decides. A target that cannot be a directory is an error only if it has to be one then.
            (None, Some(named)) => {
                check_usable(&spec, &named)? || check_usable(&spec, &spec.in_target()).unwrap_or(false)
            }
            (None, None) => check_usable(&spec, &spec.in_target())?,
        };
        let sent = spec.delete.is_some().then(SentPaths::default);
        Ok(Self {
            modes: ModeRule::new(spec.modes),
            spec,
            target_is_directory,
            destination,
            may_hold_some,
            control: Mutex::new(Control { sent, ..Control::default() }),
            place: OnceLock::new(),
            seen: OnceLock::new(),
            renamed: Arc::default(),
            open: Mutex::default(),
            live: Mutex::default(),
            ready: Mutex::default(),
            unrecorded: Mutex::default(),
            group: Mutex::default(),
            files: OpenFiles::new(),
            making: Mutex::default(),
            outcome: Mutex::default(),
            notices: Mutex::default(),
            started: seconds_now(),
            changed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// What was asked for.
    #[must_use]
    pub fn spec(&self) -> &ReceiveSpec {
        &self.spec
    }

    /// Where the items go. As long as that is not decided: where they go without further evidence.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        self.destination.get_or_init(|| match self.spec.named() {
            Some(named) if !self.target_is_directory => named,
            _ => self.spec.in_target(),
        })
    }

    /// Whether it is decided where the items go.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.destination.get().is_some()
    }

    /// Whether the target may hold some of what comes, as it was when this value was made. If so, the caller asks the sender
    /// to wait for what is wanted of each batch; if not, each batch's [`Wanted`] is everything.
    #[must_use]
    pub fn may_hold_some(&self) -> bool {
        self.may_hold_some
    }

    /// Takes the message that begins a transfer: what is sent. Looks for what an earlier run of it has left, and makes nothing
    /// new.
    ///
    /// # Errors
    /// [`FilesError::Busy`] while another process receives the same into the same folder, which the caller may try again; a failure of
    /// the disk.
    pub fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        self.check_going()?;
        let mut control = self.control();
        if control.source.is_some() {
            return Err(FilesError::Protocol { batch: 0, reason: "it begins twice" });
        }
        if self.target_is_directory && !self.is_decided() {
            let is_own = Some(self.is_own_target(source)?);
            let evidence = Evidence { is_own, ..Evidence::before(true) };
            if let Some(decided) = self.spec.destination(&evidence) {
                self.destination.get_or_init(|| decided);
            }
        }
        if let Some(destination) = self.destination.get() {
            self.open_staging(destination, source)?;
        }
        control.source = Some(source);
        control.hash(|out| source.encode(out))
    }

    /// Decides where the items go, if that depends on the first one; `None` says that there is none, or none soon. What comes later does
    /// not count.
    ///
    /// # Errors
    /// As [`FileSink::begin`]'s, and [`FilesError::TargetNotAFolder`] for a target that has to be a directory.
    pub fn decide(&self, first: Option<&Entry>) -> Result<(), FilesError> {
        if self.is_decided() {
            return Ok(());
        }
        let first = first.map_or(First::Nothing, First::Item);
        let evidence = Evidence { is_directory: self.target_is_directory, is_own: Some(false), first };
        let Some(decided) = self.spec.destination(&evidence) else { return Ok(()) };
        check_usable(&self.spec, &decided)?;
        let source = self.control().source;
        if let Some(source) = source {
            self.open_staging(&decided, source)?;
        }
        self.destination.get_or_init(|| decided);
        Ok(())
    }

    /// Opens what an earlier run has left at `destination`, if anything.
    fn open_staging(&self, destination: &Destination, source: SourceId) -> Result<(), FilesError> {
        if self.spec.dry_run {
            return Ok(());
        }
        if let Some(place) = Place::open(&self.spec, destination, &self.renamed, source, false)? {
            // The next word that the disk has everything must be true of these too, and of what the earlier run has moved.
            lock(&self.group).expect_of_disk(place.staging.held().not_durable());
            self.note_change();
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// Takes mode and time of the folder whose content comes, for the target, if that stands for it and modes are exact.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if they come twice, or before the beginning; [`FilesError::TargetNotAFolder`] in a comparison with a file.
    pub fn top(&self, top: Attributes) -> Result<(), FilesError> {
        self.check_going()?;
        if let Some(name) = self.destination().rename.as_ref().filter(|_| self.spec.compared) {
            // A file is there: it is no folder whose content could be compared.
            return Err(FilesError::TargetNotAFolder {
                path: self.destination().directory.join(OsStr::from_bytes(name)),
            });
        }
        let mut control = self.control();
        if control.source.is_none() || control.top.replace(top).is_some() {
            return Err(FilesError::Protocol { batch: 0, reason: "it has its top twice, or before the beginning" });
        }
        control.hash(|out| top.encode(out))
    }

    /// What there is to tell the sender since the last call; to be asked for after each other call. At most 65,536 wait; more
    /// are counted only, in the [`Outcome`].
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Takes the next manifest part: checks every name and number in it, makes its folders and links, and finds out what of its files
    /// is here. When the batch's manifest is complete [`FileSink::settle`] may have work: empty files need no block. Where
    /// contents are compared ([`Compare::Checksum`](super::Compare::Checksum)) this reads them.
    ///
    /// In a dry run what is wanted is told, and nothing may be written of it: the caller asks the sender for nothing.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`] with every name of the part that is in the way, [`FilesError::TargetNotAFolder`] for a folder that
    /// is to get the name of something else, [`FilesError::BadName`], [`FilesError::Protocol`]; nothing of the part was made then, except before a duplicate.
    /// Or a failure of the disk.
    pub fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError> {
        self.check_going()?;
        let mut control = self.control();
        let control = &mut *control;
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        let source = control.source.ok_or(broken("it comes before the beginning"))?;
        control.manifest.check(part)?;
        let begins = !control.manifest.is_building();
        if begins && lock(&self.open).len() >= MAX_OPEN_BATCHES {
            return Err(broken("too many batches are open"));
        }
        self.check_named(&part.entries)?;
        let names = self.conflicts(&part.entries)?;
        if !names.is_empty() {
            return Err(FilesError::TargetExists { names });
        }
        control.hash(|out| part.encode(out))?;
        if !self.spec.dry_run {
            self.make_place(source)?;
        }
        control.manifest.building(part);
        self.take_entries(control, part)?;
        let Some((batch, wanted)) = control.manifest.done(part, !self.may_hold_some)? else {
            return Ok(ManifestState::More);
        };
        if !batch.files.is_empty() {
            let batch = Arc::new(batch);
            lock(&self.open).insert(part.batch, Arc::clone(&batch));
            self.queue(&batch, Verified { files: batch.complete_files(), records: Vec::new() });
        }
        Ok(ManifestState::Complete(wanted))
    }

    /// Makes the staging folder, and the target, unless they are there.
    fn make_place(&self, source: SourceId) -> Result<(), FilesError> {
        if self.place.get().is_none() {
            let place =
                Place::open(&self.spec, self.destination(), &self.renamed, source, true)?.ok_or(FilesError::Over)?;
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// Takes a block's digest from the sender. `true` says that something is verified by it and [`FileSink::settle`] has
    /// work; this call itself does not touch the disk.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    pub fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError> {
        let open = self.batch(digest.batch)?;
        self.control().hash(|out| digest.encode(out))?;
        let verified = open.expect(digest.block, digest.digest)?;
        Ok(self.queue(&open, verified))
    }

    /// Takes the digest of a block as it was received; `range` is its place in the object. To be called once for a
    /// block, after its bytes were written. The answer is as [`FileSink::expect_digest`]'s.
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
        let open = self.batch(batch)?;
        let verified = open.found(block, range, digest)?;
        Ok(self.queue(&open, verified))
    }

    /// Drops a file whose bytes the sender could not read as they were, and lists it as failed. Returns its path as the sender named it;
    /// `None` if it fails for something else already, or is not to be received.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if the batch is not open or has no such entry; a failure of the disk.
    pub fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError> {
        let open = self.batch(void.batch)?;
        self.control().hash(|out| void.encode(out))?;
        let Some(at) = open.voided(void.entry)? else { return Ok(None) };
        let file = &open.files[at];
        // Nobody makes it while it is removed.
        let making = lock(&self.making);
        if open.state(at).dropped {
            return Ok(None);
        }
        open.change(at, |state| state.dropped = true);
        self.files.forget((void.batch, at));
        let staging = &self.place()?.staging;
        staging.remove_file(file.id).map_err(|error| FilesError::system(staging.path(), error))?;
        drop(making);
        let path = self.sent_as(&file.path);
        lock(&self.outcome).add(&path, FailReason::Voided(void.reason));
        Ok(Some(path))
    }

    /// Lists a name that the sender left out.
    ///
    /// # Errors
    /// [`FilesError::Over`].
    pub fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError> {
        self.check_going()?;
        let mut control = self.control();
        control.hash(|out| skipped.encode(out))?;
        control.skipped += 1;
        control.incomplete |= skipped.reason.is_failure();
        // A name that no entry could have needs no protection.
        if let (Some(sent), Ok(path)) = (&mut control.sent, self.goes_to(&skipped.path, 0)) {
            sent.add_unread(&path);
        }
        lock(&self.outcome).add(&skipped.path, FailReason::Skipped(skipped.reason));
        Ok(())
    }

    /// Makes what takes long end soon, with [`FilesError::Over`]: the comparing of contents in [`FileSink::add_manifest_part`], and the
    /// links, deletions and folders of [`FileSink::finish`]. May be called from any thread, at any time; [`FileSink::flush`] and
    /// [`FileSink::abandon`] still do their work.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Batches that are not yet verified.
    #[must_use]
    pub fn unverified(&self) -> u64 {
        // One after the other, as everywhere: a batch that is complete meanwhile counts twice rather than not at all.
        let building = u64::from(self.control().manifest.is_building());
        building + lock(&self.open).len() as u64
    }

    /// Ends a transfer that failed or was interrupted, after its threads have stopped. What helps the same transfer to go on stays in
    /// the staging folder, whose path is returned; with `remove` what this run has made for that is removed. Files that
    /// have their final names stay.
    ///
    /// # Errors
    /// A staging folder that could not be removed.
    pub fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError> {
        self.over.store(true, Ordering::Release);
        let Some(place) = self.place.get() else { return Ok(None) };
        let staging = &place.staging;
        if staging.is_removed() {
            return Ok(None);
        }
        let useless = staging.is_useless().map_err(|error| FilesError::system(staging.path(), error))?;
        if useless || (remove && staging.is_new) {
            return place.remove().map(|()| None);
        }
        Ok(Some(staging.path().to_owned()))
    }

    /// The staging folder, if there is one yet.
    #[must_use]
    pub fn staging_path(&self) -> Option<PathBuf> {
        self.place.get().map(|place| place.staging.path().to_owned())
    }

    /// Whether the target stands for the folder whose content comes. That a path with no slash at its end names a folder over there shows
    /// only when this comes; a comparison, which touches nothing, takes the sender's word for it.
    fn is_contents(&self, control: &Control) -> bool {
        self.spec.requested.contents || (self.spec.compared && control.top.is_some())
    }

    fn place(&self) -> Result<&Place, FilesError> {
        self.place.get().ok_or(FilesError::Over)
    }

    /// The target, for a dry run; `None` if there is none.
    fn seen(&self) -> Result<Option<&DirectorySandbox>, FilesError> {
        if self.seen.get().is_none() {
            let target = open_target(&self.destination().directory)?.map(DirectorySandbox::new);
            self.seen.get_or_init(|| target);
        }
        Ok(self.seen.get().and_then(Option::as_ref))
    }

    /// Where an entry goes beneath the target.
    fn goes_to(&self, path: &[u8], batch: u32) -> Result<Vec<u8>, FilesError> {
        let Some(name) = &self.destination().rename else { return Ok(path.to_vec()) };
        let top = check_path(path)?;
        if self.renamed.get_or_init(|| top.to_vec()) != top {
            return Err(FilesError::Protocol { batch, reason: "it has several items for one name" });
        }
        Ok([name, &path[top.len()..]].concat())
    }

    /// What the sender calls a path beneath the target.
    fn sent_as(&self, path: &[u8]) -> Vec<u8> {
        sent_as(self.destination().rename.as_deref().zip(self.renamed.get().map(Vec::as_slice)), path)
    }

    fn batch(&self, number: u32) -> Result<Arc<OpenBatch>, FilesError> {
        self.check_going()?;
        let batch = lock(&self.open).get(&number).cloned();
        batch.ok_or(FilesError::Protocol { batch: number, reason: "it is not open" })
    }

    fn queue(&self, batch: &Arc<OpenBatch>, verified: Verified) -> bool {
        let Verified { files, records } = verified;
        let some = !files.is_empty() || !records.is_empty();
        lock(&self.unrecorded).extend(records);
        lock(&self.ready).extend(files.into_iter().map(|at| (Arc::clone(batch), at)));
        some
    }

    fn notice(&self, kind: NoticeKind, path: &[u8]) {
        let mut notices = lock(&self.notices);
        if notices.len() < MAX_NOTICES {
            notices.push(Notice { kind, path: path.to_vec() });
        }
    }

    /// Whether a file with this time may get it by chance when it is written, on a file system with a coarse clock.
    fn is_fresh(&self, mtime: Mtime) -> bool {
        /// The coarsest clock's step, FAT's, in seconds.
        const STEP: i64 = 2;
        mtime.seconds >= self.started - STEP
    }

    fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    fn check_going(&self) -> Result<(), FilesError> {
        if self.over.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    fn check_stopped(&self) -> Result<(), FilesError> {
        if self.stopped.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        lock(&self.control)
    }
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Control {
    /// Adds a message to the root.
    fn hash(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), crate::messages::MessageError>,
    ) -> Result<(), FilesError> {
        self.encoded.clear();
        encode(&mut self.encoded)?;
        self.root.add(&self.encoded);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
