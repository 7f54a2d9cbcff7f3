//! Completions and manual pages.

use std::fs;

use tempfile::tempdir;

use crate::program::{arguments, downpour};

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
fn the_manual_page_names_every_command_and_exit_code() {
    let page = downpour(["man"]).end().expect(0).stdout;
    for command in COMMANDS {
        assert!(page.contains(&format!("downpour\\-{command}(1)")), "no {command} in {page}");
    }
    assert!(page.contains("75  stopped by SIGTERM") && !page.contains("remote(1)"), "{page}");
    assert!(page.contains("ipv4 = true\n.br\nThe first of these"), "lines of the help are not filled: {page}");
    assert!(!page.contains("ciphers:"), "the page is the same everywhere: {page}");
}

#[test]
fn every_command_has_a_manual_page() {
    let here = tempdir().expect("a folder");
    let folder = here.path().join("man1");
    downpour(arguments!["man", folder]).end().expect(0);
    for command in COMMANDS {
        let page = fs::read_to_string(folder.join(format!("downpour-{command}.1"))).expect(command);
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(fs::metadata(folder.join("downpour.1")).expect("the page of the program").len() > 1000);
    assert!(!folder.join("downpour-remote.1").exists());
}
