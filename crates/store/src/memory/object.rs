//! The object of a batch whose files are in memory.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::disk::{Content, Disk, ReadError};
use super::items::{Items, entry};
use crate::batch::{Batch, InvalidatedFile};
use crate::batch_layout::{BatchLayout, FilePart};
use crate::lock::lock;
use crate::messages::{Chunk, Entry, EntryKind, ListState, VoidReason, Wanted};
use crate::object::{EndsDigest, TreeObject};

/// The object of one batch. A file that has another version than in the batch is voided.
#[derive(Debug)]
pub(super) struct MemoryObject {
    disk: Arc<Mutex<Disk>>,
    items: Arc<Items>,
    layout: BatchLayout,
    voided: Mutex<Voids>,
    /// The end of the last read, in the object.
    read_to: AtomicU64,
}

/// Voided files.
#[derive(Debug, Default)]
struct Voids {
    all: HashSet<u32>,
    /// Voided files not yet taken.
    news: Vec<InvalidatedFile>,
}

impl MemoryObject {
    pub(super) fn new(disk: Arc<Mutex<Disk>>, items: Arc<Items>, batch: Arc<Batch>, wanted: Wanted) -> Self {
        let layout = BatchLayout::new(batch, wanted);
        Self { disk, items, layout, voided: Mutex::default(), read_to: AtomicU64::new(0) }
    }

    /// Fills `out` from one file.
    fn read_part(&self, index: u32, start: u64, out: &mut [u8]) -> Result<(), VoidReason> {
        let entry = &self.layout.batch.entries[index as usize];
        let EntryKind::File { version, .. } = entry.kind else { return Err(VoidReason::Changed) };
        let place = self.items.place(&entry.path);
        let mut filled = 0;
        while filled < out.len() {
            match lock(&self.disk).read(&place, version, start + filled as u64, &mut out[filled..]) {
                Ok(0) => return Err(VoidReason::Shrank),
                Ok(read) => filled += read,
                Err(ReadError::Vanished) => return Err(VoidReason::Vanished),
                Err(ReadError::Changed) => return Err(VoidReason::Changed),
                Err(ReadError::Broken) => return Err(VoidReason::Unreadable),
            }
        }
        Ok(())
    }
}

impl TreeObject for MemoryObject {
    fn length(&self) -> u64 {
        self.layout.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        let mut rest = out;
        for FilePart { index, start, length } in self.layout.parts(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(length);
            if lock(&self.voided).all.contains(&index) {
                part.fill(0);
            } else if let Err(reason) = self.read_part(index, start, part) {
                part.fill(0);
                let mut voided = lock(&self.voided);
                if voided.all.insert(index) {
                    voided.news.push(InvalidatedFile { entry: index, reason });
                }
            }
            rest = after;
        }
        rest.fill(0);
        self.read_to.fetch_max(offset, Ordering::Relaxed);
    }

    fn take_voided(&self) -> Vec<InvalidatedFile> {
        std::mem::take(&mut lock(&self.voided).news)
    }

    fn current(&self) -> Option<&[u8]> {
        self.layout.name_at(self.read_to.load(Ordering::Relaxed))
    }

    fn files_within(&self, bytes: u64) -> u64 {
        self.layout.files_within(bytes)
    }

    fn entry_again(&self, index: u32) -> Option<(Entry, EndsDigest)> {
        let path = &self.layout.batch.entries.get(index as usize)?.path;
        let seen = lock(&self.disk).look(&self.items.place(path)).ok()??;
        let Content::File(bytes) = &seen.node.content else { return None };
        let kind = EntryKind::File { size: bytes.len() as u64, version: seen.version, hash: None };
        let ends = *blake3::hash(bytes).as_bytes();
        Some((entry(path.clone(), kind, &seen), ends))
    }

    fn list_chunks(&self, _: u32, _: Option<u64>, report: &mut dyn FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>) {
        // Nothing is saved, since reading costs nothing. After the end of the list a break changes nothing.
        let _ = report(Vec::new(), ListState::Complete);
    }
}
