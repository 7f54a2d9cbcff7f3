//! The publisher: makes verified files durable and moves them to their final names, in groups. While the disk syncs one
//! group, the previous one gets its final names and the next one is gathered.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{mem, panic, thread};

use request::Existing;
use rustix::io::Errno;

use super::super::error::FilesError;
use super::super::journal::{Item, Record};
use super::super::metadata::birth;
use super::super::staged_id::StagedId;
use super::batch::OpenBatch;
use super::shared::Shared;
use super::target::TargetDirectory;
use super::verifier::Verifier;
use super::writer::Writer;
use crate::lock::lock;
use crate::sandbox::errno;

/// A group is synced at this interval, if there is anything to sync...
const INTERVAL: Duration = Duration::from_secs(1);
/// ... or when this many files are waiting...
const MAX_FILES: usize = 4096;
/// ... or this many bytes in them.
const MAX_BYTES: u64 = 256 << 20;

/// While a sync is running, verified blocks are settled at this interval...
const GATHERING: Duration = Duration::from_millis(2);
/// ... and after this many files moved to their final names.
const PLACED_AT_ONCE: usize = 64;

/// Verified data waiting to be made durable.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Complete files, moved to their final names once durable.
    files: Vec<(Arc<OpenBatch>, usize)>,
    /// Bytes in them.
    bytes: u64,
    /// Files with ranges in the journal, to be confirmed once durable.
    recorded: HashSet<StagedId>,
    /// Batches that are complete with this group.
    complete: Vec<u32>,
    /// Arrival of the first part of the group.
    since: Option<Instant>,
    /// Whether to sync the group even though the transfer is to stop.
    is_last: bool,
}

impl Group {
    /// Adds files with journal records that are not known to be durable.
    pub(super) fn expect_of_disk(&mut self, files: impl Iterator<Item = StagedId>) {
        self.recorded.extend(files);
    }

    /// Adds files with new journal records.
    pub(super) fn add_recorded(&mut self, files: impl Iterator<Item = StagedId>) {
        self.since.get_or_insert_with(runtime::now);
        self.recorded.extend(files);
    }

    /// Adds a complete file.
    pub(super) fn add_file(&mut self, batch: &Arc<OpenBatch>, at: usize) {
        self.since.get_or_insert_with(runtime::now);
        self.bytes += batch.files[at].size;
        self.files.push((Arc::clone(batch), at));
    }

    /// Marks the group as completing a batch.
    pub(super) fn complete_batch(&mut self, number: u32) {
        self.complete.push(number);
    }

    /// Marks the group as the last one.
    pub(super) fn end(&mut self) {
        self.is_last = true;
    }

    fn is_full(&self) -> bool {
        self.files.len() >= MAX_FILES || self.bytes >= MAX_BYTES
    }

    fn is_due(&self) -> bool {
        !self.complete.is_empty() || self.is_full() || self.since.is_some_and(|since| runtime::since(since) >= INTERVAL)
    }

    fn needs_disk(&self) -> bool {
        !self.files.is_empty() || !self.recorded.is_empty()
    }
}

/// The group being gathered.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    group: Mutex<Group>,
}

/// The components that the publisher works with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline<'a> {
    pub(super) shared: &'a Shared,
    pub(super) verifier: &'a Verifier,
    pub(super) writer: &'a Writer,
}

impl Publisher {
    /// Adds recorded ranges of an earlier run that are not known to be durable: the next sync has to cover them.
    pub(super) fn continue_from(&self, place: &TargetDirectory) {
        lock(&self.group).expect_of_disk(place.staging.held().not_durable());
    }

    /// See [`FileSink::settle`](super::FileSink::settle).
    pub(super) fn settle(&self, work: Pipeline<'_>, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        work.settle_ready(&mut group)?;
        work.place_groups(&mut group, placed)
    }

    /// See [`FileSink::flush`](super::FileSink::flush).
    pub(super) fn flush(&self, work: Pipeline<'_>) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        work.settle_ready(&mut group)?;
        group.end();
        work.place_groups(&mut group, &mut |_, _| {})
    }
}

impl Pipeline<'_> {
    /// Records the data verified since the last call, and finishes the complete files for the next group.
    fn settle_ready(&self, group: &mut Group) -> Result<(), FilesError> {
        loop {
            self.shared.phase.check_going()?;
            let (next, records) = self.verifier.take();
            // Ranges of complete files are recorded first.
            self.record(group, &records)?;
            let Some((batch, at)) = next else { return Ok(()) };
            let place = self.shared.place()?;
            match self.writer.complete(place, &batch, at) {
                Ok(Some(applied)) => {
                    if let Some(kind) = applied.notice() {
                        self.shared.refused(&self.shared.sent_as(&batch.files[at].path), kind);
                    }
                    group.add_file(&batch, at);
                }
                Ok(None) => self.shared.claims.release(batch.files[at].id.path()),
                Err(error) => {
                    self.fail_file(place, &batch, at, error)?;
                    self.shared.claims.release(batch.files[at].id.path());
                }
            }
            if self.verifier.settled(&batch)? {
                group.complete_batch(batch.number);
            }
        }
    }

    /// Writes verified ranges to the journal.
    fn record(&self, group: &mut Group, records: &[Record]) -> Result<(), FilesError> {
        if records.is_empty() {
            return Ok(());
        }
        let staging = &self.shared.place()?.staging;
        staging.journal.append(records).map_err(|error| FilesError::system(staging.path(), error))?;
        group.add_recorded(records.iter().filter_map(|record| match record {
            Record::Verified(id, ..) => Some(*id),
            Record::Synced(_) | Record::Item(_) | Record::Dropped(..) => None,
        }));
        Ok(())
    }

    /// Makes groups durable and moves their files to their final names, until none is due. Once the transfer is to stop
    /// soon, only the last group is synced, into which [`Publisher::flush`] puts everything left: each sync may take
    /// seconds.
    fn place_groups(&self, group: &mut Group, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        let mut durable = None;
        let is_wanted = |group: &Group| group.is_last || (group.is_due() && self.shared.phase.check_stopped().is_ok());
        while durable.is_some() || is_wanted(group) {
            let asked = is_wanted(group).then(|| mem::take(group));
            durable = match asked {
                Some(asked) if asked.needs_disk() => {
                    let place = self.shared.place()?;
                    // Records written during the sync are not confirmed.
                    let until = place.staging.journal.records();
                    let sync = || self.make_durable(place, &asked, until);
                    self.place_during(group, durable.unwrap_or_default(), placed, sync)?;
                    Some(asked)
                }
                next => {
                    self.place_group(group, durable.unwrap_or_default(), placed)?;
                    next
                }
            };
        }
        Ok(())
    }

    /// Runs `sync`, which blocks on the disk. Meanwhile the previous group, `durable`, gets its final names, and
    /// verified data is recorded in the journal and added to the next `group`: the sync may take seconds, and a process
    /// killed during it loses nothing.
    fn place_during(
        &self,
        group: &mut Group,
        durable: Group,
        placed: &mut dyn FnMut(&[u8], u64),
        sync: impl FnOnce() -> Result<(), FilesError> + Send,
    ) -> Result<(), FilesError> {
        let settling = thread::current();
        thread::scope(|scope| {
            let work = move || {
                let result = sync();
                settling.unpark();
                result
            };
            let spawned = runtime::spawn_scoped(scope, "downpour-sync", work);
            let syncing = spawned
                .map_err(|error| self.distrust(FilesError::system(&self.shared.destination().directory, error)))?;
            let gathered = self.place_group(group, durable, placed).and_then(|()| {
                while !syncing.is_finished() {
                    self.gather(group)?;
                    runtime::wait(Some(runtime::now() + GATHERING), |left| {
                        thread::park_timeout(left.unwrap_or_default());
                        syncing.is_finished()
                    });
                }
                Ok(())
            });
            let synced = syncing.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
            // A failed sync takes precedence over other errors: data that is not durable must not be synced again.
            synced.map_err(|error| self.distrust(error))?;
            gathered
        })
    }

    /// Settles verified blocks, unless the group is full: then it has to be synced first.
    fn gather(&self, group: &mut Group) -> Result<(), FilesError> {
        if group.is_full() { Ok(()) } else { self.settle_ready(group) }
    }

    /// Invalidates the data of a failed sync, since it is in no group any more.
    fn distrust(&self, error: FilesError) -> FilesError {
        if let Some(place) = self.shared.staged() {
            // If even this cannot be written, at least this process confirms nothing any more.
            let _ = place.staging.journal.invalidate();
        }
        error
    }

    /// Syncs everything in the group, and confirms it in the journal, whose first `until` records are then durable.
    fn make_durable(&self, place: &TargetDirectory, group: &Group, until: u64) -> Result<(), FilesError> {
        let staging = &place.staging;
        let failed = |error| FilesError::system(staging.path(), error);
        // An earlier failure to sync the whole file system may have hit these files too, and is reported only once.
        staging.journal.check().map_err(failed)?;
        let complete: HashSet<_> = group.files.iter().map(|(batch, at)| batch.files[*at].id).collect();
        let mut ids: Vec<_> = group.recorded.difference(&complete).copied().collect();
        let mut records = Vec::new();
        if !ids.is_empty() {
            records.push(Record::Synced(until));
        }
        ids.extend(complete);
        staging.sync(&ids).map_err(failed)?;
        if self.shared.spec.existing == Existing::Refuse {
            for (batch, at) in &group.files {
                let file = &batch.files[*at];
                if place.is_guarded(&file.path)
                    && let Ok(found) = staging.look(file.id)
                {
                    let birth = birth(&staging.dir, file.id.place());
                    records.push(Record::Item(Item::new(&file.path, found.identity.inode, birth)));
                }
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        staging.journal.append(&records).and_then(|()| staging.journal.sync()).map_err(failed)
    }

    /// Moves the files of a durable group to their final names, and closes the batches that it completes. Data verified
    /// meanwhile goes into the next `group`.
    fn place_group(
        &self,
        group: &mut Group,
        durable: Group,
        placed: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(), FilesError> {
        for files in durable.files.chunks(PLACED_AT_ONCE) {
            let place = self.shared.place()?;
            for (batch, at) in files {
                self.place_file(place, batch, *at, placed)?;
            }
            self.shared.phase.note_change();
            self.gather(group)?;
        }
        // All their files are in place.
        for number in durable.complete {
            self.shared.batch_stored(number);
            self.verifier.close(number);
        }
        Ok(())
    }

    fn place_file(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        at: usize,
        placed: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(), FilesError> {
        let file = &batch.files[at];
        self.shared.claims.release(file.id.path());
        match place.publish(&file.id.place(), &file.path) {
            Ok(()) => {
                let noted = place.note_file(&file.path);
                noted.map_err(|error| FilesError::system(place.staging.path(), error))?;
                let stored = self.shared.note_stored(place, (batch.number, file.entry), &file.path);
                stored.map_err(|error| FilesError::system(place.shown(&file.path), error))?;
                self.shared.report.update(|outcome| {
                    outcome.files += 1;
                    outcome.bytes += file.size;
                });
                placed(&self.shared.sent_as(&file.path), file.size);
                Ok(())
            }
            Err(error) if place.is_guarded(&file.path) && errno(&error) == Errno::EXIST => {
                Err(FilesError::TargetExists { names: vec![place.shown(&file.path)] })
            }
            Err(error) => self.fail_file(place, batch, at, error),
        }
    }

    /// Reports a complete file as failed because it cannot be put in place.
    fn fail_file(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        at: usize,
        error: io::Error,
    ) -> Result<(), FilesError> {
        let file = &batch.files[at];
        let kind = place.refusal(&file.path, error)?;
        place.staging.remove_file(file.id).map_err(|error| FilesError::system(place.staging.path(), error))?;
        self.shared.refused(&self.shared.sent_as(&file.path), kind);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::FileSink;
    use crate::messages::{Digest, ManifestPart};
    use crate::{Entry, EntryKind, Extra, Mtime, ReceiveRequest, SourceId};

    const SIZE: usize = 3000;
    const TIME: i64 = 1_000_000_000;

    /// Announces a batch of one file.
    fn announce(receiving: &FileSink, batch: u32, name: &str) {
        let entry = Entry {
            path: name.into(),
            kind: EntryKind::File { size: SIZE as u64, version: 1, hash: None },
            mode: 0o644,
            mtime: Mtime { seconds: TIME, nanoseconds: 0 },
            extra: Extra::default(),
        };
        let part =
            ManifestPart { batch, length: SIZE as u64, last: true, whole: false, again: false, entries: vec![entry] };
        receiving.add_manifest_part(&part).unwrap();
    }

    fn receive(receiving: &FileSink, batch: u32) {
        let bytes = [7; SIZE];
        let digest = *blake3::hash(&bytes).as_bytes();
        receiving.write(batch, 0, &bytes).unwrap();
        receiving.expect_digest(&Digest { batch, block: 0, digest }).unwrap();
        assert!(receiving.found_digest(batch, 0, 0..SIZE as u64, digest).unwrap());
    }

    fn wait_until(what: &str, holds: impl Fn() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_complete(path: &Path) -> bool {
        path.metadata().is_ok_and(|found| std::os::unix::fs::MetadataExt::mtime(&found) == TIME)
    }

    /// Starts a receiver of a transfer into `dir`.
    fn begin(dir: &Path) -> FileSink {
        let receiving = FileSink::new(ReceiveRequest::into_directory(dir)).unwrap();
        receiving.begin(SourceId([1; 16])).unwrap();
        receiving
    }

    #[test]
    fn failed_sync_data_is_received_again() {
        let dir = tempfile::tempdir().unwrap();
        let receiving = begin(dir.path());
        for (batch, name) in (0..).zip(["lost", "next"]) {
            announce(&receiving, batch, name);
        }
        receive(&receiving, 0);
        receiving.pipeline().settle_ready(&mut Group::default()).unwrap();
        let sync = || {
            receive(&receiving, 1);
            Err(FilesError::system(dir.path(), Errno::IO))
        };
        let failed = receiving.pipeline().place_during(
            &mut lock(&receiving.publisher.group),
            Group::default(),
            &mut |_, _| {},
            sync,
        );
        assert!(failed.unwrap_err().to_string().ends_with("Input/output error"));
        // A second sync would succeed, since the failure is reported only once.
        assert!(receiving.flush().is_err());
        assert!(!dir.path().join("next").exists());
        receiving.abandon(false).unwrap();
        drop(receiving);

        let receiving = begin(dir.path());
        announce(&receiving, 0, "lost");
        receiving.settle(|name, _| panic!("{name:?} was published without being received again")).unwrap();
        receive(&receiving, 0);
        receiving.flush().unwrap();
        assert!(is_complete(&dir.path().join("lost")));
    }

    #[test]
    fn full_group_is_synced_before_it_grows() {
        let dir = tempfile::tempdir().unwrap();
        let receiving = begin(dir.path());
        announce(&receiving, 0, "file");
        let mut group = Group { bytes: MAX_BYTES, ..Group::default() };
        let sync = || {
            receive(&receiving, 0);
            // Long enough to be gathered.
            thread::sleep(20 * GATHERING);
            Ok(())
        };
        receiving.pipeline().place_during(&mut group, Group::default(), &mut |_, _| {}, sync).unwrap();
        assert_eq!((group.files.len(), receiving.verifier.waiting()), (0, 1));
        // The remaining blocks are settled once there is room.
        receiving.settle(|_, _| {}).unwrap();
        assert!(is_complete(&dir.path().join("file")));
    }

    #[test]
    fn stopped_publisher_syncs_only_on_flush() {
        let dir = tempfile::tempdir().unwrap();
        let receiving = begin(dir.path());
        announce(&receiving, 0, "file");
        receive(&receiving, 0);
        receiving.stop();
        receiving.settle(|_, _| {}).unwrap();
        assert!(!dir.path().join("file").exists());
        receiving.flush().unwrap();
        assert!(is_complete(&dir.path().join("file")));
    }

    #[test]
    fn busy_disk_delays_no_other_group() {
        let dir = tempfile::tempdir().unwrap();
        let receiving = begin(dir.path());
        for (batch, name) in (0..).zip(["before", "next"]) {
            announce(&receiving, batch, name);
        }
        let id = receiving.verifier.batch(1).unwrap().files[0].id;
        let next = receiving.staging_path().unwrap().join(id.place());

        let (mut durable, mut group, mut names) = (Group::default(), Group::default(), Vec::new());
        receive(&receiving, 0);
        receiving.pipeline().settle_ready(&mut durable).unwrap();
        let sync = || {
            wait_until("the group before has its names", || dir.path().join("before").exists());
            receive(&receiving, 1);
            wait_until("a file received meanwhile is complete", || is_complete(&next));
            assert!(!dir.path().join("next").exists(), "published before it was synced");
            Ok(())
        };
        receiving.pipeline().place_during(&mut group, durable, &mut |path, _| names.push(path.to_vec()), sync).unwrap();
        assert_eq!(names, [b"before"]);
        assert_eq!(receiving.unverified(), 1);

        receiving.pipeline().place_groups(&mut group, &mut |path, _| names.push(path.to_vec())).unwrap();
        assert_eq!(names, [&b"before"[..], b"next"]);
        assert_eq!(receiving.unverified(), 0);
        assert!(is_complete(&dir.path().join("next")) && !next.exists());
    }
}
