//! Existing names in the target: kept, replaced, recognised, linked or deleted.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use downpour_store::messages::{ManifestPart, Message, manifest_parts};
use downpour_store::{
    Attributes, Batch, BatchSource, Compare, Entry, EntryKind, Existing, Extra, FileSink, FilesError, Filter,
    ManifestState, Modes, Mtime, NoticeKind, Pattern, ReceiveRequest, RequestedItems, Rule, Scanner, SourceItem,
    SourceOptions, Wanted,
};
use tempfile::{TempDir, tempdir};

use crate::common::{Control, Done, SOURCE, entry, names, send_block, snapshot, transfer_as};

fn replacing(into: &Path) -> ReceiveRequest {
    ReceiveRequest { existing: Existing::Replace, modes: Modes::Exact, ..ReceiveRequest::into_directory(into) }
}

/// Returns a spec for a single item under this name, as if the name had been free at the start: see [`transfer_as`].
fn renaming(target: &Path) -> ReceiveRequest {
    ReceiveRequest { existing: Existing::Replace, modes: Modes::Exact, ..ReceiveRequest::to_target(target) }
}

/// Returns a spec for the contents of a directory, received into `into`.
fn contents_into(into: &Path) -> ReceiveRequest {
    let requested = RequestedItems { contents: true, ..replacing(into).requested };
    ReceiveRequest { requested, ..replacing(into) }
}

/// Sends `tree` of `from`.
fn send(from: &Path, settings: ReceiveRequest) -> Done {
    transfer_as(&[from.join("tree")], settings, 1, &mut |_| {}).unwrap()
}

/// Returns a batch of entries without bytes.
fn without_bytes(entries: Vec<Entry>) -> Batch {
    let (versions, skipped, id_names) = (Vec::new(), Vec::new(), Vec::new());
    Batch { number: 0, entries, length: 0, versions, skipped, id_names, is_last: true }
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn set_mtime(path: &Path, seconds: u64) {
    fs::File::open(path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

fn kinds(done: &Done) -> Vec<(NoticeKind, String)> {
    done.notices.iter().map(|n| (n.kind, String::from_utf8(n.path.clone()).unwrap())).collect()
}

/// Creates a source tree and a copy of it.
fn copied() -> (TempDir, TempDir) {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for name in ["a", "d/b", "d/e/c"] {
        write(&from.path().join("tree").join(name), name.as_bytes());
    }
    write(&from.path().join("tree/big"), &[5; 3 << 20]);
    symlink("a", from.path().join("tree/link")).unwrap();
    fs::create_dir(from.path().join("tree/empty")).unwrap();
    send(from.path(), replacing(to.path()));
    (from, to)
}

fn same(from: &TempDir, to: &TempDir) {
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&to.path().join("tree")));
    assert_eq!(names(to.path()), ["tree"]);
}

#[test]
fn unchanged_tree_wants_no_bytes() {
    let (from, to) = copied();
    let inode = to.path().join("tree/a").metadata().unwrap().ino();
    let changed = to.path().join("tree/a").metadata().unwrap().ctime_nsec();
    let done = send(from.path(), replacing(to.path()));
    assert_eq!((done.wanted, done.outcome.files, done.outcome.unchanged), (0, 4, 4));
    let found = to.path().join("tree/a").metadata().unwrap();
    assert_eq!((found.ino(), found.ctime_nsec()), (inode, changed));
    same(&from, &to);
}

#[test]
fn existing_replace_wants_only_changed() {
    let (from, to) = copied();
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    fs::write(tree.join("a"), b"other").unwrap();
    fs::write(copy.join("d/b"), b"edited here").unwrap();
    fs::set_permissions(tree.join("big"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(copy.join("link")).unwrap();
    symlink("elsewhere", copy.join("link")).unwrap();
    let done = send(from.path(), replacing(to.path()));
    assert_eq!(done.wanted, 5 + 3, "a and d/b");
    assert_eq!((done.outcome.files, done.outcome.unchanged), (4, 2));
    same(&from, &to);
}

#[test]
fn existing_replace_any_kind_by_any_other() {
    let (from, to) = copied();
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    // In the target: replace a file by a directory, a directory by a file, and so on.
    for name in ["a", "link"] {
        fs::remove_file(copy.join(name)).unwrap();
        fs::create_dir(copy.join(name)).unwrap();
    }
    fs::remove_dir_all(copy.join("d")).unwrap();
    fs::write(copy.join("d"), b"file").unwrap();
    fs::remove_dir(copy.join("empty")).unwrap();
    symlink("/etc", copy.join("empty")).unwrap();
    fs::remove_file(copy.join("big")).unwrap();
    symlink("/etc/passwd", copy.join("big")).unwrap();
    send(from.path(), replacing(to.path()));
    same(&from, &to);
    // In the source: swap a link and a file.
    fs::remove_file(tree.join("a")).unwrap();
    symlink("d", tree.join("a")).unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    fs::write(tree.join("link"), b"was a link").unwrap();
    send(from.path(), replacing(to.path()));
    same(&from, &to);
}

#[test]
fn non_empty_directory_replaced_only_with_delete() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    for name in ["a", "link"] {
        fs::remove_file(copy.join(name)).unwrap();
        write(&copy.join(name).join("deep/inside"), b"x");
    }
    let done = send(from.path(), replacing(to.path()));
    let expected = ["tree/a", "tree/link"].map(|name| (NoticeKind::DirectoryNotEmpty, name.to_owned()));
    assert_eq!(kinds(&done), expected);
    assert_eq!((done.outcome.failed_count, done.wanted), (2, 0));
    assert!(copy.join("a/deep/inside").exists());
    write(&copy.join("a/kept"), b"x");
    let delete = Some(Filter::new(vec![Rule::Exclude(Pattern::new(b"kept").unwrap())]));
    let done = send(from.path(), ReceiveRequest { delete: delete.clone(), ..replacing(to.path()) });
    assert!(kinds(&done).contains(&(NoticeKind::DirectoryNotEmpty, "tree/a".to_owned())), "it contains a kept name");
    assert!(copy.join("a/deep/inside").exists(), "nothing is deleted in a directory that stays");
    fs::remove_file(copy.join("a/kept")).unwrap();
    fs::remove_file(copy.join("link")).unwrap();
    write(&copy.join("link/deep/inside"), b"x");
    let delete = Some(Filter::default());
    let done = send(from.path(), ReceiveRequest { delete, ..replacing(to.path()) });
    same(&from, &to);
    let names = ["a", "link"].map(|name| ["", "/deep", "/deep/inside"].map(|rest| format!("tree/{name}{rest}")));
    let mut deleted = kinds(&done);
    deleted.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(deleted, names.concat().into_iter().map(|name| (NoticeKind::Delete, name)).collect::<Vec<_>>());
    assert_eq!(done.outcome.deleted, 6);
}

#[test]
fn existing_skip_keeps_names() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    fs::write(copy.join("a"), b"mine").unwrap();
    fs::remove_file(copy.join("d/b")).unwrap();
    set_mtime(&copy.join("d"), 5);
    let skip = ReceiveRequest { existing: Existing::Skip, ..replacing(to.path()) };
    let done = send(from.path(), skip);
    assert_eq!(kinds(&done), [(NoticeKind::Kept, "tree/a".to_owned())]);
    assert_eq!((done.wanted, done.outcome.kept, done.outcome.files), (3, 1, 3));
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"mine");
    assert_eq!(fs::read(copy.join("d/b")).unwrap(), b"d/b");
}

#[test]
fn existing_skip_keeps_late_names() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    for name in ["a", "big", "d/b"] {
        fs::remove_file(copy.join(name)).unwrap();
    }
    let skip = ReceiveRequest { existing: Existing::Skip, ..replacing(to.path()) };
    let done = transfer_as(&[from.path().join("tree")], skip, 1, &mut |_| {
        fs::write(copy.join("d/b"), b"mine").unwrap();
        fs::create_dir(copy.join("a")).unwrap();
    })
    .unwrap();
    let mut notices = kinds(&done);
    notices.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(notices, ["tree/a", "tree/d/b"].map(|name| (NoticeKind::Kept, name.to_owned())));
    assert_eq!((done.outcome.kept, done.outcome.files, done.outcome.failed_count), (2, 2, 0));
    assert_eq!(fs::read(copy.join("d/b")).unwrap(), b"mine");
    assert!(copy.join("a").is_dir());
    assert_eq!(names(to.path()), ["tree"], "nothing else remains");
}

#[test]
fn existing_mode_kept_unless_exact() {
    let (from, to) = copied();
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |name: &str| copy.join(name).metadata().unwrap().mode() & 0o7777;
    fs::write(tree.join("a"), b"other").unwrap();
    for (name, there, here) in [("a", 0o755, 0o4640), ("d/b", 0o755, 0o600), ("d", 0o777, 0o710)] {
        set(&tree.join(name), there);
        set(&copy.join(name), here);
    }
    set_mtime(&copy.join("d"), 5);
    fs::write(tree.join("new"), b"new").unwrap();
    let masked = || ReceiveRequest { modes: Modes::Masked, ..replacing(to.path()) };
    let planned = send(from.path(), ReceiveRequest { dry_run: true, ..masked() });
    let mut expected = [
        ("tree", NoticeKind::Attributes),
        ("tree/a", NoticeKind::Replace),
        ("tree/d", NoticeKind::Attributes),
        ("tree/new", NoticeKind::Create),
    ];
    expected.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(kinds(&planned), expected.map(|(name, kind)| (kind, name.to_owned())));
    let done = send(from.path(), masked());
    assert_eq!(done.wanted, 5 + 3);
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"other");
    assert_eq!((mode("a"), mode("d/b"), mode("d")), (0o640, 0o600, 0o710));
    assert_eq!(mode("new"), tree.join("new").metadata().unwrap().mode() & 0o7777, "as the mask allows");
    send(from.path(), replacing(to.path()));
    same(&from, &to);
}

/// The mask is for new names. Some files are empty, small, or received in pieces.
#[test]
fn replaced_file_keeps_mode_beyond_umask() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    let modes = [0o664, 0o666, 0o777, 0o600, 0o4775];
    let files = || modes.iter().flat_map(|mode| [0, 10, 3_000_000].map(|size| (*mode, size)));
    for (mode, size) in files() {
        let name = format!("{mode:o}-{size}");
        write(&tree.join(&name), &vec![7; size]);
        write(&copy.join(&name), b"mine");
        fs::set_permissions(copy.join(&name), fs::Permissions::from_mode(mode)).unwrap();
    }
    send(from.path(), ReceiveRequest { modes: Modes::Masked, ..replacing(to.path()) });
    for (mode, size) in files() {
        let found = copy.join(format!("{mode:o}-{size}")).metadata().unwrap();
        // A new content does not run with another's rights.
        assert_eq!((found.mode() & 0o7777, found.len()), (mode & 0o777, size as u64), "{mode:o} {size}");
    }
}

#[test]
fn directory_does_not_replace_named_target_file() {
    let (from, to) = copied();
    let file = to.path().join("file");
    fs::write(&file, b"mine").unwrap();
    for dry_run in [true, false] {
        let named = ReceiveRequest { dry_run, ..renaming(&file) };
        let error = transfer_as(&[from.path().join("tree")], named, 1, &mut |_| {}).unwrap_err();
        assert!(matches!(&error, FilesError::TargetNotADirectory { path } if *path == file), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn present_bytes_exclude_failed_and_kept_files() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    fs::remove_file(copy.join("d/b")).unwrap();
    fs::remove_file(copy.join("a")).unwrap();
    write(&copy.join("a/inside"), b"x");
    let big = 3 << 20;
    let done = send(from.path(), replacing(to.path()));
    assert_eq!((done.outcome.failed_count, done.wanted), (1, 3));
    assert_eq!((done.outcome.bytes, done.outcome.present), (3 + 5 + big, 5 + big));
    fs::write(copy.join("d/b"), b"mine").unwrap();
    let done = send(from.path(), ReceiveRequest { existing: Existing::Skip, ..replacing(to.path()) });
    assert_eq!((done.outcome.kept, done.outcome.bytes, done.outcome.present), (2, 5 + big, 5 + big));
}

/// Receives the contents of a directory with mode 0750 and time 77 into the target. Returns the target's mode and time,
/// and the notices.
fn with_top(settings: ReceiveRequest) -> ((u32, i64), Vec<(NoticeKind, String)>) {
    let into = settings.target.clone();
    let receiving = FileSink::new(settings).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let top = Attributes { mode: 0o750, mtime: Mtime { seconds: 77, nanoseconds: 5 }, extra: Extra::default() };
    control.send(&Message::Top(top.clone())).unwrap();
    assert!(matches!(receiving.top(top), Err(FilesError::Protocol { .. })), "there is one");
    let entries = vec![entry("file", EntryKind::File { size: 0, version: 0, hash: None })];
    control.send_manifest(&without_bytes(entries)).unwrap();
    receiving.finish(&control.end()).unwrap();
    let notices = receiving.take_notices().into_iter().map(|n| (n.kind, String::from_utf8(n.path).unwrap())).collect();
    let found = into.metadata().unwrap();
    ((found.mode() & 0o7777, found.mtime()), notices)
}

#[test]
fn contents_target_gets_top_mode_and_time() {
    let dir = tempdir().unwrap();
    let set = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o700);
    let contents = || contents_into(dir.path());
    let own = |settings| with_top(settings).0.0;
    assert_eq!(own(replacing(dir.path())), 0o700, "it is another directory");
    assert_eq!(own(ReceiveRequest { modes: Modes::Masked, ..contents() }), 0o700);
    assert_eq!(own(ReceiveRequest { existing: Existing::Skip, ..contents() }), 0o700);
    let (before, notices) = with_top(ReceiveRequest { dry_run: true, ..contents() });
    assert_eq!((before.0, notices), (0o700, vec![(NoticeKind::Attributes, ".".to_owned())]));
    assert_eq!(with_top(contents()).0, (0o750, 77));
    assert_eq!(with_top(ReceiveRequest { dry_run: true, ..contents() }), ((0o750, 77), vec![]), "no second time");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn checksum_finds_change_with_same_size_and_time() {
    let dir = tempdir().unwrap();
    let contents: [&[u8]; 2] = [b"same", b"spot"];
    for name in ["moved", "spoiled"] {
        fs::write(dir.path().join(name), b"same").unwrap();
    }
    set_mtime(&dir.path().join("spoiled"), 77);
    let settings = ReceiveRequest { compare: Compare::Checksum, ..replacing(dir.path()) };
    let receiving = FileSink::new(settings).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let entry = |(name, content): (&str, &[u8])| Entry {
        path: name.into(),
        kind: EntryKind::File { size: 4, version: 0, hash: Some(*blake3::hash(content).as_bytes()) },
        mode: 0o600,
        mtime: Mtime { seconds: 77, nanoseconds: 0 },
        extra: Extra::default(),
    };
    let entries = ["moved", "spoiled"].into_iter().zip(contents).map(entry).collect();
    let batch =
        Batch { number: 0, entries, length: 8, versions: vec![], skipped: vec![], id_names: Vec::new(), is_last: true };
    control.send_manifest(&batch).unwrap();
    assert_eq!(control.wanted.ranges(8).collect::<Vec<_>>(), vec![4..8]);
    let moved = dir.path().join("moved").metadata().unwrap();
    assert_eq!((moved.mtime(), moved.mode() & 0o777), (77, 0o600));
}

#[test]
fn single_item_received_under_target_name() {
    let (from, to) = copied();
    fs::remove_dir_all(to.path().join("tree")).unwrap();
    let named = renaming(&to.path().join("copy"));
    assert!(!FileSink::new(named.clone()).unwrap().may_have_data());
    send(from.path(), named.clone());
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&to.path().join("copy")));
    assert_eq!(send(from.path(), named.clone()).wanted, 0);
    let two = [from.path().join("tree"), from.path().join("tree/a")];
    let error = transfer_as(&two, named, 1, &mut |_| {}).unwrap_err();
    assert!(matches!(error, FilesError::Protocol { reason: "announced several items for one name", .. }), "{error}");
    for bad in [".downpour-abcdefgh", &"x".repeat(256)] {
        let spec = renaming(&to.path().join(bad));
        assert!(matches!(FileSink::new(spec), Err(FilesError::BadName { .. })), "{bad}");
    }
}

#[test]
fn dry_run_reports_names_of_the_target() {
    let (from, to) = copied();
    let named = || renaming(&to.path().join("copy"));
    send(from.path(), named());
    fs::write(to.path().join("copy/a"), b"mine").unwrap();
    fs::remove_file(to.path().join("copy/d/b")).unwrap();
    set_mtime(&to.path().join("copy/d"), 5);
    let kinds_of = |settings| {
        let mut notices = kinds(&send(from.path(), ReceiveRequest { dry_run: true, ..settings }));
        notices.sort_by(|a, b| a.1.cmp(&b.1));
        notices
    };
    let expected =
        [(NoticeKind::Replace, "copy/a"), (NoticeKind::Attributes, "copy/d"), (NoticeKind::Create, "copy/d/b")];
    assert_eq!(kinds_of(named()), expected.map(|(kind, name)| (kind, name.to_owned())));
    let expected = [(NoticeKind::Kept, "copy/a"), (NoticeKind::Create, "copy/d/b")];
    let skip = ReceiveRequest { existing: Existing::Skip, ..named() };
    assert_eq!(kinds_of(skip), expected.map(|(kind, name)| (kind, name.to_owned())));
}

#[test]
fn dry_run_keeps_directory_with_kept_names() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    for name in ["gone/one", "stays/in/this.keep", "stays/not/that", "stays/here"] {
        write(&copy.join(name), b"x");
    }
    let deleting = || ReceiveRequest { delete: Some(Filter::parse(b"- *.keep\n").unwrap()), ..replacing(to.path()) };
    let planned = send(from.path(), ReceiveRequest { dry_run: true, ..deleting() });
    let mut notices = kinds(&planned);
    notices.retain(|(kind, _)| *kind == NoticeKind::Delete);
    notices.sort_by(|a, b| a.1.cmp(&b.1));
    let gone = ["gone", "gone/one", "stays/here", "stays/not", "stays/not/that"];
    assert_eq!(notices, gone.map(|name| (NoticeKind::Delete, format!("tree/{name}"))));
    let done = send(from.path(), deleting());
    assert_eq!((done.outcome.deleted, planned.outcome.deleted), (5, 5));
    assert!(copy.join("stays/in/this.keep").exists() && !copy.join("gone").exists());
}

#[test]
fn dry_run_reports_links_without_first_name() {
    let dir = tempdir().unwrap();
    write(&dir.path().join("taken/inside"), b"x");
    let link = |target: &str| EntryKind::HardLink { target: target.into() };
    let empty = EntryKind::File { size: 0, version: 0, hash: None };
    let entries = || {
        vec![
            entry("first", empty.clone()),
            entry("second", link("first")),
            entry("orphan", link("absent")),
            entry("taken", empty.clone()),
            entry("third", link("taken")),
        ]
    };
    let foreseen = receive(entries(), ReceiveRequest { dry_run: true, ..replacing(dir.path()) });
    assert_eq!(names(dir.path()), ["taken"]);
    let outcome = receive(entries(), replacing(dir.path()));
    let reasons = |outcome: &downpour_store::ReceiveOutcome| {
        let mut listed: Vec<_> = outcome.listed.iter().map(|failed| (failed.path.clone(), failed.reason)).collect();
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        listed
    };
    assert_eq!(reasons(&foreseen), reasons(&outcome));
    assert_eq!((foreseen.files, foreseen.failed_count), (2, 3));
    assert_eq!((outcome.files, outcome.failed_count), (2, 3));
}

#[test]
fn target_link_to_directory_is_followed() {
    let (from, to) = copied();
    fs::create_dir(to.path().join("real")).unwrap();
    symlink("real", to.path().join("alias")).unwrap();
    send(from.path(), replacing(&to.path().join("alias")));
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&to.path().join("real/tree")));
}

/// Receives entries without bytes.
fn receive(entries: Vec<Entry>, settings: ReceiveRequest) -> downpour_store::ReceiveOutcome {
    let receiving = FileSink::new(settings).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&without_bytes(entries)).unwrap();
    receiving.finish(&control.end()).unwrap()
}

#[test]
fn hard_links_are_restored() {
    let dir = tempdir().unwrap();
    let empty = EntryKind::File { size: 0, version: 0, hash: None };
    let link = |target: &str| EntryKind::HardLink { target: target.into() };
    let entries = || {
        vec![
            entry("d", EntryKind::Directory),
            entry("d/first", empty.clone()),
            entry("d/second", link("d/first")),
            entry("third", link("d/first")),
            entry("orphan", link("d/absent")),
        ]
    };
    for run in 0..3 {
        let outcome = receive(entries(), replacing(dir.path()));
        let inode = |name: &str| dir.path().join(name).metadata().unwrap().ino();
        assert_eq!(inode("d/first"), inode("d/second"), "run {run}");
        assert_eq!(inode("d/first"), inode("third"), "run {run}");
        assert_eq!((outcome.files, outcome.failed_count), (3, 1), "run {run}");
        assert_eq!(
            outcome.unchanged,
            if run == 1 {
                3
            } else if run == 2 {
                1
            } else {
                0
            },
            "run {run}"
        );
        assert_eq!(dir.path().join("d").metadata().unwrap().mtime(), 99, "run {run}");
        assert_eq!(names(dir.path()), ["d", "third"], "run {run}");
        if run == 1 {
            // One is a different file now, another was removed.
            fs::remove_file(dir.path().join("d/second")).unwrap();
            fs::remove_file(dir.path().join("third")).unwrap();
            fs::write(dir.path().join("third"), b"else").unwrap();
        }
    }
}

#[test]
fn delete_only_in_directories_of_the_sender() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    for name in ["extra", "d/e/x/y/z"] {
        write(&copy.join(name), b"x");
    }
    symlink("/etc", copy.join("d/stray")).unwrap();
    write(&to.path().join("neighbour"), b"x");
    write(&to.path().join(".downpour-the2ther/file"), b"x");
    let deleting = |contents| {
        let spec = if contents { contents_into(to.path()) } else { replacing(to.path()) };
        ReceiveRequest { delete: Some(Filter::default()), ..spec }
    };
    let dry = ReceiveRequest { dry_run: true, ..deleting(true) };
    let before = snapshot(to.path());
    let done = send(from.path(), dry);
    let mut notices = kinds(&done);
    notices.sort_by(|a, b| a.1.cmp(&b.1));
    let gone = ["neighbour", "tree/d/e/x", "tree/d/e/x/y", "tree/d/e/x/y/z", "tree/d/stray", "tree/extra"];
    let mut expected: Vec<_> = gone.map(|name| (NoticeKind::Delete, name.to_owned())).to_vec();
    // Names were created in these directories, so their times differ from the sender's.
    expected.extend(["tree", "tree/d", "tree/d/e"].map(|name| (NoticeKind::Attributes, name.to_owned())));
    expected.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(notices, expected);
    assert_eq!(snapshot(to.path()), before, "a dry run touches nothing");
    let done = send(from.path(), deleting(false));
    assert_eq!((done.outcome.deleted, done.wanted), (5, 0));
    assert_eq!(names(to.path()), [".downpour-the2ther", "neighbour", "tree"]);
    assert_eq!(snapshot(&from.path().join("tree")), snapshot(&copy));
    assert_eq!(send(from.path(), deleting(true)).outcome.deleted, 1);
    assert_eq!(names(to.path()), [".downpour-the2ther", "tree"]);
}

/// The warning is not an error, since holes need no room: the transfer continues.
#[test]
fn low_space_reported_once() {
    let into = tempdir().unwrap();
    let spec =
        ReceiveRequest { dry_run: true, existing: Existing::Replace, ..ReceiveRequest::into_directory(into.path()) };
    let file = |name: &str, size| entry(name, EntryKind::File { size, version: 0, hash: None });
    for (last, count) in [(1 << 20, 0), (1 << 60, 1)] {
        let receiving = FileSink::new(spec.clone()).unwrap();
        let mut control = Control::begin(&receiving).unwrap();
        for (number, size) in [(0, 1000), (1, last), (2, 1000)] {
            let entries = vec![file(&format!("file{number}"), size)];
            let batch = Batch {
                number,
                entries,
                length: size,
                versions: vec![],
                skipped: vec![],
                id_names: vec![],
                is_last: number == 2,
            };
            control.send_manifest(&batch).unwrap();
        }
        let notices = receiving.take_notices();
        let low: Vec<_> = notices.iter().filter(|notice| notice.kind == NoticeKind::LowSpace).collect();
        assert_eq!(low.len(), count, "{notices:?}");
        assert!(!receiving.finish(&control.end()).unwrap().is_partial());
    }
}

#[test]
fn existing_skip_kept_parent_skips_children() {
    let (from, into) = (tempdir().unwrap(), tempdir().unwrap());
    let (source, target) = (from.path().join("tree"), into.path().join("tree"));
    fs::create_dir_all(source.join("dir/sub")).unwrap();
    fs::write(source.join("dir/sub/file"), "content").unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(target.join("dir"), "a file").unwrap();
    for dry_run in [true, false] {
        let spec = ReceiveRequest { existing: Existing::Skip, dry_run, ..ReceiveRequest::into_directory(into.path()) };
        let done = transfer_as(std::slice::from_ref(&source), spec, 1, &mut |_| {}).unwrap();
        assert_eq!((done.outcome.failed_count, done.outcome.kept), (0, 3), "{:?}", done.notices);
    }
    assert_eq!(fs::read(target.join("dir")).unwrap(), b"a file");
}

/// Another program changes the target meanwhile.
#[test]
fn delete_keeps_names_created_meanwhile() {
    let (from, into) = (tempdir().unwrap(), tempdir().unwrap());
    let (source, target) = (from.path().join("tree"), into.path().join("tree"));
    fs::create_dir_all(source.join("dir")).unwrap();
    fs::create_dir_all(target.join("dir/old")).unwrap();
    fs::create_dir_all(target.join("dir/used")).unwrap();
    fs::write(source.join("file"), "content").unwrap();
    for name in ["file", "old", "dir/old/old", "dir/used/old", "moved"] {
        fs::write(target.join(name), "old").unwrap();
    }
    // Replacing one of its names makes the other look new.
    fs::hard_link(target.join("file"), target.join("second")).unwrap();
    fs::hard_link(target.join("old"), target.join("dir/old/link")).unwrap();
    let spec = ReceiveRequest {
        existing: Existing::Replace,
        delete: Some(Filter::default()),
        ..ReceiveRequest::into_directory(into.path())
    };
    let done = transfer_as(&[source], spec, 1, &mut |_| {
        fs::write(target.join("new"), "new").unwrap();
        fs::write(target.join("dir/used/new"), "new").unwrap();
        fs::create_dir(target.join("dir/new")).unwrap();
        fs::rename(target.join("moved"), target.join("dir/moved")).unwrap();
    })
    .unwrap();
    assert_eq!(names(&target), ["dir", "file", "new"]);
    assert_eq!(names(&target.join("dir")), ["moved", "new", "used"]);
    // A directory may have been moved there with all its contents.
    assert_eq!(names(&target.join("dir/used")), ["new", "old"]);
    assert_eq!(fs::read(target.join("file")).unwrap(), b"content");
    let kept: Vec<_> = done.notices.iter().filter(|notice| notice.kind == NoticeKind::Kept).collect();
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert_eq!((done.outcome.deleted, done.outcome.kept), (5, 4));
}

#[test]
fn delete_nothing_if_source_unreadable() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("precious"), b"x").unwrap();
    let settings = ReceiveRequest { delete: Some(Filter::default()), ..contents_into(dir.path()) };
    let receiving = FileSink::new(settings).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let skipped =
        vec![downpour_store::Skipped { path: b"closed".to_vec(), reason: downpour_store::SkipReason::Unreadable }];
    control
        .send_manifest(&Batch {
            number: 0,
            entries: vec![],
            length: 0,
            versions: vec![],
            skipped,
            id_names: Vec::new(),
            is_last: true,
        })
        .unwrap();
    let outcome = receiving.finish(&control.end()).unwrap();
    assert!(outcome.delete_left_out && outcome.deleted == 0);
    let notices: Vec<_> = receiving.take_notices().into_iter().map(|notice| (notice.kind, notice.path)).collect();
    assert_eq!((notices, outcome.failed_count), (vec![(NoticeKind::NotDeleted, b".".to_vec())], 2));
    assert_eq!(names(dir.path()), ["precious"]);
}

#[test]
fn dry_run_reports_and_changes_nothing() {
    let (from, to) = copied();
    let copy = to.path().join("tree");
    fs::write(copy.join("a"), b"mine").unwrap();
    fs::remove_file(copy.join("d/b")).unwrap();
    fs::set_permissions(copy.join("big"), fs::Permissions::from_mode(0o600)).unwrap();
    set_mtime(&copy.join("d"), 5);
    let before = snapshot(to.path());
    let done = send(from.path(), ReceiveRequest { dry_run: true, ..replacing(to.path()) });
    let notices = kinds(&done);
    let expected = [
        (NoticeKind::Replace, "tree/a"),
        (NoticeKind::Attributes, "tree/big"),
        (NoticeKind::Attributes, "tree/d"),
        (NoticeKind::Create, "tree/d/b"),
    ];
    assert_eq!(notices, expected.map(|(kind, name)| (kind, name.to_owned())));
    assert_eq!((done.wanted, done.outcome.unchanged), (4, 2));
    assert_eq!(snapshot(to.path()), before);
    let absent = to.path().join("absent");
    send(from.path(), ReceiveRequest { dry_run: true, ..replacing(&absent) });
    assert!(!absent.exists());
}

#[test]
fn second_receiver_of_source_is_busy() {
    let dir = tempdir().unwrap();
    let first = FileSink::new(replacing(dir.path())).unwrap();
    let _control = Control::begin(&first).unwrap();
    let part = downpour_store::messages::ManifestPart {
        batch: 0,
        last: true,
        whole: false,
        again: false,
        length: 0,
        entries: vec![],
    };
    first.add_manifest_part(&part).unwrap();
    let second = FileSink::new(replacing(dir.path())).unwrap();
    assert!(matches!(second.begin(SOURCE), Err(FilesError::Busy { .. })));
    drop(first);
    // It has not begun yet, so it may retry.
    second.begin(SOURCE).unwrap();
    assert!(matches!(second.begin(SOURCE), Err(FilesError::Protocol { .. })));
}

/// Under `refuse`, no existing name is replaced at any depth: beneath its item, a resumed transfer cannot distinguish
/// its own names from later changes by others.
#[test]
fn resume_keeps_names_changed_at_target() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["changed", "same", "new"] {
        fs::write(tree.join(name), "").unwrap();
    }
    let spec = || ReceiveRequest::into_directory(to.path());
    let first = Scanner::new(vec![SourceItem::new(&tree)], SourceOptions::default()).unwrap().next().unwrap();
    let sink = FileSink::new(spec()).unwrap();
    let mut control = Control::begin(&sink).unwrap();
    control.send_manifest(&first).unwrap();
    drop(sink);
    fs::write(to.path().join("tree/changed"), "by the user").unwrap();
    let sink = FileSink::new(spec()).unwrap();
    let mut control = Control::begin(&sink).unwrap();
    control.send_manifest(&first).unwrap();
    let notices: Vec<_> = sink.take_notices().into_iter().map(|notice| (notice.kind, notice.path)).collect();
    assert_eq!(notices, [(NoticeKind::Exists, b"tree/changed".to_vec())]);
    assert_eq!(fs::read(to.path().join("tree/changed")).unwrap(), b"by the user");
}

#[test]
fn existing_keep_newer_keeps_only_newer_files() {
    let (from, to) = copied();
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    for (name, theirs, mine) in [("a", 1_000, 2_000), ("d/b", 1_000, 500), ("d/e/c", 1_000, 1_000)] {
        fs::write(tree.join(name), b"sent").unwrap();
        set_mtime(&tree.join(name), theirs);
        fs::write(copy.join(name), b"mine").unwrap();
        set_mtime(&copy.join(name), mine);
    }
    fs::write(copy.join("d/e/c"), b"of another size").unwrap();
    set_mtime(&copy.join("d/e/c"), 1_000);
    // A link is no older or newer file.
    fs::remove_file(copy.join("link")).unwrap();
    symlink("elsewhere", copy.join("link")).unwrap();
    let newer = || ReceiveRequest { existing: Existing::KeepNewer, ..replacing(to.path()) };
    let dry = send(from.path(), ReceiveRequest { dry_run: true, ..newer() });
    assert_eq!((dry.wanted, dry.outcome.kept), (8, 1));
    let done = send(from.path(), newer());
    assert_eq!((done.wanted, done.outcome.kept), (8, 1), "d/b and d/e/c");
    let found = ["a", "d/b", "d/e/c"].map(|name| fs::read(copy.join(name)).unwrap());
    assert_eq!(found, [b"mine", b"sent", b"sent"]);
    assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("a"));
    assert_eq!(names(to.path()), ["tree"]);
}

#[test]
fn existing_update_only_creates_nothing() {
    let (from, to) = copied();
    let (tree, copy) = (from.path().join("tree"), to.path().join("tree"));
    fs::write(tree.join("a"), b"other").unwrap();
    write(&tree.join("new"), b"new");
    write(&tree.join("d/new/deep"), b"new");
    symlink("a", tree.join("newlink")).unwrap();
    let only = |into: &Path| ReceiveRequest { existing: Existing::UpdateOnly, ..replacing(into) };
    let send = |settings: ReceiveRequest| {
        let (into, dry_run) = (settings.target.clone(), settings.dry_run);
        let before = snapshot(&into);
        let done = send(from.path(), settings);
        assert!(!dry_run || snapshot(&into) == before);
        (done.wanted, done.outcome.kept)
    };
    // new, newlink, d/new and its contents.
    assert_eq!(send(ReceiveRequest { dry_run: true, ..only(to.path()) }), (5, 4));
    assert_eq!(send(only(to.path())), (5, 4));
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"other");
    for absent in ["new", "newlink", "d/new"] {
        assert!(fs::symlink_metadata(copy.join(absent)).is_err(), "{absent}");
    }
    let empty = tempdir().unwrap();
    assert_eq!(send(only(empty.path())).0, 0);
    assert_eq!(names(empty.path()), [""; 0]);
    let absent = empty.path().join("absent");
    assert!(FileSink::new(only(&absent)).is_err() && !absent.exists(), "not even the target");
}

/// A sender of little data does not wait for the wanted ranges. Unwanted data arrives too, and is dropped.
#[test]
fn unwanted_data_changes_nothing() {
    for existing in [Existing::Replace, Existing::Skip, Existing::KeepNewer] {
        let (from, into) = (tempdir().unwrap(), tempdir().unwrap());
        for (name, here) in [("changed", Some("old")), ("new", None), ("same", Some("same"))] {
            fs::write(from.path().join(name), name).unwrap();
            here.iter().for_each(|here| fs::write(into.path().join(name), here).unwrap());
        }
        let time = fs::metadata(from.path().join("same")).unwrap().modified().unwrap();
        let set =
            |name: &str, time| File::options().write(true).open(into.path().join(name)).unwrap().set_modified(time);
        set("same", time).unwrap();
        set("changed", time + Duration::from_secs(9)).unwrap();
        let before = fs::metadata(into.path().join("same")).unwrap().ino();
        let spec = ReceiveRequest { existing, ..ReceiveRequest::into_directory(into.path()) };
        let sink = FileSink::new(spec).unwrap();
        let mut control = Control::begin(&sink).unwrap();
        let names = ["changed", "new", "same"].map(|name| SourceItem::new(from.path().join(name)));
        let mut scanner = Scanner::new(names.into(), SourceOptions::default()).unwrap();
        let roots = scanner.roots();
        let batch = Arc::new(scanner.next().unwrap());
        let part = manifest_parts(0, batch.length, &batch.entries).next().unwrap();
        let state = sink.add_manifest_part(&ManifestPart { whole: true, ..part }).unwrap();
        let ManifestState::Whole(wanted) = state else { panic!("{state:?}") };
        let replaces = existing == Existing::Replace;
        assert_eq!(wanted.length(batch.length), if replaces { 10 } else { 3 }, "{existing:?}");
        let source = BatchSource::new(batch, roots, Wanted::all());
        send_block(&mut control, &source, 0, 0, false).unwrap();
        sink.settle(|_, _| {}).unwrap();
        assert_eq!(sink.unverified(), 0);
        let read = |name: &str| fs::read_to_string(into.path().join(name)).unwrap();
        assert_eq!(["changed", "new", "same"].map(read), [if replaces { "changed" } else { "old" }, "new", "same"]);
        assert_eq!(fs::metadata(into.path().join("same")).unwrap().ino(), before);
        sink.abandon(true).unwrap();
    }
}
