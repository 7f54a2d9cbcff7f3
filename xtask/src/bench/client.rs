//! `downpour cp` and `sync` through an sshd of our own, over loopback or over a made-up network.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::program::{Guard, peak, start};
use super::scp::Server;
use crate::relayed_ssh::RELAY_LATE;
use xtask::failure::Failure;

/// How often a process is looked at.
const PERIOD: Duration = Duration::from_millis(10);

/// The program on the local host, and its way to find the one on the remote host.
pub(super) struct Client<'a> {
    program: &'a Path,
    server: &'a Server,
    remote: Remote,
    /// The directory of its output.
    directory: PathBuf,
}

/// A copy that went well.
pub(super) struct Run {
    pub(super) took: Duration,
    /// Peak resident memory in bytes: of the local and of the remote program.
    pub(super) peaks: [u64; 2],
    /// Objects of `--json`, and the text on stderr.
    printed: [String; 2],
}

impl<'a> Client<'a> {
    /// A client that may put files into `directory`.
    pub(super) fn new(program: &'a Path, server: &'a Server, directory: &Path) -> Result<Self, Failure> {
        Ok(Self::with(Remote::new(program, directory)?, program, server, directory))
    }

    /// A client that starts `remote` on the remote host.
    pub(super) fn with(remote: Remote, program: &'a Path, server: &'a Server, directory: &Path) -> Self {
        Self { program, server, remote, directory: directory.to_owned() }
    }

    /// `downpour cp` or `sync`, without the paths. `link` is the path to the host.
    pub(super) fn command(&self, name: &str, link: Option<&str>) -> Result<Command, Failure> {
        let mut ssh = Vec::new();
        if let Some(link) = link {
            let this = std::env::current_exe().map_err(Failure::at("this program"))?;
            ssh.extend([this.display().to_string(), "relayed-ssh".into(), "--link".into(), link.into(), "--".into()]);
        }
        ssh.push("ssh".to_owned());
        ssh.extend(self.server.options());
        let mut command = Command::new(self.program);
        command.args(["--config", "none", name, "--progress", "none", "--ssh", &ssh.join(" ")]);
        command.arg("--remote-bin").arg(&self.remote.program);
        Ok(command)
    }

    /// Runs it to its end, which must be a good one.
    pub(super) fn run(&self, command: &mut Command) -> Result<Run, Failure> {
        let files = ["stdout", "stderr"].map(|name| self.directory.join(name));
        let file = |path: &PathBuf| File::create(path).map_err(Failure::at(path.display()));
        command.stdin(Stdio::null()).stdout(file(&files[0])?).stderr(file(&files[1])?);
        let started = Instant::now();
        let mut child = Guard(command.spawn().map_err(Failure::at(self.program.display()))?);
        let (mut there, mut peaks) = (None, [0; 2]);
        let (status, took) = loop {
            if let Some(status) = child.0.try_wait().map_err(Failure::at("downpour"))? {
                break (status, started.elapsed());
            }
            there = there.or_else(|| self.remote.process());
            let sides = [Some(child.0.id()), there.map(|process| process.as_raw_nonzero().get().cast_unsigned())];
            for (highest, side) in peaks.iter_mut().zip(sides) {
                *highest = side.and_then(peak).unwrap_or_default().max(*highest);
            }
            thread::sleep(PERIOD);
        };
        let printed = files.map(|path| fs::read_to_string(path).unwrap_or_default());
        if !status.success() {
            return Err(failed(status, &printed[1]));
        }
        Ok(Run { took, peaks, printed })
    }

    /// Starts it, for a caller that observes it.
    pub(super) fn start(&self, command: &mut Command) -> Result<Guard, Failure> {
        let path = self.directory.join("stderr");
        command.stderr(File::create(&path).map_err(Failure::at(path.display()))?);
        Ok(Guard(start(command)?))
    }

    /// Waits for its exit, which must succeed; returns whether this machine was quick enough to be the link.
    pub(super) fn finish(&self, mut process: Guard) -> Result<bool, Failure> {
        let status = process.0.wait().map_err(Failure::at("downpour"))?;
        let said = fs::read_to_string(self.directory.join("stderr")).unwrap_or_default();
        if status.success() { Ok(!said.contains(RELAY_LATE)) } else { Err(failed(status, &said)) }
    }
}

fn failed(status: ExitStatus, said: &str) -> Failure {
    Failure::new(format_args!("downpour: {status}: {}", said.trim()))
}

impl Run {
    /// The summary that `--json` prints.
    pub(super) fn summary(&self) -> Result<Value, Failure> {
        let mut objects = self.printed[0].lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let summary = objects.next_back().filter(|object| object["type"] == "summary");
        summary.ok_or_else(|| Failure::new("downpour --json printed no summary"))
    }

    /// Whether this machine was quick enough to be the link.
    pub(super) fn is_on_time(&self) -> bool {
        !self.printed[1].contains(RELAY_LATE)
    }
}

/// The program on the remote host, under a name that no other process has.
pub(super) struct Remote {
    pub(super) program: PathBuf,
}

impl Remote {
    /// Makes the name in `directory`.
    pub(super) fn new(program: &Path, directory: &Path) -> Result<Self, Failure> {
        let name = directory.join("downpour-over-there");
        symlink(program, &name).map_err(Failure::at(name.display()))?;
        Ok(Self { program: name })
    }

    /// The process, while it runs.
    pub(super) fn process(&self) -> Option<Pid> {
        let wanted = [self.program.as_os_str().as_bytes(), b"\0remote\0"].concat();
        let is_it = |entry: &fs::DirEntry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted);
        let entry = fs::read_dir("/proc").ok()?.flatten().find(is_it)?;
        Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)
    }

    /// Sends SIGKILL; returns whether the process existed.
    pub(super) fn kill(&self) -> bool {
        self.process().is_some_and(|process| kill_process(process, Signal::KILL).is_ok())
    }
}
