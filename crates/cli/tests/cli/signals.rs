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
    let here = tempdir().expect("a directory");
    let (source, ticket, into) = (here.path().join("file"), here.path().join("ticket"), here.path().join("into"));
    fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
    let sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    (here, ticket, into, sender)
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
    let (_here, ticket, into, sender) = slow_sender();
    terminate(slow_receiver(&ticket, &into));
    drop(sender);
}

#[test]
fn sigterm_ends_a_sender_resumably() {
    let (_here, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    terminate(sender);
    receiver.end().expect_line(1, "stopped by a signal");
}

#[test]
fn sigterm_ends_a_receiver_whose_sender_does_not_answer() {
    let (_here, ticket, into, sender) = slow_sender();
    let receiver = slow_receiver(&ticket, &into);
    sender.signal(Signal::STOP);
    terminate(receiver);
}

#[test]
fn sigterm_while_nobody_comes_and_at_a_prompt() {
    let here = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&here.path().join("file"), 10), here.path().join("ticket"));
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
fn a_killed_copy_of_a_directory_to_a_new_name_goes_on_under_that_name() {
    let here = tempdir().expect("a directory");
    let (source, target) = (here.path().join("tree"), here.path().join("copy"));
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
    assert_eq!(tree::names(here.path()).len(), 2, "nothing is left behind");
    // The copy is complete: from now on the target is an ordinary directory to copy into, as for scp.
    downpour(arguments!["cp", "-r", source, target]).end().expect(0);
    tree::assert_same(&source, &target.join("tree"));
}

#[test]
fn a_copy_that_is_stopped_goes_on_with_the_same_command() {
    for (signal, code) in [(Signal::TERM, 75), (Signal::INT, 130)] {
        let here = tempdir().expect("a directory");
        let (source, target) = (tree::file(&here.path().join("file"), 20_000_000), here.path().join("copy"));
        let mut first = downpour(arguments!["cp", "--json", "--rate", "40M", source, target]);
        first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
        first.signal(signal);
        first.end().expect_line(code, "run the same command to resume");
        assert!(!target.exists(), "no name before all is verified");
        let second = downpour(arguments!["cp", "--json", source, target]).end().expect(0);
        let summary = json(&second.stdout).pop().expect("a summary");
        let bytes = |key: &str| summary[key].as_u64().expect("a number");
        assert!(bytes("bytes_present") > 0, "{summary}");
        assert_eq!(bytes("transferred_bytes"), 20_000_000 - bytes("bytes_present"), "{summary}");
        tree::assert_same(&source, &target);
        assert_eq!(tree::names(here.path()).len(), 2, "nothing is left behind");
    }
}

/// It goes on, and says how far it is even where no progress is shown.
#[test]
fn a_user_who_asks_by_a_signal_is_told_the_progress() {
    let here = tempdir().expect("a directory");
    let (source, ticket) = (here.path().join("file"), here.path().join("ticket"));
    fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
    let mut sender = sender(&[&source], &ticket, &["--rate", "16M"]);
    sender.signal(Signal::USR1);
    sender.wait_for_words("waiting for the peer");
    let into = here.path().join("into");
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
fn a_second_ctrl_c_does_not_wait() {
    let (_here, ticket, into, sender) = slow_sender();
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
fn a_transfer_survives_its_terminal() {
    let here = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&here.path().join("file"), 3_000_000), here.path().join("ticket"));
    let into = here.path().join("into");
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

/// Its ticket was shown there. Under `nohup` it was meant to stay.
#[test]
fn a_sender_that_waits_ends_with_its_terminal_unless_it_is_to_stay() {
    let here = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&here.path().join("file"), 10_000), here.path().join("ticket"));
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
    let into = here.path().join("into");
    crate::program::receiver(&ticket, &into, &[]).end().expect(0);
    staying.end().expect(0);
    tree::assert_same(&source, &into.join("file"));
}

#[test]
fn where_there_is_no_terminal_a_short_transfer_shows_no_progress() {
    let here = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&here.path().join("file"), 10_000), here.path().join("ticket"));
    let sender = sender(&[&source], &ticket, &[]);
    let more = ["--progress", "bar"];
    let ended = crate::program::receiver(&ticket, &here.path().join("into"), &more).end().expect(0);
    assert!(!ended.stderr.contains(" %  "), "{}", ended.stderr);
    sender.end().expect(0);
}

#[test]
fn what_an_interrupted_receiver_leaves_is_listed_and_removed_on_request() {
    let (here, ticket, into, sender) = slow_sender();
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
    let shown = downpour(arguments!["clean", "-r", here.path()]).end().expect(0);
    assert!(
        shown.stdout.contains("1 file") && shown.stderr.contains("Run the interrupted command again to resume"),
        "{}",
        shown.stdout
    );
    let removed = downpour(arguments!["clean", "--remove", into]).end().expect(0).stderr;
    assert!(removed.ends_with(": 1 removed.\n"), "{removed}");
    assert_eq!(tree::names(&into), [Path::new(".downpour-aaaaaaaa"), Path::new("mine")], "what is not ours stays");
    downpour(arguments!["clean", here.path().join("absent")]).end().expect_line(3, "cannot search");
}

/// Starts a copy whose `--on-end` runs a script that says its process with [`GROUP`]; also returns its process group.
fn at_its_end(here: &Path, script: &str) -> (Program, Pid) {
    let source = tree::file(&here.join("file"), 10);
    let mut copy = downpour(arguments!["cp", "--on-end", script, source, here.join("copy")]);
    let line = copy.wait_for_words("group ");
    let group = line.split(' ').nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?)).expect("a process");
    (copy, group)
}

const GROUP: &str = "echo \"group $$ .\"";

#[test]
fn on_end_hears_a_signal_that_no_longer_changes_the_exit_code() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        for (before, ends_by) in [("", name), ("trap '' INT TERM; ", "SIGKILL")] {
            let here = tempdir().expect("a directory");
            let (copy, group) = at_its_end(here.path(), &format!("{before}{GROUP}; exec sleep 100"));
            let begun = Instant::now();
            copy.signal(signal);
            let ended = copy.end().expect(0);
            assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
            let words = "--on-end: command failed with signal: ";
            assert!(ended.stderr.contains(words) && ended.stderr.contains(ends_by), "{}", ended.stderr);
            assert!(here.path().join("copy").exists());
            wait_until("gone", || test_kill_process_group(group).is_err());
        }
    }
}

#[test]
fn on_end_goes_on_after_a_hang_up() {
    let here = tempdir().expect("a directory");
    let mark = here.path().join("mark");
    let script = format!("{GROUP}; while ! test -e {}; do sleep 0.01; done", mark.display());
    let (copy, _) = at_its_end(here.path(), &script);
    copy.signal(Signal::HUP);
    copy.signal(Signal::USR1);
    fs::write(mark, "").expect("a file");
    copy.end().expect(0);
}
