//! Transfers without a network: the content of flow 0 and of blocks is passed directly.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::messages::{Chunks, Digest, Message, MessageReader, RootHasher, TransferEnd, Void, manifest_parts};
use downpour_store::{
    Batch, BatchSource, Entry, EntryKind, Extra, FileSink, FilesError, ManifestState, Modes, Mtime, Notice,
    ReceiveOutcome, ReceiveRequest, Roots, Scanner, SourceId, SourceItem, SourceOptions, Wanted, list_chunks,
};
use tempfile::TempDir;

/// The source of all transfers in the tests.
pub(crate) const SOURCE: SourceId = SourceId([1; 16]);

/// Block size of the tests: odd, so that it does not coincide with other boundaries.
pub(crate) const BLOCK: usize = 100_003;

/// Returns an entry of a manifest for which no disk is read.
pub(crate) fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry {
        path: path.into(),
        kind,
        mode: 0o755,
        mtime: Mtime { seconds: 99, nanoseconds: 0 },
        extra: Extra::default(),
    }
}

/// Both ends of flow 0: messages are encoded, hashed, cut into chunks, read and handled.
pub(crate) struct Control<'a> {
    pub(crate) receiving: &'a FileSink,
    pub(crate) root: RootHasher,
    reader: MessageReader,
    pub(crate) end: (u32, u64, u64, u64),
    /// The wanted ranges of the batch whose manifest was sent last.
    pub(crate) wanted: Wanted,
    /// Entries of that batch whose chunks the receiver requests.
    pub(crate) compared: Vec<u32>,
}

impl<'a> Control<'a> {
    pub(crate) fn new(receiving: &'a FileSink) -> Self {
        Self {
            receiving,
            root: RootHasher::new(),
            reader: MessageReader::new(),
            end: (0, 0, 0, 0),
            wanted: Wanted::all(),
            compared: Vec::new(),
        }
    }

    /// Begins a transfer from [`SOURCE`].
    pub(crate) fn begin(receiving: &'a FileSink) -> Result<Self, FilesError> {
        let mut control = Self::new(receiving);
        control.send(&Message::Begin(SOURCE))?;
        Ok(control)
    }

    pub(crate) fn send(&mut self, message: &Message) -> Result<(), FilesError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes)?;
        self.root.add(&bytes);
        for mut chunk in bytes.chunks(1000) {
            while let Some(read) = self.reader.next(&mut chunk)? {
                assert_eq!(&read, message);
                match read {
                    Message::Manifest(part) => {
                        let state = self.receiving.add_manifest_part(&part)?;
                        assert_eq!(state != ManifestState::More, part.last);
                        match state {
                            ManifestState::More => {}
                            ManifestState::Complete(wanted) => self.wanted = wanted,
                            ManifestState::Whole(_) => self.wanted = Wanted::all(),
                            ManifestState::Compare(entries) => self.compared = entries,
                        }
                    }
                    Message::Begin(source) => self.receiving.begin(source)?,
                    Message::Top(top) => self.receiving.top(top)?,
                    Message::IdName(name) => self.receiving.id_name(&name)?,
                    Message::Digest(digest) => {
                        self.receiving.expect_digest(&digest)?;
                    }
                    Message::Chunks(chunks) => {
                        if let Some(wanted) = self.receiving.add_chunks(&chunks)? {
                            self.wanted = wanted;
                        }
                    }
                    Message::Void(void) => drop(self.receiving.void(&void)?),
                    Message::Skipped(skipped) => self.receiving.skipped(&skipped)?,
                    other => panic!("not from a sender, or unexpected: {other:?}"),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn send_manifest(&mut self, batch: &Batch) -> Result<(), FilesError> {
        for name in &batch.id_names {
            self.send(&Message::IdName(name.clone()))?;
        }
        for part in manifest_parts(batch.number, batch.length, &batch.entries) {
            self.send(&Message::Manifest(part))?;
        }
        for skipped in &batch.skipped {
            self.send(&Message::Skipped(skipped.clone()))?;
        }
        self.receiving.settle(|_, _| {})?;
        self.end.0 += 1;
        self.end.1 += batch.entries.len() as u64;
        self.end.2 += batch.length;
        self.end.3 += batch.skipped.len() as u64;
        Ok(())
    }

    /// Lists the chunks that the receiver requests of the last batch.
    pub(crate) fn send_chunks(&mut self, batch: &Arc<Batch>, roots: &Arc<Roots>) -> Result<(), FilesError> {
        let source = BatchSource::new(Arc::clone(batch), Arc::clone(roots), Wanted::all());
        let mut result = Ok(());
        for entry in std::mem::take(&mut self.compared) {
            list_chunks(&source, entry, None, |chunks, state| {
                result = self.send(&Message::Chunks(Chunks { batch: batch.number, entry, state, chunks }));
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            std::mem::replace(&mut result, Ok(()))?;
        }
        self.receiving.settle(|_, _| {})
    }

    pub(crate) fn end(&self) -> TransferEnd {
        let (batches, entries, bytes, skipped) = self.end;
        TransferEnd { batches, entries, bytes, skipped, root: self.root.root() }
    }
}

/// Sends one block: read, voids, write and digests, ordered by `digest_first`.
pub(crate) fn send_block(
    control: &mut Control<'_>,
    source: &BatchSource,
    number: u32,
    block: u32,
    digest_first: bool,
) -> Result<(), FilesError> {
    let start = u64::from(block) * BLOCK as u64;
    let end = source.length().min(start + BLOCK as u64);
    let mut bytes = vec![0xaa; BLOCK];
    source.read(start, &mut bytes);
    let padding = &bytes[(end - start) as usize..];
    assert!(padding.iter().all(|b| *b == 0), "bytes behind the object are zeros");
    for voided in source.take_voided() {
        control.send(&Message::Void(Void { batch: number, entry: voided.entry, reason: voided.reason }))?;
    }
    let hash = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
    let digest = hash(&bytes[..(end - start) as usize]);
    let message = Message::Digest(Digest { batch: number, block, digest });
    if digest_first {
        control.send(&message)?;
    }
    control.receiving.write(number, start, &bytes)?;
    control.receiving.found_digest(number, block, start..end, digest)?;
    if !digest_first {
        control.send(&message)?;
    }
    control.receiving.settle(|_, _| {})
}

/// Creates a directory in memory if possible, for tests with thousands of files that do not test the disk.
pub(crate) fn quick_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Returns the numbers `0..count` in an order that depends on `seed`.
pub(crate) fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut keyed: Vec<_> =
        (0..count).map(|n| (blake3::hash(&(u64::from(n) ^ seed << 32).to_le_bytes()).to_hex(), n)).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, n)| n).collect()
}

/// Sends `paths` into `into` with shuffled blocks. `before_read` is called for each batch between manifest and reading.
pub(crate) fn transfer_with(
    paths: &[PathBuf],
    into: &Path,
    seed: u64,
    mut before_read: impl FnMut(&Batch),
) -> Result<ReceiveOutcome, FilesError> {
    let settings = ReceiveRequest { modes: Modes::Exact, ..ReceiveRequest::into_directory(into) };
    transfer_as(paths, settings, seed, &mut before_read).map(|done| done.outcome)
}

/// The result of a transfer.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: ReceiveOutcome,
    /// Number of bytes wanted.
    pub(crate) wanted: u64,
    pub(crate) notices: Vec<Notice>,
}

/// Same as [`transfer_with`], with any spec. If the target is to be a name, it is used as such even if it exists.
pub(crate) fn transfer_as(
    paths: &[PathBuf],
    settings: ReceiveRequest,
    seed: u64,
    before_read: &mut dyn FnMut(&Batch),
) -> Result<Done, FilesError> {
    let scan = SourceOptions { preserve: settings.preserve, ..SourceOptions::default() };
    transfer_from(Scanner::new(paths.iter().map(SourceItem::new).collect(), scan)?, settings, seed, before_read)
}

/// Same as [`transfer_as`], with any source.
pub(crate) fn transfer_from(
    mut scanner: Scanner,
    settings: ReceiveRequest,
    seed: u64,
    before_read: &mut dyn FnMut(&Batch),
) -> Result<Done, FilesError> {
    let (top, names) = scanner.top();
    let roots = scanner.roots();
    let dry_run = settings.dry_run;
    let receiving = FileSink::with_target(Arc::new(settings), false)?;
    receiving.sender_lists();
    let mut control = Control::begin(&receiving)?;
    top.map_or(Ok(()), |top| control.send(&Message::Top(top)))?;
    names.into_iter().try_for_each(|name| control.send(&Message::IdName(name)))?;
    let (mut wanted, mut notices) = (0, Vec::new());
    for batch in scanner {
        let batch = Arc::new(batch);
        control.send_manifest(&batch)?;
        control.send_chunks(&batch, &roots)?;
        before_read(&batch);
        notices.extend(receiving.take_notices());
        wanted += control.wanted.length(batch.length);
        assert!(receiving.may_have_data() || control.wanted.is_all());
        if dry_run {
            continue;
        }
        let source = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), control.wanted.clone());
        let blocks = u32::try_from(source.length().div_ceil(BLOCK as u64)).unwrap();
        for block in shuffled(blocks, seed) {
            send_block(&mut control, &source, batch.number, block, block % 2 == 0)?;
        }
    }
    assert_eq!(receiving.unverified(), 0);
    let outcome = receiving.finish(&control.end())?;
    notices.extend(receiving.take_notices());
    Ok(Done { outcome, wanted, notices })
}

pub(crate) fn transfer(paths: &[PathBuf], into: &Path) -> ReceiveOutcome {
    transfer_with(paths, into, 1, |_| {}).unwrap()
}

/// Type and content, mode and time of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SnapshotEntry {
    pub(crate) content: String,
    pub(crate) mode: u32,
    pub(crate) mtime: (i64, i64),
}

/// Returns everything beneath `root`, by path; `root` itself has the empty path.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<Vec<u8>, SnapshotEntry> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|item| item.unwrap().path()));
            "directory".to_owned()
        } else if metadata.is_symlink() {
            format!("link {:?}", fs::read_link(&path).unwrap())
        } else {
            format!("file {} {}", metadata.len(), blake3::hash(&fs::read(&path).unwrap()))
        };
        let key = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        let mode = if metadata.is_symlink() { 0 } else { metadata.mode() & 0o7777 };
        found.insert(key, SnapshotEntry { content, mode, mtime: (metadata.mtime(), metadata.mtime_nsec()) });
    }
    found
}

/// Returns the sorted names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|i| i.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns non-repeating bytes that differ for each seed.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
