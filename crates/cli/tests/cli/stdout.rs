//! Failures to write to stdout.

use std::fs::File;

use tempfile::tempdir;

use crate::program::{Ended, Program, arguments, command, sender};
use crate::tree;

/// Runs the program with a full device as its stdout.
fn full<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    let mut command = command(arguments);
    command.stdout(File::options().write(true).open("/dev/full").expect("a device that is full"));
    Program::start(command).end()
}

#[test]
fn recv_json_stdout_full_exit_7() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::file(&local.path().join("file"), 100_000), local.path().join("ticket"), local.path().join("into"));
    let sender = sender(&[&source], &ticket, &[]);
    full(arguments!["recv", "-y", "--json", "--ticket-file", ticket, "--into", into]).expect_error(7);
    sender.end().expect(0);
    tree::assert_same(&source, &into.join("file"));
}

#[test]
fn stdout_full_exit_7() {
    let local = tempdir().expect("a directory");
    let (a, b) = (tree::file(&local.path().join("a"), 10), local.path().join("b"));
    for arguments in [arguments!["cp", "-n", a, b].to_vec(), arguments!["completions", "bash"].to_vec()] {
        full(arguments).expect_error(7);
    }
    full(["send", "/no/such/file", "--json"]).expect_line(3, "/no/such/file");
}

#[test]
fn send_ticket_unwritable_exit_7() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    for more in [&[][..], &["--json"]] {
        let mut arguments = arguments!["send", source, "--listen", "127.0.0.1:0"].to_vec();
        arguments.extend(more.iter().map(std::ffi::OsStr::new));
        full(arguments).expect_error(7);
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = command(arguments!["send", source, "--listen", "127.0.0.1:0"]);
    command.stdout(writer);
    Program::start(command).end().expect_error(7);
}
