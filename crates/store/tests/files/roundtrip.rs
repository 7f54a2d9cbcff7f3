//! The target equals the source: bytes, names, modes, times, links, holes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use downpour_store::messages::{Digest, ManifestPart, Message, Void};
use downpour_store::{
    BatchSource, Entry, EntryKind, Existing, Extra, FileSink, Modes, Mtime, ReceiveRequest, Scanner, SourceItem,
    SourceOptions, VoidReason, Wanted,
};
use tempfile::tempdir;

use crate::common::{BLOCK, Control, SOURCE, names, noise, quick_dir, snapshot, transfer, transfer_as, transfer_with};

fn set_mtime(path: &Path, seconds: i64, nanoseconds: u32) {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time =
        if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole } + Duration::from_nanos(nanoseconds.into());
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates a tree with every kind of object.
fn odd_tree(root: &Path) {
    let dir = root.join("tree");
    fs::create_dir_all(dir.join("empty directory")).unwrap();
    fs::create_dir_all(dir.join("a/b/c/d")).unwrap();
    fs::write(dir.join("empty"), b"").unwrap();
    fs::write(dir.join("one"), b"1").unwrap();
    fs::write(dir.join("-rf"), b"dash").unwrap();
    fs::write(dir.join("new\nline\t\x1b[31m"), b"control").unwrap();
    fs::write(dir.join(OsStr::from_bytes(b"\xff\xfe\x80")), b"no utf-8").unwrap();
    fs::write(dir.join("x".repeat(255)), b"long").unwrap();
    fs::write(dir.join("a/b/c/d/deep"), noise(3 * BLOCK + 17, 1)).unwrap();
    fs::write(dir.join("a/zeros"), vec![0; 200_000]).unwrap();
    fs::write(dir.join("a/.downpour-hidden"), b"not ours").unwrap();
    symlink("../..//etc/passwd", dir.join("a/outside")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    symlink("a", dir.join("directory link")).unwrap();
    chmod(&dir.join("one"), 0o400);
    chmod(&dir.join("-rf"), 0o751);
    chmod(&dir.join("empty directory"), 0o1777);
    chmod(&dir.join("a/b/c"), 0o500);
    set_mtime(&dir.join("one"), 1_000_000_000, 123_456_789);
    set_mtime(&dir.join("empty"), -5, 500_000_000);
    set_mtime(&dir.join("a/b"), 86_400, 1);
    set_mtime(&dir, 1_234_567, 0);
}

#[test]
fn tree_of_every_kind_arrives_identical() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    odd_tree(from.path());
    let outcome = transfer(&[from.path().join("tree")], to.path());
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&to.path().join("tree")));
    assert_eq!(names(to.path()), ["tree"], "nothing else remains");
    assert_eq!((outcome.files, outcome.directories, outcome.symlinks), (9, 6, 3));
    assert!(!outcome.is_partial());
    chmod(&to.path().join("tree/a/b/c"), 0o700);
    chmod(&from.path().join("tree/a/b/c"), 0o700);
}

#[test]
fn several_items_arrive_in_new_directory() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    odd_tree(from.path());
    let (single, link, empty) = (from.path().join("single"), from.path().join("link"), from.path().join("none"));
    fs::write(&single, noise(1, 2)).unwrap();
    symlink("single", &link).unwrap();
    fs::write(&empty, b"").unwrap();
    let into = to.path().join("new");
    transfer(&[from.path().join("tree"), single, link, empty], &into);
    assert_eq!(names(&into), ["link", "none", "single", "tree"]);
    assert_eq!(fs::read_link(into.join("link")).unwrap(), Path::new("single"));
    assert_eq!(fs::read(into.join("single")).unwrap(), noise(1, 2));
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&into.join("tree")));
}

#[test]
fn any_order_of_blocks_gives_the_same_tree() {
    let from = quick_dir();
    odd_tree(from.path());
    for seed in 0..20 {
        let to = quick_dir();
        transfer_with(&[from.path().join("tree")], to.path(), seed, |_| {}).unwrap();
        assert_eq!(snapshot(&from.path().join("tree")), snapshot(&to.path().join("tree")), "seed {seed}");
    }
}

#[test]
fn set_id_bits_are_dropped() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("suid"), b"x").unwrap();
    chmod(&dir.join("suid"), 0o6755);
    chmod(&dir, 0o2755);
    for modes in [Modes::Masked, Modes::Exact] {
        let to = tempdir().unwrap();
        let spec = ReceiveRequest { modes, existing: Existing::Replace, ..ReceiveRequest::into_directory(to.path()) };
        let mode = |name: &str| to.path().join(name).metadata().unwrap().mode() & 0o7777;
        transfer_as(std::slice::from_ref(&dir), spec.clone(), 1, &mut |_| {}).unwrap();
        assert_eq!((mode("dir/suid"), mode("dir")), (0o755, 0o755), "{modes:?}");
        // Existing files keep their mode until their content changes.
        chmod(&to.path().join("dir/suid"), 0o4755);
        chmod(&to.path().join("dir"), 0o2755);
        transfer_as(std::slice::from_ref(&dir), spec.clone(), 1, &mut |_| {}).unwrap();
        assert_eq!((mode("dir/suid"), mode("dir")), (0o4755, 0o2755), "{modes:?}");
        fs::write(to.path().join("dir/suid"), b"yy").unwrap();
        chmod(&to.path().join("dir/suid"), 0o4755);
        transfer_as(std::slice::from_ref(&dir), spec, 1, &mut |_| {}).unwrap();
        assert_eq!((mode("dir/suid"), mode("dir")), (0o755, 0o2755), "{modes:?}");
    }
}

/// A directory inherits set-group-id from its parent, as shared directories need it to keep their group.
#[test]
fn new_directories_keep_the_group_bit_of_their_parent() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    fs::create_dir_all(from.path().join("dir/inner")).unwrap();
    chmod(to.path(), 0o2755);
    for modes in [Modes::Masked, Modes::Exact] {
        let spec = ReceiveRequest { modes, existing: Existing::Replace, ..ReceiveRequest::into_directory(to.path()) };
        transfer_as(&[from.path().join("dir")], spec, 1, &mut |_| {}).unwrap();
        for name in ["dir", "dir/inner"] {
            assert_eq!(to.path().join(name).metadata().unwrap().mode() & 0o7777, 0o2755, "{modes:?}");
        }
    }
}

#[test]
fn directories_closed_to_owner_are_filled() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let dir = from.path().join("closed");
    fs::create_dir_all(dir.join("inner")).unwrap();
    fs::write(dir.join("inner/file"), b"x").unwrap();
    chmod(&dir.join("inner"), 0o555);
    chmod(&dir, 0o555);
    set_mtime(&dir, 77, 7);
    transfer(std::slice::from_ref(&dir), to.path());
    let copy = to.path().join("closed");
    assert_eq!(snapshot(&dir), snapshot(&copy));
    for each in [dir.join("inner"), dir, copy.join("inner"), copy] {
        chmod(&each, 0o755);
    }
}

#[test]
fn ten_thousand_tiny_files_arrive() {
    let (from, to) = (quick_dir(), quick_dir());
    let dir = from.path().join("many");
    for directory in 0..100 {
        let inner = dir.join(format!("{directory:02}"));
        fs::create_dir_all(&inner).unwrap();
        for file in 0..100 {
            fs::write(inner.join(format!("{file}")), noise(file, directory * 1000 + file as u64)).unwrap();
        }
    }
    let outcome = transfer(std::slice::from_ref(&dir), to.path());
    assert_eq!((outcome.files, outcome.bytes, outcome.directories), (10_000, 100 * 4950, 101));
    assert_eq!(snapshot(&dir), snapshot(&to.path().join("many")));
}

#[test]
fn sparse_file_stays_sparse() {
    const LENGTH: u64 = 300 << 20;
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("sparse");
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(b"island", 150 << 20).unwrap();
    file.set_len(LENGTH).unwrap();
    transfer(&[path], to.path());
    let copy = fs::File::open(to.path().join("sparse")).unwrap();
    let metadata = copy.metadata().unwrap();
    assert_eq!(metadata.len(), LENGTH);
    assert!(metadata.blocks() * 512 < LENGTH / 100, "{} bytes on disk", metadata.blocks() * 512);
    let mut island = [0; 8];
    copy.read_exact_at(&mut island, (150 << 20) - 1).unwrap();
    assert_eq!(&island, b"\0island\0");
}

#[test]
fn empty_transfer_succeeds() {
    let to = tempdir().unwrap();
    let receiving = FileSink::new(ReceiveRequest::into_directory(to.path())).unwrap();
    let outcome = receiving.finish(&Control::begin(&receiving).unwrap().end()).unwrap();
    assert_eq!(outcome.files, 0);
    assert_eq!(names(to.path()), [""; 0]);
}

#[test]
fn workers_read_and_write_concurrently() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let dir = from.path().join("dir");
    fs::create_dir(&dir).unwrap();
    for file in 0..200_u64 {
        let length = if file % 50 == 0 { 900_000 } else { 5000 };
        fs::write(dir.join(format!("{file}")), noise(length, file)).unwrap();
    }
    let scanner = Scanner::new(vec![SourceItem::new(dir.clone())], SourceOptions::default()).unwrap();
    let roots = scanner.roots();
    let batches: Vec<_> = scanner.collect();
    assert_eq!(batches.len(), 1);
    let batch = Arc::new(batches.into_iter().next().unwrap());
    let receiving = FileSink::new(ReceiveRequest::into_directory(to.path())).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&batch).unwrap();
    let source = BatchSource::new(batch, roots, Wanted::all());
    let blocks = u32::try_from(source.length().div_ceil(BLOCK as u64)).unwrap();
    let (next, control) = (AtomicU32::new(0), Mutex::new(control));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut bytes = vec![0; BLOCK];
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks {
                        return;
                    }
                    let start = u64::from(block) * BLOCK as u64;
                    let end = source.length().min(start + BLOCK as u64);
                    source.read(start, &mut bytes);
                    let digest = *blake3::hash(&bytes[..(end - start) as usize]).as_bytes();
                    let message = Message::Digest(Digest { batch: 0, block, digest });
                    control.lock().unwrap().send(&message).unwrap();
                    receiving.write(0, start, &bytes).unwrap();
                    if receiving.found_digest(0, block, start..end, digest).unwrap() {
                        receiving.settle(|_, _| {}).unwrap();
                    }
                }
            });
        }
    });
    receiving.finish(&control.into_inner().unwrap().end()).unwrap();
    assert_eq!(snapshot(&dir), snapshot(&to.path().join("dir")));
}

#[test]
fn placed_file_is_reported_once() {
    let dir = tempdir().unwrap();
    let receiving = FileSink::new(ReceiveRequest::into_directory(dir.path())).unwrap();
    receiving.begin(SOURCE).unwrap();
    let entry = |path: &str, size| Entry {
        path: path.into(),
        kind: EntryKind::File { size, version: 0, hash: None },
        mode: 0o644,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    let entries = vec![entry("empty", 0), entry("a", 15), entry("void", 5), entry("b", 10)];
    receiving
        .add_manifest_part(&ManifestPart { batch: 0, last: true, whole: false, again: false, length: 30, entries })
        .unwrap();
    let placed_so_far = || {
        let mut placed_so_far = Vec::new();
        receiving
            .settle(|path, bytes| {
                let name = String::from_utf8(path.to_vec()).unwrap();
                assert_eq!(dir.path().join(&name).metadata().unwrap().len(), bytes, "{name}");
                placed_so_far.push((name, bytes));
            })
            .unwrap();
        placed_so_far.sort();
        placed_so_far
    };
    for block in 0..3_u32 {
        receiving.write(0, u64::from(block) * 10, &[7; 10]).unwrap();
    }
    let digest = *blake3::hash(&[7; 10]).as_bytes();
    receiving.void(&Void { batch: 0, entry: 2, reason: VoidReason::Changed }).unwrap();
    for block in [1_u32, 2, 0] {
        assert_eq!(names(dir.path()).iter().filter(|name| ["a", "b", "void"].contains(&name.as_str())).count(), 0);
        receiving.found_digest(0, block, u64::from(block) * 10..u64::from(block) * 10 + 10, digest).unwrap();
        assert_eq!(placed_so_far(), [], "block {block} has no digest to match");
        assert_eq!(receiving.unverified(), 1);
        receiving.expect_digest(&Digest { batch: 0, block, digest }).unwrap();
        if block > 0 {
            assert_eq!(placed_so_far(), [], "the batch is not complete");
        }
    }
    assert_eq!(placed_so_far(), [("a".to_owned(), 15), ("b".to_owned(), 10), ("empty".to_owned(), 0)]);
    assert_eq!(receiving.unverified(), 0);
}

#[test]
fn existing_refuse_lists_each_name() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let paths: Vec<PathBuf> = ["a", "b", "c"].iter().map(|n| from.path().join(n)).collect();
    paths.iter().for_each(|p| fs::write(p, b"new").unwrap());
    fs::write(to.path().join("a"), b"old").unwrap();
    symlink("nowhere", to.path().join("c")).unwrap();
    let error = transfer_with(&paths, to.path(), 0, |_| {}).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/a, ") && text.ends_with("/c") && !text.contains("/b"), "{text}");
    assert_eq!(names(to.path()), ["a", "c"], "no staging directory for a refused transfer");
    assert_eq!(fs::read(to.path().join("a")).unwrap(), b"old");
}

#[test]
fn existing_refuse_keeps_name_created_meanwhile() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let paths: Vec<PathBuf> = ["a", "b", "c"].iter().map(|n| from.path().join(n)).collect();
    paths.iter().for_each(|p| fs::write(p, b"new").unwrap());
    let error =
        transfer_with(&paths, to.path(), 0, |_| fs::write(to.path().join("b"), b"theirs").unwrap()).unwrap_err();
    assert!(matches!(error, downpour_store::FilesError::TargetExists { .. }), "{error}");
    assert_eq!(fs::read(to.path().join("b")).unwrap(), b"theirs");
    fs::remove_file(to.path().join("b")).unwrap();
    transfer(&paths, to.path());
    assert_eq!(names(to.path()), ["a", "b", "c"]);
    assert!(paths.iter().all(|path| fs::read(to.path().join(path.file_name().unwrap())).unwrap() == b"new"));
}
