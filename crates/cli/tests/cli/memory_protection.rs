//! Other processes cannot read the memory of a process that holds keys.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;

use rustix::process::geteuid;
use tempfile::tempdir;

use crate::program::{Program, arguments, copy_program, program_with};

/// A user other than root.
const OTHER_USER: u32 = 65_534;

/// `/proc/PID/mem` belongs to the user if the process is dumpable, and to root otherwise.
#[test]
fn process_not_dumpable() {
    let local = tempdir().expect("a directory");
    let (program, source) = (local.path().join("downpour"), local.path().join("source"));
    fs::set_permissions(local.path(), Permissions::from_mode(0o755)).expect("ours");
    copy_program(&program);
    fs::write(&source, "bytes").expect("a file");

    let user = if geteuid().is_root() { OTHER_USER } else { geteuid().as_raw() };
    let mut sending = program_with(&program, arguments!["send", "--listen", "127.0.0.1:0", source]);
    sending.uid(user);
    let mut sender = Program::start(sending);
    sender.wait_for_words("On the other host, run");
    let owner = fs::metadata(format!("/proc/{}/mem", sender.id())).expect("it runs").uid();
    assert_ne!(owner, user, "a process that may be dumped");
    assert_eq!(owner, 0);
}
