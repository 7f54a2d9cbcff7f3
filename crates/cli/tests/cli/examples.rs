//! Runs the commands of a document in the home of a new user. ssh is a script that logs in to the local host.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::program::{Ended, Program, copy_program};
use crate::tree;
use crate::tunnelling::echo_server;

/// Logs in to the local host with another home, or runs ProxyCommand with the port of a server of the test.
const SSH: &str = r#"#!/bin/sh
case " $* " in *' -G '*) exit;; esac
proxy=none
for word; do case $word in ProxyCommand=*) proxy=${word#*=};; esac; done
[ "$proxy" = none ] || exec sh -c "$(echo "$proxy" | sed "s/%r/me/; s/%n/far/; s/%p/$SERVER/")"
for command; do :; done
cd "$FAR_HOME" || exit
export HOME="$FAR_HOME"
# In a process of its own, which can outlive the login, as with ssh.
sh -c "$command"
"#;

/// How a test treats a command of a document.
pub(crate) enum Example {
    /// The function runs the command and checks its effect.
    Run(fn(&Machines, &str)),
    /// The command is not run, for this reason.
    NotRun(&'static str),
}

/// A local host, and a remote one that ssh reaches by any name.
pub(crate) struct Machines {
    directory: TempDir,
    server: u16,
}

impl Machines {
    fn new() -> Self {
        let machines = Self { directory: tempfile::tempdir().expect("a directory"), server: echo_server() };
        for directory in ["bin", "run", "home/data", "far/incoming", "far/data"] {
            fs::create_dir_all(machines.path(directory)).expect("a directory");
        }
        copy_program(&machines.path("bin/downpour"));
        fs::write(machines.path("bin/ssh"), SSH).expect("a script");
        fs::set_permissions(machines.path("bin/ssh"), Permissions::from_mode(0o755)).expect("a mode");
        tree::directory(&machines.path("home/photos"));
        tree::file(&machines.path("home/notes.txt"), 1_000);
        tree::file(&machines.path("home/huge.tar"), 3_000_000);
        tree::file(&machines.path("far/data/new"), 2_000);
        tree::file(&machines.path("home/data/old"), 2_000);
        machines
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a command in the user's home.
    pub(crate) fn start(&self, line: &str) -> Program {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {line}")]).current_dir(self.path("home")).env_clear();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        shell.env("PATH", path).env("HOME", self.path("home")).env("FAR_HOME", self.path("far"));
        shell.env("XDG_RUNTIME_DIR", self.path("run")).env("SERVER", self.server.to_string());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(shell)
    }

    /// Runs a command with this stdin. Panics unless it succeeds.
    #[track_caller]
    pub(crate) fn run(&self, line: &str, input: &str) -> Ended {
        let mut program = self.start(line);
        // Not all commands read it.
        _ = program.stdin().write_all(input.as_bytes());
        let ended = program.end();
        assert_eq!(ended.status.code(), Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
        ended
    }

    /// Runs a command that copies `photos` to `far:incoming/`.
    pub(crate) fn copy_photos(&self, line: &str) {
        _ = fs::remove_dir_all(self.path("far/incoming/photos"));
        self.run(line, "");
        self.assert_same("far/incoming/photos", "home/photos");
    }

    /// Runs a command that copies `huge.tar` to `far:`.
    pub(crate) fn copy_huge(&self, line: &str) {
        _ = fs::remove_file(self.path("far/huge.tar"));
        self.run(line, "");
        self.assert_same("far/huge.tar", "home/huge.tar");
    }

    /// Runs `doctor`.
    pub(crate) fn diagnose(&self, line: &str) {
        let shown = self.run(line, "").stdout;
        assert!(shown.lines().any(|line| line.starts_with("UDP")), "{shown}");
    }

    /// Panics unless two files or directories have the same names and bytes.
    #[track_caller]
    pub(crate) fn assert_same(&self, a: &str, b: &str) {
        assert!(contents(&self.path(a)) == contents(&self.path(b)), "{a} differs from {b}");
    }
}

/// Returns the files at and below a path with their bytes, without the path itself.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        let name = next.strip_prefix(path).expect("below it").to_owned();
        if next.is_symlink() {
            found.push((name, fs::read_link(&next).expect("a link").into_os_string().into_encoded_bytes()));
        } else if next.is_dir() {
            open.extend(fs::read_dir(&next).expect("a directory").map(|entry| entry.expect("an entry").path()));
        } else {
            found.push((name, fs::read(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()))));
        }
    }
    assert!(!found.is_empty(), "{} is empty", path.display());
    found.sort();
    found
}

/// Returns the lines between the fences of a document, without comments and indented lines.
pub(crate) fn commands(document: &'static str) -> Vec<&'static str> {
    let blocks = document.split("```\n").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with(' '));
    lines.map(|line| line.split("  #").next().unwrap_or(line).trim()).collect()
}

/// Runs the lines of a document in their order. Panics if a line has no example, or an example no line.
pub(crate) fn run_all(lines: &[&str], examples: &[(&str, Example)]) {
    let stale: Vec<_> = examples.iter().map(|(name, _)| name).filter(|name| !lines.contains(name)).collect();
    let missing: Vec<_> = lines.iter().filter(|line| examples.iter().all(|(name, _)| name != *line)).collect();
    assert!(
        missing.is_empty(),
        "without an example: {missing:?}; add one, or list why it is not run; stale: {stale:?}"
    );
    assert!(stale.is_empty(), "examples whose line is no longer in the document: {stale:?}");
    let machines = Machines::new();
    for line in lines {
        match examples.iter().find(|(name, _)| name == line) {
            Some((_, Example::Run(run))) => run(&machines, line),
            Some((_, Example::NotRun(reason))) => println!("NOT RUN: {line}: {reason}"),
            None => {}
        }
    }
}
