//! Sources that change, shrink or vanish while they are sent: the file is skipped and reported, its neighbours are not
//! affected.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::messages::{Digest, ManifestPart, Message, Void};
use downpour_store::{
    Batch, BatchSource, Entry, EntryKind, Existing, FailReason, FileSink, FilesError, LinkPolicy, ReceiveRequest,
    Roots, Scanner, SourceItem, SourceOptions, VoidReason, Wanted,
};
use proptest::prelude::*;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tempfile::{TempDir, tempdir};

use crate::common::{BLOCK, Control, entry, names, noise, quick_dir, snapshot, transfer_with};

fn three_files(dir: &Path) {
    fs::create_dir(dir).unwrap();
    fs::write(dir.join("a"), noise(BLOCK / 2, 1)).unwrap();
    fs::write(dir.join("b"), noise(2 * BLOCK, 2)).unwrap();
    fs::write(dir.join("c"), noise(BLOCK / 2, 3)).unwrap();
}

/// Creates three files in a directory and reads the first block. Returns the directory, the batch source and the block.
fn begun(from: &TempDir) -> (PathBuf, BatchSource, Vec<u8>) {
    let dir = from.path().join("dir");
    three_files(&dir);
    let (batch, roots) = scanned(&dir, SourceOptions::default());
    let source = BatchSource::new(batch, roots, Wanted::all());
    let mut bytes = vec![0; BLOCK];
    source.read(0, &mut bytes);
    (dir, source, bytes)
}

/// Repeats a change to a file until its change time differs.
fn until_version_changes(path: &Path, change: impl FnOnce()) {
    let kept = fs::File::open(path).unwrap();
    let before = kept.metadata().unwrap().ctime_nsec();
    change();
    while kept.metadata().unwrap().ctime_nsec() == before {
        kept.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// Sends three files and changes the middle one after the scan.
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

fn replace_and_append(path: &Path) {
    rewrite(path);
    append(path);
}

fn shrink(path: &Path) {
    fs::File::options().write(true).open(path).unwrap().set_len(BLOCK as u64).unwrap();
}

fn rewrite(path: &Path) {
    let length = path.metadata().unwrap().len();
    fs::write(path, noise(usize::try_from(length).unwrap(), 9)).unwrap();
}

#[test]
fn file_changed_before_read_is_voided() {
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
fn file_changed_between_reads_voided_once() {
    for (spoil, reason) in [
        (replace_and_append as fn(&Path), VoidReason::Changed),
        (rewrite, VoidReason::Changed),
        (shrink, VoidReason::Shrank),
    ] {
        let from = tempdir().unwrap();
        let dir = from.path().join("dir");
        three_files(&dir);
        let mut scanner = Scanner::new(vec![SourceItem::new(dir.clone())], SourceOptions::default()).unwrap();
        let roots = scanner.roots();
        let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots, Wanted::all());
        let a = BLOCK as u64 / 2;
        let mut bytes = vec![1; BLOCK / 2];
        source.read(a, &mut bytes);
        assert!(bytes == noise(2 * BLOCK, 2)[..BLOCK / 2]);
        assert_eq!(source.take_voided(), []);
        spoil(&dir.join("b"));
        // The rest of b, where the change is detected, then b again, then c.
        let mut rest = vec![1; 2 * BLOCK - BLOCK / 2];
        source.read(a + BLOCK as u64 / 2, &mut rest);
        let voided = source.take_voided();
        assert_eq!(voided.iter().map(|v| (v.entry, v.reason)).collect::<Vec<_>>(), [(2, reason)]);
        source.read(a, &mut bytes);
        assert!(bytes.iter().all(|b| *b == 0));
        assert_eq!(source.take_voided(), [], "said once");
        source.read(a + 2 * BLOCK as u64, &mut bytes);
        assert!(bytes == noise(BLOCK / 2, 3), "the neighbour is unchanged");
    }
}

/// As for a log: the bytes seen by the scan are received. If the first bytes have changed, none are.
#[test]
fn growing_file_arrives_as_scanned() {
    for (pieces, spoils) in [(2, false), (5, false), (9, false), (2, true), (9, true)] {
        let from = tempdir().unwrap();
        let dir = from.path().join("dir");
        three_files(&dir);
        let (batch, roots) = scanned(&dir, SourceOptions::default());
        let source = BatchSource::new(batch, roots, Wanted::all());
        let (start, size) = (BLOCK / 2, 2 * BLOCK);
        let step = size.div_ceil(pieces);
        let mut bytes = vec![1; size];
        for (number, piece) in bytes.chunks_mut(step).enumerate() {
            source.read((start + number * step) as u64, piece);
            append(&dir.join("b"));
            if spoils && number + 2 == pieces {
                fs::File::options().write(true).open(dir.join("b")).unwrap().write_all(b"other").unwrap();
            }
        }
        let voided = source.take_voided();
        if spoils {
            assert_eq!(voided.iter().map(|v| (v.entry, v.reason)).collect::<Vec<_>>(), [(2, VoidReason::Changed)]);
        } else {
            assert_eq!(voided, [], "{pieces}");
            assert!(bytes == noise(size, 2), "{pieces}");
        }
    }
}

/// The receiver's part of it was read at another time, and is not compared again.
#[test]
fn partly_wanted_file_may_not_grow() {
    let from = tempdir().unwrap();
    let path = from.path().join("file");
    fs::write(&path, noise(400_000, 1)).unwrap();
    let mut scanner = Scanner::new(vec![SourceItem::new(path.clone())], SourceOptions::default()).unwrap();
    let roots = scanner.roots();
    let mut wanted = Wanted::none();
    wanted.push(200_000..400_000);
    let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots, wanted);
    let mut bytes = vec![0; 100_000];
    source.read(0, &mut bytes);
    assert_eq!(source.take_voided(), []);
    append(&path);
    source.read(100_000, &mut bytes);
    assert_eq!(source.take_voided().iter().map(|v| v.reason).collect::<Vec<_>>(), [VoidReason::Changed]);
}

/// Returns the batch of `dir` with its roots.
fn scanned(dir: &Path, options: SourceOptions) -> (Arc<Batch>, Arc<Roots>) {
    let mut scanner = Scanner::new(vec![SourceItem::new(dir)], options).unwrap();
    let roots = scanner.roots();
    (Arc::new(scanner.next().unwrap()), roots)
}

fn of_version(path: &Path) -> (i64, i64) {
    let metadata = path.metadata().unwrap();
    (metadata.ctime(), metadata.ctime_nsec())
}

/// Repeats a change until the file's change time differs: file systems count it in ticks of some milliseconds.
fn until_it_shows(path: &Path, change: impl Fn(&Path)) {
    let before = of_version(path);
    while of_version(path) == before {
        change(path);
    }
}

/// Changes the content but keeps size and time.
fn forge(path: &Path) {
    until_it_shows(path, |path| {
        let before = path.metadata().unwrap();
        rewrite(path);
        fs::File::options().write(true).open(path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    });
}

fn change_mode(path: &Path) {
    until_it_shows(path, |path| {
        let mode = path.metadata().unwrap().permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode ^ 0o100)).unwrap();
    });
}

fn voided(source: &BatchSource) -> Vec<(u32, VoidReason)> {
    source.take_voided().iter().map(|v| (v.entry, v.reason)).collect()
}

fn change_links(path: &Path) {
    until_it_shows(path, |path| {
        let other = path.with_extension("other");
        fs::hard_link(path, &other).unwrap();
        fs::remove_file(other).unwrap();
    });
}

fn change_access_time(path: &Path) {
    until_it_shows(path, |path| {
        let file = fs::File::open(path).unwrap();
        file.set_times(fs::FileTimes::new().set_accessed(std::time::SystemTime::now())).unwrap();
    });
}

#[test]
fn metadata_change_does_not_void_file() {
    for change in [change_mode as fn(&Path), change_links, change_access_time] {
        for hash in [false, true] {
            let from = tempdir().unwrap();
            let dir = from.path().join("dir");
            three_files(&dir);
            let (batch, roots) = scanned(&dir, SourceOptions { hash, ..SourceOptions::default() });
            let now: Vec<u8> = ["a", "b", "c"].iter().flat_map(|name| fs::read(dir.join(name)).unwrap()).collect();
            let source = BatchSource::new(batch, roots, Wanted::all());
            let mut bytes = vec![0; now.len()];
            for (at, piece) in bytes.chunks_mut(BLOCK / 3).enumerate() {
                change(&dir.join("b"));
                source.read((at * (BLOCK / 3)) as u64, piece);
            }
            assert!(bytes == now);
            assert_eq!(voided(&source), []);
        }
    }
}

#[test]
fn forged_mtime_change_during_read_is_detected() {
    for change in [forge as fn(&Path), |path: &Path| {
        forge(path);
        change_mode(path);
    }] {
        let from = tempdir().unwrap();
        let (dir, source, mut bytes) = begun(&from);
        change(&dir.join("b"));
        source.read(BLOCK as u64, &mut bytes);
        assert_eq!(voided(&source), [(2, VoidReason::Changed)]);
        assert!(bytes.iter().all(|b| *b == 0));
    }
}

#[test]
fn forged_change_before_read_voids_hashed_files() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    three_files(&dir);
    let (plain, roots) = scanned(&dir, SourceOptions::default());
    let (hashed, _) = scanned(&dir, SourceOptions { hash: true, ..SourceOptions::default() });
    forge(&dir.join("b"));
    forge(&dir.join("c"));
    let now: Vec<u8> = ["a", "b", "c"].iter().flat_map(|name| fs::read(dir.join(name)).unwrap()).collect();
    let mut bytes = vec![0; now.len()];

    let whole = BatchSource::new(Arc::clone(&plain), Arc::clone(&roots), Wanted::all());
    for (at, piece) in bytes.chunks_mut(BLOCK).enumerate() {
        whole.read((at * BLOCK) as u64, piece);
    }
    assert!(bytes == now, "one state of each file");
    assert_eq!(voided(&whole), []);
    until_it_shows(&dir.join("b"), |path| {
        let before = path.metadata().unwrap().modified().unwrap();
        fs::write(path, noise(2 * BLOCK, 10)).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
    });
    whole.read(BLOCK as u64, &mut bytes[..BLOCK]);
    assert_eq!(voided(&whole), [(2, VoidReason::Changed)], "it keeps that state");

    let hashed = BatchSource::new(hashed, Arc::clone(&roots), Wanted::all());
    hashed.read(0, &mut bytes);
    assert_eq!(voided(&hashed), [(2, VoidReason::Changed), (3, VoidReason::Changed)]);

    // All but one byte of b, and all of c.
    let (mut wanted, full) = (Wanted::none(), now.len() as u64);
    wanted.push(0..BLOCK as u64 / 2);
    wanted.push(BLOCK as u64 / 2 + 1..full);
    let part = BatchSource::new(plain, roots, wanted);
    assert_eq!(part.length(), full - 1);
    part.read(0, &mut bytes);
    assert_eq!(voided(&part), [(2, VoidReason::Changed)]);
    assert!(bytes[..BLOCK / 2] == now[..BLOCK / 2]);
    assert!(bytes[5 * BLOCK / 2 - 1..full as usize - 1] == now[5 * BLOCK / 2..]);
}

#[test]
fn object_reads_wanted_ranges() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    three_files(&dir);
    let (batch, roots) = scanned(&dir, SourceOptions::default());
    let full: Vec<u8> = [noise(BLOCK / 2, 1), noise(2 * BLOCK, 2), noise(BLOCK / 2, 3)].concat();
    for seed in 0..50 {
        let cuts = noise(64, seed);
        let mut wanted = Wanted::none();
        let (mut object, mut at) = (Vec::new(), 0);
        for cut in cuts.chunks(4) {
            let start = at + usize::from(cut[0]) * 64 + usize::from(cut[1]) / 128;
            at = (start + usize::from(cut[2]) * 128 + usize::from(cut[3]) / 128).min(full.len());
            if start < at {
                wanted.push(start as u64..at as u64);
                object.extend_from_slice(&full[start..at]);
            }
        }
        let source = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), wanted);
        assert_eq!(source.length(), object.len() as u64, "seed {seed}");
        let mut read = vec![1; object.len() + 10];
        for (at, piece) in read.chunks_mut(9_973).enumerate() {
            source.read(at as u64 * 9_973, piece);
        }
        assert!(read[..object.len()] == object, "seed {seed}");
        assert_eq!(read[object.len()..], [0; 10], "seed {seed}");
        assert_eq!(voided(&source), [], "seed {seed}");
    }
}

#[test]
fn file_removed_during_read_has_vanished() {
    let from = tempdir().unwrap();
    let (dir, source, _) = begun(&from);
    until_version_changes(&dir.join("b"), || fs::remove_file(dir.join("b")).unwrap());
    let mut rest = vec![0; 2 * BLOCK];
    source.read(BLOCK as u64, &mut rest);
    assert_eq!(voided(&source), [(2, VoidReason::Vanished)]);
    assert!(rest[3 * BLOCK / 2..][..BLOCK / 2] == noise(BLOCK / 2, 3), "its neighbour is unchanged");
}

#[test]
fn file_exchanged_during_read_has_changed() {
    let from = tempdir().unwrap();
    let (dir, source, mut bytes) = begun(&from);
    let (other, time) = (dir.join("other"), dir.join("b").metadata().unwrap().modified().unwrap());
    fs::write(&other, noise(2 * BLOCK, 9)).unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
    until_version_changes(&dir.join("b"), || fs::rename(other, dir.join("b")).unwrap());
    source.read(BLOCK as u64, &mut bytes);
    assert_eq!(voided(&source), [(2, VoidReason::Changed)]);
}

/// A user who can write to a directory that another user sends must not gain access to files that only the other can
/// read.
#[test]
fn directory_exchanged_by_link_is_not_followed() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    fs::create_dir_all(dir.join("in")).unwrap();
    fs::create_dir(from.path().join("secret")).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH;
    for file in [dir.join("in/f"), from.path().join("secret/f")] {
        fs::write(&file, file.parent().unwrap().file_name().unwrap().as_encoded_bytes().first_chunk::<2>().unwrap())
            .unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    }
    for (options, read) in [(LinkPolicy::Copy, [0; 2]), (LinkPolicy::Follow, *b"se")] {
        let (batch, roots) = scanned(&dir, SourceOptions { links: options, ..SourceOptions::default() });
        fs::rename(dir.join("in"), from.path().join("away")).unwrap();
        symlink("../secret", dir.join("in")).unwrap();
        let source = BatchSource::new(batch, roots, Wanted::all());
        let mut bytes = [1; 2];
        source.read(0, &mut bytes);
        assert_eq!(bytes, read, "{options:?}");
        fs::remove_file(dir.join("in")).unwrap();
        fs::rename(from.path().join("away"), dir.join("in")).unwrap();
    }
}

#[test]
fn paths_beyond_path_max_are_read() {
    let from = quick_dir();
    let dir = from.path().join("dir");
    // 40 nested directories with names of 100 bytes: the whole path exceeds PATH_MAX.
    fs::create_dir(&dir).unwrap();
    let mut at = openat(CWD, &dir, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..40 {
        // Found on the way back up.
        fs::File::from(openat(&at, "z", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap()).write_all(b"z").unwrap();
        mkdirat(&at, "x".repeat(100), Mode::RWXU).unwrap();
        at = openat(&at, "x".repeat(100), OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    for name in ["f", "g"] {
        let file = openat(&at, name, OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
        fs::File::from(file).write_all(name.as_bytes()).unwrap();
    }
    fs::write(dir.join("y"), b"y").unwrap();
    let (batch, roots) = scanned(&dir, SourceOptions::default());
    assert_eq!((batch.entries.len(), batch.skipped.len(), batch.length), (84, 0, 43));
    let source = BatchSource::new(batch, roots, Wanted::all());
    let mut bytes = [0; 43];
    source.read(0, &mut bytes);
    assert_eq!(bytes[..], [b"fg".as_slice(), &[b'z'; 39], b"yz"].concat());
}

#[test]
fn ranges_outside_the_object_are_zeros() {
    let from = tempdir().unwrap();
    let path = from.path().join("one");
    fs::write(&path, b"x").unwrap();
    let mut scanner = Scanner::new(vec![SourceItem::new(path)], SourceOptions::default()).unwrap();
    let roots = scanner.roots();
    let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots, Wanted::all());
    let mut bytes = [7; 4];
    source.read(0, &mut bytes);
    assert_eq!(&bytes, b"x\0\0\0");
    for offset in [1, 100, u64::MAX - 1] {
        bytes = [7; 4];
        source.read(offset, &mut bytes);
        assert_eq!(bytes, [0; 4], "offset {offset}");
    }
}

/// An event between two reads.
#[derive(Debug, Clone, Copy)]
enum ReadEvent {
    Forge(usize),
    ChangeMode(usize),
    Rewrite(usize),
    Read(u16),
}

fn read_event() -> impl Strategy<Value = ReadEvent> {
    prop_oneof![
        1 => (0..3_usize).prop_map(ReadEvent::Forge),
        1 => (0..3_usize).prop_map(ReadEvent::ChangeMode),
        1 => (0..3_usize).prop_map(ReadEvent::Rewrite),
        4 => any::<u16>().prop_map(ReadEvent::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to the files meanwhile, the sent content of a file that is not voided equals its content at a
    /// single time.
    #[test]
    fn no_file_mixes_two_states(events in prop::collection::vec(read_event(), 1..30)) {
        const LENGTHS: [usize; 3] = [700, 5000, 1200];
        const PIECE: usize = 1000;
        let from = quick_dir();
        let file = |at: usize| from.path().join(at.to_string());
        let mut untouched = [true; 3];
        let mut states: Vec<Vec<Vec<u8>>> = (0..3).map(|at| vec![noise(LENGTHS[at], at as u64)]).collect();
        (0..3).for_each(|at| fs::write(file(at), &states[at][0]).unwrap());
        let mut scanner = Scanner::new(vec![SourceItem::contents(from.path())], SourceOptions::default()).unwrap();
        let roots = scanner.roots();
        let source = BatchSource::new(Arc::new(scanner.next().unwrap()), roots, Wanted::all());
        let pieces = LENGTHS.iter().sum::<usize>().div_ceil(PIECE);
        // Each piece is read once, in an order determined by the case.
        let mut left: Vec<usize> = (0..pieces).collect();
        let mut object = vec![0; pieces * PIECE];
        let read = |piece: usize, object: &mut [u8]| {
            source.read((piece * PIECE) as u64, &mut object[piece * PIECE..][..PIECE]);
        };
        for (number, happening) in (10..).zip(events) {
            match happening {
                ReadEvent::ChangeMode(at) => change_mode(&file(at)),
                ReadEvent::Forge(at) | ReadEvent::Rewrite(at) => {
                    let content = noise(LENGTHS[at], number);
                    let time = file(at).metadata().unwrap().modified().unwrap();
                    until_it_shows(&file(at), |path| {
                        fs::write(path, &content).unwrap();
                        if matches!(happening, ReadEvent::Forge(_)) {
                            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
                        }
                    });
                    states[at].push(content);
                    untouched[at] = false;
                }
                ReadEvent::Read(which) if !left.is_empty() => {
                    read(left.swap_remove(usize::from(which) % left.len()), &mut object);
                }
                ReadEvent::Read(_) => {}
            }
        }
        left.iter().for_each(|piece| read(*piece, &mut object));
        let voided = voided(&source);
        let mut start = 0;
        for at in 0..3 {
            let sent = &object[start..start + LENGTHS[at]];
            let whole = states[at].iter().any(|state| state == sent);
            let named = voided.iter().any(|(entry, _)| *entry as usize == at);
            prop_assert!(named || whole, "file {at} is a mix, and not voided");
            prop_assert!(!named || !untouched[at], "file {at} is voided, and its content did not change");
            start += LENGTHS[at];
        }
    }
}

fn file(name: &str, size: u64) -> Entry {
    entry(name, EntryKind::File { size, version: 0, hash: None })
}

fn part(batch: u32, again: bool, entries: Vec<Entry>) -> Message {
    let length = entries.iter().map(Entry::size).sum();
    Message::Manifest(ManifestPart { batch, last: true, whole: false, again, length, entries })
}

fn void(batch: u32, reason: VoidReason) -> Message {
    Message::Void(Void { batch, entry: 0, reason })
}

/// Sends `a`, which is voided, and `b`.
fn voided_a(sink: &FileSink, reason: VoidReason) -> Control<'_> {
    let mut control = Control::begin(sink).unwrap();
    control.send(&part(0, false, vec![file("a", 4), file("b", 4)])).unwrap();
    control.send(&void(0, reason)).unwrap();
    let bytes = [[0; 4], *b"bbbb"].concat();
    let digest = *blake3::hash(&bytes).as_bytes();
    control.send(&Message::Digest(Digest { batch: 0, block: 0, digest })).unwrap();
    sink.write(0, 0, &bytes).unwrap();
    sink.found_digest(0, 0, 0..8, digest).unwrap();
    sink.settle(|_, _| {}).unwrap();
    assert_eq!(sink.unverified(), 0);
    control.send(&part(1, false, vec![])).unwrap();
    control
}

/// A voided file may be sent once more, and no other file.
#[test]
fn changed_file_resent_once() {
    let again = |name: &str| part(2, true, vec![file(name, 5)]);
    let twice = part(2, true, vec![file("a", 5), file("a", 5)]);
    let directory = part(2, true, vec![Entry { kind: EntryKind::Directory, ..file("a", 0) }]);
    let (changed, vanished) = (VoidReason::Changed, VoidReason::Vanished);
    for (name, reason, message) in [
        ("one that is in place", changed, again("b")),
        ("one that was not announced", changed, again("c")),
        ("one that has vanished", vanished, again("a")),
        ("twice in a batch", changed, twice),
        ("a directory", changed, directory),
    ] {
        let to = tempdir().unwrap();
        let spec = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(to.path()) };
        let sink = FileSink::new(spec).unwrap();
        let refused = voided_a(&sink, reason).send(&message);
        assert!(
            matches!(refused, Err(FilesError::Protocol { .. } | FilesError::BadName { .. })),
            "{name}: {refused:?}"
        );
        assert_eq!(names(to.path()).iter().filter(|name| !name.starts_with('.')).count(), 1);
    }
    let to = tempdir().unwrap();
    let sink = FileSink::new(ReceiveRequest::into_directory(to.path())).unwrap();
    let mut control = voided_a(&sink, changed);
    control.send(&again("a")).unwrap();
    control.send(&void(2, changed)).unwrap();
    let digest = *blake3::hash(&[0; 5]).as_bytes();
    control.send(&Message::Digest(Digest { batch: 2, block: 0, digest })).unwrap();
    sink.write(2, 0, &[0; 5]).unwrap();
    sink.found_digest(2, 0, 0..5, digest).unwrap();
    sink.settle(|_, _| {}).unwrap();
    assert_eq!(sink.unverified(), 0);
    assert!(matches!(control.send(&part(3, true, vec![file("a", 6)])), Err(FilesError::Protocol { .. })));
    assert_eq!(names(to.path()).iter().filter(|name| !name.starts_with('.')).count(), 1);
}

/// A log is appended to between the look-up and the first read; a file is written anew and is longer.
#[test]
fn resent_file_may_grow_by_appending() {
    for (spoil, voids) in [(append as fn(&Path), false), (replace_and_append, true)] {
        let from = tempdir().unwrap();
        let dir = from.path().join("dir");
        three_files(&dir);
        let (batch, roots) = scanned(&dir, SourceOptions::default());
        let first = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), Wanted::all());
        let (again, ends) = first.entry_again(2).unwrap();
        assert_eq!(again.path, b"dir/b");
        spoil(&dir.join("b"));
        let mut bytes = vec![1; 2 * BLOCK];
        let source = BatchSource::new(batch, roots, Wanted::all()).with_ends([(2, ends)].into());
        for piece in bytes.chunks_mut(BLOCK).zip([0, BLOCK]) {
            source.read((BLOCK / 2 + piece.1) as u64, piece.0);
        }
        assert_eq!(source.take_voided().is_empty(), !voids);
        assert!(bytes == if voids { vec![0; 2 * BLOCK] } else { noise(2 * BLOCK, 2) });
    }
}

/// Scans one file that the kernel copies and has it copy the first half, then the rest after a change to the file;
/// returns the reason of its void.
fn copied_in_halves(change: impl Fn(&Path)) -> Vec<VoidReason> {
    let (from, to) = (tempdir().unwrap(), tempfile::tempfile().unwrap());
    let dir = from.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("file");
    fs::write(&file, noise(4 * BLOCK, 1)).unwrap();
    let (batch, roots) = scanned(&dir, SourceOptions::default());
    let source: &dyn downpour_store::TreeObject = &BatchSource::new(batch, roots, Wanted::all());
    let half = 2 * BLOCK as u64;
    source.copy(0, half, &to, 0).unwrap().unwrap();
    assert_eq!(source.take_voided(), []);
    until_version_changes(&file, || change(&file));
    source.copy(half, half, &to, half).unwrap().unwrap();
    source.take_voided().iter().map(|voided| voided.reason).collect()
}

#[test]
fn half_copied_file_is_voided_with_reason() {
    assert_eq!(copied_in_halves(|file| fs::remove_file(file).unwrap()), [VoidReason::Vanished]);
    assert_eq!(copied_in_halves(|file| fs::write(file, "another").unwrap()), [VoidReason::Changed]);
    let replaced = |file: &Path| {
        fs::remove_file(file).unwrap();
        fs::write(file, "another").unwrap();
    };
    assert_eq!(copied_in_halves(replaced), [VoidReason::Changed]);
}
