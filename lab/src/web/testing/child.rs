//! A run as a process of its own: this program with the command of a user.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::web::lock;

/// The most stored lines of its stderr, and the longest one.
const MOST_LINES: usize = 12;
const LONGEST_LINE: u64 = 2_000;
/// The time limit for a run to exit after each signal, when the program exits: a simulated run finishes its current
/// cases.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A run started by this program.
#[derive(Debug)]
pub(super) struct LabProcess {
    process: Child,
    /// A descriptor of the process, safe against reuse of its number.
    descriptor: OwnedFd,
    said: Arc<Mutex<VecDeque<String>>>,
    /// Whether it needs the machine for itself.
    pub(super) needs_quiet: bool,
    pub(super) jobs: NonZeroUsize,
    pub(super) begun: Instant,
    /// Cases settled before its start.
    pub(super) settled: usize,
    /// Whether it was interrupted.
    pub(super) is_stopping: bool,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub(super) struct ExitState {
    /// Its exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) said: Vec<String>,
}

impl LabProcess {
    /// Starts `run` for a plan, with results in a directory.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub(super) fn start(
        program: &Path,
        [plan, directory]: [&Path; 2],
        jobs: Option<NonZeroUsize>,
        needs_quiet: bool,
        settled: usize,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command.arg0(crate::NAME).arg("run").arg(plan).arg("--out").arg(directory);
        if let Some(jobs) = jobs {
            command.arg("--jobs").arg(jobs.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // In a group of its own: Ctrl-C in the terminal of this program must not interrupt it twice.
        let mut process = command.process_group(0).spawn()?;
        // It is not reaped yet, so the number is still its own.
        let descriptor = pidfd_open(Pid::from_child(&process), PidfdFlags::empty()).inspect_err(|_| {
            let _ = process.kill();
            let _ = process.wait();
        })?;
        let said = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = process.stderr.take() {
            let said = Arc::clone(&said);
            thread::spawn(move || listen(stderr, &said));
        }
        let jobs = jobs.unwrap_or(NonZeroUsize::MIN);
        Ok(Self { process, descriptor, said, needs_quiet, jobs, begun: Instant::now(), settled, is_stopping: false })
    }

    /// Interrupts it, as Ctrl-C does; stored records stay. A second interrupt aborts it.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        // An exited process needs no signal.
        let _ = pidfd_send_signal(&self.descriptor, Signal::INT);
    }

    /// Returns its end, if it has exited.
    pub(super) fn ended(&mut self) -> Option<ExitState> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(ExitState { code: status.code(), said: self.said() })
    }

    /// Returns its last lines on stderr.
    pub(super) fn said(&self) -> Vec<String> {
        lock(&self.said).iter().cloned().collect()
    }

    /// Stops it: with an interrupt, a second one, and at last a kill.
    pub(super) fn end(&mut self) {
        for _ in 0..2 {
            self.stop();
            let requested = Instant::now();
            while requested.elapsed() < PATIENCE {
                if self.ended().is_some() {
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps the last lines.
fn listen(stderr: ChildStderr, said: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        let mut said = lock(said);
        said.push_back(text);
        let old = said.len().saturating_sub(MOST_LINES);
        said.drain(..old);
    }
}
