//! The configuration file and the environment, as the program finds them.

use std::fs;

use tempfile::tempdir;

use crate::program::{Program, command};

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
