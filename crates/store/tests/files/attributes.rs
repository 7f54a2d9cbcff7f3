//! Owners, groups, ACLs, extended attributes and special files.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use downpour_store::{
    Batch, Entry, EntryKind, Existing, Extra, FileSink, FilesError, IdKind, IdName, Modes, Mtime, NoticeKind, Owner,
    Preserve, ReceiveRequest, Special, Xattr,
};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, lgetxattr, lremovexattr, lsetxattr, mknodat};
use tempfile::tempdir;

use crate::common::{Control, Done, transfer_as};
use crate::users::{OTHER, RECEIVER, as_receiver, as_root, child_directory};

const IDS: Preserve = Preserve { owner: true, group: true, ..Preserve::NOTHING };
const XATTRS: Preserve = Preserve { owner: false, group: false, xattrs: true, acls: true, ..IDS };

fn spec(into: &Path, preserve: Preserve) -> ReceiveRequest {
    let base = ReceiveRequest::into_directory(into);
    ReceiveRequest { preserve, existing: Existing::Replace, modes: Modes::Exact, ..base }
}

fn sync(from: &Path, into: &Path, preserve: Preserve) -> Done {
    transfer_as(&[from.to_owned()], spec(into, preserve), 1, &mut |_| {}).unwrap()
}

/// Returns the notices of a dry run.
fn planned(from: &Path, into: &Path, preserve: Preserve) -> Vec<(NoticeKind, String)> {
    let spec = ReceiveRequest { dry_run: true, ..spec(into, preserve) };
    let notices = transfer_as(&[from.to_owned()], spec, 1, &mut |_| {}).unwrap().notices;
    notices.into_iter().map(|notice| (notice.kind, String::from_utf8(notice.path).unwrap())).collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn own(path: &Path, user: u32, group: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(group)).unwrap();
}

/// Returns owner, group and mode.
fn owned(path: &Path) -> (u32, u32, u32) {
    let found = path.symlink_metadata().unwrap();
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1000];
    let length = lgetxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}

fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty())
        .unwrap_or_else(|error| panic!("this test needs extended attributes in {}: {error}", path.display()));
}

/// An ACL by which one more user may read, as `acl(5)` and `linux/posix_acl_xattr.h` describe it.
fn acl(user: u32) -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let entries = [
        entry(1, 6, u32::MAX),
        entry(2, 4, user),
        entry(4, 4, u32::MAX),
        entry(16, 4, u32::MAX),
        entry(32, 0, u32::MAX),
    ];
    [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
}

/// A tree with a file, a program, a directory, a link and a FIFO, each of another owner.
fn owned_tree(from: &Path) {
    fs::create_dir_all(from.join("dir")).unwrap();
    fs::write(from.join("dir/file"), "content").unwrap();
    fs::write(from.join("program"), "content").unwrap();
    std::os::unix::fs::symlink("dir/file", from.join("link")).unwrap();
    mknodat(CWD, from.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for (name, user, group) in
        [("dir", 7, 8), ("dir/file", OTHER, 9), ("program", 11, 12), ("link", 13, 14), ("pipe", 15, 16)]
    {
        own(&from.join(name), user, group);
    }
    set_mode(&from.join("program"), 0o6751);
    set_mode(&from.join("dir"), 0o2750);
}

#[test]
fn root_receiver_sets_owners_of_sender() {
    let home = tempdir().unwrap();
    set_mode(home.path(), 0o777);
    as_root("attributes::child_copies_owners", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_copies_owners() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    owned_tree(&from);
    let at = |name: &str| owned(&into.join("from").join(name));
    let all = Preserve { specials: true, numeric_ids: true, ..IDS };
    sync(&from, &into, all);
    assert_eq!(at("dir"), (7, 8, 0o2750));
    assert_eq!(at("dir/file").0, OTHER);
    assert_eq!(at("dir/file").1, 9);
    assert_eq!(at("program"), (11, 12, 0o6751));
    assert_eq!((at("link").0, at("link").1), (13, 14));
    assert_eq!(at("pipe"), (15, 16, 0o600));
    assert_eq!(planned(&from, &into, all), []);

    // Only the owner changes if everything else is equal.
    for name in ["dir", "dir/file", "program", "link", "pipe"] {
        own(&from.join(name), 21, 22);
    }
    set_mode(&from.join("program"), 0o4751);
    let changed = ["from/dir", "from/dir/file", "from/link", "from/pipe"];
    let mut wanted: Vec<_> = changed.iter().map(|name| (NoticeKind::Attributes, (*name).to_owned())).collect();
    // It would get another owner's rights, and its content was not read.
    wanted.push((NoticeKind::Replace, "from/program".to_owned()));
    assert_eq!(planned(&from, &into, all), wanted);
    assert_eq!(sync(&from, &into, all).wanted, 7, "the program");
    for name in ["dir", "dir/file", "program", "link", "pipe"] {
        let found = at(name);
        assert_eq!((found.0, found.1), (21, 22), "{name}");
    }
    assert_eq!(at("program").2, 0o4751);
    assert_eq!(planned(&from, &into, all), []);

    // Rights of an owner or group are only given with both.
    for (number, partly) in [(0, Preserve { owner: false, ..all }), (1, Preserve { group: false, ..all })] {
        let into = child_directory().join(format!("partly{number}"));
        sync(&from, &into, partly);
        assert_eq!(owned(&into.join("from/program")).2, 0o751);
    }
    // A plain user gets all permitted attributes, and no report of the rest, which they can never have.
    set_mode(&from.join("program"), 0o755);
    set_mode(&from.join("dir"), 0o755);
    set_mode(&from.join("dir/file"), 0o644);
    own(&from.join("program"), OTHER, RECEIVER);
    own(&from.join("dir"), RECEIVER, OTHER);
    as_receiver("attributes::child_receives_what_is_its_own", &child_directory());
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_receives_what_is_its_own() {
    let (from, into) = (child_directory().join("from"), child_directory().join("plain"));
    let all = Preserve { specials: true, ..IDS };
    let done = sync(&from, &into, all);
    assert!(!done.outcome.is_partial(), "{:?}", done.outcome);
    for name in ["dir", "dir/file", "program", "link", "pipe"] {
        let found = owned(&into.join("from").join(name));
        assert_eq!((found.0, found.1), (RECEIVER, RECEIVER), "{name}");
    }
    assert_eq!(planned(&from, &into, all), []);
}

/// Another user of the target has created a program with the size and time of the sent one.
#[test]
fn planted_file_gets_no_rights_uncompared() {
    let home = tempdir().unwrap();
    as_root("attributes::child_meets_a_trap", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_meets_a_trap() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    let (source, trap) = (from.join("program"), into.join("from/program"));
    let set_trap = |mode| {
        fs::remove_dir_all(&into).unwrap_or_default();
        fs::create_dir_all(into.join("from")).unwrap();
        fs::write(&trap, "their's").unwrap();
        own(&trap, OTHER, OTHER);
        set_mode(&trap, mode);
        let time = source.metadata().unwrap().modified().unwrap();
        fs::File::options().write(true).open(&trap).unwrap().set_modified(time).unwrap();
    };
    fs::create_dir(&from).unwrap();
    fs::write(&source, "content").unwrap();
    set_mode(&source, 0o755);
    // Their set-user-id bit must not become root's, whatever is asked for.
    let only_owner = Preserve { group: false, ..IDS };
    let only_group = Preserve { owner: false, ..IDS };
    for modes in [Modes::Masked, Modes::Exact] {
        for preserve in [only_owner, only_group, IDS] {
            set_mode(&source, 0o4755);
            let mode = if preserve == IDS && modes == Modes::Exact { 0o4755 } else { 0o755 };
            set_trap(0o6755);
            let spec = ReceiveRequest { modes, ..spec(&into, preserve) };
            transfer_as(std::slice::from_ref(&from), spec, 1, &mut |_| {}).unwrap();
            let found = owned(&trap);
            assert!(found.2 == mode || (found.0 == OTHER && found.2 & 0o2000 == 0), "{preserve:?} {modes:?} {found:?}");
            let gets_rights = found.0 == 0 && found.2 & 0o6000 != 0;
            assert!(!gets_rights || fs::read(&trap).unwrap() == b"content", "{preserve:?} {modes:?}");
        }
    }
    // The rights of a group are not theirs either, and not restored to files that they have changed since.
    for group in [9, OTHER] {
        own(&source, OTHER, group);
        set_mode(&source, 0o2755);
        set_trap(0o755);
        sync(&from, &into, IDS);
        assert_eq!((owned(&trap), fs::read(&trap).unwrap()), ((OTHER, group, 0o2755), b"content".to_vec()));
    }
    own(&source, 0, 0);
    // The same for a third user's file, to which they have made a hard link.
    set_mode(&source, 0o755);
    set_trap(0o755);
    let victim = child_directory().join("victim");
    fs::hard_link(&trap, &victim).unwrap();
    sync(&from, &into, IDS);
    assert_eq!((owned(&victim).0, owned(&trap).0), (OTHER, 0));
    assert_eq!(fs::read(&trap).unwrap(), b"content");
}

#[test]
fn special_files_and_links_keep_acls() {
    let home = tempdir().unwrap();
    as_root("attributes::child_copies_a_pipe_with_an_acl", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_copies_a_pipe_with_an_acl() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    fs::create_dir(&from).unwrap();
    mknodat(CWD, from.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    set_xattr(&from.join("pipe"), "system.posix_acl_access", &acl(OTHER));
    let asked = Preserve { specials: true, ..XATTRS };
    for _ in 0..2 {
        sync(&from, &into, asked);
        assert_eq!(xattr(&into.join("from/pipe"), "system.posix_acl_access"), Some(acl(OTHER)));
        assert_eq!(planned(&from, &into, asked), []);
        // Once more onto an existing one.
        lremovexattr(into.join("from/pipe"), "system.posix_acl_access").unwrap();
        let changed = (NoticeKind::Attributes, "from/pipe".to_owned());
        assert_eq!(planned(&from, &into, asked), [changed]);
    }
}

fn received(into: &Path, preserve: Preserve, names: &[IdName], entries: Vec<Entry>) -> downpour_store::ReceiveOutcome {
    let receiving = FileSink::new(spec(into, preserve)).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let batch = Batch {
        number: 0,
        entries,
        length: 0,
        versions: vec![],
        skipped: vec![],
        id_names: names.to_vec(),
        is_last: true,
    };
    control.send_manifest(&batch).unwrap();
    receiving.finish(&control.end()).unwrap()
}

fn empty(path: &str, extra: Extra) -> Entry {
    let kind = EntryKind::File { size: 0, version: 0, hash: None };
    Entry { path: path.into(), kind, mode: 0o640, mtime: Mtime { seconds: 99, nanoseconds: 0 }, extra }
}

/// Returns the local number of a user, which differs from that at the sender.
fn daemon() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find_map(|line| line.strip_prefix("daemon:")).expect("this test needs a user `daemon`");
    line.split(':').nth(1).unwrap().parse().unwrap()
}

#[test]
fn owners_map_by_name_unless_numeric_ids() {
    let home = tempdir().unwrap();
    as_root("attributes::child_maps_names", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_maps_names() {
    let owner = |user| Extra { owner: Some(Owner { user, group: user }), ..Extra::default() };
    let list = |user| Extra {
        xattrs: vec![Xattr { name: b"system.posix_acl_access".to_vec(), value: acl(user) }],
        ..owner(user)
    };
    let name = |kind, id, name: &str| IdName { kind, id, name: name.into() };
    let names = [
        name(IdKind::User, 4242, "daemon"),
        name(IdKind::User, 4243, "nobody-of-this-name"),
        // A host whose root has another name gives no user's files to that user.
        name(IdKind::User, 0, "daemon"),
    ];
    let entries = || {
        vec![
            empty("known", owner(4242)),
            empty("other", owner(4243)),
            empty("root", owner(0)),
            empty("list", list(4242)),
        ]
    };
    for (numeric_ids, wanted) in [(false, [daemon(), 4243, 0, daemon()]), (true, [4242, 4243, 0, 4242])] {
        let into = child_directory().join(format!("numeric-{numeric_ids}"));
        fs::create_dir(&into).unwrap();
        received(&into, Preserve { numeric_ids, acls: true, ..IDS }, &names, entries());
        let found = ["known", "other", "root", "list"].map(|name| owned(&into.join(name)).0);
        assert_eq!(found, wanted, "{numeric_ids}");
        assert_eq!(xattr(&into.join("list"), "system.posix_acl_access"), Some(acl(wanted[3])));
    }
}

#[test]
fn xattrs_and_acls_are_copied() {
    let here = tempdir().unwrap();
    set_mode(here.path(), 0o777);
    as_root("attributes::child_prepares_xattrs", here.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_prepares_xattrs() {
    // Root may write read-only files; other users must be able to, too.
    copy_xattrs(&child_directory().join("root"));
    let plain = child_directory().join("plain");
    fs::create_dir(&plain).unwrap();
    own(&plain, RECEIVER, RECEIVER);
    as_receiver("attributes::child_copies_xattrs", &child_directory());
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_copies_xattrs() {
    copy_xattrs(&child_directory().join("plain"));
}

fn copy_xattrs(home: &Path) {
    let (from, into) = (home.join("from"), home.join("into"));
    fs::create_dir_all(from.join("dir")).unwrap();
    fs::write(from.join("read-only"), "content").unwrap();
    fs::write(from.join("listed"), "").unwrap();
    let (file, listed) = (from.join("read-only"), from.join("listed"));
    set_xattr(&file, "user.one", b"1");
    set_xattr(&file, "user.two", b"\0\xff");
    set_xattr(&from.join("dir"), "user.empty", b"");
    set_xattr(&listed, "system.posix_acl_access", &acl(OTHER));
    set_mode(&file, 0o444);
    let at = |name: &str| into.join("from").join(name);

    sync(&from, &into, Preserve::default());
    assert_eq!(xattr(&at("read-only"), "user.one"), None, "not requested");
    let wanted = ["from/dir", "from/listed", "from/read-only"].map(|name| (NoticeKind::Attributes, name.to_owned()));
    assert_eq!(planned(&from, &into, XATTRS), wanted);
    // First onto existing files, then as new files.
    for _ in 0..2 {
        assert!(!sync(&from, &into, XATTRS).outcome.is_partial());
        assert_eq!(xattr(&at("read-only"), "user.one").as_deref(), Some(&b"1"[..]));
        assert_eq!(xattr(&at("read-only"), "user.two").as_deref(), Some(&b"\0\xff"[..]));
        assert_eq!(xattr(&at("dir"), "user.empty").as_deref(), Some(&b""[..]));
        assert_eq!(xattr(&at("listed"), "system.posix_acl_access"), Some(acl(OTHER)));
        assert_eq!((owned(&at("read-only")).2, owned(&at("listed")).2), (0o444, 0o640));
        assert_eq!(planned(&from, &into, XATTRS), []);
        fs::remove_dir_all(&into).unwrap();
    }
    sync(&from, &into, XATTRS);
    // Attributes that the sender no longer has are removed, if requested.
    set_mode(&file, 0o644);
    lremovexattr(&file, "user.two").unwrap();
    set_xattr(&file, "user.one", b"other");
    lremovexattr(&listed, "system.posix_acl_access").unwrap();
    set_mode(&file, 0o444);
    sync(&from, &into, Preserve { acls: false, ..XATTRS });
    assert_eq!(xattr(&at("read-only"), "user.two"), None);
    assert_eq!(xattr(&at("read-only"), "user.one").as_deref(), Some(&b"other"[..]));
    assert!(xattr(&at("listed"), "system.posix_acl_access").is_some());
    sync(&from, &into, XATTRS);
    assert_eq!(xattr(&at("listed"), "system.posix_acl_access"), None);
}

#[test]
fn attributes_lost_reported_and_file_kept() {
    let into = tempdir().unwrap();
    // No ACL has this form.
    let bad = Extra {
        xattrs: vec![Xattr { name: b"system.posix_acl_access".to_vec(), value: vec![1; 9] }],
        ..Extra::default()
    };
    let outcome = received(into.path(), XATTRS, &[], vec![empty("file", bad)]);
    assert_eq!(outcome.failed_count, 1);
    assert!(matches!(outcome.listed[0].reason, downpour_store::FailReason::Refused(NoticeKind::AttributesLost)));
    assert_eq!(owned(&into.path().join("file")).2, 0o640);
}

#[test]
fn preserve_unrequested_not_set() {
    let into = tempdir().unwrap();
    let note = Xattr { name: b"user.note".to_vec(), value: b"1".to_vec() };
    let extra = Extra { owner: Some(Owner { user: OTHER, group: OTHER }), xattrs: vec![note] };
    let outcome = received(into.path(), Preserve::default(), &[], vec![empty("file", extra)]);
    assert!(!outcome.is_partial());
    let own = into.path().metadata().unwrap();
    assert_eq!(owned(&into.path().join("file")).0, own.uid());
    assert_eq!(xattr(&into.path().join("file"), "user.note"), None);

    let pipe = Entry { kind: EntryKind::Special(Special::Pipe), ..empty("pipe", Extra::default()) };
    let receiving = FileSink::new(spec(into.path(), IDS)).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let batch = Batch {
        number: 0,
        entries: vec![pipe.clone()],
        length: 0,
        versions: vec![],
        skipped: vec![],
        id_names: vec![],
        is_last: true,
    };
    assert!(matches!(control.send_manifest(&batch), Err(FilesError::Protocol { batch: 0, .. })));
    assert!(into.path().join("pipe").symlink_metadata().is_err());
    drop(receiving);

    let asked = Preserve { specials: true, ..Preserve::default() };
    let outcome = received(into.path(), asked, &[], vec![pipe]);
    let made = into.path().join("pipe").symlink_metadata().unwrap();
    assert!(made.file_type().is_fifo() && !outcome.is_partial());
    assert_eq!((made.mode() & 0o7777, made.mtime()), (0o640, 99));
}

/// Capabilities, kernel-internal and other attributes are never taken from a sender.
#[test]
fn xattrs_of_unknown_kinds_are_ignored() {
    let into = tempdir().unwrap();
    let names = ["security.capability", "security.selinux", "system.nfs4_acl", "trusted.overlay.opaque"];
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut xattrs: Vec<_> = names.map(|name| Xattr { name: name.into(), value: capability.to_vec() }).into();
    xattrs.sort();
    let outcome = received(into.path(), XATTRS, &[], vec![empty("file", Extra { xattrs, ..Extra::default() })]);
    assert!(!outcome.is_partial(), "ignored as if they had not been sent");
    assert!(names.iter().all(|name| xattr(&into.path().join("file"), name).is_none()));
}
