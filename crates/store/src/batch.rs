//! A part of a transfer as one unit.

use crate::messages::{Entry, EntryKind, IdName, Skipped, VoidReason};

/// A part of a transfer as one unit: at most [`MAX_BATCH_ENTRIES`](crate::messages::MAX_BATCH_ENTRIES) entries and one
/// object, made of the bytes of its regular files one after another, or of those among them that the receiver wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Counts from 0.
    pub number: u32,
    /// In the order of the object; a directory precedes its contents.
    pub entries: Vec<Entry>,
    /// The sum of the file sizes in bytes: the length of the object, if every byte is wanted.
    pub length: u64,
    /// The version of each entry's source, if it may be removed later; otherwise empty.
    pub versions: Vec<u64>,
    /// Names that the scan could not send.
    pub skipped: Vec<Skipped>,
    /// Names of users and groups that occur first in this batch.
    pub id_names: Vec<IdName>,
    /// Whether the scan ends with this batch.
    pub is_last: bool,
}

impl Batch {
    /// Returns the number of its regular files.
    #[must_use]
    pub fn regular_files(&self) -> u64 {
        self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File { .. })).count() as u64
    }
}

/// A file of a batch whose bytes cannot be trusted; they were sent as zeros and the receiver drops the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidatedFile {
    /// Index into the batch's entries.
    pub entry: u32,
    /// Why.
    pub reason: VoidReason,
}
