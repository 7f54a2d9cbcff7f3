//! Entries that are in place, until they are reported to the sender as durable.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::messages::StoredEntry;
use crate::sandbox::Directory;

/// The entries of each batch until they are reported; stays empty unless the sender asks for them.
#[derive(Debug, Default)]
pub(super) struct StoredEntries {
    pub(super) state: Mutex<PendingStored>,
}

#[derive(Debug, Default)]
pub(super) struct PendingStored {
    /// Batches with entries still to be put in place.
    pub(super) open: BTreeMap<u32, StoredBatch>,
    /// The other batches, not yet durable.
    pub(super) complete: BTreeMap<u32, StoredBatch>,
    /// Durable batches, not yet reported.
    pub(super) durable: Vec<(u32, Vec<StoredEntry>)>,
}

/// Entries that are in place.
#[derive(Debug, Default)]
pub(super) struct StoredBatch {
    pub(super) entries: Vec<StoredEntry>,
    /// A directory on each of their file systems, by its device.
    pub(super) on: BTreeMap<u64, Arc<Directory>>,
}

impl StoredEntries {
    /// Notes that no further entries of a batch are put in place, except hard links.
    pub(super) fn complete(&self, batch: u32) {
        let mut state = lock(&self.state);
        let placed = state.open.remove(&batch).unwrap_or_default();
        state.complete.insert(batch, placed);
    }

    pub(super) fn add(&self, batch: u32, entry: StoredEntry, on: Option<(u64, Arc<Directory>)>) {
        let mut state = lock(&self.state);
        let placed = state.open.entry(batch).or_default();
        placed.entries.push(entry);
        if let Some((device, directory)) = on {
            placed.on.entry(device).or_insert(directory);
        }
    }
}
