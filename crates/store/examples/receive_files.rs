//! The receiver's half alone, with tiny files: `receive_files READ_DIRECTORY FILES [BYTES]`. A second run shows the
//! cost of an unchanged tree.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use downpour_store::messages::{Digest, Message, RootHasher, TransferEnd, manifest_parts};
use downpour_store::{Entry, EntryKind, Existing, Extra, FileSink, ManifestState, Mtime, ReceiveRequest, SourceId};

/// Files in a directory.
const PER_DIRECTORY: u64 = 1000;
/// Entries of a batch.
const BATCH: usize = 65_536;
/// Bytes of a block.
const BLOCK: usize = 1 << 20;

struct Feed {
    receiving: FileSink,
    root: RootHasher,
    end: (u32, u64, u64),
    wanted: u64,
    bytes: Vec<u8>,
    encoded: Vec<u8>,
}

impl Feed {
    fn hash(&mut self, message: &Message) -> Result<(), Box<dyn Error>> {
        self.encoded.clear();
        message.encode(&mut self.encoded)?;
        self.root.add(&self.encoded);
        Ok(())
    }

    fn send(&mut self, entries: &[Entry]) -> Result<(), Box<dyn Error>> {
        let (number, length) = (self.end.0, entries.iter().map(Entry::size).sum());
        let mut wanted = 0;
        for part in manifest_parts(number, length, entries) {
            if let ManifestState::Complete(ranges) = self.receiving.add_manifest_part(&part)? {
                wanted = ranges.length(length);
            }
            self.hash(&Message::Manifest(part))?;
        }
        self.receiving.settle(|_, _| {})?;
        for (block, start) in (0..).zip((0..wanted).step_by(BLOCK)) {
            let end = wanted.min(start + BLOCK as u64);
            let bytes = &self.bytes[..usize::try_from(end - start)?];
            let digest = *blake3::hash(bytes).as_bytes();
            self.receiving.write(number, start, bytes)?;
            self.receiving.found_digest(number, block, start..end, digest)?;
            let digest = Digest { batch: number, block, digest };
            self.receiving.expect_digest(&digest)?;
            self.hash(&Message::Digest(digest))?;
            self.receiving.settle(|_, _| {})?;
        }
        self.wanted += wanted;
        self.end = (number + 1, self.end.1 + entries.len() as u64, self.end.2 + length);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let into = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let mut number = |default: u64| match arguments.next() {
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).ok_or("not a number"),
        None => Ok(default),
    };
    let (files, size) = (number(1_000_000)?, number(0)?);
    let settings = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(into) };
    let (receiving, bytes) = (FileSink::new(settings)?, (0..BLOCK).map(|at| at as u8 | 1).collect());
    let mut feed = Feed { receiving, root: RootHasher::new(), end: (0, 0, 0), wanted: 0, bytes, encoded: Vec::new() };
    let source = SourceId([3; 16]);
    let begun = Instant::now();
    feed.receiving.begin(source)?;
    feed.hash(&Message::Begin(source))?;
    let mut entries = Vec::new();
    for file in 0..files {
        let directory = format!("tree/{:04}", file / PER_DIRECTORY);
        let entry = |path: String, kind, mode| Entry {
            path: path.into_bytes(),
            kind,
            mode,
            mtime: Mtime { seconds: 1_000_000_000, nanoseconds: 0 },
            extra: Extra::default(),
        };
        if file == 0 {
            entries.push(entry("tree".to_owned(), EntryKind::Directory, 0o755));
        }
        if file % PER_DIRECTORY == 0 {
            entries.push(entry(directory.clone(), EntryKind::Directory, 0o755));
        }
        // From 0 to twice the size.
        let size = size * (file % 5) / 2;
        entries.push(entry(
            format!("{directory}/{file:08}.dat"),
            EntryKind::File { size, version: 1, hash: None },
            0o644,
        ));
        if entries.len() >= BATCH - 2 {
            feed.send(&entries)?;
            entries.clear();
        }
    }
    feed.send(&entries)?;
    let (batches, entries, bytes) = feed.end;
    let outcome =
        feed.receiving.finish(&TransferEnd { batches, entries, bytes, skipped: 0, root: feed.root.root() })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} files, {} of them unchanged, {} bytes wanted", outcome.files, outcome.unchanged, feed.wanted);
    println!("{seconds:.2} s, {:.0} files/s", outcome.files as f64 / seconds);
    Ok(())
}
