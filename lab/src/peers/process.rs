//! A program that takes part in a transfer.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::clock;
use crate::testbed::Host;

/// The most bytes shown of a program's last output.
const MAX_QUOTED_BYTES: u64 = 2000;

/// The destination of a program's stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdout {
    /// The log, like its stderr.
    Log,
    /// [`Process::line`] reads them.
    Read,
}

/// A running program. It is killed when this value is dropped, with all processes that it started.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    child: Child,
    pid: Pid,
    /// Readable once the program has exited.
    end: OwnedFd,
    lines: Option<BufReader<ChildStdout>>,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` on `host`; its output goes to the file `log`.
    pub(super) fn start(host: &Host, mut command: Command, stdout: Stdout, log: PathBuf) -> io::Result<Self> {
        let program = PathBuf::from(command.get_program());
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stderr(file.try_clone()?);
        match stdout {
            Stdout::Log => command.stdout(file),
            Stdout::Read => command.stdout(Stdio::piped()),
        };
        let mut child = host.spawn(command)?;
        let pid = Pid::from_child(&child);
        let end = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            // It would run unobserved.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let lines = child.stdout.take().map(BufReader::new);
        Ok(Self { name, child, pid, end, lines, log, status: None })
    }

    /// Returns its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Waits for its exit status, soon after the end of its output.
    pub(super) fn settled(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// Waits for the next printed line; `None` at the end.
    pub(super) fn line(&mut self) -> io::Result<Option<String>> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            self.lines = None;
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// Returns whether [`Process::line`] can return a line without waiting.
    pub(super) fn is_readable(&self) -> bool {
        let Some(lines) = &self.lines else { return false };
        let mut event = [PollFd::from_borrowed_fd(lines.get_ref().as_fd(), PollFlags::IN)];
        !lines.buffer().is_empty() || poll(&mut event, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Returns the end of its output, in one line.
    pub(super) fn last_output(&self) -> String {
        let read = || {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(MAX_QUOTED_BYTES)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            io::Result::Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ").replace(char::is_control, " ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // All of these fail only for processes that have ended. A daemon's children may have left its group, so they
        // are looked up while their parents are still alive. The number of a process that was waited for may have been
        // reused by now.
        if self.status.is_none() {
            let below = descendants(self.pid);
            let _ = kill_process_group(self.pid, Signal::KILL);
            for process in below {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

/// Waits until one of the processes exits, `read` prints output, or the clock reaches `deadline`.
pub(super) fn wait(read: Option<&Process>, processes: &[&Process], deadline: Duration) -> io::Result<()> {
    if read.is_some_and(Process::is_readable) {
        return Ok(());
    }
    let left = deadline.saturating_sub(clock::now());
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    // Descriptors of exited processes stay readable: waiting for them would return at once.
    let under_way = processes.iter().filter(|process| process.status.is_none());
    let mut events: Vec<_> = under_way.map(|process| PollFd::new(&process.end, PollFlags::IN)).collect();
    if let Some(lines) = read.and_then(|process| process.lines.as_ref()) {
        events.push(PollFd::from_borrowed_fd(lines.get_ref().as_fd(), PollFlags::IN));
    }
    match poll(&mut events, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the descendants of a process.
fn descendants(of: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes: Vec<(Pid, Pid)> =
        entries.filter_map(|entry| parent(&fs::read_to_string(entry.path().join("stat")).ok()?)).collect();
    let (mut below, mut parents) = (Vec::new(), vec![of]);
    while let Some(parent) = parents.pop() {
        for (process, _) in processes.iter().filter(|(_, its)| *its == parent) {
            parents.push(*process);
            below.push(*process);
        }
    }
    below
}

/// Parses a process and its parent from a line such as `12 (name) S 1 ...` (proc_pid_stat(5)).
fn parent(stat: &str) -> Option<(Pid, Pid)> {
    let (process, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let pid = |text: &str| Pid::from_raw(text.parse().ok()?);
    Some((pid(process)?, pid(rest.split(' ').nth(1)?)?))
}
