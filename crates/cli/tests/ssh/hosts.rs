//! This machine and another: the other is this one too, through an sshd of a test's own.

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
use crate::program::{Ended, Program, command, json};
use crate::sshd::{Setup, Sshd, at_home};
use crate::tools::DOWNPOUR;
use crate::tree;

/// What was started for a transfer is gone by then when the transfer is over.
pub(crate) const GONE: Duration = Duration::from_secs(3);

/// Two machines, as a copy sees them. A test that leaves a process behind on either fails.
pub(crate) struct Hosts {
    here: TempDir,
    pub(crate) client: Client,
    pub(crate) sshd: Sshd,
    pub(crate) network: Option<Network>,
}

impl Hosts {
    /// Joined by the loopback interface. The other one is called `there` and has the program.
    pub(crate) fn start() -> Self {
        Self::with(Setup { path: Some(&path_with_downpour()), ..Setup::default() }, None)
    }

    /// Joined by a cable.
    pub(crate) fn with_cable() -> Self {
        let network = Network::start();
        let path = path_with_downpour();
        let setup = Setup { path: Some(&path), network: Some(&network), ..Setup::default() };
        let sshd = Sshd::with(setup);
        Self::of(sshd, Some(network))
    }

    /// Set up as a test needs it.
    pub(crate) fn with(setup: Setup<'_>, network: Option<Network>) -> Self {
        Self::of(Sshd::with(setup), network)
    }

    fn of(sshd: Sshd, network: Option<Network>) -> Self {
        let here = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a folder");
        Self { here, client: Client::of(&[("there", &sshd)]), sshd, network }
    }

    /// A path on this side.
    pub(crate) fn here(&self, name: impl AsRef<Path>) -> PathBuf {
        self.here.path().join(name)
    }

    /// A path on the other side.
    pub(crate) fn there(&self, name: impl AsRef<Path>) -> PathBuf {
        self.sshd.home().join(name)
    }

    /// `downpour COMMAND`, which finds the other side, with nothing on stdin.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.command_by(name, &self.client.words())
    }

    /// The same with this ssh.
    pub(crate) fn command_by(&self, name: &str, ssh: &str) -> Command {
        let program = command([name, "--ssh", ssh]);
        let mut command = match &self.network {
            Some(network) => network.near(DOWNPOUR),
            None => Command::new(DOWNPOUR),
        };
        command.args(program.get_args()).current_dir(self.here.path());
        for (variable, value) in program.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        // By this what it leaves behind is found.
        command.env("HOME", self.here.path());
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

    /// The processes of the program over there.
    pub(crate) fn remote_processes(&self) -> Vec<Pid> {
        let is_program = |arguments: &[String]| matches!(arguments, [program, task, ..] if program.ends_with("downpour") && task == "remote");
        let processes = at_home(&self.sshd.home()).into_iter();
        processes.filter(|(_, arguments)| is_program(arguments)).map(|(process, _)| process).collect()
    }

    /// The program and its ssh on this side.
    pub(crate) fn local_processes(&self) -> Vec<Pid> {
        at_home(self.here.path()).into_iter().map(|(process, _)| process).collect()
    }

    /// Kills the program over there, and leaves it no time for a word.
    pub(crate) fn kill_remote(&self) {
        self.signal_remote(Signal::KILL);
    }

    /// Sends a signal to the program over there.
    pub(crate) fn signal_remote(&self, signal: Signal) {
        let processes = self.remote_processes();
        assert!(!processes.is_empty(), "nothing runs over there");
        for process in processes {
            kill_process(process, signal).expect("a process to signal");
        }
    }

    /// Panics unless everything over there ends soon.
    #[track_caller]
    pub(crate) fn assert_nothing_runs_there(&self) {
        assert_empty("over there", || at_home(&self.sshd.home()));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Before sshd goes, which ends what was started through it.
        if !thread::panicking() {
            self.assert_nothing_runs_there();
            assert_empty("here", || at_home(self.here.path()));
        }
    }
}

/// Panics unless there are no processes soon.
#[track_caller]
fn assert_empty(place: &str, processes: impl Fn() -> Vec<(Pid, Vec<String>)>) {
    let deadline = Instant::now() + GONE;
    loop {
        let left = processes();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{place} are left: {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A search path with the program in it.
pub(crate) fn path_with_downpour() -> String {
    format!("{}:/usr/bin:/bin", Path::new(DOWNPOUR).parent().expect("a folder").display())
}

/// `there:PATH`, of any bytes.
pub(crate) fn at(path: impl AsRef<OsStr>) -> OsString {
    let mut location = OsString::from("there:");
    location.push(path);
    location
}

/// A name that no shell leaves alone.
pub(crate) fn odd_name() -> &'static Path {
    Path::new(OsStr::from_bytes(b" a 'b' \"c\"\n$(touch x) `y` \\ \xff\xfe;:"))
}

/// A file that takes a while at [`SLOWLY`]: 3 s.
pub(crate) fn large_file(path: &Path) -> PathBuf {
    tree::file(path, 24_000_000)
}

/// Slow enough to stop [`large_file`] in the middle.
pub(crate) const SLOWLY: [&str; 2] = ["--limit", "64M"];

/// Waits until so many bytes of files are said to be across; how many they are in fact.
pub(crate) fn wait_for_bytes(program: &mut Program, bytes: u64) -> u64 {
    let bytes_of = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["type"] == "progress").then(|| line["bytes"].as_u64().expect("a number"))
    };
    let line = program.wait_for("enough bytes", |line| bytes_of(line).is_some_and(|across| across >= bytes));
    bytes_of(&line).expect("progress")
}

/// The summary of `--json`.
#[track_caller]
pub(crate) fn summary(ended: &Ended) -> Value {
    let last = json(&ended.stdout).pop().expect("a line");
    assert_eq!(last["type"], "summary", "{last}");
    last
}

/// The names beneath a folder that has to be there, temporary ones among them.
#[track_caller]
pub(crate) fn assert_holds_only(folder: &Path, names: &[&str]) {
    let expected: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    assert_eq!(tree::names(folder), expected, "in {}", folder.display());
}

/// Makes a folder.
pub(crate) fn make(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder");
    folder.to_owned()
}
