//! From verified bytes to durable files under their final names.

use std::io;

use super::super::error::FilesError;
use super::super::journal::Record;
use super::batch::OpenBatch;
use super::entries::made_with;
use super::group::Group;
use super::place::Place;
use super::{FileSink, lock};

impl FileSink {
    /// Puts on record what is verified, and moves files that are complete to their final names, in groups, once the disk has them:
    /// all of a batch when the batch is. What is verified meanwhile is dealt with too. Each file that stands is told to `placed`, with its path as the sender named it and its length.
    /// Blocks on the disk, possibly for long: a job for a thread of its own.
    ///
    /// # Errors
    /// A failure of the disk, or [`FilesError::TargetExists`] for the name of an item that appeared during the transfer.
    pub fn settle(&self, mut placed: impl FnMut(&[u8], u64)) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        self.settle_ready(&mut group)?;
        self.place_groups(&mut group, &mut placed)
    }

    /// Makes durable all that counts as received, so that not even a loss of power costs it. To be called when the program is told
    /// to end, from any thread. It waits for a [`FileSink::settle`] that is going on, which asks the disk no further once
    /// [`FileSink::stop`] was called, and then asks the disk once: for what was verified since, in one group of any size.
    ///
    /// # Errors
    /// As [`FileSink::settle`]'s.
    pub fn flush(&self) -> Result<(), FilesError> {
        let mut group = lock(&self.group);
        self.settle_ready(&mut group)?;
        group.end();
        self.place_groups(&mut group, &mut |_, _| {})
    }

    /// Puts on record what was verified since the last time, and finishes the complete files, for the next group.
    pub(super) fn settle_ready(&self, group: &mut Group) -> Result<(), FilesError> {
        loop {
            self.check_going()?;
            // Files that are ready are on record.
            let next = lock(&self.ready).pop_front();
            self.record(group)?;
            let Some((batch, at)) = next else { return Ok(()) };
            if self.settle_file(&batch, at)? {
                group.add_file(&batch, at);
            } else {
                lock(&self.live).remove(&batch.files[at].id.path());
            }
            if batch.settled()? {
                group.complete_batch(batch.number);
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
        group.add_recorded(records.iter().filter_map(|record| match record {
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

    /// Lists a complete file as failed that cannot be where it should.
    pub(super) fn give_up(
        &self,
        place: &Place,
        batch: &OpenBatch,
        at: usize,
        error: io::Error,
    ) -> Result<(), FilesError> {
        let file = &batch.files[at];
        let kind = place.refusal(&file.path, error)?;
        place.staging.remove_file(file.id).map_err(|error| FilesError::system(place.staging.path(), error))?;
        self.refused(&self.sent_as(&file.path), kind);
        Ok(())
    }
}
