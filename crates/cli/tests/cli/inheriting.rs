//! Default ACLs at the target. The tests of `downpour` have the details.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn default_acl_bounds_cp_but_not_sync() {
    let (far, local) = (FakeHost::new(), tempdir().expect("a directory"));
    let source = local.path().join("source");
    fs::create_dir_all(source.join("sub")).expect("directories");
    for (name, mode) in [("sub", 0o755), ("plain", 0o644), ("program", 0o755), ("sub/plain", 0o644)] {
        let path = source.join(name);
        if !path.exists() {
            fs::write(&path, name).expect("a file");
        }
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }
    let made = |path: &Path| {
        fs::create_dir(path).expect("a directory");
        let setfacl = Command::new("setfacl").args(["-d", "-m", "u::rwx,g::r-x,o::-"]).arg(path).output();
        setfacl.is_ok_and(|output| output.status.success())
    };
    let source = format!("{}/", source.display());
    for (command, options, expected) in
        [("sync", &[][..], [0o755, 0o644, 0o755, 0o644]), ("cp", &["-r"], [0o750, 0o640, 0o750, 0o640])]
    {
        let (within, up) = (local.path().join(command), far.remote(command));
        if !made(&within) || !made(&up) {
            eprintln!("NOT RUN: {} has no ACLs, or setfacl is missing", local.path().display());
            return;
        }
        let options = || options.iter().map(AsRef::as_ref);
        let remote = format!("far:{command}");
        downpour(arguments![command].into_iter().chain(options()).chain(arguments![source, within])).end().expect(0);
        far.run(command, options().chain(arguments![source, remote])).expect(0);
        for target in [within, up] {
            let found = ["sub", "plain", "program", "sub/plain"].map(|name| mode(&target.join(name)));
            assert_eq!(found, expected, "{command} to {}: {found:?}", target.display());
        }
    }
}
