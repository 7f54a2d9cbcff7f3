//! The configuration file and the environment.

use std::fs;

use tempfile::tempdir;

use crate::program::{Program, arguments, command};
use crate::tree;

#[test]
fn the_file_is_found_read_and_named() {
    let here = tempdir().expect("a folder");
    let folder = here.path().join("downpour");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), "# mine\nlimt = '1M'\n").expect("a file");
    let with_file = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env_remove("DOWNPOUR_CONFIG").env("XDG_CONFIG_HOME", here.path());
        Program::start(command)
    };
    let ended = with_file(&["send", "/no/such/file"]).end().expect_line(2, "did you mean \"limit\"?");
    assert!(ended.stderr.contains("downpour/config.toml:2: "), "{}", ended.stderr);
    with_file(&["send", "/no/such/file", "--config", "none"]).end().expect_line(3, "/no/such/file");
}

#[test]
fn a_variable_with_a_slip_is_told() {
    let mut command = command(["send", "/no/such/file"]);
    command.env("DOWNPOUR_LIMT", "1M");
    let ended = Program::start(command).end().expect(3);
    assert!(ended.stderr.contains("warning: DOWNPOUR_LIMT does nothing: did you mean"), "{}", ended.stderr);
}

#[test]
fn the_environment_counts() {
    let mut command = command(["send", "/no/such/file"]);
    command.env("DOWNPOUR_JSON", "true");
    let ended = Program::start(command).end().expect(3);
    assert!(ended.stdout.contains("\"type\":\"error\""), "{}", ended.stdout);
}

/// A pattern typed for one run must not lift the protection from `--delete` that the configuration gives.
#[test]
fn what_the_file_excludes_stays_excluded_whatever_is_typed() {
    let here = tempdir().expect("a folder");
    fs::write(here.path().join("config"), "exclude = ['.snapshots/', '/only-*']\n").expect("a file");
    let (source, target) = (here.path().join("source"), here.path().join("target"));
    fs::create_dir(&source).expect("a folder");
    tree::file(&source.join("new"), 10);
    let sync = |more: &[&str]| {
        for folder in [".snapshots", "old"] {
            fs::create_dir_all(target.join(folder)).expect("folders");
            tree::file(&target.join(folder).join("kept"), 10);
        }
        tree::file(&target.join("scratch.tmp"), 10);
        let mut command = command(arguments!["sync", "--delete", source.join(""), target]);
        command.args(more);
        command.env("DOWNPOUR_CONFIG", here.path().join("config"));
        Program::start(command).end().expect(0);
        tree::names(&target).iter().map(|name| name.display().to_string()).collect::<Vec<_>>()
    };
    let typed = ["--exclude", "*.tmp"];
    assert_eq!(sync(&typed), [".snapshots", "new", "scratch.tmp"]);
    assert!(target.join(".snapshots/kept").exists());
    assert_eq!(sync(&[]), [".snapshots", "new"]);
    assert_eq!(sync(&["--exclude", "*.tmp", "--exclude", ""]), ["new", "scratch.tmp"]);
    assert_eq!(sync(&["--exclude", "*.tmp", "--no-config"]), ["new", "scratch.tmp"]);
}
