//! What a person at a terminal is asked: the program runs with a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::tempdir;

use crate::program::{Program, arguments, command, downpour};
use crate::tree;

/// A terminal, seen from its user's side, and what it has shown so far.
struct Terminal {
    user: File,
    shown: String,
}

impl Terminal {
    /// A terminal, and two descriptors of the program's side.
    fn open() -> (Self, OwnedFd, OwnedFd) {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&user).expect("a terminal");
        unlockpt(&user).expect("a terminal");
        let name = ptsname(&user, Vec::new()).expect("its name").into_string().expect("a name");
        let program = File::options().read(true).write(true).open(name).expect("its other side");
        let again = program.try_clone().expect("a second descriptor");
        (Self { user: File::from(user), shown: String::new() }, program.into(), again.into())
    }

    /// Reads until `words` are there; panics at the end of the output.
    fn wait_for(&mut self, words: &str) {
        let mut buffer = [0; 4096];
        while !self.shown.contains(words) {
            match self.user.read(&mut buffer) {
                Ok(length) if length > 0 => self.shown += &String::from_utf8_lossy(&buffer[..length]),
                _ => panic!("no {words:?} in {:?}", self.shown),
            }
        }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.user, "{line}").expect("a terminal");
    }
}

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
