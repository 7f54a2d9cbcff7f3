//! Targets whose file system treats different names as equal, such as FAT, APFS and casefold folders of ext4. Few
//! systems have one, so the test only runs on request: on FAT, or in a given folder, such as one of
//! `lowntfs-3g -o ignore_case`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downpour::files::{Existing, Filter, NoticeKind, ReceiveSpec};
use tempfile::tempdir;

use crate::common::{names, noise, transfer_as};

/// Environment variable with a folder on such a file system. Without it, the test mounts FAT.
const FOLDER: &str = "DOWNPOUR_FOLDING_FOLDER";

#[test]
#[ignore = "needs DOWNPOUR_FOLDING_FOLDER on a file system that folds names, or root, mkfs.vfat and a kernel with vfat"]
fn of_two_names_that_are_one_here_the_second_is_refused_and_the_first_stays() {
    match std::env::var_os(FOLDER) {
        Some(folder) => receive_into(&tempfile::tempdir_in(PathBuf::from(folder)).unwrap().keep()),
        None => on_fat(),
    }
}

/// Runs this test again in a mount namespace with a small FAT file system.
fn on_fat() {
    let home = tempdir().unwrap();
    let script = "truncate -s 64M \"$0/image\" && mkfs.vfat \"$0/image\" >/dev/null && mkdir \"$0/fat\" &&
        mount -o loop \"$0/image\" \"$0/fat\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(home.path()).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "folding::of_two_names_that_are_one_here_the_second_is_refused_and_the_first_stays"]);
    let output = command.args(["--ignored", "--nocapture"]).env(FOLDER, home.path().join("fat")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "FAT cannot be mounted, or the test fails: {text}");
}

fn receive_into(into: &Path) {
    let from = tempdir().unwrap();
    let tree = from.path().join("tree");
    for folder in ["Dir", "dir"] {
        fs::create_dir_all(tree.join(folder)).unwrap();
    }
    for (seed, name) in (0..).zip(["A", "a", "Dir/x", "dir/x", "dir/y", "other"]) {
        fs::write(tree.join(name), noise(2000 + seed as usize, seed)).unwrap();
    }
    // One file that exists under another spelling, and one that the sender does not have.
    fs::create_dir(into.join("tree")).unwrap();
    fs::write(into.join("tree/OTHER"), "old").unwrap();
    fs::write(into.join("tree/gone"), "old").unwrap();
    let delete = Some(Filter::default());
    let spec = ReceiveSpec { existing: Existing::Replace, delete, ..ReceiveSpec::into_directory(into) };
    for run in 0..2 {
        let done = transfer_as(std::slice::from_ref(&tree), spec.clone(), 1, &mut |_| {}).unwrap();
        let refused = done.notices.iter().filter(|notice| notice.kind == NoticeKind::Folded);
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
