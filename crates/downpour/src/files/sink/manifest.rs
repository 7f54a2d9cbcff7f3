//! From manifest parts to files in the staging folder.

use std::io;

use rustix::io::Errno;

use super::super::entry::{Entry, Kind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES};
use super::super::error::FilesError;
use super::super::names::{NameError, bad_name, check_path, check_target};
use super::super::staging::Staging;
use super::FailReason;
use super::batch::{OpenBatch, ReceivedFile};
use crate::messages::ManifestPart;

/// Bits of a received file's mode that are applied: a peer does not make programs that run as their owner.
const FILE_MODE: u32 = 0o777;
/// For folders the sticky bit too.
const FOLDER_MODE: u32 = 0o1777;

/// Manifests up to now, and the batch whose parts are coming.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Batches whose last part came.
    pub(super) batches: u32,
    /// Entries in all parts.
    pub(super) entries: u64,
    /// Lengths of the objects of complete batches.
    pub(super) bytes: u64,
    building: Option<Building>,
}

#[derive(Debug, Default)]
struct Building {
    object_length: u64,
    /// Of the files so far.
    length: u64,
    entries: usize,
    name_bytes: usize,
    files: Vec<ReceivedFile>,
}

/// What became of the entries of a part besides regular files.
#[derive(Debug, Default)]
pub(super) struct Created {
    pub(super) directories: u64,
    pub(super) symlinks: u64,
    pub(super) failed: Vec<(Vec<u8>, FailReason)>,
}

impl Manifest {
    /// Whether a batch has begun and not ended.
    pub(super) fn is_building(&self) -> bool {
        self.building.is_some()
    }

    /// Checks everything about a part that can be told without the file system.
    pub(super) fn check(&self, part: &ManifestPart) -> Result<(), FilesError> {
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        if part.batch != self.batches {
            return Err(broken("its manifest is out of order"));
        }
        let (mut length, mut entries, mut name_bytes) = (0_u64, 0, 0);
        if let Some(building) = &self.building {
            if building.object_length != part.length {
                return Err(broken("its object's length changes between parts"));
            }
            (length, entries, name_bytes) = (building.length, building.entries, building.name_bytes);
        }
        for entry in &part.entries {
            check_path(&entry.path)?;
            if let Kind::Symlink { target } = &entry.kind {
                check_target(target)?;
            }
            length = length.checked_add(entry.size()).ok_or(broken("its files are longer than any object"))?;
            name_bytes += entry.name_bytes();
        }
        entries += part.entries.len();
        if entries > MAX_BATCH_ENTRIES {
            return Err(broken("it has too many entries"));
        }
        if name_bytes > MAX_BATCH_NAMES {
            return Err(broken("its names are too long together"));
        }
        if length > part.length || (part.last && length < part.length) {
            return Err(broken("its files do not add up to its object"));
        }
        Ok(())
    }

    /// Makes the entries of a checked part in the staging folder; returns the batch with its last part.
    pub(super) fn create(
        &mut self,
        part: &ManifestPart,
        staging: &Staging,
        created: &mut Created,
    ) -> Result<Option<OpenBatch>, FilesError> {
        let building = self.building.get_or_insert_default();
        building.object_length = part.length;
        for entry in &part.entries {
            building.create(entry, staging, created)?;
        }
        self.entries += part.entries.len() as u64;
        if !part.last {
            return Ok(None);
        }
        let Building { files, length, .. } = self.building.take().unwrap_or_default();
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        self.batches = self.batches.checked_add(1).ok_or(broken("there are too many batches"))?;
        self.bytes = self.bytes.checked_add(length).ok_or(broken("the objects are longer than can be"))?;
        Ok(Some(OpenBatch::new(part.batch, length, files)))
    }
}

impl Building {
    fn create(&mut self, entry: &Entry, staging: &Staging, created: &mut Created) -> Result<(), FilesError> {
        let path = &entry.path;
        let failed = |error| refusal(path, staging, error);
        match &entry.kind {
            Kind::File { size, .. } => {
                staging.tree.create_file(path).map_err(failed)?;
                self.files.push(ReceivedFile {
                    path: path.as_slice().into(),
                    entry: u32::try_from(self.entries).expect("at most 65,536 entries, checked"),
                    start: self.length,
                    size: *size,
                    mode: entry.mode & FILE_MODE,
                    mtime: entry.mtime,
                });
                self.length += size;
            }
            Kind::Directory => {
                staging.add_folder(path, entry.mode & FOLDER_MODE, entry.mtime).map_err(failed)?;
                created.directories += 1;
            }
            Kind::HardLink { .. } => created.failed.push((path.clone(), FailReason::NoLinks)),
            Kind::Symlink { target } => match staging.tree.create_symlink(path, target, entry.mtime) {
                Ok(()) => created.symlinks += 1,
                // What Linux answers on a file system without links, as FAT; permission in our own folder cannot lack.
                Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                    created.failed.push((path.clone(), FailReason::NoLinks));
                }
                Err(error) => return Err(failed(error)),
            },
        }
        self.entries += 1;
        self.name_bytes += entry.name_bytes();
        Ok(())
    }
}

/// Tells a bad name from a failure of the disk: the staging folder holds nothing but this transfer, so a name that is
/// taken came twice, and a parent that is missing or no folder (a link is none) did not come as one.
fn refusal(path: &[u8], staging: &Staging, error: io::Error) -> FilesError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::EXIST) => bad_name(path, NameError::Duplicate),
        // A link where a folder should be is ENOTDIR on Linux and ELOOP elsewhere.
        // A staging folder that someone has removed has no parents either, and that is not the sender's fault.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !staging.is_removed() => bad_name(path, NameError::Parent),
        Some(Errno::NAMETOOLONG) => bad_name(path, NameError::TooLong),
        _ => FilesError::system(staging.shown(path), error),
    }
}
