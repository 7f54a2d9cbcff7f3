//! Reports of sources that the sender may remove: entries durable under their final names, batch by batch.

use std::collections::BTreeMap;
use std::mem;

use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;

use super::shared::Shared;
use super::target::TargetDirectory;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::StoredEntry;
use crate::metadata::Status;
use crate::sandbox::Directory;

impl Shared {
    /// Notes that an entry is in place at `path` as it was sent, unless it has disappeared meanwhile or lacks some of
    /// its attributes.
    pub(super) fn note_stored(
        &self,
        place: &TargetDirectory,
        (batch, entry): (u32, u32),
        path: &[u8],
    ) -> std::io::Result<()> {
        if !self.spec.report_stored || self.report.is_lossy(&self.sent_as(path)) {
            return Ok(());
        }
        let (directory, name) = place.target.parent(path)?;
        let found: Status = match statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found.into(),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let device = Status::from(fstat(&directory.fd)?).identity.device;
        let stored = StoredEntry { entry, version: found.version() };
        self.stored.add(batch, stored, Some((device, directory)));
        Ok(())
    }

    /// Notes that an entry would be in place in a dry run, with the version of the existing file.
    pub(super) fn note_foreseen(&self, (batch, entry): (u32, u32), path: &[u8]) {
        if !self.spec.report_stored {
            return;
        }
        let seen = self.seen().ok().flatten();
        let found = seen.and_then(|seen| seen.look(path).ok().flatten());
        let version = found.map_or(0, |found| found.version());
        self.stored.add(batch, StoredEntry { entry, version }, None);
    }

    /// Notes that no further entries of a batch are put in place, except hard links.
    pub(super) fn batch_stored(&self, batch: u32) {
        if self.spec.report_stored {
            self.stored.complete(batch);
        }
    }

    /// Makes the entries of complete batches durable: their content, their names and all directories above them.
    /// Entries that were in place before may be as new as the rest.
    pub(super) fn sync_stored(&self) -> Result<(), FilesError> {
        let complete = mem::take(&mut lock(&self.stored.state).complete);
        let failed = |error| FilesError::system(&self.destination().directory, error);
        let mut on = BTreeMap::new();
        let mut reported = Vec::new();
        for (batch, mut placed) in complete {
            on.append(&mut placed.on);
            placed.entries.sort_unstable_by_key(|stored| stored.entry);
            reported.push((batch, placed.entries));
        }
        if let Some(place) = self.staged() {
            for directory in on.values() {
                sync_everything(place, directory).map_err(failed)?;
            }
        }
        lock(&self.stored.state).durable.append(&mut reported);
        Ok(())
    }

    /// The same for the hard links.
    pub(super) fn sync_stored_links(&self) -> Result<(), FilesError> {
        {
            let mut state = lock(&self.stored.state);
            let mut links = mem::take(&mut state.open);
            state.complete.append(&mut links);
        }
        self.sync_stored()
    }

    /// Returns the entries of each batch that are durable and were not returned before, in ascending order.
    pub(super) fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)> {
        mem::take(&mut lock(&self.stored.state).durable)
    }
}

/// Makes everything on a directory's file system durable.
fn sync_everything(place: &TargetDirectory, directory: &Directory) -> std::io::Result<()> {
    // On other systems only this call covers more than one file.
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    place.sync_around(&directory.fd)
}
