//! Files that have changed while they were read: they are resent once, after everything else is read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::files::{
    Batch, COMES_AGAIN, EndsDigest, Entry, EntryKind, FailReason, InvalidatedFile, MAX_BATCH_NAMES, TreeObject,
};

/// Maximum number of resent files: those that change all the time would make a transfer much longer.
const MAX_FILES: usize = 1024;

/// Maximum number of resent bytes.
const MAX_BYTES: u64 = COMES_AGAIN;

/// Files that were voided and may be resent, once.
#[derive(Default)]
pub(super) struct ResendList {
    voided: Vec<(Arc<Batch>, InvalidatedFile)>,
    /// Whether they were resent.
    is_over: bool,
    /// The digests of both ends of each resent file.
    ends: HashMap<u32, EndsDigest>,
    /// Hashes of the names of files to which hard links were announced.
    first_names: HashSet<u64>,
}

/// The files to resend.
pub(super) struct Again {
    pub(super) entries: Vec<Entry>,
    /// The sum of their sizes in bytes.
    pub(super) length: u64,
    /// Files that are not resent, and why.
    pub(super) failed: Vec<(Vec<u8>, FailReason)>,
}

impl Again {
    /// Returns the batch with this number; with the versions of its files, if sources are to be removed.
    pub(super) fn into_batch(self, number: u32, has_versions: bool) -> Batch {
        let Self { entries, length, .. } = self;
        let version = |entry: &Entry| if let EntryKind::File { version, .. } = entry.kind { version } else { 0 };
        let versions = if has_versions { entries.iter().map(version).collect() } else { Vec::new() };
        Batch { number, entries, length, versions, skipped: Vec::new(), id_names: Vec::new(), is_last: false }
    }
}

/// Returns the note to the user about resent files.
pub(super) fn note(files: usize) -> String {
    let which = if files == 1 { "file that" } else { "files that" };
    format!("resending {files} {which} changed meanwhile")
}

impl ResendList {
    /// Notes the file that a hard link is announced to.
    pub(super) fn link(&mut self, first_name: &[u8]) {
        self.first_names.insert(name_hash(first_name));
    }

    /// Notes a voided file; returns false if it is not resent. A hashed one is not: that took a reading of its own.
    pub(super) fn note(&mut self, batch: &Arc<Batch>, voided: InvalidatedFile) -> bool {
        let entry = batch.entries.get(voided.entry as usize);
        let is_hashed = entry.is_some_and(|entry| matches!(entry.kind, EntryKind::File { hash: Some(_), .. }));
        let comes = voided.reason.may_pass() && !self.is_over && !is_hashed && self.voided.len() < MAX_FILES;
        if comes {
            self.voided.push((Arc::clone(batch), voided));
        }
        comes
    }

    /// Returns the files to resend in their current state, the first time that there are some; later there are none.
    pub(super) fn take(&mut self, object: impl Fn(Arc<Batch>) -> Arc<dyn TreeObject>) -> Option<Again> {
        if self.voided.is_empty() {
            return None;
        }
        self.is_over = true;
        let (mut again, mut names) = (Again { entries: Vec::new(), length: 0, failed: Vec::new() }, 0);
        let mut opened: Option<(u32, Arc<dyn TreeObject>)> = None;
        for (batch, InvalidatedFile { entry, reason }) in std::mem::take(&mut self.voided) {
            let path = &batch.entries[entry as usize].path;
            let (_, object_of_batch) = match opened.take().filter(|(number, _)| *number == batch.number) {
                Some(same) => opened.insert(same),
                None => opened.insert((batch.number, object(Arc::clone(&batch)))),
            };
            let found = object_of_batch.entry_again(entry).filter(|(found, _)| {
                let length = again.length.checked_add(found.size());
                // The links may belong to the earlier file.
                length.is_some_and(|length| length <= MAX_BYTES)
                    && names + found.name_bytes() <= MAX_BATCH_NAMES
                    && !self.first_names.contains(&name_hash(path))
            });
            let Some((found, ends)) = found else {
                again.failed.push((path.clone(), FailReason::Voided(reason)));
                continue;
            };
            self.ends.insert(u32::try_from(again.entries.len()).expect("at most a thousand"), ends);
            again.length += found.size();
            names += found.name_bytes();
            again.entries.push(found);
        }
        Some(again)
    }

    /// Takes the digests of the ends of resent files.
    pub(super) fn take_ends(&mut self) -> HashMap<u32, EndsDigest> {
        std::mem::take(&mut self.ends)
    }

    /// Returns whether the batches that begin now are of resent files.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Hashes a name to 64 bits.
fn name_hash(name: &[u8]) -> u64 {
    u64::from_be_bytes(*blake3::hash(name).as_bytes().first_chunk().expect("32 bytes"))
}
