//! From verified bytes to durable files with their modes and times.

use rustix::fs::{fsync, ftruncate};

use super::super::error::FilesError;
use super::super::staging::{set_metadata, sync_file_system};
use super::batch::OpenBatch;
use super::{Receiving, lock};

impl Receiving {
    /// Gives verified files their modes and times and makes them durable; closes batches that are complete. Each file that
    /// stands is told to `verified`, with its path and length: every byte of it is written and matches its digest. Blocks
    /// on the disk, possibly for long: a job for a worker. Several may do it at once.
    ///
    /// # Errors
    /// A failure of the disk.
    pub fn settle(&self, mut verified: impl FnMut(&[u8], u64)) -> Result<(), FilesError> {
        loop {
            // The lock is released before the work.
            let next = lock(&self.ready).pop_front();
            let Some((batch, at)) = next else { return Ok(()) };
            self.check_going()?;
            if self.settle_file(&batch, at)? {
                let file = &batch.files[at];
                verified(&file.path, file.size);
            }
            if batch.settled()? {
                self.close(&batch)?;
            }
        }
    }

    /// Says whether the file stands: it may have been voided.
    fn settle_file(&self, batch: &OpenBatch, at: usize) -> Result<bool, FilesError> {
        if batch.is_voided(at) {
            return Ok(false);
        }
        let (key, file) = ((batch.number, at), &batch.files[at]);
        let staging = &self.place()?.staging;
        let work = || -> std::io::Result<()> {
            let open = self.files.get(key, || staging.tree.open_file(&file.path))?;
            if batch.has_holes(at) {
                ftruncate(&open, file.size)?;
            }
            set_metadata(&open, file.mode, file.mtime)?;
            if !batch.synced_at_once() {
                fsync(&open)?;
            }
            Ok(())
        };
        let result = work();
        self.files.forget(key);
        match result {
            Err(error) if !batch.is_voided(at) => Err(FilesError::system(staging.shown(&file.path), error)),
            result => Ok(result.is_ok()),
        }
    }

    fn close(&self, batch: &OpenBatch) -> Result<(), FilesError> {
        if batch.synced_at_once() {
            let staging = &self.place()?.staging;
            sync_file_system(staging.tree.root()).map_err(|error| FilesError::system(staging.path(), error))?;
        }
        let (files, bytes) = batch.totals();
        let mut outcome = lock(&self.outcome);
        outcome.files += files;
        outcome.bytes += bytes;
        drop(outcome);
        lock(&self.open).remove(&batch.number);
        Ok(())
    }
}
