//! What a person at a terminal is asked: the program runs with a terminal of its own.

use std::path::Path;
use std::process::Stdio;

use tempfile::tempdir;

use crate::program::{Program, arguments, command, downpour};
use crate::terminal::Terminal;
use crate::tree;

/// A sender, its ticket, and a receiver at a terminal that waits for the ticket.
fn at_the_prompt(here: &Path) -> (Program, String, Program, Terminal) {
    let source = tree::file(&here.join("file"), 20_000);
    let mut sender = downpour(arguments!["send", "--listen", "127.0.0.1:0", source]);
    let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
    let (mut terminal, stdin, stderr) = Terminal::open();
    let mut command = command(arguments!["recv", "--into", here.join("into")]);
    command.stdin(Stdio::from(stdin)).stderr(Stdio::from(stderr));
    let receiver = Program::start(command);
    terminal.wait_for("Ticket");
    (sender, ticket, receiver, terminal)
}

#[test]
fn the_ticket_is_not_shown_and_yes_takes_it() {
    let here = tempdir().expect("a folder");
    let (sender, ticket, receiver, mut terminal) = at_the_prompt(here.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Take it? [Y/n]");
    assert!(!terminal.shown.contains(&ticket[..20]), "{:?}", terminal.shown);
    assert!(terminal.shown.contains("Coming: file (1 item, 20 kB"), "{:?}", terminal.shown);
    terminal.type_line("y");
    receiver.end().expect(0);
    sender.end().expect(0);
    tree::assert_same(&here.path().join("file"), &here.path().join("into/file"));
}

#[test]
fn no_is_no_on_both_sides() {
    let here = tempdir().expect("a folder");
    let (mut sender, ticket, receiver, mut terminal) = at_the_prompt(here.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Take it? [Y/n]");
    terminal.type_line("perhaps");
    terminal.wait_for("Take it? [Y/n] perhaps\r\nTake it? [Y/n]");
    terminal.type_line("no");
    terminal.wait_for("downpour: declined");
    receiver.end().expect(1);
    sender.wait_for_words("declined by its user");
    sender.signal(rustix::process::Signal::INT);
    sender.end().expect_line(130, "cancelled");
    tree::assert_untouched(&here.path().join("into"));
}

#[test]
fn ctrl_c_at_the_prompt_gives_the_terminal_back() {
    let here = tempdir().expect("a folder");
    let (_sender, _, receiver, terminal) = at_the_prompt(here.path());
    receiver.signal(rustix::process::Signal::INT);
    receiver.end().expect(130);
    let modes = rustix::termios::tcgetattr(&terminal.user).expect("a terminal").local_modes;
    assert!(modes.contains(rustix::termios::LocalModes::ECHO));
}

#[test]
fn ctrl_c_instead_of_an_answer_takes_nothing() {
    let here = tempdir().expect("a folder");
    let (mut sender, ticket, receiver, mut terminal) = at_the_prompt(here.path());
    terminal.type_line(&ticket);
    terminal.wait_for("Take it? [Y/n]");
    receiver.signal(rustix::process::Signal::INT);
    terminal.wait_for("downpour: cancelled");
    receiver.end().expect(130);
    sender.wait_for_words("interrupted");
    tree::assert_untouched(&here.path().join("into"));
}
