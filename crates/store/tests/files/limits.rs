//! Failures of the system: disk space, permissions, kills. Parts run in a child process, either in namespaces with a
//! small or read-only file system, or to be killed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use downpour_store::messages::ManifestPart;
use downpour_store::{
    Entry, EntryKind, Extra, FileSink, FilesError, Mtime, ReceiveRequest, Scanner, SkipReason, SourceItem,
    SourceOptions,
};
use tempfile::tempdir;

use crate::common::{SOURCE, names, noise, transfer_as, transfer_with};

/// Environment variable with the directory of a child test. Without it, the child tests do nothing.
const TEST_DIRECTORY: &str = "DOWNPOUR_TEST_DIRECTORY";

fn child_directory() -> Option<PathBuf> {
    std::env::var_os(TEST_DIRECTORY).map(PathBuf::from)
}

/// Runs the child test `name` in `shell` (where "$@" is the test's command) under `unshare` with `flags`.
fn run_unshared(flags: &str, shell: &str, name: &str, directory: &Path) {
    let allowed = Command::new("unshare").args([flags, "true"]).output().is_ok_and(|o| o.status.success());
    assert!(
        allowed,
        "this test needs user namespaces: allow unprivileged ones, or run it as root, for `unshare {flags}`"
    );
    let script = format!("{shell}\nexec \"$@\"");
    let output = Command::new("unshare")
        .args([flags, "sh", "-ec", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("limits::{name}"), "--ignored", "--nocapture"])
        .env(TEST_DIRECTORY, directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn disk_full_fails_and_resumes() {
    let dir = tempdir().unwrap();
    run_unshared(
        "-rm",
        &format!("mount -t tmpfs -o size=6m none \"${TEST_DIRECTORY}\""),
        "child_fills_a_disk",
        dir.path(),
    );
}

#[test]
#[ignore = "run by its parent test on a file system of 6 MiB"]
fn child_fills_a_disk() {
    let Some(disk) = child_directory() else { return };
    let from = tempdir().unwrap();
    let (big, small) = (from.path().join("big"), from.path().join("small"));
    fs::write(&big, noise(3 << 20, 1)).unwrap();
    fs::write(&small, noise(1000, 1)).unwrap();
    let into = disk.join("into");
    fs::write(disk.join("filler"), vec![1; 4 << 20]).unwrap();
    let error = transfer_with(&[small.clone(), big.clone()], &into, 1, |_| {}).unwrap_err();
    assert!(matches!(error, FilesError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("/big"), "{error}");
    let left = names(&into);
    assert!(left[0].starts_with(".downpour-"), "{left:?}");
    assert!(!left.contains(&"big".to_owned()), "{left:?}");
    // Once there is space, the same transfer resumes.
    fs::remove_file(disk.join("filler")).unwrap();
    let done = transfer_as(&[small, big.clone()], ReceiveRequest::into_directory(&into), 1, &mut |_| {}).unwrap();
    assert_eq!(names(&into), ["big", "small"]);
    assert!(fs::read(into.join("big")).unwrap() == fs::read(big).unwrap());
    assert!(done.wanted < 3 << 20, "{} bytes: some were staged", done.wanted);
}

#[test]
fn out_of_inodes_fails_and_names_target() {
    let dir = tempdir().unwrap();
    run_unshared(
        "-rm",
        &format!("mount -t tmpfs -o nr_inodes=20 none \"${TEST_DIRECTORY}\""),
        "child_uses_up_inodes",
        dir.path(),
    );
}

#[test]
#[ignore = "run by its parent test on a file system of 20 inodes"]
fn child_uses_up_inodes() {
    let Some(disk) = child_directory() else { return };
    let receiving = FileSink::new(ReceiveRequest::into_directory(&disk)).unwrap();
    let entries = (0..100).map(|n| Entry {
        path: n.to_string().into_bytes(),
        kind: EntryKind::File { size: 0, version: 0, hash: None },
        mode: 0o644,
        mtime: Mtime::default(),
        extra: Extra::default(),
    });
    let part = ManifestPart { batch: 0, last: true, whole: false, again: false, length: 0, entries: entries.collect() };
    receiving.begin(SOURCE).unwrap();
    receiving.add_manifest_part(&part).unwrap();
    let error = receiving.settle(|_, _| {}).unwrap_err();
    assert!(matches!(error, FilesError::OutOfInodes { .. }), "{error}");
    receiving.abandon(true).unwrap();
    assert!(names(&disk).iter().all(|name| !name.starts_with('.')), "{:?}", names(&disk));
    // If not even a staging directory can be made, the error names the target.
    let filled = (0..).take_while(|n| fs::write(disk.join(format!("filler {n}")), b"").is_ok()).count();
    assert!(filled < 20);
    let FilesError::OutOfInodes { path } = refused(&disk) else { panic!("there is room") };
    assert_eq!(path, disk);
}

#[test]
fn read_only_target_fails() {
    let dir = tempdir().unwrap();
    run_unshared(
        "-rm",
        &format!("mount -t tmpfs -o ro none \"${TEST_DIRECTORY}\""),
        "child_writes_read_only",
        dir.path(),
    );
}

#[test]
#[ignore = "run by its parent test on a read-only file system"]
fn child_writes_read_only() {
    let Some(disk) = child_directory() else { return };
    for into in [disk.clone(), disk.join("new")] {
        let error = refused(&into);
        let FilesError::ReadOnly { path } = error else { panic!("{error}") };
        assert_eq!(path, into);
    }
}

fn refused(into: &Path) -> FilesError {
    let from = tempdir().unwrap();
    fs::write(from.path().join("f"), b"x").unwrap();
    transfer_with(&[from.path().join("f")], into, 1, |_| {}).unwrap_err()
}

fn refused_for_permission(into: &Path) {
    let error = refused(into);
    let FilesError::Permission { path, .. } = error else { panic!("{error}") };
    assert_eq!(path, into);
}

/// In a user namespace without a mapping, even root has only the permissions of the owner.
#[test]
fn permission_denied_reported_at_both_ends() {
    let dir = tempdir().unwrap();
    run_unshared("-U", "", "child_lacks_permission", dir.path());
    // The owner must be able to remove them.
    for closed in ["source/closed", "target"] {
        let _ = fs::set_permissions(dir.path().join(closed), fs::Permissions::from_mode(0o700));
    }
}

#[test]
#[ignore = "run by its parent test without power over files"]
fn child_lacks_permission() {
    let Some(dir) = child_directory() else { return };
    let (source, target) = (dir.join("source"), dir.join("target"));
    fs::create_dir_all(source.join("closed")).unwrap();
    fs::create_dir(&target).unwrap();
    for name in ["open", "secret", "closed/inside"] {
        fs::write(source.join(name), b"x").unwrap();
    }
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    chmod(&source.join("secret"), 0o000);
    chmod(&source.join("closed"), 0o000);
    chmod(&target, 0o555);
    refused_for_permission(&target);
    let batches: Vec<_> =
        Scanner::new(vec![SourceItem::new(source.clone())], SourceOptions::default()).unwrap().collect();
    let skipped: Vec<_> = batches[0].skipped.iter().map(|s| (s.path.as_slice(), s.reason)).collect();
    assert_eq!(skipped, [(&b"source/closed"[..], SkipReason::Unreadable), (b"source/secret", SkipReason::Unreadable)]);
    let outcome = transfer_with(&[source], &dir.join("copy"), 1, |_| {}).unwrap();
    assert_eq!((outcome.files, outcome.directories, outcome.failed_count), (1, 2, 2));
    assert!(outcome.is_partial());
    chmod(&dir.join("copy/source/closed"), 0o700);
    // Directories closed to their owner can be filled and moved without privileges.
    chmod(&dir.join("source/closed"), 0o500);
    chmod(&dir.join("source"), 0o500);
    transfer_with(&[dir.join("source")], &dir.join("again"), 1, |_| {}).unwrap();
    assert_eq!(fs::read(dir.join("again/source/closed/inside")).unwrap(), b"x");
    for directory in ["source", "source/closed", "again/source", "again/source/closed"] {
        chmod(&dir.join(directory), 0o700);
    }
}

#[test]
fn killed_receiver_leaves_only_staging() {
    let dir = tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "limits::child_waits_to_be_killed", "--ignored", "--nocapture"])
        .env(TEST_DIRECTORY, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("half written")));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = names(dir.path());
    assert!(left.len() == 1 && left[0].starts_with(".downpour-"), "{left:?}");
    assert_eq!(dir.path().join(&left[0]).metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
#[ignore = "run and killed by its parent test"]
fn child_waits_to_be_killed() {
    let Some(into) = child_directory() else { return };
    let receiving = FileSink::new(ReceiveRequest::into_directory(&into)).unwrap();
    let entry = |path: &str| Entry {
        path: path.into(),
        kind: EntryKind::File { size: 1000, version: 0, hash: None },
        mode: 0o644,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    let part = ManifestPart {
        batch: 0,
        last: true,
        whole: false,
        again: false,
        length: 2000,
        entries: vec![entry("done"), entry("half")],
    };
    receiving.begin(SOURCE).unwrap();
    receiving.add_manifest_part(&part).unwrap();
    receiving.write(0, 0, &[1; 1500]).unwrap();
    println!("half written");
    // Ends only when the parent has exited.
    let _ = std::io::stdin().lines().next();
}

#[test]
fn target_removed_midway_fails_locally() {
    let dir = tempdir().unwrap();
    let into = dir.path().join("into");
    let receiving = FileSink::new(ReceiveRequest::into_directory(&into)).unwrap();
    let entry = |path: &str, kind| Entry {
        path: path.into(),
        kind,
        mode: 0o755,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    let part =
        |last, entry| ManifestPart { batch: 0, last, whole: false, again: false, length: 10, entries: vec![entry] };
    receiving.begin(SOURCE).unwrap();
    receiving.add_manifest_part(&part(false, entry("directory", EntryKind::Directory))).unwrap();
    fs::remove_dir_all(&into).unwrap();
    let file = entry("directory/file", EntryKind::File { size: 10, version: 0, hash: None });
    receiving.add_manifest_part(&part(true, file)).unwrap();
    let error = receiving.write(0, 0, &[1; 10]).unwrap_err();
    assert!(matches!(error, FilesError::Io { .. }), "{error}");
    assert_eq!(receiving.abandon(false).unwrap(), None, "nothing is kept");
    assert!(!into.exists());
}

#[test]
fn target_not_a_directory_fails_at_once() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("file"), b"").unwrap();
    for into in ["file", "file/below"] {
        let error = FileSink::new(ReceiveRequest::into_directory(dir.path().join(into))).unwrap_err();
        assert!(matches!(error, FilesError::TargetNotADirectory { .. }), "{into}: {error}");
    }
    let error = FileSink::new(ReceiveRequest::into_directory(dir.path().join("absent/below"))).unwrap_err();
    assert!(matches!(&error, FilesError::ParentAbsent { path } if path.ends_with("absent")), "{error}");
}
