//! A target in memory: announced names, blocks and digests become names of the tree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use request::{Existing, Outputs, ReceiveRequest, TargetPath, check_path};

use super::disk::{Disk, Node};
use super::placed::PlacedEntries;
use super::{join, key, unsupported};
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::{
    Attributes, Digest, Entry, IdName, ManifestPart, Mtime, Notice, SkipReason, Skipped, SourceId, StoredEntry,
    TransferEnd, Void,
};
use crate::seam::TreeTarget;
use crate::sink::announcement_check::AnnouncedNames;
use crate::sink::batch::ReceivedFile;
use crate::sink::manifest::{CompleteManifest, Manifest};
use crate::sink::report::ReceiveLog;
use crate::sink::verifier::Verifier;
use crate::sink::{FailReason, ManifestState, ReceiveOutcome};
use crate::staged_id::path_hash;

/// A directory of a tree in memory that receives one transfer.
///
/// Files with the size and time, or the digest, of received ones are present data: nothing of an incomplete file is
/// kept. Attributes of directories are set at once, since nothing else changes them. A directory with names in it is
/// not replaced by anything else.
#[derive(Debug)]
pub struct MemoryTarget {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) spec: Arc<ReceiveRequest>,
    destination: TargetPath,
    /// Its path in the tree.
    base: Vec<u8>,
    source: OnceLock<SourceId>,
    manifest: Manifest,
    verifier: Verifier,
    pub(super) report: ReceiveLog,
    pub(super) placed: PlacedEntries,
    /// Hashes of the paths of files that are being received.
    pub(super) claimed: Mutex<HashSet<u64>>,
    /// Bytes of files that have no name yet, by batch and index in it.
    staged: Mutex<HashMap<(u32, usize), Vec<u8>>>,
    /// The batch, and the position in its object, that was written last.
    written: Mutex<Option<(u32, u64)>>,
    over: AtomicBool,
    stopped: AtomicBool,
}

impl MemoryTarget {
    pub(super) fn new(
        disk: Arc<Mutex<Disk>>,
        spec: Arc<ReceiveRequest>,
        target_is_directory: bool,
    ) -> Result<Self, FilesError> {
        check_supported(&spec)?;
        if spec.named().is_some() && !target_is_directory {
            return Err(unsupported("a target that is the name of an item"));
        }
        let (destination, base) = (spec.in_target(), key(&spec.target)?);
        let slashes = base.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in slashes.chain([base.len()]) {
            if lock(&disk).look(&base[..end])?.is_some_and(|seen| !seen.node.is_directory()) {
                return Err(FilesError::TargetNotADirectory { path: destination.directory });
            }
        }
        Ok(Self {
            disk,
            destination,
            base,
            source: OnceLock::new(),
            manifest: Manifest::new(&spec),
            spec,
            verifier: Verifier::default(),
            report: ReceiveLog::default(),
            placed: PlacedEntries::default(),
            claimed: Mutex::default(),
            staged: Mutex::default(),
            written: Mutex::default(),
            over: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// Returns the path in the tree of a name beneath the target.
    pub(super) fn place(&self, path: &[u8]) -> Vec<u8> {
        join(&self.base, path)
    }

    pub(super) fn check_stopped(&self) -> Result<(), FilesError> {
        if self.stopped.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    /// Publishes a node under a name beneath the target.
    pub(super) fn publish(&self, path: &[u8], node: Node) -> Result<(), FilesError> {
        let place = self.place(path);
        let mut disk = lock(&self.disk);
        // Noted first: a failed call may have had its effect.
        if let Some(source) = self.source.get().filter(|_| !path.contains(&b'/')) {
            disk.own(*source, &place);
        }
        disk.publish(&place, node)
    }

    fn check_going(&self) -> Result<(), FilesError> {
        if self.over.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    /// Makes the directory of the items, whose parent has to exist.
    fn make_base(&self) -> Result<(), FilesError> {
        let mut disk = lock(&self.disk);
        match disk.look(&self.base)? {
            Some(_) => Ok(()),
            None => disk.publish(&self.base, Node::directory(0o755, Mtime::default())),
        }
    }

    /// Checks that no item exists that must not be replaced, unless an earlier run has made it.
    fn check_conflicts(&self, entries: &[Entry]) -> Result<(), FilesError> {
        if self.spec.existing != Existing::Refuse {
            return Ok(());
        }
        let (mut disk, mut names) = (lock(&self.disk), Vec::new());
        for entry in entries.iter().filter(|entry| !entry.path.contains(&b'/')) {
            let place = self.place(&entry.path);
            let is_own = self.source.get().is_some_and(|source| disk.is_own(*source, &place));
            if !is_own && disk.look(&place)?.is_some() {
                names.push(disk.shown(&place));
            }
        }
        if names.is_empty() { Ok(()) } else { Err(FilesError::TargetExists { names }) }
    }

    /// Publishes a file whose bytes are verified.
    fn publish_file(&self, batch: u32, at: usize, file: &ReceivedFile) -> Result<(), FilesError> {
        let mut bytes = lock(&self.staged).remove(&(batch, at)).unwrap_or_default();
        // Blocks beyond a file's end are cut at its end, and a file without blocks is empty.
        bytes.truncate(usize::try_from(file.size).unwrap_or(usize::MAX));
        let node = Node::file(bytes, file.mode, file.mtime);
        self.publish(&file.path, node.clone())?;
        self.report.update(|outcome| {
            outcome.files += 1;
            outcome.bytes += file.size;
        });
        self.note_placed((batch, file.entry), &file.path, Some(&node))
    }

    /// Notes an entry that is in place, if the existing node is the `published` one: a store that reports success may
    /// not have it. `None` means the node that was inspected just now.
    pub(super) fn note_placed(
        &self,
        (batch, entry): (u32, u32),
        path: &[u8],
        published: Option<&Node>,
    ) -> Result<(), FilesError> {
        if !self.spec.report_stored {
            return Ok(());
        }
        let seen = lock(&self.disk).look(&self.place(path))?;
        let found = seen.filter(|seen| published.is_none_or(|node| seen.node == *node));
        if let Some(seen) = found {
            self.placed.add(batch, StoredEntry { entry, version: seen.version });
        }
        Ok(())
    }
}

impl TreeTarget for MemoryTarget {
    fn spec(&self) -> &ReceiveRequest {
        &self.spec
    }

    fn destination(&self) -> &TargetPath {
        &self.destination
    }

    fn is_decided(&self) -> bool {
        true
    }

    /// Always true: to find out costs nothing in memory.
    fn may_have_data(&self) -> bool {
        true
    }

    fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        self.check_going()?;
        if self.source.set(source).is_err() {
            return Err(FilesError::Protocol { batch: 0, reason: "began the transfer twice" });
        }
        self.manifest.intake().begin(source)
    }

    fn decide(&self, _: Option<&Entry>) -> Result<(), FilesError> {
        Ok(())
    }

    fn check_offer(&self, parts: &mut dyn Iterator<Item = &ManifestPart>) -> Result<(), FilesError> {
        let permitted = &self.spec.permitted;
        let mut announced = AnnouncedNames::new(permitted);
        for part in parts {
            for entry in &part.entries {
                check_path(&entry.path).map_err(|reason| FilesError::bad_name(&entry.path, reason))?;
                announced.add(entry, permitted)?;
            }
            self.check_conflicts(&part.entries)?;
        }
        Ok(())
    }

    fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError> {
        self.check_going()?;
        let mut intake = self.manifest.intake();
        intake.check(part, &self.spec.permitted, self.verifier.open_batches())?;
        self.check_conflicts(&part.entries)?;
        intake.hash(|out| part.encode(out))?;
        if !self.spec.dry_run {
            self.make_base()?;
        }
        intake.batches.building(part);
        self.take_entries(&mut intake, part)?;
        let Some(CompleteManifest { batch, wanted, whole, .. }) = intake.batches.done(part, false)? else {
            return Ok(ManifestState::More);
        };
        if batch.files.is_empty() {
            self.placed.complete(batch.number);
        }
        self.verifier.open(batch);
        Ok(if whole { ManifestState::Whole(wanted) } else { ManifestState::Complete(wanted) })
    }

    fn top(&self, top: Attributes) -> Result<(), FilesError> {
        self.check_going()?;
        self.manifest.intake().top(top)
    }

    fn id_name(&self, name: &IdName) -> Result<(), FilesError> {
        self.check_going()?;
        self.manifest.intake().id_name(name)
    }

    fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError> {
        self.check_going()?;
        let mut intake = self.manifest.intake();
        intake.skip(skipped)?;
        if let Some(sent) = intake.sent.as_mut().filter(|_| skipped.reason != SkipReason::LargeXattrs) {
            sent.add_unread(&skipped.path);
        }
        self.report.fail(&skipped.path, FailReason::Skipped(skipped.reason));
        Ok(())
    }

    fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError> {
        self.check_going()?;
        let batch = self.verifier.batch(void.batch)?;
        self.manifest.hash(|out| void.encode(out))?;
        let Some(at) = self.verifier.voided(&batch, void.entry)? else { return Ok(None) };
        let (path, was_due) = (batch.files[at].path.to_vec(), !batch.state(at).dropped);
        batch.change(at, |state| state.dropped = true);
        lock(&self.staged).remove(&(batch.number, at));
        if void.reason.may_pass() && !batch.again {
            let size = batch.files[at].size;
            self.manifest.intake().voided.entry(path_hash(&path)).or_insert((was_due, size));
        }
        if !was_due {
            return Ok(None);
        }
        lock(&self.claimed).remove(&path_hash(&path));
        self.report.fail(&path, FailReason::Voided(void.reason));
        Ok(Some(path))
    }

    fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError> {
        self.check_going()?;
        self.verifier.batch(digest.batch)?;
        self.manifest.hash(|out| digest.encode(out))?;
        self.verifier.expect(digest.batch, digest.block, digest.digest)
    }

    fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        self.check_going()?;
        let batch = self.verifier.batch(batch)?;
        *lock(&self.written) = Some((batch.number, offset));
        for piece in batch.pieces(offset, bytes.len()).filter(|piece| !batch.state(piece.file).dropped) {
            let place = self.place(&batch.files[piece.file].path);
            let mut staged = lock(&self.staged);
            let staged = staged.entry((batch.number, piece.file)).or_default();
            let (mut at, mut rest) = (piece.inside, &bytes[piece.bytes]);
            while !rest.is_empty() {
                let written = lock(&self.disk).write(&place, staged, at, rest)?;
                (at, rest) = (at + written as u64, &rest[written..]);
            }
        }
        Ok(())
    }

    fn copied(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError> {
        self.check_going()?;
        self.verifier.trust(batch, range)
    }

    fn add_local_digest(
        &self,
        batch: u32,
        block: u32,
        range: Range<u64>,
        digest: [u8; 32],
    ) -> Result<bool, FilesError> {
        self.check_going()?;
        self.verifier.found(batch, block, range, digest)
    }

    fn publish_ready(&self, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        while let (Some((batch, at)), _) = self.verifier.take() {
            let file = &batch.files[at];
            if !batch.state(at).dropped {
                self.publish_file(batch.number, at, file)?;
                lock(&self.claimed).remove(&path_hash(&file.path));
                placed(&file.path, file.size);
            }
            if self.verifier.settled(&batch)? {
                self.verifier.close(batch.number);
                self.placed.complete(batch.number);
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), FilesError> {
        self.publish_ready(&mut |_, _| {})
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn unverified(&self) -> u64 {
        u64::from(self.manifest.intake().batches.is_building()) + self.verifier.open_batches() as u64
    }

    fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError> {
        self.manifest.intake().check_end(end)
    }

    fn finish(&self, end: &TransferEnd) -> Result<ReceiveOutcome, FilesError> {
        self.check_going()?;
        self.check_stopped()?;
        let unverified = self.unverified();
        if unverified > 0 {
            return Err(FilesError::Incomplete { unverified });
        }
        let intake = self.manifest.intake();
        intake.check_end(end)?;
        if !self.spec.dry_run {
            self.make_base()?;
        }
        self.over.store(true, Ordering::Release);
        self.delete(&intake)?;
        self.seal_top(&intake)?;
        if let Some(source) = self.source.get().filter(|_| !self.spec.dry_run) {
            lock(&self.disk).disown(*source);
        }
        Ok(self.report.outcome())
    }

    fn abandon(&self, _: bool) -> Result<Option<PathBuf>, FilesError> {
        self.over.store(true, Ordering::Release);
        lock(&self.staged).clear();
        Ok(None)
    }

    fn take_notices(&self) -> Vec<Notice> {
        self.report.take_notices()
    }

    fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)> {
        if self.spec.report_stored { self.placed.take() } else { Vec::new() }
    }

    fn current(&self) -> Option<Vec<u8>> {
        let (number, offset) = (*lock(&self.written))?;
        // Its batch may be closed.
        let batch = self.verifier.batch(number).ok()?;
        let piece = batch.pieces(offset, 1).next()?;
        batch.files.get(piece.file).map(|file| file.path.to_vec())
    }

    fn in_place(&self) -> u64 {
        self.report.files()
    }
}

/// Refuses every part of a request except those named here, which memory supports.
fn check_supported(spec: &ReceiveRequest) -> Result<(), FilesError> {
    let known = ReceiveRequest {
        requested: spec.requested.clone(),
        existing: spec.existing,
        compare: spec.compare,
        modes: spec.modes,
        delete: spec.delete.clone(),
        force_empty: spec.force_empty,
        safe_links: spec.safe_links,
        dry_run: spec.dry_run,
        report_stored: spec.report_stored,
        permitted: spec.permitted.clone(),
        preserve: spec.preserve,
        // They make no difference in memory: the target asks for differences.
        one_file_system: spec.one_file_system,
        trust_staging: spec.trust_staging,
        differences: spec.differences,
        ..ReceiveRequest::to_target(&spec.target)
    };
    let refused = [
        (spec.modify_window > 0, "tolerances of times"),
        (!spec.eligible.is_everything(), "limits of file sizes"),
        (spec.chmod.is_some(), "changes of modes"),
        (spec.omit_directory_times, "omitting the times of directories"),
        (spec.make_path, "making the parent directories of the target"),
        (!spec.preserve.is_nothing(), "preserving owners and further attributes"),
        (spec.max_delete.is_some(), "limits of deletion"),
        (spec.compare_trees, "comparing two trees"),
        (!spec.link_dest.is_empty(), "hard links to files of other trees"),
        (spec.backup.is_some(), "backups"),
        (spec.within.is_some(), "restricted targets"),
        (spec.outputs != Outputs::default(), "output files"),
        (spec.permitted.lets_host_choose(), "names chosen by the peer"),
        (*spec != known, "one of these options"),
    ];
    refused.into_iter().find(|(is_asked, _)| *is_asked).map_or(Ok(()), |(_, feature)| Err(unsupported(feature)))
}
