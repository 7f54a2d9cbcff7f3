//! The local file system behind the seam. Its laws (sandbox, journal, staging, restriction) are those of its parts:
//! [`Scanner`], [`BatchSource`] and [`Removal`] at the source, [`FileSink`] at the target.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use request::{ReceiveRequest, SourceOptions, TargetPath};

use super::batch::{Batch, InvalidatedFile};
use super::chunks::list_chunks;
use super::error::FilesError;
use super::lock::lock;
use super::object::{CopiedRange, EndsDigest, TreeObject};
use super::removal::{Removal, SourceOutcome, Versions};
use super::root::{Roots, SourceItem};
use super::scan::Scanner;
use super::seam::{TreeSource, TreeTarget};
use super::sink::{FileSink, ManifestState, ReceiveOutcome};
use super::source::BatchSource;
use crate::messages::{
    Attributes, Chunk, Chunks, Digest, Entry, IdName, ListState, ManifestPart, Notice, Skipped, SourceId, StoredEntry,
    TransferEnd, Void, Wanted,
};

/// Items of the local file system.
#[derive(Debug)]
pub struct LocalSource {
    id: SourceId,
    roots: Arc<Roots>,
    scanner: Mutex<Scanner>,
    removal: Mutex<Removal>,
    stopped: Arc<AtomicBool>,
}

impl LocalSource {
    /// Checks every item; walks nothing yet. A dry run removes nothing, and does all else as usual.
    ///
    /// # Errors
    /// Errors of [`Scanner::new`].
    pub fn new(roots: Vec<SourceItem>, options: SourceOptions, dry_run: bool) -> Result<Self, FilesError> {
        let stopped = Arc::new(AtomicBool::new(false));
        let scanner = Scanner::new(roots, options)?.until(Arc::clone(&stopped));
        let roots = scanner.roots();
        Ok(Self {
            id: scanner.source_id(),
            removal: Mutex::new(Removal::new(Arc::clone(&roots), dry_run)),
            roots,
            scanner: Mutex::new(scanner),
            stopped,
        })
    }
}

impl TreeSource for LocalSource {
    fn id(&self) -> SourceId {
        self.id
    }

    fn top(&self) -> (Option<Attributes>, Vec<IdName>) {
        lock(&self.scanner).top()
    }

    fn followed(&self) -> u64 {
        self.roots.followed()
    }

    fn next_batch(&self) -> Result<Option<Batch>, FilesError> {
        Ok(lock(&self.scanner).next())
    }

    fn object(&self, batch: Arc<Batch>, wanted: Wanted, ends: HashMap<u32, EndsDigest>) -> Arc<dyn TreeObject> {
        let object = BatchSource::new(batch, Arc::clone(&self.roots), wanted).with_ends(ends);
        Arc::new(object.until(Arc::clone(&self.stopped)))
    }

    fn remove(&self, entry: &Entry, versions: Versions, waits: bool) -> SourceOutcome {
        lock(&self.removal).remove(entry, versions, waits)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl TreeObject for BatchSource {
    fn length(&self) -> u64 {
        Self::length(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) {
        Self::read(self, offset, out);
    }

    fn copy(&self, offset: u64, most: u64, to: &File, at: u64) -> Option<io::Result<CopiedRange>> {
        Self::copy(self, offset, most, to, at)
    }

    fn take_voided(&self) -> Vec<InvalidatedFile> {
        Self::take_voided(self)
    }

    fn current(&self) -> Option<&[u8]> {
        Self::current(self)
    }

    fn files_within(&self, bytes: u64) -> u64 {
        Self::files_within(self, bytes)
    }

    fn entry_again(&self, index: u32) -> Option<(Entry, EndsDigest)> {
        Self::entry_again(self, index)
    }

    fn list_chunks(
        &self,
        index: u32,
        path_rate: Option<u64>,
        report: &mut dyn FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>,
    ) {
        list_chunks(self, index, path_rate, report);
    }
}

impl TreeTarget for FileSink {
    fn spec(&self) -> &ReceiveRequest {
        Self::spec(self)
    }

    fn destination(&self) -> &TargetPath {
        Self::destination(self)
    }

    fn is_decided(&self) -> bool {
        Self::is_decided(self)
    }

    fn may_have_data(&self) -> bool {
        Self::may_have_data(self)
    }

    fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        Self::begin(self, source)
    }

    fn decide(&self, first: Option<&Entry>) -> Result<(), FilesError> {
        Self::decide(self, first)
    }

    fn bytes_to_check(&self) -> u64 {
        Self::bytes_to_check(self)
    }

    fn sender_lists(&self) {
        Self::sender_lists(self);
    }

    fn check_offer(&self, parts: &mut dyn Iterator<Item = &ManifestPart>) -> Result<(), FilesError> {
        Self::check_offer(self, parts)
    }

    fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError> {
        Self::add_manifest_part(self, part)
    }

    fn add_chunks(&self, chunks: &Chunks) -> Result<Option<Wanted>, FilesError> {
        Self::add_chunks(self, chunks)
    }

    fn top(&self, top: Attributes) -> Result<(), FilesError> {
        Self::top(self, top)
    }

    fn id_name(&self, name: &IdName) -> Result<(), FilesError> {
        Self::id_name(self, name)
    }

    fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError> {
        Self::skipped(self, skipped)
    }

    fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError> {
        Self::void(self, void)
    }

    fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError> {
        Self::expect_digest(self, digest)
    }

    fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        Self::write(self, batch, offset, bytes)
    }

    fn copy(&self, batch: u32, range: Range<u64>, from: &dyn TreeObject) -> Result<(), FilesError> {
        Self::copy(self, batch, range, from)
    }

    fn copied(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError> {
        Self::copied(self, batch, range)
    }

    fn add_local_digest(
        &self,
        batch: u32,
        block: u32,
        range: Range<u64>,
        digest: [u8; 32],
    ) -> Result<bool, FilesError> {
        Self::found_digest(self, batch, block, range, digest)
    }

    fn publish_ready(&self, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError> {
        Self::settle(self, placed)
    }

    fn flush(&self) -> Result<(), FilesError> {
        Self::flush(self)
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn unverified(&self) -> u64 {
        Self::unverified(self)
    }

    fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError> {
        Self::check_end(self, end)
    }

    fn finish(&self, end: &TransferEnd) -> Result<ReceiveOutcome, FilesError> {
        Self::finish(self, end)
    }

    fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError> {
        Self::abandon(self, remove)
    }

    fn take_notices(&self) -> Vec<Notice> {
        Self::take_notices(self)
    }

    fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)> {
        Self::take_stored(self)
    }

    fn current(&self) -> Option<Vec<u8>> {
        Self::current(self)
    }

    fn in_place(&self) -> u64 {
        Self::in_place(self)
    }
}
