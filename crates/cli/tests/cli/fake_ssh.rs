//! A remote host without sshd: a script replaces ssh and runs the commands locally, in a separate home.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::program::{Ended, Program, command, poll_within, with_default_signals};

/// How long processes may take to start or end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the last argument, as ssh does. Prints no addresses of the host.
const SSH: &str = r#"#!/bin/sh
case " $* " in *' -G '*) exit;; esac
for command; do :; done
cd "$FAR_HOME" || exit
export HOME="$FAR_HOME"
"#;

/// The remote host `far`.
pub(crate) struct FakeHost {
    directory: TempDir,
}

impl FakeHost {
    /// Creates a host that runs the requested commands.
    pub(crate) fn new() -> Self {
        Self::with_login(r#"exec sh -c "$command""#)
    }

    /// Creates a host whose logins run this line of shell; `$command` is the requested command.
    pub(crate) fn with_login(line: &str) -> Self {
        with_default_signals();
        let far = Self { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir(far.home()).expect("a home");
        fs::create_dir(far.runtime()).expect("a directory");
        symlink(env!("CARGO_BIN_EXE_downpour"), far.program()).expect("a link");
        fs::write(far.ssh(), format!("{SSH}{line}\n")).expect("a script");
        fs::set_permissions(far.ssh(), Permissions::from_mode(0o700)).expect("a mode");
        far
    }

    fn ssh(&self) -> PathBuf {
        self.directory.path().join("ssh")
    }

    /// The remote program: a link in the test's directory, by which command lines identify the processes of the test.
    fn program(&self) -> PathBuf {
        self.directory.path().join("downpour")
    }

    /// Returns the directory for the sockets of local tunnels.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    /// Returns the directory in which commands start.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Returns a path on the remote host.
    pub(crate) fn remote(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home().join(name)
    }

    /// Returns `downpour COMMAND ARGUMENTS`, set up to reach `far` and not started yet.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, name: &str, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = command([OsStr::new(name), OsStr::new("--ssh"), self.ssh().as_os_str()]);
        command.arg("--remote-bin").arg(self.program()).args(arguments);
        command.env("FAR_HOME", self.home()).env("XDG_RUNTIME_DIR", self.runtime());
        command
    }

    /// Returns the local and remote processes of this test with `word` among their first two arguments; all if it is
    /// empty. An ordinary user cannot read the environment of downpour, which is not dumpable, so its command line
    /// identifies it.
    pub(crate) fn processes(&self, word: &str) -> Vec<Pid> {
        let directory = self.directory.path().as_os_str().as_bytes();
        let home = [b"FAR_HOME=", self.home().as_os_str().as_bytes()].concat();
        // A process may end while it is inspected.
        let parts = |path: PathBuf| fs::read(path).unwrap_or_default();
        let runs = |entry: fs::DirEntry| {
            let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let arguments = parts(entry.path().join("cmdline"));
            let is_named = arguments.windows(directory.len()).any(|part| part == directory);
            let environment = parts(entry.path().join("environ"));
            let has_home = environment.split(|byte| *byte == 0).any(|variable| variable == home);
            (is_named || has_home).then_some(())?;
            let mut first = arguments.split(|byte| *byte == 0).take(2);
            (word.is_empty() || first.any(|argument| argument == word.as_bytes())).then_some(process)
        };
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(runs).collect()
    }

    /// Waits until [`Self::processes`] finds some. Panics if it finds none while `is_due` is true.
    #[track_caller]
    pub(crate) fn wait_for_processes(&self, word: &str, is_due: impl Fn() -> bool) -> Vec<Pid> {
        poll_within(PATIENCE, &format!("a process with the word {word:?}"), || {
            let found = self.processes(word);
            (!found.is_empty() || !is_due()).then_some(found)
        })
    }

    /// Panics unless every ssh and its descendants end well before the 1000 s of a sleeping login.
    #[track_caller]
    pub(crate) fn assert_empty(&self, context: &str) {
        let begun = Instant::now();
        poll_within(2 * PATIENCE, context, || {
            let left = self.processes("");
            if begun.elapsed() >= PATIENCE {
                let line = |pid: &Pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
                let lines: Vec<_> = left.iter().filter_map(|pid| line(pid).ok()).collect();
                assert!(left.is_empty(), "{context}: these processes still run: {lines:?}");
            }
            left.is_empty().then_some(())
        });
    }

    /// Panics unless the process with this id ends soon.
    #[track_caller]
    pub(crate) fn assert_gone(&self, pid: &str) {
        let process = Path::new("/proc").join(pid.trim());
        poll_within(Duration::from_secs(3), &format!("{pid} has ended"), || (!process.exists()).then_some(()));
    }

    /// Runs [`Self::command`] to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, name: &str, arguments: impl IntoIterator<Item = S>) -> Ended {
        Program::start(self.command(name, arguments)).end()
    }
}
