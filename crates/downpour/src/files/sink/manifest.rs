//! What manifests claim, checked without the file system, and the batch whose parts are coming.

use super::super::entry::{Kind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES};
use super::super::error::FilesError;
use super::super::names::{check_path, check_target};
use super::super::wanted::Wanted;
use super::batch::{FileState, OpenBatch, ReceivedFile};
use crate::messages::ManifestPart;

/// Manifests up to now, and the batch whose parts are coming.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Batches whose last part came.
    pub(super) batches: u32,
    /// Entries in all parts.
    pub(super) entries: u64,
    /// Lengths of complete batches.
    pub(super) bytes: u64,
    building: Option<Building>,
}

/// A batch whose parts are coming.
#[derive(Debug)]
pub(super) struct Building {
    /// As every part claims it.
    full: u64,
    /// Of the entries so far.
    pub(super) length: u64,
    pub(super) entries: u32,
    name_bytes: usize,
    pub(super) wanted: Wanted,
    pub(super) files: Vec<(ReceivedFile, FileState)>,
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
            if building.full != part.length {
                return Err(broken("its length changes between parts"));
            }
            (length, entries, name_bytes) = (building.length, building.entries as usize, building.name_bytes);
        }
        for entry in &part.entries {
            check_path(&entry.path)?;
            match &entry.kind {
                Kind::Symlink { target } => check_target(target)?,
                Kind::HardLink { target } => drop(check_path(target)?),
                Kind::File { .. } | Kind::Directory => {}
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
            return Err(broken("its files do not add up to its length"));
        }
        Ok(())
    }

    /// The batch that a checked part belongs to.
    pub(super) fn building(&mut self, part: &ManifestPart) -> &mut Building {
        self.building.get_or_insert_with(|| Building {
            full: part.length,
            length: 0,
            entries: 0,
            name_bytes: 0,
            wanted: Wanted::none(),
            files: Vec::new(),
        })
    }

    /// Counts a part whose entries are dealt with; returns the batch, and what is wanted of it, with its last part. `all` says that the
    /// sender does not wait to hear what is wanted.
    pub(super) fn done(&mut self, part: &ManifestPart, all: bool) -> Result<Option<(OpenBatch, Wanted)>, FilesError> {
        self.entries += part.entries.len() as u64;
        if !part.last {
            return Ok(None);
        }
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        let Some(Building { full, entries, wanted, files, .. }) = self.building.take() else { return Ok(None) };
        let wanted = if all { Wanted::all() } else { wanted };
        self.batches = self.batches.checked_add(1).ok_or(broken("there are too many batches"))?;
        self.bytes = self.bytes.checked_add(full).ok_or(broken("the batches are longer than can be"))?;
        Ok(Some((OpenBatch::new(part.batch, full, wanted.clone(), entries, files), wanted)))
    }
}

impl Building {
    /// Counts an entry that is dealt with.
    pub(super) fn count(&mut self, size: u64, name_bytes: usize) {
        self.length += size;
        self.entries += 1;
        self.name_bytes += name_bytes;
    }
}
