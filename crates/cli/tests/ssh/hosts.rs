//! The local host and a remote one, which is the local host through a separate sshd.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::network::Network;
use crate::program::{Ended, Program, command, json, poll_within};
use crate::sshd::{Setup, Sshd, at_home};
use crate::tools::DOWNPOUR;
use crate::tree;

/// Processes of a transfer end within this time after it.
pub(crate) const GONE: Duration = Duration::from_secs(3);

/// The two hosts of a copy. A test fails if it leaves a process on either.
pub(crate) struct Hosts {
    local: TempDir,
    /// Whether a transfer writes the path cache depends on its duration, so the cache is not among the files.
    cache: TempDir,
    pub(crate) client: Client,
    pub(crate) sshd: Sshd,
    pub(crate) network: Option<Network>,
}

impl Hosts {
    /// Creates hosts joined by the loopback interface. The remote one is called `there` and has the program.
    pub(crate) fn start() -> Self {
        Self::with(Setup { path: Some(&path_with_downpour()), ..Setup::default() }, None)
    }

    /// Creates hosts joined by a virtual cable.
    pub(crate) fn with_cable() -> Self {
        let network = Network::start();
        let path = path_with_downpour();
        let setup = Setup { path: Some(&path), network: Some(&network), ..Setup::default() };
        let sshd = Sshd::with(setup);
        Self::of(sshd, Some(network))
    }

    /// Creates hosts with this setup.
    pub(crate) fn with(setup: Setup<'_>, network: Option<Network>) -> Self {
        Self::of(Sshd::with(setup), network)
    }

    /// Creates hosts with this sshd.
    pub(crate) fn of(sshd: Sshd, network: Option<Network>) -> Self {
        let local = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a directory");
        let cache = tempfile::tempdir().expect("a directory");
        Self { local, cache, client: Client::of(&[("there", &sshd)]), sshd, network }
    }

    /// Returns a path on the local host.
    pub(crate) fn local(&self, name: impl AsRef<Path>) -> PathBuf {
        self.local.path().join(name)
    }

    /// Returns a path on the remote host.
    pub(crate) fn remote(&self, name: impl AsRef<Path>) -> PathBuf {
        self.sshd.home().join(name)
    }

    /// Returns `downpour COMMAND`, set up to reach the remote host, with an empty stdin.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.command_by(name, &self.client.words())
    }

    /// Same as [`Self::command`], with this ssh.
    pub(crate) fn command_by(&self, name: &str, ssh: &str) -> Command {
        let program = command([name, "--ssh", ssh]);
        let mut command = match &self.network {
            Some(network) => network.near(DOWNPOUR),
            None => Command::new(DOWNPOUR),
        };
        command.args(program.get_args()).current_dir(self.local.path());
        for (variable, value) in program.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        // Identifies processes that it leaves behind.
        command.env("HOME", self.local.path()).env("XDG_CACHE_HOME", self.cache.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `downpour cp` in the background.
    pub(crate) fn start_cp<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Program {
        let mut command = self.command("cp");
        command.args(arguments);
        Program::start(command)
    }

    /// Runs `downpour cp` to its end.
    pub(crate) fn cp<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ended {
        self.start_cp(arguments).end()
    }

    /// Runs another command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, name: &str, arguments: impl IntoIterator<Item = S>) -> Ended {
        let mut command = self.command(name);
        command.args(arguments);
        Program::start(command).end()
    }

    /// Returns the processes of the program on the remote host.
    pub(crate) fn remote_processes(&self) -> Vec<Pid> {
        let is_program = |arguments: &[String]| matches!(arguments, [program, task, ..] if program.ends_with("downpour") && task == "remote");
        let processes = at_home(&self.sshd.home()).into_iter();
        processes.filter(|(_, arguments)| is_program(arguments)).map(|(process, _)| process).collect()
    }

    /// Returns the processes of the program and its ssh on the local host.
    pub(crate) fn local_processes(&self) -> Vec<Pid> {
        at_home(self.local.path()).into_iter().map(|(process, _)| process).collect()
    }

    /// Kills the program on the remote host.
    pub(crate) fn kill_remote(&self) {
        self.signal_remote(Signal::KILL);
    }

    /// Sends a signal to the program on the remote host.
    pub(crate) fn signal_remote(&self, signal: Signal) {
        let processes = self.remote_processes();
        assert!(!processes.is_empty(), "nothing runs on the remote host");
        for process in processes {
            kill_process(process, signal).expect("a process to signal");
        }
    }

    /// Panics unless all processes on the remote host end soon.
    #[track_caller]
    pub(crate) fn assert_remote_idle(&self) {
        assert_empty("on the remote host", || at_home(&self.sshd.home()));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Must precede the end of sshd, which ends all processes started through it.
        if !thread::panicking() {
            self.assert_remote_idle();
            assert_empty("on the local host", || at_home(self.local.path()));
        }
    }
}

/// Panics unless the list of processes becomes empty soon.
#[track_caller]
fn assert_empty(place: &str, processes: impl Fn() -> Vec<(Pid, Vec<String>)>) {
    let begun = Instant::now();
    poll_within(2 * GONE, place, || {
        let left = processes();
        assert!(left.is_empty() || begun.elapsed() < GONE, "{place}, these processes still run: {left:?}");
        left.is_empty().then_some(())
    });
}

/// Returns a search path that includes the program.
pub(crate) fn path_with_downpour() -> String {
    format!("{}:/usr/bin:/bin", Path::new(DOWNPOUR).parent().expect("a directory").display())
}

/// Returns `there:PATH`; the path may contain any bytes.
pub(crate) fn at(path: impl AsRef<OsStr>) -> OsString {
    let mut location = OsString::from("there:");
    location.push(path);
    location
}

/// Returns a name that every shell would mangle.
pub(crate) fn odd_name() -> &'static Path {
    Path::new(OsStr::from_bytes(b" a 'b' \"c\"\n$(touch x) `y` \\ \xff\xfe;:"))
}

/// Creates a file whose transfer takes 3 s at [`SLOWLY`].
pub(crate) fn large_file(path: &Path) -> PathBuf {
    tree::file(path, 24_000_000)
}

/// Rate limit that allows stopping [`large_file`] in the middle.
pub(crate) const SLOWLY: [&str; 2] = ["--limit", "64M"];

/// Waits until this many file bytes are reported as transferred. Returns the reported number.
pub(crate) fn wait_for_bytes(program: &mut Program, bytes: u64) -> u64 {
    let bytes_of = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["type"] == "progress").then(|| line["bytes"].as_u64().expect("a number"))
    };
    let line = program.wait_for("enough bytes", |line| bytes_of(line).is_some_and(|across| across >= bytes));
    bytes_of(&line).expect("progress")
}

/// Returns the summary of `--json`.
#[track_caller]
pub(crate) fn summary(ended: &Ended) -> Value {
    let last = json(&ended.stdout).pop().expect("a line");
    assert_eq!(last["type"], "summary", "{last}");
    last
}

/// Checks the names beneath an existing directory, including temporary ones.
#[track_caller]
pub(crate) fn assert_holds_only(directory: &Path, names: &[&str]) {
    let expected: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    assert_eq!(tree::names(directory), expected, "in {}", directory.display());
}

/// Creates a directory.
pub(crate) fn make(directory: &Path) -> PathBuf {
    fs::create_dir_all(directory).expect("a directory");
    directory.to_owned()
}
