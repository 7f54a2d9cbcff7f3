//! Folders that several users can write to. The users are real: two that are not root, made by root or, for a plain
//! user, in a user namespace with the ids that `/etc/subuid` gives.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use downpour::files::{Compare, Existing, FileSink, Modes, NoticeKind, ReceiveSpec, Root, ScanOptions, Scanner};
use rustix::process::geteuid;
use tempfile::tempdir;

use crate::common::Control;
use crate::journal::staging;

const RECEIVER: u32 = 1001;
const OTHER: u32 = 1002;
/// Names the folder that a child test works in.
const FOLDER: &str = "DOWNPOUR_TEST_FOLDER";

fn child_folder() -> PathBuf {
    std::env::var_os(FOLDER).map(PathBuf::from).expect("a child test is run by its parent test only")
}

/// Runs a child test of this module.
fn run_child(mut command: Command, name: &str, folder: &Path) {
    command.args(["--exact", &format!("users::{name}"), "--ignored", "--nocapture"]).env(FOLDER, folder);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Runs a child test as root, who can become any user.
fn as_root(name: &str, folder: &Path) {
    let program = std::env::current_exe().unwrap();
    if geteuid().is_root() {
        return run_child(Command::new(program), name, folder);
    }
    let flags = ["--user", "--map-root-user", "--map-auto"];
    let allowed = Command::new("unshare").args(flags).arg("true").output().is_ok_and(|o| o.status.success());
    assert!(
        allowed,
        "this test needs several users: run it as root, or allow `unshare {}` (a range in /etc/subuid, and newuidmap)",
        flags.join(" ")
    );
    let mut command = Command::new("unshare");
    command.args(flags).arg(program);
    run_child(command, name, folder);
}

/// Runs a child test as the receiver.
fn as_receiver(name: &str, folder: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.uid(RECEIVER).gid(RECEIVER);
    run_child(command, name, folder);
}

#[test]
fn what_belongs_to_another_user_is_reported_where_it_cannot_be_changed() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    as_root("child_gives_files_to_another", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_gives_files_to_another() {
    let folder = child_folder();
    fs::write(folder.join("file"), "content").unwrap();
    fs::create_dir(folder.join("dir")).unwrap();
    std::os::unix::fs::symlink("there", folder.join("link")).unwrap();
    for name in ["file", "dir", "link"] {
        std::os::unix::fs::lchown(folder.join(name), Some(OTHER), Some(OTHER)).unwrap();
    }
    fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o604)).unwrap();
    as_receiver("child_changes_attributes", &folder);
    assert_eq!(folder.join("file").metadata().unwrap().mode() & 0o777, 0o604);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_changes_attributes() {
    let (from, into) = (tempdir().unwrap(), child_folder());
    fs::write(from.path().join("file"), "content").unwrap();
    fs::create_dir(from.path().join("dir")).unwrap();
    std::os::unix::fs::symlink("there", from.path().join("link")).unwrap();
    let sources: Vec<_> = ["file", "dir", "link"].iter().map(|name| from.path().join(name)).collect();
    let base = ReceiveSpec { existing: Existing::Replace, ..ReceiveSpec::into_directory(&into) };
    let spec = ReceiveSpec { modes: Modes::Exact, compare: Compare::Checksum, ..base };
    let scan = ScanOptions { hash: true, ..ScanOptions::default() };
    let receiving = FileSink::new(spec).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    for batch in Scanner::new(sources.iter().map(Root::new).collect(), scan).unwrap() {
        control.send_manifest(&batch).unwrap();
    }
    let outcome = receiving.finish(&control.end()).unwrap();
    let mut refused = receiving.take_notices();
    refused.sort_by(|one, other| one.path.cmp(&other.path));
    let names: Vec<_> = refused.iter().map(|notice| (notice.path.as_slice(), notice.kind)).collect();
    let denied = NoticeKind::Permission;
    assert_eq!(names, [(&b"dir"[..], denied), (b"file", denied), (b"link", denied)]);
    assert_eq!(outcome.failed_count, 3);
    assert!(staging(&into).is_none());
}
