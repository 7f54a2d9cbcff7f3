//! The target folder and the staging folder in it.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fchmod, fsync, openat};
use rustix::io::Errno;

use super::super::error::FilesError;
use super::super::names::display_name;
use super::super::staging::{Staging, mode_of};

/// Where files go, once the first manifest part is accepted.
#[derive(Debug)]
pub(super) struct Place {
    target: OwnedFd,
    /// Whether the target folder was made for this transfer.
    target_is_new: bool,
    pub(super) staging: Staging,
}

impl Place {
    /// Makes the folder `into`, if it is not there, and a staging folder in it.
    pub(super) fn make(into: &Path) -> Result<Self, FilesError> {
        let target_is_new = match std::fs::create_dir(into) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(FilesError::system(into, error)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let target = openat(CWD, into, flags, Mode::empty()).map_err(|error| FilesError::system(into, error))?;
        let staging = Staging::create(&target, into)?;
        Ok(Self { target, target_is_new, staging })
    }

    /// Moves every item to its final name, or none.
    pub(super) fn put(&self, into: &Path) -> Result<(), FilesError> {
        let late = self.staging.seal_folders()?;
        let items = self.staging.items()?;
        for (at, item) in items.iter().enumerate() {
            let Err(error) = self.staging.place(item, &self.target) else { continue };
            for placed in &items[..at] {
                // The first error is the one to report. An item that cannot go back is whole and verified where it is.
                let _ = self.staging.take_back(placed, &self.target);
            }
            let target = into.join(display_name(item));
            return Err(match error {
                Errno::EXIST => FilesError::TargetExists { names: vec![target] },
                other => FilesError::system(target, other),
            });
        }
        for (folder, mode) in late {
            // Its owner may change it, and all is in place: a file system that refuses is no reason to fail.
            let _ = fchmod(&folder, mode_of(mode));
        }
        fsync(&self.target).map_err(|error| FilesError::system(into, error))?;
        // Everything is in place; an empty folder left behind is no reason to call that a failure.
        let _ = self.staging.remove_empty(&self.target);
        Ok(())
    }

    /// Removes what was made.
    pub(super) fn remove(&self, into: &Path) -> Result<(), FilesError> {
        self.staging.remove()?;
        if self.target_is_new {
            // Not if someone put something into it meanwhile.
            let _ = std::fs::remove_dir(into);
        }
        Ok(())
    }
}
