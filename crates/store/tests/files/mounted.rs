//! A file system mounted below the target: a rename from the staging directory cannot reach it. The test mounts a
//! tmpfs, for which an ordinary user needs only namespaces.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use downpour_store::{Existing, Filter, Modes, ReceiveRequest};
use rustix::process::geteuid;
use tempfile::tempdir;

use crate::common::{names, noise, snapshot, transfer_as};

/// Environment variable with the target of the test in the mount namespace; a tmpfs is mounted at `tree/mnt` in it.
const TARGET: &str = "DOWNPOUR_MOUNTED_TARGET";

#[test]
fn mounted_file_system_below_target_is_filled() {
    if let Some(target) = std::env::var_os(TARGET) {
        return receive_into(Path::new(&target));
    }
    let home = tempdir().unwrap();
    fs::create_dir_all(home.path().join("tree/mnt")).unwrap();
    let flags = if geteuid().is_root() { "-m" } else { "-rm" };
    let script = "mount -t tmpfs downpour \"$0/tree/mnt\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args([flags, "sh", "-c", script]).arg(home.path());
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture"]);
    command.arg("mounted::mounted_file_system_below_target_is_filled").env(TARGET, home.path());
    let output = command.output().expect("unshare");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "this test needs user namespaces: allow unprivileged ones, or run it as root, for `unshare {flags}`\n{text}"
    );
}

fn receive_into(into: &Path) {
    let mounted = into.join("tree/mnt");
    assert_ne!(mounted.metadata().unwrap().dev(), into.metadata().unwrap().dev());
    let from = tempdir().unwrap();
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("mnt/sub")).unwrap();
    fs::write(tree.join("mnt/new"), noise(100_000, 1)).unwrap();
    fs::write(tree.join("mnt/sub/replaced"), noise(3 << 20, 2)).unwrap();
    fs::write(tree.join("mnt/empty"), b"").unwrap();
    fs::write(tree.join("outside"), b"bytes").unwrap();
    fs::set_permissions(tree.join("mnt/new"), fs::Permissions::from_mode(0o640)).unwrap();
    let sparse = fs::File::create(tree.join("mnt/sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 32 << 20).unwrap();
    symlink("new", tree.join("mnt/link")).unwrap();
    symlink("new", tree.join("mnt/sub/relinked")).unwrap();
    fs::create_dir(mounted.join("sub")).unwrap();
    fs::write(mounted.join("sub/replaced"), b"old").unwrap();
    symlink("old", mounted.join("sub/relinked")).unwrap();

    let spec =
        || ReceiveRequest { existing: Existing::Replace, modes: Modes::Exact, ..ReceiveRequest::into_directory(into) };
    let dry = transfer_as(std::slice::from_ref(&tree), ReceiveRequest { dry_run: true, ..spec() }, 1, &mut |_| {});
    assert_eq!(dry.unwrap().outcome.failed_count, 0);
    let done = transfer_as(std::slice::from_ref(&tree), spec(), 1, &mut |_| {}).unwrap();
    assert_eq!((done.outcome.failed_count, done.outcome.files), (0, 5), "{:?}", done.notices);
    assert_eq!(snapshot(&tree), snapshot(&into.join("tree")));
    let blocks = mounted.join("sparse").metadata().unwrap().blocks();
    assert!(blocks < 4096, "a hole is kept: {blocks} blocks");
    assert_eq!(names(into), ["tree"]);
    assert_eq!(names(&mounted), ["empty", "link", "new", "sparse", "sub"]);
    assert_eq!(names(&mounted.join("sub")), ["relinked", "replaced"]);
    let again = transfer_as(std::slice::from_ref(&tree), spec(), 1, &mut |_| {}).unwrap();
    assert_eq!((again.wanted, again.outcome.unchanged), (0, 5));

    // Deletion stays on one file system if requested.
    fs::write(into.join("tree/extra"), b"too much").unwrap();
    fs::write(mounted.join("sub/extra"), b"elsewhere").unwrap();
    let deleting = |one_file_system| ReceiveRequest { delete: Some(Filter::default()), one_file_system, ..spec() };
    transfer_as(std::slice::from_ref(&tree), deleting(true), 1, &mut |_| {}).unwrap();
    assert!(!into.join("tree/extra").exists() && mounted.join("sub/extra").exists());
    fs::remove_dir_all(tree.join("mnt")).unwrap();
    let done = transfer_as(std::slice::from_ref(&tree), deleting(true), 1, &mut |_| {}).unwrap();
    assert_eq!((done.outcome.failed_count, mounted.join("new").exists()), (0, true));
    transfer_as(&[tree], deleting(false), 1, &mut |_| {}).unwrap();
    assert_eq!(names(&mounted), [""; 0]);
}
