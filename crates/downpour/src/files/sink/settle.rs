//! From verified bytes to durable files under their final names.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use rustix::fs::fsync;
use rustix::io::Errno;

use super::super::error::FilesError;
use super::super::journal::{Item, Record};
use super::super::metadata::birth;
use super::super::settings::Existing;
use super::super::staged_id::StagedId;
use super::super::staging::{Staging, sync_at_once, sync_file_system};
use super::batch::OpenBatch;
use super::entries::made_with;
use super::place::Place;
use super::{Receiving, lock};
use crate::files::beneath::errno;

/// The disk is asked to have everything this often, while there is anything.
const INTERVAL: Duration = Duration::from_secs(1);
/// Or at so many files that wait for it...
const MAX_FILES: usize = 4096;
/// ... or at so many bytes in them.
const MAX_BYTES: u64 = 256 << 20;

/// While the disk is asked, what is verified goes on record this often.
const RECORDING: Duration = Duration::from_millis(2);

/// What is verified and waits to be durable.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Complete files, to be moved to their final names then.
    files: Vec<(Arc<OpenBatch>, usize)>,
    /// Bytes in them.
    bytes: u64,
    /// Files of which ranges were put on record, to be confirmed then.
    recorded: HashSet<StagedId>,
    /// When the first of all this came.
    since: Option<Instant>,
    /// A batch is at its end: nothing more may come for long.
    ended: bool,
}

impl Group {
    /// Adds files of which more is on record than the disk is known to have.
    pub(super) fn expect_of_disk(&mut self, files: impl Iterator<Item = StagedId>) {
        self.recorded.extend(files);
    }

    fn is_full(&self) -> bool {
        self.files.len() >= MAX_FILES || self.bytes >= MAX_BYTES
    }

    fn is_due(&self) -> bool {
        self.is_full() || self.ended || self.since.is_some_and(|since| since.elapsed() >= INTERVAL)
    }
}

impl Receiving {
    /// Puts on record what is verified, and moves files that are complete to their final names, in groups, once the disk has them:
    /// all of a batch when the batch is. Each file that stands is told to `placed`, with its path as the sender named it and its length.
    /// Blocks on the disk, possibly for long: a job for a thread of its own.
    ///
    /// # Errors
    /// A failure of the disk, or [`FilesError::TargetExists`] for the name of an item that appeared during the transfer.
    pub fn settle(&self, mut placed: impl FnMut(&[u8], u64)) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        self.settle_ready(&mut group, &mut placed)?;
        if group.is_due() { self.place_group(&mut group, &mut placed) } else { Ok(()) }
    }

    /// Makes durable all that counts as received, so that not even a loss of power costs it. To be called when the program is told
    /// to end, from any thread; the work is bounded by what was written in the last second or so, if
    /// [`Receiving::settle`] was called whenever there was work for it.
    ///
    /// # Errors
    /// As [`Receiving::settle`]'s.
    pub fn flush(&self) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        self.settle_ready(&mut group, &mut |_, _| {})?;
        self.place_group(&mut group, &mut |_, _| {})
    }

    fn settle_ready(&self, group: &mut Group, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        loop {
            self.check_going()?;
            // Files that are ready are on record.
            let next = lock(&self.ready).pop_front();
            self.record(group)?;
            let Some((batch, at)) = next else { return Ok(()) };
            if self.settle_file(&batch, at)? {
                group.since.get_or_insert_with(Instant::now);
                group.bytes += batch.files[at].size;
                group.files.push((Arc::clone(&batch), at));
            } else {
                lock(&self.live).remove(&batch.files[at].id.path());
            }
            if batch.settled()? {
                group.ended = true;
                // Before it is closed, for then all of it stands.
                self.place_group(group, placed)?;
                lock(&self.open).remove(&batch.number);
            } else if group.is_full() {
                self.place_group(group, placed)?;
            }
        }
    }

    /// Writes into the journal what was verified since the last time.
    fn record(&self, group: &mut Group) -> Result<(), FilesError> {
        let records = std::mem::take(&mut *lock(&self.unrecorded));
        if records.is_empty() {
            return Ok(());
        }
        let staging = &self.place()?.staging;
        staging.journal.append(&records).map_err(|error| FilesError::system(staging.path(), error))?;
        group.since.get_or_insert_with(Instant::now);
        group.recorded.extend(records.iter().filter_map(|record| match record {
            Record::Verified(id, _) => Some(*id),
            Record::Synced(_) | Record::Item(_) => None,
        }));
        Ok(())
    }

    /// Gives a complete file its length, mode and time. Says whether it stands: it may have been voided.
    fn settle_file(&self, batch: &OpenBatch, at: usize) -> Result<bool, FilesError> {
        let (file, state) = (&batch.files[at], batch.state(at));
        self.files.forget((batch.number, at));
        if state.dropped {
            return Ok(false);
        }
        let place = self.place()?;
        let staging = &place.staging;
        let work = || -> io::Result<()> {
            let mut wrong_mode = state.wrong_mode;
            if !state.made {
                // An empty one, which no block has made.
                let (mode, wrong) = made_with(self, file.mode, true);
                staging.open_file(file.id, mode)?;
                wrong_mode = wrong;
            }
            if state.short {
                staging.set_length(file.id, file.size)?;
            }
            if wrong_mode {
                staging.set_mode(file.id, file.mode)?;
            }
            staging.set_time(file.id, file.mtime)
        };
        match work() {
            Ok(()) => Ok(true),
            Err(_) if batch.state(at).dropped => Ok(false),
            Err(error) => self.give_up(place, batch, at, error).map(|()| false),
        }
    }

    /// Asks the disk to have all that is in the group, confirms it in the journal, and moves the complete files to their final names.
    fn place_group(&self, group: &mut Group, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        let Group { files, mut recorded, .. } = std::mem::take(group);
        if files.is_empty() && recorded.is_empty() {
            return Ok(());
        }
        let place = self.place()?;
        for (batch, at) in &files {
            recorded.remove(&batch.files[*at].id);
        }
        self.make_durable(group, place, &files, &recorded)?;
        for (batch, at) in &files {
            let file = &batch.files[*at];
            lock(&self.live).remove(&file.id.path());
            match place.put(&file.id.name(), &file.path) {
                Ok(()) => {
                    let noted = self.note_file(place, &file.path);
                    noted.map_err(|error| FilesError::system(place.staging.path(), error))?;
                    let mut outcome = lock(&self.outcome);
                    outcome.files += 1;
                    outcome.bytes += file.size;
                    drop(outcome);
                    placed(&self.sent_as(&file.path), file.size);
                }
                Err(error) if place.is_guarded(&file.path) && errno(&error) == Errno::EXIST => {
                    return Err(FilesError::TargetExists { names: vec![place.shown(&file.path)] });
                }
                Err(error) => self.give_up(place, batch, *at, error)?,
            }
        }
        self.note_change();
        Ok(())
    }

    fn make_durable(
        &self,
        group: &mut Group,
        place: &Place,
        files: &[(Arc<OpenBatch>, usize)],
        recorded: &HashSet<StagedId>,
    ) -> Result<(), FilesError> {
        let staging = &place.staging;
        let failed = |error| FilesError::system(staging.path(), error);
        // What comes while the disk is busy is not confirmed.
        let until = staging.journal.records();
        let ids = files.iter().map(|(batch, at)| batch.files[*at].id).chain(recorded.iter().copied()).collect();
        self.record_during(group, || sync_staged(&place.staging, ids)).and_then(|synced| synced.map_err(failed))?;
        let mut records = Vec::new();
        if !recorded.is_empty() {
            records.push(Record::Synced(until));
        }
        if self.settings.existing == Existing::Refuse {
            for (batch, at) in files {
                let file = &batch.files[*at];
                if place.is_guarded(&file.path)
                    && let Ok(found) = staging.look(file.id)
                {
                    let birth = birth(&staging.dir, file.id.name());
                    records.push(Record::Item(Item::new(&file.path, found.inode, birth)));
                }
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        staging.journal.append(&records).and_then(|()| staging.journal.sync()).map_err(failed)
    }

    /// Waits for `sync`, which waits for the disk, while what is verified goes on record: a process that is killed in the
    /// meantime, which may be seconds, does not lose it.
    fn record_during<T: Send>(&self, group: &mut Group, sync: impl FnOnce() -> T + Send) -> Result<T, FilesError> {
        let settling = thread::current();
        thread::scope(|scope| {
            let work = move || {
                let result = sync();
                settling.unpark();
                result
            };
            let spawned = thread::Builder::new().name("downpour-sync".into()).spawn_scoped(scope, work);
            let syncing = spawned.map_err(|error| FilesError::system(&self.settings.into, error))?;
            while !syncing.is_finished() {
                self.record(group)?;
                thread::park_timeout(RECORDING);
            }
            Ok(syncing.join().unwrap_or_else(|cause| panic::resume_unwind(cause)))
        })
    }

    /// Lists a complete file as failed that cannot be where it should.
    fn give_up(&self, place: &Place, batch: &OpenBatch, at: usize, error: io::Error) -> Result<(), FilesError> {
        let file = &batch.files[at];
        let kind = place.refusal(&file.path, error)?;
        place.staging.remove_file(file.id).map_err(|error| FilesError::system(place.staging.path(), error))?;
        self.refused(&self.sent_as(&file.path), kind);
        Ok(())
    }
}

/// Makes staged files durable.
fn sync_staged(staging: &Staging, ids: Vec<StagedId>) -> io::Result<()> {
    if sync_at_once(ids.len() as u64) {
        return sync_file_system(&staging.dir);
    }
    for id in ids {
        match staging.sync_file(id) {
            // Removed by hand, or voided.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !staging.is_removed() => {}
            result => result?,
        }
    }
    Ok(fsync(&staging.dir)?)
}
