//! Signals that end a transfer, and signals that do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, test_kill_process_group};
use tempfile::{TempDir, tempdir};

use crate::program::{Program, arguments, command, downpour, json, program_with, sender, wait_until};
use crate::terminal::Terminal;
use crate::tree;

/// A process ends within this time after SIGTERM.
const SOON: Duration = Duration::from_secs(2);

/// Starts a sender of 120 MB at 16 Mbit/s. Also returns the paths that its receiver needs.
fn slow_sender() -> (TempDir, PathBuf, PathBuf, Program) {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) = (local.path().join("file"), local.path().join("ticket"), local.path().join("into"));
    fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
    let sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    (local, ticket, into, sender)
}

fn slow_receiver(ticket: &Path, into: &Path) -> Program {
    let mut receiver = downpour(arguments!["recv", "--yes", "--ticket-file", ticket, "--into", into, "--json"]);
    receiver.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    receiver
}

/// Sends SIGTERM. Checks how the program ends and returns its output.
#[track_caller]
fn terminate(program: Program) -> String {
    let start = Instant::now();
    program.signal(Signal::TERM);
    let ended = program.end().expect(75);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    let complaints = ended.stderr.lines().filter(|line| line.starts_with("downpour: ")).count();
    assert_eq!(complaints, 1, "{}", ended.stderr);
    ended.stderr
}

#[test]
fn sigterm_ends_a_receiver_resumably() {
    let (_local, ticket, into, sender) = slow_sender();
    terminate(slow_receiver(&ticket, &into));
    drop(sender);
}

#[test]
fn sigterm_ends_a_sender_resumably() {
    let (_local, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    terminate(sender);
    receiver.end().expect_line(1, "stopped by a signal");
}

#[test]
fn sigterm_ends_a_receiver_whose_sender_does_not_answer() {
    let (_local, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    sender.signal(Signal::STOP);
    terminate(receiver);
}

#[test]
fn sigterm_while_waiting_and_at_prompt() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 10), local.path().join("ticket"));
    terminate(sender(&[&source], &ticket, &[]));
    let (mut terminal, stdin, stderr) = Terminal::open();
    let mut command = command(["recv"]);
    command.stdin(Stdio::from(stdin)).stderr(Stdio::from(stderr));
    let receiver = Program::start(command);
    terminal.wait_for("Ticket");
    receiver.signal(Signal::TERM);
    terminal.wait_for("downpour: terminated");
    receiver.end().expect(75);
}

#[test]
fn killed_cp_to_new_name_resumes_there() {
    let local = tempdir().expect("a directory");
    let (source, target) = (local.path().join("tree"), local.path().join("copy"));
    fs::create_dir_all(source.join("in")).expect("directories");
    tree::file(&source.join("in/small"), 100);
    tree::file(&source.join("large"), 20_000_000);
    let mut first = downpour(arguments!["cp", "-r", "--json", "--rate", "40M", source, target]);
    first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    first.signal(Signal::KILL);
    first.end();
    assert!(target.is_dir() && !target.join("large").exists(), "killed midway");
    // The existing directory is the incomplete copy to be continued, not a directory to copy into.
    downpour(arguments!["cp", "-r", source, target]).end().expect(0);
    tree::assert_same(&source, &target);
    assert_eq!(tree::names(local.path()).len(), 2, "nothing is left behind");
    // The copy is complete: from now on the target is an ordinary directory to copy into, as for scp.
    downpour(arguments!["cp", "-r", source, target]).end().expect(0);
    tree::assert_same(&source, &target.join("tree"));
}

#[test]
fn stopped_cp_resumes_with_same_command() {
    for (signal, code) in [(Signal::TERM, 75), (Signal::INT, 130)] {
        let local = tempdir().expect("a directory");
        let (source, target) = (tree::file(&local.path().join("file"), 20_000_000), local.path().join("copy"));
        let mut first = downpour(arguments!["cp", "--json", "--rate", "40M", source, target]);
        first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
        first.signal(signal);
        first.end().expect_error(code);
        assert!(!target.exists(), "no name before all is verified");
        let second = downpour(arguments!["cp", "--json", source, target]).end().expect(0);
        let summary = json(&second.stdout).pop().expect("a summary");
        let bytes = |key: &str| summary[key].as_u64().expect("a number");
        assert!(bytes("bytes_present") > 0, "{summary}");
        assert_eq!(bytes("transferred_bytes"), 20_000_000 - bytes("bytes_present"), "{summary}");
        tree::assert_same(&source, &target);
        assert_eq!(tree::names(local.path()).len(), 2, "nothing is left behind");
    }
}

/// The transfer continues, and prints its progress even if none is shown otherwise.
#[test]
fn sigusr1_prints_progress() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (local.path().join("file"), local.path().join("ticket"));
    fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
    let mut sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    sender.signal(Signal::USR1);
    sender.wait_for_words("waiting for the peer");
    let into = local.path().join("into");
    let mut receiver = slow_receiver(&ticket, &into);
    for program in [&mut sender, &mut receiver] {
        program.signal(Signal::USR1);
        program.wait_for_words(" of 120 MB  ");
        program.signal(Signal::USR1);
        program.wait_for_words(" of 120 MB  ");
    }
    terminate(receiver);
    drop(sender);
}

#[test]
fn second_sigint_exits_at_once() {
    let (_local, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    // The sender is stopped and does not answer.
    sender.signal(Signal::STOP);
    receiver.signal(Signal::INT);
    receiver.signal(Signal::INT);
    let start = Instant::now();
    receiver.end().expect(130);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn sighup_during_transfer_ignored() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 3_000_000), local.path().join("ticket"));
    let into = local.path().join("into");
    let sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    let (mut terminal, stdin, stderr) = Terminal::open();
    let mut command = command(arguments!["recv", "-y", "-v", "--ticket-file", ticket, "--into", into]);
    command.stdin(Stdio::from(stdin)).stderr(Stdio::from(stderr));
    let receiver = Program::start(command);
    terminal.wait_for(" of 3 MB");
    drop(terminal);
    receiver.signal(Signal::HUP);
    receiver.end().expect(0);
    sender.end().expect(0);
    tree::assert_same(&source, &into.join("file"));
}

/// The terminal showed its ticket. Under `nohup` it keeps running.
#[test]
fn sighup_ends_waiting_sender_without_nohup() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 10_000), local.path().join("ticket"));
    let waiting = sender(&[&source], &ticket, &[]);
    waiting.signal(Signal::HUP);
    waiting.end().expect(75);
    fs::remove_file(&ticket).unwrap_or_default();

    let program = env!("CARGO_BIN_EXE_downpour");
    let arguments = arguments![program, "send", "--listen", "127.0.0.1:0", source, "--ticket-file", ticket];
    let command = program_with(Path::new("nohup"), arguments);
    let mut staying = Program::start(command);
    staying.wait_for_words("Copy ticket file");
    staying.signal(Signal::HUP);
    let into = local.path().join("into");
    crate::program::receiver(&ticket, &into, &[]).end().expect(0);
    staying.end().expect(0);
    tree::assert_same(&source, &into.join("file"));
}

#[test]
fn progress_bar_hidden_without_terminal() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 10_000), local.path().join("ticket"));
    let sender = sender(&[&source], &ticket, &[]);
    let more = ["--progress", "bar"];
    let ended = crate::program::receiver(&ticket, &local.path().join("into"), &more).end().expect(0);
    assert!(!ended.stderr.contains(" %  "), "{}", ended.stderr);
    sender.end().expect(0);
}

#[test]
fn clean_lists_and_removes_partial_data() {
    let (local, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    fs::write(into.join("mine"), "stays").expect("a file");
    fs::create_dir(into.join(".downpour-aaaaaaaa")).expect("a directory");
    fs::write(into.join(".downpour-aaaaaaaa/theirs"), "not staged").expect("a file");
    let clean = |more: &[&str]| {
        let arguments = arguments!["clean", "--json", into];
        json(&downpour(arguments.into_iter().chain(more.iter().map(AsRef::as_ref))).end().expect(0).stdout)
    };
    let used = clean(&["--remove"]);
    assert_eq!((used.len(), &used[0]["in_use"], &used[0]["removed"]), (1, &true.into(), &false.into()));
    terminate(receiver);
    drop(sender);
    let left = clean(&[]);
    assert_eq!((left.len(), &left[0]["files"], &left[0]["in_use"]), (1, &1.into(), &false.into()), "{left:?}");
    assert_eq!(left[0]["bytes"], 0, "zeros are holes: {left:?}");
    assert!(left[0]["path"].as_str().is_some_and(|path| Path::new(path).is_dir()), "{left:?}");
    assert_eq!(clean(&["--older-than", "1d", "--remove"]).len(), 0);
    let shown = downpour(arguments!["clean", "-r", local.path()]).end().expect(0);
    assert!(
        shown.stdout.contains("1 file") && shown.stderr.contains("Run the interrupted command again to resume"),
        "{}",
        shown.stdout
    );
    let removed = downpour(arguments!["clean", "--remove", into]).end().expect(0).stderr;
    assert!(removed.ends_with(": 1 removed.\n"), "{removed}");
    assert_eq!(tree::names(&into), [Path::new(".downpour-aaaaaaaa"), Path::new("mine")], "what is not ours stays");
    downpour(arguments!["clean", local.path().join("absent")]).end().expect_error(3);
}

/// Starts a copy whose `--on-end` runs a script that prints its process by [`GROUP`]; also returns its process group.
fn at_its_end(local: &Path, script: &str) -> (Program, Pid) {
    let source = tree::file(&local.join("file"), 10);
    let mut copy = downpour(arguments!["cp", "--on-end", script, source, local.join("copy")]);
    let line = copy.wait_for_words("group ");
    let group = line.split(' ').nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?)).expect("a process");
    (copy, group)
}

const GROUP: &str = "echo \"group $$ .\"";

#[test]
fn on_end_signalled_keeps_exit_code() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        for (before, ends_by) in [("", name), ("trap '' INT TERM; ", "SIGKILL")] {
            let local = tempdir().expect("a directory");
            let (copy, group) = at_its_end(local.path(), &format!("{before}{GROUP}; exec sleep 100"));
            let begun = Instant::now();
            copy.signal(signal);
            let ended = copy.end().expect(0);
            assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
            let words = "--on-end: command failed with signal: ";
            assert!(ended.stderr.contains(words) && ended.stderr.contains(ends_by), "{}", ended.stderr);
            assert!(local.path().join("copy").exists());
            wait_until("gone", || test_kill_process_group(group).is_err());
        }
    }
}

#[test]
fn on_end_survives_sighup() {
    let local = tempdir().expect("a directory");
    let mark = local.path().join("mark");
    let script = format!("{GROUP}; while ! test -e {}; do sleep 0.01; done", mark.display());
    let (copy, _) = at_its_end(local.path(), &script);
    copy.signal(Signal::HUP);
    copy.signal(Signal::USR1);
    fs::write(mark, "").expect("a file");
    copy.end().expect(0);
}
