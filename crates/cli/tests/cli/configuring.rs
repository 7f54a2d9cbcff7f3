//! The configuration file and the environment.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use rustix::process::geteuid;
use tempfile::tempdir;

use crate::program::{Program, arguments, command};
use crate::tree;

#[test]
fn config_file_found_and_errors_name_it() {
    let local = tempdir().expect("a directory");
    let directory = local.path().join("downpour");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("config.toml"), "# mine\nlimt = '1M'\n").expect("a file");
    close(&directory, &directory.join("config.toml"));
    let with_file = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env_remove("DOWNPOUR_CONFIG").env("XDG_CONFIG_HOME", local.path());
        Program::start(command)
    };
    let ended = with_file(&["send", "/no/such/file"]).end().expect_line(2, "did you mean \"limit\"?");
    assert!(ended.stderr.contains("downpour/config.toml:2: "), "{}", ended.stderr);
    with_file(&["send", "/no/such/file", "--config", "none"]).end().expect_line(3, "/no/such/file");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Closes a configuration to others, whatever the umask of the tests.
fn close(directory: &Path, file: &Path) {
    set_mode(directory, 0o755);
    set_mode(file, 0o644);
}

/// A user who can change the file can run a program: by the key `ssh`, for example.
#[test]
fn config_writable_by_others_refused() {
    let local = tempdir().expect("a directory");
    let directory = local.path().join("home/.config/downpour");
    fs::create_dir_all(&directory).expect("directories");
    let (file, ran) = (directory.join("config.toml"), local.path().join("ran"));
    let evil = local.path().join("evil");
    fs::write(&evil, format!("#!/bin/sh\ncase \" $* \" in *' -G '*) exit;; esac\ntouch '{}'\n", ran.display()))
        .expect("a script");
    set_mode(&evil, 0o755);
    fs::write(&file, format!("ssh = '{}'\n", evil.display())).expect("a file");
    let home = local.path().join("home");
    let steps = [home.clone(), home.join(".config"), directory.clone(), file.clone()];
    let run = |named: Option<&str>| {
        let mut command = command(arguments!["cp", "far:x", local.path().join("to")]);
        command.env("HOME", &home).env_remove("XDG_CONFIG_HOME").env_remove("DOWNPOUR_CONFIG");
        match named {
            Some("DOWNPOUR_CONFIG") => drop(command.env("DOWNPOUR_CONFIG", &file)),
            Some(option) => drop(command.arg(option).arg(&file)),
            None => {}
        }
        Program::start(command).end()
    };
    for named in [None, Some("DOWNPOUR_CONFIG"), Some("--config")] {
        for step in &steps {
            close(&directory, &file);
            set_mode(&home.join(".config"), 0o755);
            set_mode(&home, 0o755);
            for open in [0o020, 0o002] {
                set_mode(step, 0o755 | open);
                let ended = run(named).expect_line(2, "is writable by other users");
                assert!(!ran.exists(), "{named:?} {step:?}");
                // The message ends with the command that corrects the modes.
                let (_, mend) = ended.stderr.trim().rsplit_once(": ").expect("a command");
                assert!(mend.starts_with("chmod go-w ") && mend.ends_with(step.to_str().expect("text")), "{mend}");
                let mended = std::process::Command::new("sh").args(["-c", mend]).status().expect("a shell");
                assert!(mended.success() && !run(named).stderr.contains("other users"), "{mend}");
                fs::remove_file(&ran).expect("what the user has configured is run");
            }
        }
    }
    if !geteuid().is_root() {
        return eprintln!("NOT RUN: files of other users, which only root can make");
    }
    for step in &steps {
        chown(step, Some(12345), None).expect("an owner");
        run(None).expect_line(2, "belongs to another user (uid 12345)");
        assert!(!ran.exists(), "{step:?}");
        chown(step, Some(0), None).expect("an owner");
    }
}

#[test]
fn config_misspelled_variable_warned() {
    let mut command = command(["send", "/no/such/file"]);
    command.env("DOWNPOUR_LIMT", "1M");
    let ended = Program::start(command).end().expect(3);
    assert!(ended.stderr.contains("warning: DOWNPOUR_LIMT has no effect: did you mean"), "{}", ended.stderr);
}

#[test]
fn config_environment_variable_applies() {
    let mut command = command(["send", "/no/such/file"]);
    command.env("DOWNPOUR_JSON", "true");
    let ended = Program::start(command).end().expect(3);
    assert!(ended.stdout.contains("\"type\":\"error\""), "{}", ended.stdout);
}

/// A pattern typed for one run must not lift the protection from `--delete` that the configuration gives.
#[test]
fn config_exclude_kept_beside_typed_exclude() {
    let local = tempdir().expect("a directory");
    fs::write(local.path().join("config"), "exclude = ['.snapshots/', '/only-*']\n").expect("a file");
    close(local.path(), &local.path().join("config"));
    let (source, target) = (local.path().join("source"), local.path().join("target"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("new"), 10);
    let sync = |more: &[&str]| {
        for directory in [".snapshots", "old"] {
            fs::create_dir_all(target.join(directory)).expect("directories");
            tree::file(&target.join(directory).join("kept"), 10);
        }
        tree::file(&target.join("scratch.tmp"), 10);
        let mut command = command(arguments!["sync", "--delete", source.join(""), target]);
        command.args(more);
        command.env("DOWNPOUR_CONFIG", local.path().join("config"));
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
