//! Completions and manual pages.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use tempfile::tempdir;

use crate::program::{Program, arguments, command, downpour};
use crate::terminal::Terminal;

/// The public commands.
pub(crate) const COMMANDS: [&str; 16] = [
    "cp",
    "sync",
    "send",
    "recv",
    "verify",
    "doctor",
    "pipe",
    "tunnel",
    "proxy",
    "bootstrap",
    "clean",
    "status",
    "demo",
    "profile",
    "completions",
    "man",
];

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = downpour(["completions", shell]).end().expect(0).stdout;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
        assert!(script.contains("retry-for"), "{shell} does not know --retry-for");
    }
    downpour(["completions", "csh"]).end().expect(2);
}

#[test]
fn man_names_every_command_and_exit_code() {
    let page = downpour(["man"]).end().expect(0).stdout;
    for command in COMMANDS {
        assert!(page.contains(&format!("downpour\\-{command}(1)")), "no {command} in {page}");
    }
    assert!(page.contains("75  stopped by SIGTERM") && !page.contains("remote(1)"), "{page}");
    assert!(page.contains("ipv4 = true\n.br\nThe first of these"), "lines of the help are not filled: {page}");
    assert!(!page.contains("ciphers:"), "the page is the same everywhere: {page}");
}

#[test]
fn man_write_makes_every_page() {
    let local = tempdir().expect("a directory");
    let directory = local.path().join("man1");
    downpour(arguments!["man", "--write", directory]).end().expect(0);
    for command in COMMANDS {
        let page = fs::read_to_string(directory.join(format!("downpour-{command}.1"))).expect(command);
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(fs::metadata(directory.join("downpour.1")).expect("the page of the program").len() > 1000);
    assert!(!directory.join("downpour-remote.1").exists());
}

#[test]
fn man_shown_on_terminal_else_printed() {
    let page = downpour(["man", "cp"]).end().expect(0).stdout;
    assert!(page.contains(".TH downpour-cp 1") && page.contains("retry\\-for"), "{page}");
    let page = downpour(["man", "profile", "show"]).end().expect(0).stdout;
    assert!(page.contains(".TH downpour-profile-show 1"), "{page}");
    downpour(["man", "/tmp"]).end().expect_line(2, "unknown command \"/tmp\"");
    downpour(["man", "remote"]).end().expect_line(2, "unknown command");
    let local = tempdir().expect("a directory");
    let (mut terminal, shown) = shown_by("echo \"shown: $1 $(head -c 20 \"$2\" | wc -c)\"", local.path());
    terminal.wait_for("shown: -l 20");
    shown.end().expect(0);
    // A pager, for which Ctrl-C is meant.
    let (mut terminal, shown) = shown_by("echo ready; read line; echo \"done: $line\"", local.path());
    terminal.wait_for("ready");
    shown.signal(Signal::INT);
    terminal.type_line("q");
    terminal.wait_for("done: q");
    shown.end().expect(0);
}

#[test]
fn man_missing_program_shows_help() {
    let local = tempdir().expect("a directory");
    for script in ["exit 3", ""] {
        let (mut terminal, shown) = shown_by(script, local.path());
        terminal.wait_for("Usage: downpour cp");
        assert!(!terminal.shown.contains(".TH"), "{}", terminal.shown);
        // An unread terminal fills up and blocks.
        drop(terminal);
        shown.end();
    }
}

#[test]
fn man_global_options_have_text() {
    let page = downpour(["man"]).end().expect(0).stdout;
    assert!(page.contains("Ignore the configuration file") && page.contains(".SH NOTES"), "{page}");
    let page = downpour(["man", "cp"]).end().expect(0).stdout;
    assert!(page.contains(".SH EXAMPLES\n.ad l\n  downpour cp"), "{page}");
}

/// Starts `man cp` on a terminal, where `man` is this script, or cannot be found if it is empty.
fn shown_by(script: &str, local: &Path) -> (Terminal, Program) {
    let man = local.join("man");
    fs::write(&man, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&man, Permissions::from_mode(if script.is_empty() { 0o600 } else { 0o700 })).expect("a mode");
    let (terminal, stdin, stdout) = Terminal::open();
    let mut command = command(["man", "cp"]);
    let path = if script.is_empty() { String::new() } else { std::env::var("PATH").unwrap_or_default() };
    command.env("PATH", format!("{}:{path}", local.display())).stdin(stdin).stdout(Stdio::from(stdout));
    (terminal, Program::start(command))
}

#[test]
fn help_and_version_subcommands() {
    let output = |words: &[&str]| downpour(words).end().expect(0).stdout;
    assert_eq!(output(&["help"]), output(&["--help"]));
    assert_eq!(output(&["help", "cp"]), output(&["cp", "--help"]));
    assert_eq!(output(&["help", "profile", "show"]), output(&["profile", "show", "--help"]));
    assert_eq!(output(&["version"]), output(&["--version"]));
    downpour(["help", "nonsense"]).end().expect(2);
}
