//! Failures in the middle of a transfer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

use crate::program::{Program, arguments, command, downpour, json, receiver, sender};
use crate::tree;

/// Starts a transfer that takes a minute and waits until it is under way: 120 MB at 16 Mbit/s.
fn under_way(more: &[&str]) -> (TempDir, PathBuf, Program, Program) {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) = (local.path().join("file"), local.path().join("ticket"), local.path().join("into"));
    fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
    let sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    let mut receiver = receiver(&ticket, &into, &[&["--json"], more].concat());
    receiver.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    (local, into, sender, receiver)
}

#[test]
fn sigint_receiver_keeps_partial_data() {
    let (_local, into, mut sender, receiver) = under_way(&[]);
    assert_eq!(tree::names(&into).len(), 1, "a staging directory");
    receiver.signal(Signal::INT);
    let stderr = receiver.end().expect_error(130).stderr;
    sender.wait_for_words("interrupted");
    let staging = into.join(&tree::names(&into)[0]);
    assert!(stderr.contains(&staging.display().to_string()), "{stderr} does not name {}", staging.display());
}

#[test]
fn sigint_sender_leaves_partial_data() {
    let (_local, into, sender, receiver) = under_way(&[]);
    sender.signal(Signal::INT);
    sender.end().expect_error(130);
    let stderr = receiver.end().expect_line(1, "interrupted").stderr;
    let staging = into.join(&tree::names(&into)[0]);
    assert!(stderr.contains(&staging.display().to_string()), "{stderr} does not name {}", staging.display());
    assert!(!into.join("file").exists());
}

#[test]
fn sender_killed_receiver_exit_8() {
    let (_local, into, sender, receiver) = under_way(&["--timeout", "2"]);
    sender.signal(Signal::KILL);
    let stderr = receiver.end().expect_error(8).stderr;
    let staging = into.join(&tree::names(&into)[0]);
    assert!(stderr.contains(&staging.display().to_string()), "{stderr} does not name {}", staging.display());
}

/// Without a prompt no list was accepted, so the file is sent as it is now.
#[test]
fn shrinking_source_resent_without_prompt() {
    let local = tempdir().expect("a directory");
    let (large, small) = (local.path().join("large"), tree::file(&local.path().join("small"), 1000));
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    fs::File::create(&large).and_then(|file| file.set_len(30_000_000)).expect("a sparse file");
    let sender = sender(&[&large, &small], &ticket, &["--rate", "80M"]);
    let mut receiver = receiver(&ticket, &into, &["--json"]);
    receiver.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    fs::File::options().write(true).open(&large).and_then(|file| file.set_len(5)).expect("a shorter file");
    let received = receiver.end().expect(0);
    let summary = json(&received.stdout).pop().expect("a summary");
    assert_eq!((&summary["bytes"], &summary["verified"]), (&1005.into(), &true.into()));
    sender.end().expect(0);
    assert_eq!(fs::read(into.join("large")).expect("a file"), [0; 5]);
    tree::assert_same(&small, &into.join("small"));
}

#[test]
fn sigint_waiting_sender_exit_130() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 10), local.path().join("ticket"));
    let sender = sender(&[&source], &ticket, &[]);
    sender.signal(Signal::INT);
    sender.end().expect_error(130);
}

/// Returns a command that runs with `directory` on a file system of 1 MB in its own mount namespace; `None` if the
/// system does not permit it.
fn on_a_small_disk(directory: &Path, arguments: &[&std::ffi::OsStr]) -> Option<Command> {
    let mount = "mount -t tmpfs -o size=1m downpour \"$0\"";
    let unshare = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]).arg(script).arg(directory);
        command
    };
    let possible = unshare(mount.to_owned()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    possible.then(|| {
        let program = command(arguments);
        let mut command = unshare(format!("{mount} && exec \"$@\""));
        command.arg(program.get_program()).args(program.get_args()).env_remove("DOWNPOUR_TICKET");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    })
}

#[test]
fn recv_disk_full_exit_code() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::file(&local.path().join("file"), 8_000_000), local.path().join("ticket"), local.path().join("into"));
    fs::create_dir(&into).expect("a directory");
    let arguments = arguments!["recv", "--yes", "--ticket-file", ticket, "--into", into];
    let command = on_a_small_disk(&into, &arguments).expect("this test needs user and mount namespaces");
    let mut sender = sender(&[&source], &ticket, &[]);
    let received = Program::start(command).end().expect(7).stderr;
    let lines: Vec<&str> = received.lines().filter(|line| line.starts_with("downpour: ")).collect();
    let [warning, error] = lines[..] else { panic!("{received}") };
    assert!(warning.contains("warning: not enough free space at the destination"), "{warning}");
    assert!(error.starts_with("downpour: disk full while writing ") && error.contains("free disk space"), "{error}");
    sender.wait_for_words("not enough free space at the destination");
    sender.wait_for_words("error from the receiver: disk full");
}

#[test]
fn unusable_paths_exit_codes() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 10), local.path().join("ticket"));
    let _sender = sender(&[&source], &ticket, &[]);
    let ended = receiver(&ticket, &source.join("below a file"), &[]).end();
    assert!(matches!(ended.status.code(), Some(1 | 7)), "{} {}", ended.status, ended.stderr);
    let ended = downpour(arguments!["send", source, "--ticket-file", "/no/such/directory/ticket"]).end();
    ended.expect_line(2, "/no/such/directory/ticket");
}
