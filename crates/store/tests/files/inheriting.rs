//! Default ACLs at the target: received files get the attributes that the system gives to new names.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use downpour_store::{Existing, Modes, ReceiveRequest};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::io::Errno;
use tempfile::tempdir;

use crate::common::{noise, transfer_as};

/// An ACL: the tag of each entry, the permissions, and the user (`linux/posix_acl_xattr.h`). None if empty.
type Acl = &'static [(u16, u16, u32)];

const OWNER: u16 = 1;
const USER: u16 = 2;
const GROUP: u16 = 4;
const MASK: u16 = 16;
const OTHERS: u16 = 32;
const NO_USER: u32 = u32::MAX;

const LESS: Acl = &[(OWNER, 7, NO_USER), (GROUP, 5, NO_USER), (OTHERS, 0, NO_USER)];
const MORE: Acl = &[(OWNER, 7, NO_USER), (GROUP, 7, NO_USER), (OTHERS, 7, NO_USER)];
const LEAST: Acl = &[(OWNER, 7, NO_USER), (GROUP, 0, NO_USER), (OTHERS, 0, NO_USER)];
const NAMED: Acl = &[(OWNER, 7, NO_USER), (USER, 7, 7), (GROUP, 5, NO_USER), (MASK, 7, NO_USER), (OTHERS, 0, NO_USER)];
const OTHERWISE: Acl =
    &[(OWNER, 7, NO_USER), (USER, 6, 7), (GROUP, 0, NO_USER), (MASK, 7, NO_USER), (OTHERS, 5, NO_USER)];

/// Default ACLs of the target and of a directory in it, which give others less, or one user more, than the umask does.
const DEFAULTS: [(Acl, Acl); 6] =
    [(LESS, LESS), (MORE, &[]), (LEAST, &[]), (&[], LESS), (NAMED, LESS), (&[], OTHERWISE)];

/// Modes of files and of directories.
const FILES: [u32; 5] = [0o644, 0o755, 0o666, 0o600, 0o440];
const DIRECTORIES: [u32; 3] = [0o755, 0o777, 0o700];

/// Sets a default ACL. Not by a program: until it starts, it would hold the locks of other tests in this process.
fn set_default(directory: &Path, acl: Acl) -> bool {
    if acl.is_empty() {
        return matches!(removexattr(directory, "system.posix_acl_default"), Ok(()) | Err(Errno::NODATA));
    }
    setxattr(directory, "system.posix_acl_default", &attribute(acl), XattrFlags::empty()).is_ok()
}

/// Returns an ACL as the attribute that contains it.
fn attribute(acl: Acl) -> Vec<u8> {
    let entry = |(to, permissions, id): &(u16, u16, u32)| {
        [&to.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [&2_u32.to_le_bytes()[..], &acl.iter().map(entry).collect::<Vec<_>>().concat()].concat()
}

/// Returns the mode, and both ACLs.
fn acl(path: &Path) -> (u32, [Vec<u8>; 2]) {
    let acls = ["system.posix_acl_access", "system.posix_acl_default"].map(|name| {
        let mut bytes = vec![0; 1000];
        let length = getxattr(path, name, bytes.as_mut_slice()).unwrap_or(0);
        bytes.truncate(length);
        bytes
    });
    (fs::metadata(path).expect("a name").permissions().mode() & 0o7777, acls)
}

fn make(directory: &Path, mode: u32) {
    DirBuilder::new().mode(mode).create(directory).expect("a directory");
}

fn make_file(path: &Path, mode: u32) {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path).expect("a file");
}

/// Calls `each` with the path and mode of every name of the tree, directories first.
fn of_tree(mut each: impl FnMut(&str, Option<usize>, u32)) {
    for (number, mode) in DIRECTORIES.into_iter().enumerate() {
        each(&format!("sub/dir-{number}"), None, mode);
    }
    for place in ["", "sub/", "sub/dir-0/"] {
        for (number, mode) in FILES.into_iter().enumerate() {
            // Empty, in one piece, and in several.
            let size = [0_usize, 100, 3_000_000][number % 3];
            each(&format!("{place}file-{number}"), Some(size), mode);
        }
    }
}

/// Makes a target with these default ACLs; `None` if there are no ACLs.
fn target(at: &Path, (top, sub): (Acl, Acl)) -> Option<()> {
    make(at, 0o755);
    set_default(at, top).then_some(())?;
    make(&at.join("sub"), 0o755);
    set_default(&at.join("sub"), sub).then_some(())
}

#[test]
fn received_names_inherit_default_acl() {
    let here = tempdir().expect("a directory");
    let from = here.path().join("from");
    make(&from, 0o755);
    make(&from.join("sub"), 0o755);
    of_tree(|name, size, mode| {
        let path = from.join(name);
        match size {
            None => make(&path, 0o700),
            Some(size) => fs::write(&path, noise(size, 1)).expect("a file"),
        }
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    });
    let items: Vec<_> =
        ["sub"].into_iter().map(str::to_owned).chain((0..FILES.len()).map(|n| format!("file-{n}"))).collect();
    let items: Vec<_> = items.iter().map(|name| from.join(name)).collect();
    for (case, defaults) in DEFAULTS.into_iter().enumerate() {
        for modes in [Modes::Masked, Modes::Exact] {
            let [ours, theirs] = ["ours", "theirs"].map(|name| here.path().join(format!("{name}-{case}-{modes:?}")));
            if target(&ours, defaults).and_then(|()| target(&theirs, defaults)).is_none() {
                eprintln!("NOT RUN: {} has no ACLs", here.path().display());
                return;
            }
            let spec = ReceiveRequest { existing: Existing::Replace, modes, ..ReceiveRequest::into_directory(&ours) };
            let done = transfer_as(&items, spec.clone(), 1, &mut |_| {}).expect("a transfer");
            assert_eq!(done.outcome.failed_count, 0);
            of_tree(|name, size, mode| {
                let path = theirs.join(name);
                if size.is_some() { make_file(&path, mode) } else { make(&path, mode) }
            });
            // Afterwards, so that the names have been made.
            of_tree(|name, _, mode| {
                if modes == Modes::Exact {
                    fs::set_permissions(theirs.join(name), Permissions::from_mode(mode)).expect("a mode");
                }
            });
            let what = format!("{defaults:?} {modes:?}");
            of_tree(|name, _, mode| {
                assert_eq!(acl(&ours.join(name)), acl(&theirs.join(name)), "{what}: {name}, {mode:o}");
            });
            // The next run finds nothing to correct.
            let again = transfer_as(&items, spec, 1, &mut |_| {}).expect("a transfer");
            assert!(again.notices.is_empty() && again.wanted == 0, "{what}: {:?}", again.notices);
        }
    }
}

/// The bits of its group limit the ACL's grants to a user, and do not apply to the group itself.
#[test]
fn replaced_file_without_acl_opens_to_no_group() {
    let here = tempdir().expect("a directory");
    let (from, into) = (here.path().join("from"), here.path().join("into"));
    [&from, &into].into_iter().for_each(|directory| make(directory, 0o755));
    fs::write(from.join("file"), "theirs").expect("a file");
    fs::write(into.join("file"), "mine").expect("a file");
    let acl: Acl = &[(OWNER, 6, NO_USER), (USER, 6, 7), (GROUP, 0, NO_USER), (MASK, 6, NO_USER), (OTHERS, 0, NO_USER)];
    if setxattr(into.join("file"), "system.posix_acl_access", &attribute(acl), XattrFlags::empty()).is_err() {
        eprintln!("NOT RUN: {} has no ACLs", here.path().display());
        return;
    }
    let spec =
        ReceiveRequest { existing: Existing::Replace, modes: Modes::Masked, ..ReceiveRequest::into_directory(&into) };
    transfer_as(&[from.join("file")], spec, 1, &mut |_| {}).expect("a transfer");
    assert_eq!(fs::read(into.join("file")).expect("a file"), b"theirs");
    assert_eq!(fs::metadata(into.join("file")).expect("a file").permissions().mode() & 0o777, 0o600);
}
