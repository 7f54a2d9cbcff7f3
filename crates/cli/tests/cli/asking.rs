//! Questions to a person at a terminal: the program runs in a pseudo-terminal.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use tempfile::tempdir;

use crate::program::{Ended, Program, arguments, command, downpour, sender};
use crate::terminal::Terminal;
use crate::tree;

/// Starts a sender, and a receiver at a terminal that prompts for the ticket. Also returns the ticket.
fn at_the_prompt(local: &Path) -> (Program, String, Program, Terminal) {
    let source = tree::file(&local.join("file"), 20_000);
    let mut sender = downpour(arguments!["send", "--listen", "127.0.0.1:0", source]);
    let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
    let (mut terminal, stdin, stderr) = Terminal::open();
    let mut command = command(arguments!["recv", "--into", local.join("into")]);
    command.stdin(Stdio::from(stdin)).stderr(Stdio::from(stderr));
    let receiver = Program::start(command);
    terminal.wait_for("Ticket");
    (sender, ticket, receiver, terminal)
}

#[test]
fn recv_prompt_hides_ticket_and_accepts_yes() {
    let local = tempdir().expect("a directory");
    let (sender, ticket, receiver, mut terminal) = at_the_prompt(local.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Accept? [Y/n]");
    assert!(!terminal.shown.contains(&ticket[..20]), "{:?}", terminal.shown);
    assert!(terminal.shown.contains("Offered: file (1 item, 20 kB"), "{:?}", terminal.shown);
    terminal.type_line("y");
    receiver.end().expect(0);
    sender.end().expect(0);
    tree::assert_same(&local.path().join("file"), &local.path().join("into/file"));
}

#[test]
fn recv_prompt_no_declines_on_both_sides() {
    let local = tempdir().expect("a directory");
    let (mut sender, ticket, receiver, mut terminal) = at_the_prompt(local.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Accept? [Y/n]");
    terminal.type_line("perhaps");
    terminal.wait_for("Accept? [Y/n] perhaps\r\nAccept? [Y/n]");
    terminal.type_line("no");
    terminal.wait_for("downpour: declined");
    receiver.end().expect(1);
    sender.wait_for_words("declined by its user");
    sender.signal(rustix::process::Signal::INT);
    sender.end().expect_error(130);
    tree::assert_untouched(&local.path().join("into"));
}

/// Runs a receiver with this text on its stdin to its end. Returns the waiting sender and the result.
fn with_answer(local: &Path, text: &str, more: &[&str]) -> (Program, Ended) {
    let source = tree::file(&local.join("file"), 20_000);
    let (ticket, into) = (local.join("ticket"), local.join("into"));
    let sender = sender(&[&source], &ticket, &[]);
    let mut arguments = arguments!["recv", "--ticket-file", ticket, "--into", into].to_vec();
    arguments.extend(more.iter().map(OsStr::new));
    let mut command = command(arguments);
    command.stdin(Stdio::piped());
    let mut receiver = Program::start(command);
    let mut stdin = receiver.stdin();
    stdin.write_all(text.as_bytes()).expect("a program that reads");
    drop(stdin);
    (sender, receiver.end())
}

#[test]
fn recv_answer_from_pipe_counts() {
    let local = tempdir().expect("a directory");
    let (mut sender, ended) = with_answer(local.path(), "n\n", &["-q"]);
    let ended = ended.expect_line(1, "declined");
    assert!(ended.stderr.contains("Offered: file (1 item, 20 kB)\nInto:    /"), "{}", ended.stderr);
    sender.wait_for_words("declined by its user");
    tree::assert_untouched(&local.path().join("into"));

    let local = tempdir().expect("a directory");
    let (sender, ended) = with_answer(local.path(), "what?\nyes\n", &[]);
    ended.expect(0);
    sender.end().expect(0);
    tree::assert_same(&local.path().join("file"), &local.path().join("into/file"));
}

#[test]
fn recv_without_answer_takes_nothing() {
    let local = tempdir().expect("a directory");
    let (_sender, ended) = with_answer(local.path(), "", &[]);
    ended.expect_line(2, "--yes");
    tree::assert_untouched(&local.path().join("into"));
}

#[test]
fn recv_prompt_ends_when_sender_leaves() {
    let local = tempdir().expect("a directory");
    let (sender, ticket, receiver, mut terminal) = at_the_prompt(local.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Accept? [Y/n]");
    sender.signal(rustix::process::Signal::INT);
    terminal.wait_for("\ndownpour: error from the sender: interrupted by its user");
    receiver.end().expect(1);
    tree::assert_untouched(&local.path().join("into"));
}

#[test]
fn recv_sigint_at_prompt_restores_echo() {
    let local = tempdir().expect("a directory");
    let (_sender, _, receiver, terminal) = at_the_prompt(local.path());
    receiver.signal(rustix::process::Signal::INT);
    receiver.end().expect(130);
    let modes = rustix::termios::tcgetattr(&terminal.user).expect("a terminal").local_modes;
    assert!(modes.contains(rustix::termios::LocalModes::ECHO));
}

#[test]
fn recv_sigint_at_question_takes_nothing() {
    let local = tempdir().expect("a directory");
    let (mut sender, ticket, receiver, mut terminal) = at_the_prompt(local.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Accept? [Y/n]");
    receiver.signal(rustix::process::Signal::INT);
    terminal.wait_for("downpour: cancelled");
    receiver.end().expect(130);
    sender.wait_for_words("interrupted");
    tree::assert_untouched(&local.path().join("into"));
}

/// People paste a ticket with the empty line that follows it.
#[test]
fn recv_takes_no_empty_line_after_the_ticket_for_a_yes() {
    let here = tempdir().expect("a directory");
    let (_sender, ticket, receiver, mut terminal) = at_the_prompt(here.path());
    terminal.type_line(&format!("{ticket}\n\n"));
    terminal.wait_for("Accept? [Y/n]");
    terminal.type_line("n");
    terminal.wait_for("downpour: declined");
    receiver.end().expect(1);
    tree::assert_untouched(&here.path().join("into"));

    // In a script, an empty line is no answer at all.
    let here = tempdir().expect("a directory");
    let (_sender, ended) = with_answer(here.path(), "\n\nn\n", &[]);
    ended.expect_line(1, "declined");
    tree::assert_untouched(&here.path().join("into"));
}
