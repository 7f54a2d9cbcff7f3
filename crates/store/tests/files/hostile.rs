//! A hostile sender: every case ends in a clear error, in bounded memory, with no change outside the staging directory.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use downpour_store::messages::{Digest, MAX_OPEN_BATCHES, ManifestPart, RootHash, TransferEnd, Void};
use downpour_store::{
    Entry, EntryKind, Existing, Extra, FileSink, FilesError, MAX_BATCH_ENTRIES, ManifestState, Mtime, NameError,
    NoticeKind, ReceiveRequest, SkipReason, Skipped, SourceId, VoidReason,
};
use tempfile::{TempDir, tempdir};

use crate::common::{Control, SOURCE, names, transfer_as};

const PETABYTE: u64 = 1 << 50;

fn entry(path: impl AsRef<[u8]>, kind: EntryKind) -> Entry {
    Entry { path: path.as_ref().to_vec(), kind, mode: 0o644, mtime: Mtime::default(), extra: Extra::default() }
}

fn file(path: impl AsRef<[u8]>, size: u64) -> Entry {
    entry(path, EntryKind::File { size, version: 0, hash: None })
}

fn directory(path: &str) -> Entry {
    entry(path, EntryKind::Directory)
}

fn link(path: &str, target: &str) -> Entry {
    entry(path, EntryKind::Symlink { target: target.into() })
}

fn part(batch: u32, entries: Vec<Entry>) -> ManifestPart {
    let length = entries.iter().map(Entry::size).sum();
    ManifestPart { batch, last: true, whole: false, again: false, length, entries }
}

fn receiving() -> (TempDir, FileSink) {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("into")).unwrap();
    let receiving = FileSink::new(ReceiveRequest::into_directory(dir.path().join("into"))).unwrap();
    receiving.begin(SOURCE).unwrap();
    (dir, receiving)
}

/// Returns the rule that a manifest of `entries` violates. Checks that nothing was created beside the staging
/// directory.
fn name_rule(entries: Vec<Entry>) -> NameError {
    let (dir, receiving) = receiving();
    let error = receiving.add_manifest_part(&part(0, entries)).unwrap_err();
    assert_eq!(names(dir.path()), ["into"]);
    assert!(names(&dir.path().join("into")).iter().all(|n| n.starts_with(".downpour-")));
    receiving.abandon(true).unwrap();
    assert_eq!(names(&dir.path().join("into")), [""; 0]);
    match error {
        FilesError::BadName { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

fn protocol(result: Result<impl std::fmt::Debug, FilesError>, wanted: &str) {
    match result {
        Err(FilesError::Protocol { reason, .. }) => assert_eq!(reason, wanted),
        other => panic!("{other:?}, not {wanted}"),
    }
}

#[test]
fn names_outside_target_are_refused() {
    assert_eq!(name_rule(vec![file("../../etc/passwd", 1)]), NameError::Dots);
    assert_eq!(name_rule(vec![file("/etc/passwd", 1)]), NameError::Absolute);
    assert_eq!(name_rule(vec![directory("a"), file("a/../../b", 1)]), NameError::Dots);
    assert_eq!(name_rule(vec![directory("."), file("a", 1)]), NameError::Dots);
    assert_eq!(name_rule(vec![directory("a"), file("a//b", 1)]), NameError::Empty);
    assert_eq!(name_rule(vec![file("a\0b", 1)]), NameError::Nul);
    assert_eq!(name_rule(vec![file("a".repeat(256), 1)]), NameError::TooLong);
    assert_eq!(name_rule(vec![file("a/".repeat(2048) + "a", 1)]), NameError::TooLong);
    assert_eq!(name_rule(vec![link("a", "")]), NameError::Empty);
    assert_eq!(name_rule(vec![link("a", "b\0c")]), NameError::Nul);
    assert_eq!(name_rule(vec![link("a", &"b".repeat(4097))]), NameError::TooLong);
}

#[test]
fn names_without_an_announced_parent_are_refused() {
    for entries in [
        vec![file("a/b", 1)],
        vec![file("a", 1), file("a/b", 1)],
        vec![directory("a/b")],
        vec![link("a", "../outside"), file("a/b", 1)],
        vec![link("a", "../outside"), directory("a/b")],
        vec![link("a", "../outside"), link("a/b", "x")],
        vec![directory("d"), link("d/l", "../outside"), directory("d/l/x")],
    ] {
        assert_eq!(name_rule(entries), NameError::Orphan);
    }
}

#[test]
fn duplicate_file_is_refused() {
    assert_eq!(name_rule(vec![file("a", 1), file("a", 1)]), NameError::Duplicate);
    assert_eq!(name_rule(vec![file("a", 1), file("a", 2)]), NameError::Duplicate);
    let (_dir, receiving) = receiving();
    receiving.add_manifest_part(&part(0, vec![file("a", 0)])).unwrap();
    let error = receiving.add_manifest_part(&part(1, vec![file("a", 0)])).unwrap_err();
    assert!(matches!(error, FilesError::BadName { reason: NameError::Duplicate, .. }), "{error}");
}

/// Links created by the sender, or by any user during a transfer, are never followed.
#[test]
fn links_at_target_are_never_followed() {
    for existing in [Existing::Replace, Existing::Skip] {
        let dir = tempdir().unwrap();
        let (into, outside) = (dir.path().join("into"), dir.path().join("outside"));
        fs::create_dir_all(into.join("d")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), b"old").unwrap();
        for (name, to) in [("a", "../outside"), ("f", "../outside/victim"), ("d/l", "../../outside")] {
            std::os::unix::fs::symlink(to, into.join(name)).unwrap();
        }
        let before = crate::common::snapshot(&outside);
        let receiving = FileSink::new(ReceiveRequest { existing, ..ReceiveRequest::into_directory(&into) }).unwrap();
        receiving.begin(SOURCE).unwrap();
        let entries = vec![
            file("f", 0),
            directory("a"),
            file("a/new", 0),
            link("a/link", "x"),
            directory("a/b"),
            directory("d"),
            directory("d/l"),
            file("d/l/victim", 0),
        ];
        let hard = entry("hard", EntryKind::HardLink { target: b"a/victim".to_vec() });
        receiving.add_manifest_part(&part(0, [entries, vec![hard]].concat())).unwrap();
        receiving.settle(|_, _| {}).unwrap();
        receiving.flush().unwrap();
        assert_eq!(crate::common::snapshot(&outside), before, "{existing:?}");
        let replaced = existing == Existing::Replace;
        assert_eq!(into.join("f").symlink_metadata().unwrap().is_file(), replaced, "the link itself is replaced");
    }
}

#[test]
fn staging_names_from_sender_are_refused() {
    let (dir, receiving) = receiving();
    receiving.add_manifest_part(&ManifestPart { last: false, ..part(0, vec![directory("d")]) }).unwrap();
    let staging = receiving.staging_path().unwrap();
    let name = staging.file_name().unwrap().to_str().unwrap().to_owned();
    let shouted = name.to_uppercase();
    // Beneath a directory too: a later transfer into that directory would use it as its own, with everything that it
    // claims to hold.
    let nested = "d/.downpour-abcdefgh".to_owned();
    let entries = vec![directory(&name), file(format!("{name}/journal"), 0), link(&shouted, "d"), directory(&nested)];
    let free = [".downpour-notes", ".downpour-abcdefg1", ".downpour-"];
    let entries = [entries, free.map(directory).to_vec()].concat();
    let other = |part: ManifestPart| ManifestPart { batch: 0, ..part };
    receiving.add_manifest_part(&other(part(0, entries))).unwrap();
    let refused: Vec<_> = receiving.take_notices().into_iter().map(|notice| (notice.kind, notice.path)).collect();
    let expected = [name.clone(), format!("{name}/journal"), shouted, nested]
        .map(|name| (NoticeKind::Reserved, name.into_bytes()));
    assert_eq!(refused, expected);
    for name in free {
        assert!(dir.path().join("into").join(name).is_dir(), "{name} is free");
    }
}

#[test]
fn linked_directory_in_target_not_entered() {
    let (dir, receiving) = receiving();
    fs::create_dir(dir.path().join("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", dir.path().join("into/a")).unwrap();
    let error = receiving.add_manifest_part(&part(0, vec![directory("a"), file("a/b", 0)])).unwrap_err();
    assert!(matches!(error, FilesError::TargetExists { .. }), "{error}");
    assert_eq!(names(&dir.path().join("outside")), [""; 0]);
}

#[test]
fn contradictory_numbers_are_rejected() {
    let refuse = |part: ManifestPart, wanted| {
        let (dir, receiving) = receiving();
        protocol(receiving.add_manifest_part(&part), wanted);
        assert_eq!(names(&dir.path().join("into")), [""; 0], "no staging directory");
    };
    refuse(part(1, vec![]), "sent manifest parts out of order");
    refuse(
        ManifestPart { length: 5, ..part(0, vec![file("a", 4)]) },
        "announced a length other than the sum of its files",
    );
    refuse(
        ManifestPart { length: 3, ..part(0, vec![file("a", 4)]) },
        "announced a length other than the sum of its files",
    );
    let sum = vec![file("a", u64::MAX), file("b", 1)];
    refuse(
        ManifestPart { batch: 0, last: true, whole: false, again: false, length: 0, entries: sum },
        "announced files longer than any object",
    );
    let many = (0..=MAX_BATCH_ENTRIES).map(|n| file(n.to_string(), 0)).collect();
    refuse(part(0, many), "announced too many entries");
    let long = (0..2100).map(|n| link(&format!("{n:0>200}"), &"x".repeat(4000))).collect();
    refuse(part(0, long), "announced names that are too long in total");
    let (_dir, receiving) = receiving();
    let first =
        ManifestPart { batch: 0, last: false, whole: false, again: false, length: 9, entries: vec![file("a", 4)] };
    assert_eq!(receiving.add_manifest_part(&first).unwrap(), ManifestState::More);
    let changed =
        ManifestPart { batch: 0, last: true, whole: false, again: false, length: 8, entries: vec![file("b", 4)] };
    protocol(receiving.add_manifest_part(&changed), "changed the length or kind between manifest parts");
}

#[test]
fn claimed_petabyte_allocates_nothing() {
    let (dir, receiving) = receiving();
    receiving.add_manifest_part(&part(0, vec![file("a", PETABYTE), file("b", PETABYTE)])).unwrap();
    let staging = receiving.staging_path().unwrap();
    assert_eq!(
        fs::read_dir(&staging).unwrap().filter(|item| item.as_ref().unwrap().file_name().len() == 26).count(),
        0
    );
    receiving.write(0, 5, b"abcd").unwrap();
    assert!(!receiving.expect_digest(&Digest { batch: 0, block: u32::MAX, digest: [0; 32] }).unwrap());
    let end = TransferEnd { batches: 1, entries: 2, bytes: 2 * PETABYTE, skipped: 0, root: RootHash([0; 32]) };
    let error = receiving.finish(&end).unwrap_err();
    assert!(matches!(error, FilesError::Incomplete { unverified: 1 }), "{error}");
    assert_eq!(receiving.abandon(false).unwrap(), None, "bytes without a record do not help a later run");
    assert_eq!(names(&dir.path().join("into")), [""; 0]);
}

#[test]
fn open_batches_and_early_digests_are_bounded() {
    let (_dir, receiving) = receiving();
    for batch in 0..MAX_OPEN_BATCHES as u32 {
        receiving.add_manifest_part(&part(batch, vec![file(batch.to_string(), 1)])).unwrap();
    }
    protocol(receiving.add_manifest_part(&part(MAX_OPEN_BATCHES as u32, vec![])), "opened too many batches");
    let flood = (0..=65_536)
        .try_for_each(|block| receiving.expect_digest(&Digest { batch: 0, block, digest: [0; 32] }).map(|_| ()));
    protocol(flood, "sent too many digests ahead of their blocks");
}

#[test]
fn invalid_digests_are_rejected() {
    let open = || {
        let (dir, receiving) = receiving();
        receiving.add_manifest_part(&part(0, vec![file("first", 10), file("second", 10)])).unwrap();
        (dir, receiving)
    };
    let digest = |block, byte| Digest { batch: 0, block, digest: [byte; 32] };
    let (_dir, receiving) = open();
    receiving.expect_digest(&digest(7, 1)).unwrap();
    protocol(receiving.expect_digest(&digest(7, 1)), "sent a digest twice");
    let (_dir, receiving) = open();
    receiving.expect_digest(&digest(1, 1)).unwrap();
    let error = receiving.found_digest(0, 1, 10..20, [2; 32]).unwrap_err();
    assert!(matches!(&error, FilesError::Integrity { batch: 0, block: 1, path: Some(p) } if p == b"second"), "{error}");
    let (_dir, receiving) = open();
    receiving.found_digest(0, 1, 0..10, [2; 32]).unwrap();
    let error = receiving.expect_digest(&digest(1, 1)).unwrap_err();
    assert!(matches!(error, FilesError::Integrity { .. }), "{error}");
    let (_dir, receiving) = open();
    for block in 0..2 {
        receiving.expect_digest(&digest(block, 1)).unwrap();
    }
    receiving.found_digest(0, 0, 0..10, [1; 32]).unwrap();
    protocol(receiving.found_digest(0, 1, 5..15, [1; 32]), "sent an empty or overlapping block");
    let (_dir, receiving) = open();
    receiving.write(0, 0, &[1; 20]).unwrap();
    receiving.expect_digest(&digest(0, 1)).unwrap();
    receiving.expect_digest(&digest(1, 1)).unwrap();
    receiving.found_digest(0, 0, 0..20, [1; 32]).unwrap();
    protocol(receiving.settle(|_, _| {}), "sent more digests than blocks");
    protocol(
        receiving.expect_digest(&Digest { batch: 5, block: 0, digest: [0; 32] }),
        "referred to a batch that is not open",
    );
    protocol(receiving.write(5, 0, &[1]), "referred to a batch that is not open");
}

#[test]
fn voids_must_name_an_entry_of_an_open_batch() {
    let (_dir, receiving) = receiving();
    receiving.add_manifest_part(&part(0, vec![directory("d"), file("d/a", 1)])).unwrap();
    let void = |batch, entry| Void { batch, entry, reason: VoidReason::Changed };
    receiving.void(&void(0, 0)).unwrap();
    protocol(receiving.void(&void(0, u32::MAX)), "voided an entry that does not exist");
    protocol(receiving.void(&void(1, 1)), "referred to a batch that is not open");
    receiving.void(&void(0, 1)).unwrap();
    receiving.void(&void(0, 1)).unwrap();
    receiving.write(0, 0, b"x").unwrap();
}

/// Receives one file of three bytes, up to the end message.
fn ready(into: &Path) -> (FileSink, TransferEnd) {
    let receiving = FileSink::new(ReceiveRequest::into_directory(into)).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let batch = downpour_store::Batch {
        versions: vec![],
        number: 0,
        entries: vec![file("f", 3)],
        length: 3,
        skipped: vec![],
        id_names: Vec::new(),
        is_last: true,
    };
    control.send_manifest(&batch).unwrap();
    let digest = *blake3::hash(b"abc").as_bytes();
    control.send(&downpour_store::messages::Message::Digest(Digest { batch: 0, block: 0, digest })).unwrap();
    let end = control.end();
    receiving.write(0, 0, b"abc").unwrap();
    assert!(receiving.found_digest(0, 0, 0..3, digest).unwrap());
    receiving.settle(|_, _| {}).unwrap();
    (receiving, end)
}

#[test]
fn wrong_end_message_fails_and_may_be_corrected() {
    let spoil: [fn(&mut TransferEnd); 5] =
        [|e| e.batches = 2, |e| e.entries = 0, |e| e.bytes = 4, |e| e.skipped = 1, |e| e.root.0[31] ^= 1];
    for (case, spoil) in spoil.iter().enumerate() {
        let dir = tempdir().unwrap();
        let (receiving, mut end) = ready(dir.path());
        spoil(&mut end);
        let error = receiving.finish(&end).unwrap_err();
        assert!(matches!(error, FilesError::Protocol { .. } | FilesError::Root), "case {case}: {error}");
        let staging = receiving.abandon(false).unwrap();
        assert!(staging.is_some_and(|staging| staging.is_dir()), "case {case}");
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"abc", "case {case}: the verified file is published");
    }
    let dir = tempdir().unwrap();
    let (receiving, end) = ready(dir.path());
    receiving.finish(&end).unwrap();
    assert_eq!(names(dir.path()), ["f"]);
    assert!(matches!(receiving.finish(&end), Err(FilesError::Over)));
    assert!(matches!(receiving.write(0, 0, b"x"), Err(FilesError::Over)));
}

#[test]
fn listed_failures_are_bounded() {
    let (_dir, receiving) = receiving();
    for _ in 0..5000 {
        receiving.skipped(&Skipped { path: b"x".to_vec(), reason: SkipReason::Unreadable }).unwrap();
    }
    let mut root = downpour_store::messages::RootHasher::new();
    let mut bytes = Vec::new();
    downpour_store::messages::Message::Begin(SOURCE).encode(&mut bytes).unwrap();
    root.add(&std::mem::take(&mut bytes));
    let skipped = Skipped { path: b"x".to_vec(), reason: SkipReason::Unreadable };
    downpour_store::messages::Message::Skipped(skipped).encode(&mut bytes).unwrap();
    (0..5000).for_each(|_| root.add(&bytes));
    let end = TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 5000, root: root.root() };
    let outcome = receiving.finish(&end).unwrap();
    assert_eq!((outcome.failed_count, outcome.listed.len()), (5000, 1000));
}

#[test]
fn stale_staging_reported_unless_in_use() {
    let (from, into) = (tempdir().unwrap(), tempdir().unwrap());
    std::fs::write(from.path().join("file"), "content").unwrap();
    let of = |source| {
        let receiving = FileSink::new(ReceiveRequest::into_directory(into.path())).unwrap();
        receiving.begin(SourceId([source; 16])).unwrap();
        receiving.add_manifest_part(&part(0, vec![file(format!("of {source}"), 9)])).unwrap();
        receiving.write(0, 0, b"abc").unwrap();
        receiving
    };
    let _used = of(7);
    let killed = of(8);
    let left = killed.staging_path().unwrap();
    drop(killed);
    let done =
        transfer_as(&[from.path().join("file")], ReceiveRequest::into_directory(into.path()), 1, &mut |_| {}).unwrap();
    assert!(!done.outcome.is_partial());
    let notices: Vec<_> = done.notices.iter().filter(|notice| notice.kind == NoticeKind::StaleStaging).collect();
    assert_eq!(notices.iter().map(|notice| notice.path.as_slice()).collect::<Vec<_>>(), [left.as_os_str().as_bytes()]);
}

#[test]
fn abandon_keeps_or_removes_partial_data() {
    let dir = tempdir().unwrap();
    let into = dir.path().join("new");
    let receiving = FileSink::new(ReceiveRequest::into_directory(&into)).unwrap();
    assert_eq!(receiving.abandon(true).unwrap(), None);
    assert!(!into.exists(), "nothing was made before the first manifest");
    let receiving = FileSink::new(ReceiveRequest::into_directory(&into)).unwrap();
    receiving.begin(SOURCE).unwrap();
    receiving.add_manifest_part(&part(0, vec![file("f", 9)])).unwrap();
    receiving.write(0, 0, b"abc").unwrap();
    assert!(into.exists());
    assert_eq!(receiving.abandon(true).unwrap(), None);
    assert!(!into.exists(), "the target was made for this transfer only");
    let receiving = FileSink::new(ReceiveRequest::into_directory(dir.path())).unwrap();
    receiving.begin(SOURCE).unwrap();
    receiving.add_manifest_part(&part(0, vec![])).unwrap();
    assert_eq!(receiving.abandon(false).unwrap(), None, "nothing in it helps a later run");
    assert_eq!(names(dir.path()), [""; 0]);
}
