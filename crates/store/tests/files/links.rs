//! Hard links: only to files of the transfer that are in place unchanged.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use downpour_store::messages::{Digest, Message, Void};
use downpour_store::{
    Batch, Entry, EntryKind, Existing, Extra, FileSink, Mtime, NoticeKind, ReceiveOutcome, ReceiveRequest, VoidReason,
};
use tempfile::tempdir;

use crate::common::Control;

fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry {
        path: path.into(),
        kind,
        mode: 0o644,
        mtime: Mtime { seconds: 99, nanoseconds: 0 },
        extra: Extra::default(),
    }
}

fn file(path: &str, size: u64) -> Entry {
    entry(path, EntryKind::File { size, version: 0, hash: None })
}

fn link(path: &str, target: &str) -> Entry {
    entry(path, EntryKind::HardLink { target: target.into() })
}

/// Receives `entries`, whose bytes are all zeros, with the entry `void` voided. Returns the sorted notices of failures.
fn receive(
    into: &Path,
    existing: Existing,
    entries: Vec<Entry>,
    void: Option<u32>,
) -> (ReceiveOutcome, Vec<(NoticeKind, String)>) {
    let receiving = FileSink::new(ReceiveRequest { existing, ..ReceiveRequest::into_directory(into) }).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let length = entries.iter().map(Entry::size).sum();
    control
        .send_manifest(&Batch {
            number: 0,
            entries,
            length,
            versions: vec![],
            skipped: vec![],
            id_names: Vec::new(),
            is_last: true,
        })
        .unwrap();
    if let Some(entry) = void {
        control.send(&Message::Void(Void { batch: 0, entry, reason: VoidReason::Changed })).unwrap();
    }
    let wanted = control.wanted.length(length);
    if wanted > 0 {
        let bytes = vec![0; wanted as usize];
        let digest = *blake3::hash(&bytes).as_bytes();
        receiving.write(0, 0, &bytes).unwrap();
        control.send(&Message::Digest(Digest { batch: 0, block: 0, digest })).unwrap();
        receiving.found_digest(0, 0, 0..wanted, digest).unwrap();
        receiving.settle(|_, _| {}).unwrap();
    }
    let outcome = receiving.finish(&control.end()).unwrap();
    let failures = receiving.take_notices().into_iter().filter(|notice| notice.kind.is_failure());
    let mut notices: Vec<_> = failures.map(|n| (n.kind, String::from_utf8(n.path).unwrap())).collect();
    notices.sort_by(|a, b| a.1.cmp(&b.1));
    (outcome, notices)
}

fn inode(into: &Path, name: &str) -> u64 {
    into.join(name).metadata().unwrap().ino()
}

#[test]
fn hard_link_to_kept_file_not_made() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("first"), b"mine").unwrap();
    fs::write(dir.path().join("there"), b"mine too").unwrap();
    let entries = vec![file("first", 5), link("second", "first"), link("there", "first")];
    let (outcome, notices) = receive(dir.path(), Existing::Skip, entries, None);
    assert_eq!(notices, [(NoticeKind::MissingLinkTarget, "second".to_owned())]);
    assert_eq!((outcome.files, outcome.kept, outcome.failed_count), (0, 2, 1));
    assert!(!dir.path().join("second").exists());
    assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"mine too");
    assert_eq!(dir.path().join("first").metadata().unwrap().nlink(), 1);
}

#[test]
fn hard_link_to_voided_file_not_made() {
    let dir = tempdir().unwrap();
    for name in ["first", "second"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let entries = vec![file("first", 9), link("second", "first"), file("other", 7), link("third", "other")];
    let (outcome, notices) = receive(dir.path(), Existing::Replace, entries, Some(0));
    assert_eq!(notices, [(NoticeKind::MissingLinkTarget, "second".to_owned())]);
    assert_eq!((outcome.files, outcome.failed_count), (2, 2));
    for name in ["first", "second"] {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), name, "the existing file is kept");
    }
    assert_eq!(inode(dir.path(), "other"), inode(dir.path(), "third"));
}

#[test]
fn hard_link_to_refused_file_not_made() {
    let dir = tempdir().unwrap();
    fs::create_dir_all(dir.path().join("first/inside")).unwrap();
    let entries = vec![file("first", 9), link("second", "first")];
    let (outcome, notices) = receive(dir.path(), Existing::Replace, entries, None);
    let expected = [(NoticeKind::DirectoryNotEmpty, "first"), (NoticeKind::MissingLinkTarget, "second")];
    assert_eq!(notices, expected.map(|(kind, name)| (kind, name.to_owned())));
    assert_eq!((outcome.files, outcome.failed_count), (0, 2));
    assert!(!dir.path().join("second").exists());
}

#[test]
fn hard_link_to_users_file_never_made() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("private")).unwrap();
    fs::write(dir.path().join("private/key"), b"secret").unwrap();
    fs::write(dir.path().join("there"), b"mine").unwrap();
    // A missing entry, an entry that is not a file, and a link to a non-file.
    let entries = vec![
        entry("private", EntryKind::Directory),
        link("public", "private/key"),
        link("there", "private/key"),
        link("directory", "private"),
        link("chain", "public"),
    ];
    let (outcome, notices) = receive(dir.path(), Existing::Replace, entries, None);
    let expected =
        ["chain", "directory", "public", "there"].map(|name| (NoticeKind::MissingLinkTarget, name.to_owned()));
    assert_eq!(notices, expected);
    assert_eq!((outcome.files, outcome.failed_count), (0, 4));
    assert_eq!(dir.path().join("private/key").metadata().unwrap().nlink(), 1);
    assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"mine");
}

#[test]
fn hard_link_to_unchanged_file_made() {
    let dir = tempdir().unwrap();
    let run = |entries| receive(dir.path(), Existing::Replace, entries, None);
    run(vec![file("first", 3)]);
    let (outcome, notices) = run(vec![file("first", 3), link("second", "first")]);
    assert_eq!((outcome.files, outcome.unchanged, notices), (2, 1, vec![]));
    assert_eq!(inode(dir.path(), "first"), inode(dir.path(), "second"));
}
