//! A source that changes, shrinks or vanishes while it is sent: it is left out and named, its neighbours stand.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use downpour::files::{BatchSource, FailReason, Scanner, VoidReason};
use tempfile::tempdir;

use crate::common::{BLOCK, names, noise, snapshot, transfer_with};

fn three_files(dir: &Path) {
    fs::create_dir(dir).unwrap();
    fs::write(dir.join("a"), noise(BLOCK / 2, 1)).unwrap();
    fs::write(dir.join("b"), noise(2 * BLOCK, 2)).unwrap();
    fs::write(dir.join("c"), noise(BLOCK / 2, 3)).unwrap();
}

/// Sends three files and spoils the middle one after the scan.
fn spoiled(spoil: impl Fn(&Path), reason: VoidReason) {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let dir = from.path().join("dir");
    three_files(&dir);
    let before = snapshot(&dir);
    let outcome = transfer_with(std::slice::from_ref(&dir), to.path(), 3, |_| spoil(&dir.join("b"))).unwrap();
    let after = snapshot(&to.path().join("dir"));
    assert_eq!(names(&to.path().join("dir")), ["a", "c"]);
    assert_eq!(after[&b"a"[..]], before[&b"a"[..]]);
    assert_eq!(after[&b"c"[..]], before[&b"c"[..]]);
    assert_eq!((outcome.files, outcome.bytes, outcome.failed_count), (2, BLOCK as u64 / 2 * 2, 1));
    assert_eq!(outcome.listed.len(), 1);
    assert_eq!(outcome.listed[0].path, b"dir/b");
    assert_eq!(outcome.listed[0].reason, FailReason::Voided(reason));
}

fn append(path: &Path) {
    fs::File::options().append(true).open(path).unwrap().write_all(b"more").unwrap();
}

fn shrink(path: &Path) {
    fs::File::options().write(true).open(path).unwrap().set_len(BLOCK as u64).unwrap();
}

fn rewrite(path: &Path) {
    let length = path.metadata().unwrap().len();
    fs::write(path, noise(usize::try_from(length).unwrap(), 9)).unwrap();
}

#[test]
fn a_file_that_changed_before_it_was_read_is_left_out() {
    spoiled(append, VoidReason::Changed);
    spoiled(rewrite, VoidReason::Changed);
    spoiled(shrink, VoidReason::Shrank);
    spoiled(|p| fs::remove_file(p).unwrap(), VoidReason::Vanished);
    spoiled(
        |p| {
            fs::remove_file(p).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", p).unwrap();
        },
        VoidReason::Unreadable,
    );
    spoiled(
        |p| {
            fs::remove_file(p).unwrap();
            rustix::fs::mknodat(rustix::fs::CWD, p, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        },
        VoidReason::Changed,
    );
}

#[test]
fn a_file_that_changes_between_two_reads_is_voided_once_and_zero_from_there() {
    for (spoil, reason) in
        [(append as fn(&Path), VoidReason::Changed), (rewrite, VoidReason::Changed), (shrink, VoidReason::Shrank)]
    {
        let from = tempdir().unwrap();
        let dir = from.path().join("dir");
        three_files(&dir);
        let mut scanner = Scanner::new(vec![dir.clone()]).unwrap();
        let roots = scanner.roots();
        let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots);
        let a = BLOCK as u64 / 2;
        let mut bytes = vec![1; BLOCK / 2];
        source.read(a, &mut bytes);
        assert!(bytes == noise(2 * BLOCK, 2)[..BLOCK / 2]);
        assert_eq!(source.take_voided(), []);
        spoil(&dir.join("b"));
        // The rest of b, which finds out, then b again, then c.
        let mut rest = vec![1; 2 * BLOCK - BLOCK / 2];
        source.read(a + BLOCK as u64 / 2, &mut rest);
        let voided = source.take_voided();
        assert_eq!(voided.iter().map(|v| (v.entry, v.reason)).collect::<Vec<_>>(), [(2, reason)]);
        source.read(a, &mut bytes);
        assert!(bytes.iter().all(|b| *b == 0));
        assert_eq!(source.take_voided(), [], "said once");
        source.read(a + 2 * BLOCK as u64, &mut bytes);
        assert!(bytes == noise(BLOCK / 2, 3), "the neighbour stands");
    }
}

#[test]
fn a_file_removed_while_open_is_read_to_its_end() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    three_files(&dir);
    let mut scanner = Scanner::new(vec![dir.clone()]).unwrap();
    let roots = scanner.roots();
    let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots);
    let mut bytes = vec![0; BLOCK];
    source.read(0, &mut bytes);
    fs::remove_file(dir.join("b")).unwrap();
    let mut rest = vec![0; 2 * BLOCK];
    source.read(BLOCK as u64, &mut rest);
    let object: Vec<u8> = [noise(BLOCK / 2, 1), noise(2 * BLOCK, 2), noise(BLOCK / 2, 3)].concat();
    assert!([bytes, rest].concat()[..object.len()] == object);
    assert_eq!(source.take_voided(), []);
}

#[test]
fn ranges_outside_the_object_are_zeros() {
    let from = tempdir().unwrap();
    let path = from.path().join("one");
    fs::write(&path, b"x").unwrap();
    let mut scanner = Scanner::new(vec![path]).unwrap();
    let roots = scanner.roots();
    let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots);
    let mut bytes = [7; 4];
    source.read(0, &mut bytes);
    assert_eq!(&bytes, b"x\0\0\0");
    for offset in [1, 100, u64::MAX - 1] {
        bytes = [7; 4];
        source.read(offset, &mut bytes);
        assert_eq!(bytes, [0; 4], "offset {offset}");
    }
}
