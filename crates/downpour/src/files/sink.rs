//! Receives files: from manifest parts, byte ranges and digests to files under their final names.
//!
//! Everything is written in a staging folder inside the target ([`super::staging`]) and leaves it only when every block
//! matches its digest and the root matches, so nothing unverified, and no half file, ever has its final name. Nothing is
//! remembered of a batch once it is verified; that a name is new and that its parent is a folder of this transfer
//! the staging folder itself tells. Nothing is allocated, in memory or on disk, from a claimed size.

mod batch;
mod manifest;
mod outcome;
mod place;
mod settle;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use self::batch::OpenBatch;
use self::manifest::{Created, Manifest};
pub use self::outcome::{FailReason, Failed, Outcome};
use self::place::Place;
use super::entry::{Entry, Skipped, SourceId};
use super::error::FilesError;
use super::names::{check_path, display_name};
use super::notice::Notice;
use super::open::OpenFiles;
use super::settings::ReceiveSettings;
use super::wanted::Wanted;
use crate::messages::{Digest, End, MAX_OPEN_BATCHES, ManifestPart, RootHasher, Void};

/// A transfer being received into one folder.
///
/// What stands on flow 0 ([`Receiving::add_manifest_part`], [`Receiving::expect_digest`], [`Receiving::void`],
/// [`Receiving::skipped`], [`Receiving::finish`]) is handed over in its order, by one thread at a time; writes and found
/// digests by any thread at any time once the batch's manifest is complete. After any error the transfer is lost:
/// stop the threads and call [`Receiving::abandon`]. Dropping it leaves the staging folder where it is.
#[derive(Debug)]
pub struct Receiving {
    settings: ReceiveSettings,
    into: PathBuf,
    may_hold_some: bool,
    notices: Mutex<Vec<Notice>>,
    place: OnceLock<Place>,
    control: Mutex<Control>,
    open: Mutex<BTreeMap<u32, Arc<OpenBatch>>>,
    /// Verified files to be given mode and time.
    ready: Mutex<VecDeque<(Arc<OpenBatch>, usize)>>,
    /// By batch and index in the batch's files.
    files: OpenFiles<(u32, usize)>,
    outcome: Mutex<Outcome>,
    over: AtomicBool,
}

/// What follows the order of flow 0.
#[derive(Debug, Default)]
struct Control {
    manifest: Manifest,
    root: RootHasher,
    skipped: u64,
    /// Reused to encode messages for the root.
    encoded: Vec<u8>,
}

/// Where the manifest of a batch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestState {
    /// More parts follow.
    More,
    /// The batch's bytes may be written: those that are wanted.
    Complete(Wanted),
}

impl Receiving {
    /// Prepares to receive. Touches nothing yet.
    ///
    /// # Errors
    /// [`FilesError::TargetNotAFolder`], or a parent that is absent or closed to us.
    pub fn new(settings: ReceiveSettings) -> Result<Self, FilesError> {
        let into = settings.into.as_path();
        let failed = |path: &Path, error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotADirectory => FilesError::TargetNotAFolder { path: into.to_owned() },
            _ => FilesError::system(path, error),
        };
        match into.metadata() {
            Ok(metadata) if !metadata.is_dir() => return Err(FilesError::TargetNotAFolder { path: into.to_owned() }),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let parent = into.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                parent.metadata().map_err(|e| failed(parent, e))?;
            }
            Err(error) => return Err(failed(into, error)),
        }
        Ok(Self {
            settings: settings.clone(),
            into: into.to_owned(),
            may_hold_some: settings.dry_run,
            notices: Mutex::default(),
            place: OnceLock::new(),
            control: Mutex::default(),
            open: Mutex::default(),
            ready: Mutex::default(),
            files: OpenFiles::new(),
            outcome: Mutex::default(),
            over: AtomicBool::new(false),
        })
    }

    /// How it is received.
    #[must_use]
    pub const fn settings(&self) -> &ReceiveSettings {
        &self.settings
    }

    /// Whether the target may hold some of what comes, as it was when this value was made. If so, the caller asks the sender
    /// to wait for what is wanted of each batch; if not, each batch's [`Wanted`] is everything.
    #[must_use]
    pub fn may_hold_some(&self) -> bool {
        self.may_hold_some
    }

    /// Takes the message that begins a transfer: what is sent. Looks for what an earlier run of it has left, and makes nothing
    /// before the first manifest part.
    ///
    /// # Errors
    /// [`FilesError::Busy`] while another process receives the same; a failure of the disk.
    pub fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        self.check_going()?;
        self.control().hash(|out| source.encode(out))
    }

    /// What there is to tell the sender since the last call; to be asked for after each other call.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// Makes durable all that counts as received, so that not even a loss of power costs it. To be called when the program is told
    /// to end, from any thread; the work is bounded by what was written since the last second or so.
    ///
    /// # Errors
    /// A failure of the disk.
    pub fn flush(&self) -> Result<(), FilesError> {
        Ok(())
    }

    /// Final names among `entries` that exist already; also asked before the user accepts.
    ///
    /// # Errors
    /// A bad name, or a target that cannot be looked into.
    pub fn conflicts(&self, entries: &[Entry]) -> Result<Vec<PathBuf>, FilesError> {
        let mut names = Vec::new();
        for entry in entries {
            let top = check_path(&entry.path)?;
            if top.len() < entry.path.len() {
                // Beneath an item of its own, which was looked at when it came.
                continue;
            }
            let target = self.into.join(std::ffi::OsStr::from_bytes(top));
            match target.symlink_metadata() {
                Ok(_) => names.push(self.into.join(display_name(top))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(FilesError::system(target, error)),
            }
        }
        Ok(names)
    }

    /// Takes the next manifest part: checks every name and number in it, then makes its entries in the staging folder. When
    /// the batch's manifest is complete [`Receiving::settle`] may have work: empty files need no block.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`] with every name of the part that is in the way, [`FilesError::BadName`],
    /// [`FilesError::Protocol`]; nothing of the part was made then, except before a duplicate or a name without parent.
    /// Or a failure of the disk.
    pub fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError> {
        self.check_going()?;
        let mut control = self.control();
        let control = &mut *control;
        control.manifest.check(part)?;
        let begins = !control.manifest.is_building();
        if begins && lock(&self.open).len() >= MAX_OPEN_BATCHES {
            return Err(FilesError::Protocol { batch: part.batch, reason: "too many batches are open" });
        }
        let names = self.conflicts(&part.entries)?;
        if !names.is_empty() {
            return Err(FilesError::TargetExists { names });
        }
        control.hash(|out| part.encode(out))?;
        let place = self.make_place()?;
        let mut created = Created::default();
        let complete = control.manifest.create(part, &place.staging, &mut created);
        let mut outcome = lock(&self.outcome);
        outcome.directories += created.directories;
        outcome.symlinks += created.symlinks;
        created.failed.iter().for_each(|(path, reason)| outcome.add(path, *reason));
        drop(outcome);
        let Some(batch) = complete? else { return Ok(ManifestState::More) };
        let batch = Arc::new(batch);
        if !batch.files.is_empty() {
            lock(&self.open).insert(part.batch, Arc::clone(&batch));
            let empty = batch.empty_files();
            self.queue(&batch, empty);
        }
        Ok(ManifestState::Complete(Wanted::all()))
    }

    /// Writes a range of a batch's object. Bytes behind the object's end are padding and dropped; windows of zeros become
    /// holes.
    ///
    /// # Errors
    /// A failure of the disk, or a batch that is not open.
    pub fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        let open = self.batch(batch)?;
        let staging = &self.place()?.staging;
        for piece in open.pieces(offset, bytes.len()) {
            if open.is_voided(piece.file) {
                continue;
            }
            let path = &open.files[piece.file].path;
            let file = self.files.get((batch, piece.file), || staging.tree.open_file(path));
            match file.and_then(|file| write::write_sparse(&file, piece.inside, &bytes[piece.bytes])) {
                Ok(true) => open.note_holes(piece.file),
                Ok(false) => {}
                // It may have been voided, and so removed, since we asked.
                Err(_) if open.is_voided(piece.file) => {}
                Err(error) => return Err(FilesError::system(staging.shown(path), error)),
            }
        }
        Ok(())
    }

    /// Takes a block's digest from the sender. `true` says that files are verified by it and [`Receiving::settle`] has
    /// work; this call itself does not touch the disk.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    pub fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError> {
        let open = self.batch(digest.batch)?;
        self.control().hash(|out| digest.encode(out))?;
        let finished = open.expect(digest.block, digest.digest)?;
        Ok(self.queue(&open, finished))
    }

    /// Takes the digest of a block as it was received; `range` is its place in the object. To be called once for a
    /// block, after its bytes were written. The answer is as [`Receiving::expect_digest`]'s.
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
        let finished = open.found(block, range, digest)?;
        Ok(self.queue(&open, finished))
    }

    /// Drops a file whose bytes the sender could not read as they were, and lists it as failed.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if the batch is not open or the entry no regular file; a failure of the disk.
    pub fn void(&self, void: &Void) -> Result<(), FilesError> {
        let open = self.batch(void.batch)?;
        self.control().hash(|out| void.encode(out))?;
        let Some(at) = open.void(void.entry)? else { return Ok(()) };
        let path = &open.files[at].path;
        let staging = &self.place()?.staging;
        self.files.forget((void.batch, at));
        staging.tree.remove_file(path).map_err(|error| FilesError::system(staging.shown(path), error))?;
        lock(&self.outcome).add(path, FailReason::Voided(void.reason));
        Ok(())
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
        lock(&self.outcome).add(&skipped.path, FailReason::Skipped(skipped.reason));
        Ok(())
    }

    /// Batches that are not yet verified.
    #[must_use]
    pub fn unverified(&self) -> u64 {
        lock(&self.open).len() as u64 + u64::from(self.control().manifest.is_building())
    }

    /// Ends the transfer: checks the counts and the root, makes everything durable and moves each item to its final name,
    /// all of them or none. The caller has seen [`Receiving::unverified`] fall to zero.
    ///
    /// # Errors
    /// [`FilesError::Incomplete`], [`FilesError::Protocol`], [`FilesError::Root`], [`FilesError::TargetExists`] if a name
    /// appeared during the transfer, or a failure of the disk. Nothing stands under a final name then, unless the disk
    /// fails at the very last step, the sync of the target folder.
    pub fn finish(&self, end: &End) -> Result<Outcome, FilesError> {
        self.check_going()?;
        let unverified = self.unverified();
        if unverified > 0 {
            return Err(FilesError::Incomplete { unverified });
        }
        let control = self.control();
        let Manifest { batches, entries, bytes, .. } = control.manifest;
        if (end.batches, end.entries, end.bytes, end.skipped) != (batches, entries, bytes, control.skipped) {
            return Err(FilesError::Protocol { batch: batches, reason: "the end counts other than what came" });
        }
        if end.root != control.root.root() {
            return Err(FilesError::Root);
        }
        self.over.store(true, Ordering::Release);
        if let Some(place) = self.place.get() {
            place.put(&self.into)?;
        }
        Ok(lock(&self.outcome).clone())
    }

    /// Ends a transfer that failed or was interrupted, after its threads have stopped. With `remove` the staging folder
    /// and what was made for it is removed; otherwise it stays. Returns the staging folder if there is one now.
    ///
    /// # Errors
    /// A staging folder that could not be removed.
    pub fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError> {
        self.over.store(true, Ordering::Release);
        let Some(place) = self.place.get() else { return Ok(None) };
        if place.staging.is_removed() {
            return Ok(None);
        }
        if !remove {
            return Ok(Some(place.staging.path().to_owned()));
        }
        place.remove(&self.into).map(|()| None)
    }

    /// The staging folder, if there is one yet.
    #[must_use]
    pub fn staging_path(&self) -> Option<PathBuf> {
        self.place.get().map(|place| place.staging.path().to_owned())
    }

    /// Makes target and staging folder unless they are there. The control lock keeps a second thread out.
    fn make_place(&self) -> Result<&Place, FilesError> {
        match self.place.get() {
            Some(place) => Ok(place),
            None => {
                let place = Place::make(&self.into)?;
                Ok(self.place.get_or_init(|| place))
            }
        }
    }

    fn place(&self) -> Result<&Place, FilesError> {
        self.place.get().ok_or(FilesError::Over)
    }

    fn batch(&self, number: u32) -> Result<Arc<OpenBatch>, FilesError> {
        self.check_going()?;
        let batch = lock(&self.open).get(&number).cloned();
        batch.ok_or(FilesError::Protocol { batch: number, reason: "it is not open" })
    }

    fn queue(&self, batch: &Arc<OpenBatch>, files: Vec<usize>) -> bool {
        let some = !files.is_empty();
        lock(&self.ready).extend(files.into_iter().map(|at| (Arc::clone(batch), at)));
        some
    }

    fn check_going(&self) -> Result<(), FilesError> {
        if self.over.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        lock(&self.control)
    }
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
