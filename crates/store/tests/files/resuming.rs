//! Data left by an interrupted run only counts if it is unchanged.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::{BatchSource, Existing, FileSink, FilesError, ReceiveRequest, Scanner, SourceItem, SourceOptions};
use tempfile::TempDir;

use crate::common::{BLOCK, Control, Done, noise, quick_dir, send_block, snapshot, transfer_as};
use crate::journal::{staged_files, staging};

const LONG: usize = 1_500_000;
const SMALL: usize = 3000;
/// Blocks that the interrupted run does not receive: one of each long file.
const MISSING: [u32; 2] = [5, 20];
/// Bytes wanted if the staging directory is intact: the missing blocks, and all of the small files.
const WANTED: u64 = (MISSING.len() * BLOCK + SMALL) as u64;
/// Start, in the first file, of the block that spans both long files.
const BORDER: usize = LONG / BLOCK * BLOCK;

/// Two long files and a small one, most of which an interrupted run has received.
struct Interrupted {
    from: TempDir,
    into: TempDir,
}

impl Interrupted {
    fn new() -> Self {
        let (from, into) = (quick_dir(), quick_dir());
        for (name, length, seed) in [("a", LONG, 1), ("b", LONG, 2), ("c", SMALL, 3)] {
            fs::write(from.path().join(name), noise(length, seed)).unwrap();
        }
        let interrupted = Self { from, into };
        interrupted.run(|block| !MISSING.contains(&block));
        interrupted
    }

    fn sources(&self) -> Vec<PathBuf> {
        ["a", "b", "c"].iter().map(|name| self.from.path().join(name)).collect()
    }

    fn spec(&self) -> ReceiveRequest {
        ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(self.into.path()) }
    }

    /// Receives the blocks for which `is_sent` returns true and is then killed, with nothing in place.
    fn run(&self, is_sent: impl Fn(u32) -> bool) {
        let scanner =
            Scanner::new(self.sources().iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap();
        let roots = scanner.roots();
        let receiving = FileSink::new(self.spec()).unwrap();
        let mut control = Control::begin(&receiving).unwrap();
        for batch in scanner {
            let batch = Arc::new(batch);
            control.send_manifest(&batch).unwrap();
            // No file is moved to its final name.
            receiving.stop();
            let source = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), control.wanted.clone());
            let blocks = u32::try_from(source.length().div_ceil(BLOCK as u64)).unwrap();
            for block in (0..blocks).filter(|block| is_sent(*block)) {
                send_block(&mut control, &source, batch.number, block, true).unwrap();
            }
        }
        assert!(!self.into.path().join("c").exists());
    }

    fn staged(&self, name: &str) -> PathBuf {
        let start = fs::read(self.from.path().join(name)).unwrap()[..100].to_vec();
        let files = staged_files(&staging(self.into.path()).unwrap());
        files.into_iter().find(|path| fs::read(path).unwrap().starts_with(&start)).unwrap()
    }

    /// Runs again to the end and checks the result.
    fn again(&self) -> Done {
        let done = transfer_as(&self.sources(), self.spec(), 1, &mut |_| {}).unwrap();
        for name in ["a", "b", "c"] {
            let (sent, received) = (fs::read(self.from.path().join(name)), fs::read(self.into.path().join(name)));
            assert!(sent.unwrap() == received.unwrap(), "{name} is not as it was sent");
        }
        assert!(staging(self.into.path()).is_none());
        done
    }
}

fn change(path: &Path, at: usize) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = [0; 3];
    file.read_exact_at(&mut bytes, at as u64).unwrap();
    file.write_all_at(&bytes.map(|byte| byte ^ 0x40), at as u64).unwrap();
}

fn set_length(path: &Path, length: usize) {
    File::options().write(true).open(path).unwrap().set_len(length as u64).unwrap();
}

#[test]
fn resume_intact_staging_not_received_again() {
    let done = Interrupted::new().again();
    assert_eq!((done.wanted, done.outcome.altered, done.outcome.unchecked), (WANTED, 0, 0));
}

/// A change to a staging directory by another program.
type Alteration<'a> = &'a dyn Fn(&Interrupted);

/// Each alteration costs only the touched blocks of the altered file.
#[test]
fn resume_altered_range_received_again() {
    let first_of_b = (BORDER + BLOCK - LONG) as u64;
    let last_of_a = (LONG - BORDER) as u64;
    let last_of_b = ((2 * LONG) % BLOCK) as u64;
    let all_but_one = (LONG - BLOCK) as u64;
    let alterations: [(&str, Alteration<'_>, u64); 11] = [
        ("the first bytes", &|here| change(&here.staged("a"), 100), BLOCK as u64),
        ("3 bytes in a block", &|here| change(&here.staged("a"), 3 * BLOCK + 7), BLOCK as u64),
        ("3 bytes across two blocks", &|here| change(&here.staged("a"), 3 * BLOCK - 1), 2 * BLOCK as u64),
        ("the end of a file, in a block of two", &|here| change(&here.staged("a"), LONG - 3), last_of_a),
        ("the start of a file, in a block of two", &|here| change(&here.staged("b"), 1), first_of_b),
        ("the last block of a file", &|here| change(&here.staged("b"), LONG - 3), last_of_b),
        ("a small file", &|here| change(&here.staged("c"), 10), 0),
        ("a file cut by a byte", &|here| set_length(&here.staged("a"), LONG - 1), last_of_a),
        ("an empty file", &|here| set_length(&here.staged("a"), 0), all_but_one),
        ("a longer file", &|here| set_length(&here.staged("a"), LONG + 1000), 0),
        (
            "two files swapped",
            &|here| {
                let (a, b, other) = (here.staged("a"), here.staged("b"), here.into.path().join("other"));
                fs::rename(&a, &other).unwrap();
                fs::rename(&b, &a).unwrap();
                fs::rename(&other, &b).unwrap();
            },
            2 * all_but_one,
        ),
    ];
    for (name, alter, again) in alterations {
        let here = Interrupted::new();
        alter(&here);
        let done = here.again();
        assert_eq!((done.wanted, done.outcome.altered), (WANTED + again, again), "{name}");
    }
}

#[test]
fn trust_staging_counts_unverified() {
    let here = Interrupted::new();
    change(&here.staged("a"), 7);
    let spec = ReceiveRequest { trust_staging: true, ..here.spec() };
    let done = transfer_as(&here.sources(), spec, 1, &mut |_| {}).unwrap();
    let kept = (2 * LONG + SMALL) as u64 - WANTED;
    assert_eq!((done.wanted, done.outcome.unchecked, done.outcome.altered), (WANTED, kept, 0));
    let (mut sent, received) = (noise(LONG, 1), fs::read(here.into.path().join("a")).unwrap());
    sent[7..10].iter_mut().for_each(|byte| *byte ^= 0x40);
    assert!(sent == received);
}

/// The run that finds an altered range overwrites it. No later run may trust the old record, not even one that does not
/// verify.
#[test]
fn resume_drops_altered_record_before_writing() {
    let here = Interrupted::new();
    change(&here.staged("a"), 3 * BLOCK + 7);
    here.run(|_| false);
    let spec = ReceiveRequest { trust_staging: true, ..here.spec() };
    let done = transfer_as(&here.sources(), spec, 1, &mut |_| {}).unwrap();
    assert_eq!(done.wanted, WANTED + BLOCK as u64);
    assert!(fs::read(here.into.path().join("a")).unwrap() == noise(LONG, 1));
}

#[test]
fn resume_stopped_check_keeps_staged_data() {
    let here = Interrupted::new();
    let receiving = FileSink::new(here.spec()).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    assert_eq!(receiving.bytes_to_check(), (2 * LONG + SMALL) as u64 - WANTED);
    receiving.stop();
    let batch =
        Scanner::new(here.sources().iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap().next();
    let stopped = control.send_manifest(&batch.unwrap());
    assert!(matches!(stopped, Err(FilesError::Over)), "{stopped:?}");
    receiving.abandon(false).unwrap();
    drop(receiving);
    assert_eq!(here.again().wanted, WANTED);
}

/// A directory that an interrupted run created as its single item is continued. A dry run must find this out without
/// changing the partial data of that run.
#[test]
fn dry_run_keeps_staging_unchanged() {
    let (from, into) = (quick_dir(), quick_dir());
    fs::create_dir(from.path().join("tree")).unwrap();
    fs::write(from.path().join("tree/long"), noise(LONG, 1)).unwrap();
    let target = into.path().join("name");
    let spec = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::to_target(&target) };
    let manifest = |receiving: &FileSink| {
        let root = SourceItem::new(from.path().join("tree"));
        let batch = Scanner::new(vec![root], SourceOptions::default()).unwrap().next().unwrap();
        let mut control = Control::begin(receiving).unwrap();
        control.send_manifest(&batch).unwrap();
        control.wanted.length(batch.length)
    };
    let receiving = FileSink::new(spec.clone()).unwrap();
    manifest(&receiving);
    drop(receiving);
    assert!(target.is_dir());

    let before = snapshot(into.path());
    let dry = FileSink::new(ReceiveRequest { dry_run: true, ..spec.clone() }).unwrap();
    assert_eq!(manifest(&dry), LONG as u64);
    assert_eq!(dry.destination().rename.as_deref(), Some(&b"name"[..]), "the directory is its own");
    dry.abandon(false).unwrap();
    drop(dry);
    assert_eq!(snapshot(into.path()), before);
    let receiving = FileSink::new(spec).unwrap();
    manifest(&receiving);
    assert_eq!(receiving.destination().rename.as_deref(), Some(&b"name"[..]));
}
