//! Targets whose file system treats different names as equal, such as FAT, APFS and casefold directories of ext4. The
//! test mounts one: a casefold tmpfs (Linux 6.13 with `CONFIG_UNICODE`), for which an ordinary user needs only
//! namespaces, or, as root, FAT. A directory on another one can be given, such as one of `lowntfs-3g -o ignore_case`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use downpour_store::{Existing, Filter, NoticeKind, ReceiveRequest};
use rustix::process::geteuid;
use tempfile::tempdir;

use crate::common::{names, noise, transfer_as};

/// Environment variable with a directory on such a file system. Without it, the test mounts one.
const TEST_DIRECTORY: &str = "DOWNPOUR_FOLDING_DIRECTORY";

/// Shell lines that make `$0/here/directory` such a directory.
const MOUNTS: [&str; 2] = [
    r#"mount -t tmpfs -o casefold downpour "$0/here" && mkdir "$0/here/directory" && chattr +F "$0/here/directory""#,
    r#"truncate -s 64M "$0/image" && mkfs.vfat "$0/image" && mount -o loop "$0/image" "$0/here" && mkdir "$0/here/directory""#,
];

#[test]
fn folding_target_refuses_second_spelling() {
    match std::env::var_os(TEST_DIRECTORY) {
        Some(directory) => receive_into(&tempfile::tempdir_in(PathBuf::from(directory)).unwrap().keep()),
        None => on_a_mount(),
    }
}

/// Runs this test again in a mount namespace with such a file system. Reports on stderr if the kernel has none, even if
/// the harness captures the output.
fn on_a_mount() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("here")).unwrap();
    let flags = if geteuid().is_root() { "-m" } else { "-rm" };
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args([flags, "sh", "-c", script]).arg(home.path());
        command
    };
    let runs = |script: &str| unshared(script).output().is_ok_and(|output| output.status.success());
    assert!(
        runs("true"),
        "this test needs user namespaces: allow unprivileged ones, or run it as root, for `unshare {flags}`"
    );
    let Some(mount) = MOUNTS.into_iter().find(|mount| runs(mount)) else {
        let text = format!(
            "NOT TESTED: names that fold together, since neither a casefold tmpfs (Linux 6.13 with CONFIG_UNICODE) nor, \
             as root, FAT can be mounted; set {TEST_DIRECTORY} to a directory on a file system that folds names\n"
        );
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        return;
    };
    let mut command = unshared(&format!("{mount} >&2 && exec \"$@\""));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture"]);
    command.arg("folding::folding_target_refuses_second_spelling");
    let output = command.env(TEST_DIRECTORY, home.path().join("here/directory")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn receive_into(into: &Path) {
    let from = tempdir().unwrap();
    let tree = from.path().join("tree");
    for directory in ["Dir", "dir"] {
        fs::create_dir_all(tree.join(directory)).unwrap();
    }
    for (seed, name) in (0..).zip(["A", "a", "Dir/x", "dir/x", "dir/y", "other"]) {
        fs::write(tree.join(name), noise(2000 + seed as usize, seed)).unwrap();
    }
    // One file that exists in another spelling, and one that the sender does not have.
    fs::create_dir(into.join("tree")).unwrap();
    fs::write(into.join("tree/OTHER"), "old").unwrap();
    fs::write(into.join("tree/gone"), "old").unwrap();
    let delete = Some(Filter::default());
    let spec = ReceiveRequest { existing: Existing::Replace, delete, ..ReceiveRequest::into_directory(into) };
    for run in 0..2 {
        let done = transfer_as(std::slice::from_ref(&tree), spec.clone(), 1, &mut |_| {}).unwrap();
        let refused = done.notices.iter().filter(|notice| notice.kind == NoticeKind::NameCollision);
        let refused: Vec<_> = refused.map(|notice| String::from_utf8_lossy(&notice.path).into_owned()).collect();
        assert_eq!(refused, ["tree/a", "tree/dir", "tree/dir/x", "tree/dir/y"], "run {run}");
        assert_eq!(done.outcome.failed_count, 4, "run {run}");
        assert_eq!(done.outcome.deleted, u64::from(run == 0), "run {run}");
        let mut found: Vec<_> = names(&into.join("tree")).into_iter().map(|name| name.to_lowercase()).collect();
        found.sort();
        assert_eq!(found, ["a", "dir", "other"], "run {run}");
        assert!(fs::read(into.join("tree/A")).unwrap() == noise(2000, 0));
        assert!(fs::read(into.join("tree/Dir/x")).unwrap() == noise(2002, 2));
        assert_eq!(names(&into.join("tree/Dir")).len(), 1, "run {run}");
        assert!(fs::read(into.join("tree/other")).unwrap() == noise(2005, 5));
    }
}
