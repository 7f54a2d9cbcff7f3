//! What stands at the target before anything is made there.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use super::FileSink;
use super::place::Place;
use crate::files::entry::{Entry, Kind, SourceId};
use crate::files::error::FilesError;
use crate::files::metadata::Status;
use crate::files::names::{check_path, display_name};
use crate::files::settings::{Existing, ReceiveSettings};
use crate::files::staging::is_staging_name;

impl FileSink {
    /// Whether some broken transfer has left something in the target.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        // What cannot be listed holds nothing that could be gone on with.
        holds_staging(&self.settings.into).unwrap_or(false)
    }

    /// Whether an earlier, broken transfer from `source` has made the item that gets another name here. A copy to a name that was free
    /// then finds a folder there now, and must not go into it.
    ///
    /// # Errors
    /// As [`FileSink::begin`]'s.
    pub fn goes_on(&self, source: SourceId) -> Result<bool, FilesError> {
        let Some(name) = &self.settings.rename else { return Ok(false) };
        let Some(place) = Place::open(&self.settings, &self.renamed, source, false)? else { return Ok(false) };
        let found = place.target.look(name).map_err(|error| FilesError::system(place.shown(name), error))?;
        Ok(found.is_some_and(|found| place.is_own(name, &found)))
    }

    /// Final names of items among `entries` that exist already and may not be touched ([`Existing::Refuse`]); also asked before the user
    /// accepts.
    ///
    /// # Errors
    /// A bad name, or a target that cannot be looked into.
    pub fn conflicts(&self, entries: &[Entry]) -> Result<Vec<PathBuf>, FilesError> {
        let mut names = Vec::new();
        if self.settings.existing != Existing::Refuse {
            return Ok(names);
        }
        for entry in entries {
            let top = check_path(&entry.path)?;
            if top.len() < entry.path.len() {
                // DirectorySandbox an item of its own, which was looked at when it came.
                continue;
            }
            let name = self.settings.rename.as_deref().unwrap_or(top);
            if is_staging_name(name) {
                // Refused for itself.
                continue;
            }
            let path = self.settings.into.join(OsStr::from_bytes(name));
            let found = match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Status::from(found),
                // One that is too long is told when it comes.
                Err(Errno::NOENT | Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ) => continue,
                Err(error) => return Err(FilesError::system(path, error)),
            };
            if !self.place.get().is_some_and(|place| place.is_own(name, &found)) {
                names.push(self.settings.into.join(display_name(name)));
            }
        }
        Ok(names)
    }

    /// A folder does not take the place of something else that the user has named: he meant it to be a folder, or another name.
    pub(super) fn check_named(&self, entries: &[Entry]) -> Result<(), FilesError> {
        let is_item = |entry: &&Entry| matches!(entry.kind, Kind::Directory) && !entry.path.contains(&b'/');
        if let Some(name) = &self.settings.rename
            && entries.iter().any(|entry| is_item(&entry))
        {
            let path = self.settings.into.join(OsStr::from_bytes(name));
            if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                return Err(FilesError::TargetNotAFolder { path });
            }
        }
        Ok(())
    }
}

/// Whether a target that exists may hold some of what comes.
pub(super) fn may_hold_some(settings: &ReceiveSettings) -> io::Result<bool> {
    if settings.dry_run || holds_staging(&settings.into)? {
        return Ok(true);
    }
    // What exists is refused, unless an earlier run has made it.
    if settings.existing == Existing::Refuse {
        return Ok(false);
    }
    let items = match (&settings.rename, &settings.items) {
        (Some(renamed), _) => std::slice::from_ref(renamed),
        (None, Some(items)) => items,
        (None, None) => return Ok(settings.into.read_dir()?.next().is_some()),
    };
    let stands = |name: &Vec<u8>| settings.into.join(OsStr::from_bytes(name)).symlink_metadata().is_ok();
    Ok(items.iter().any(stands))
}

/// Whether a broken transfer has left something in the folder.
fn holds_staging(folder: &Path) -> io::Result<bool> {
    for item in folder.read_dir()? {
        if is_staging_name(item?.file_name().as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}
