//! Entries that are in place, until they are reported to the sender.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Mutex;

use crate::lock::lock;
use crate::messages::StoredEntry;

/// The entries of each batch that are in place; stays empty unless the sender asks for them.
#[derive(Debug, Default)]
pub(super) struct PlacedEntries {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u32, Vec<StoredEntry>>,
    complete: Vec<(u32, Vec<StoredEntry>)>,
}

impl PlacedEntries {
    pub(super) fn add(&self, batch: u32, entry: StoredEntry) {
        lock(&self.state).open.entry(batch).or_default().push(entry);
    }

    /// Notes that no further entries of a batch are put in place.
    pub(super) fn complete(&self, batch: u32) {
        let mut state = lock(&self.state);
        let mut entries = state.open.remove(&batch).unwrap_or_default();
        entries.sort_unstable_by_key(|stored| stored.entry);
        state.complete.push((batch, entries));
    }

    /// Takes the batches that are complete.
    pub(super) fn take(&self) -> Vec<(u32, Vec<StoredEntry>)> {
        mem::take(&mut lock(&self.state).complete)
    }
}
