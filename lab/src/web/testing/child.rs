//! A run as a process of its own: this program again, with the command that a user would type.

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

/// Lines of its stderr that are kept, and the longest one.
const MOST_LINES: usize = 12;
const LONGEST_LINE: u64 = 2_000;
/// How long a run has to end after each request, when the program ends: a simulated one makes its present cases first.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A run that was started here.
#[derive(Debug)]
pub(super) struct LabProcess {
    process: Child,
    /// The same process, also when its number is that of another one.
    descriptor: OwnedFd,
    said: Arc<Mutex<VecDeque<String>>>,
    /// Whether nothing else may run beside it.
    pub(super) needs_quiet: bool,
    pub(super) jobs: NonZeroUsize,
    pub(super) begun: Instant,
    /// Cases that were settled before.
    pub(super) settled: usize,
    /// Whether it was told to stop.
    pub(super) is_stopping: bool,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) struct ExitState {
    /// Its exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) said: Vec<String>,
}

impl LabProcess {
    /// Starts `run` for a plan, which puts its results into a directory.
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
        // Ctrl-C at the terminal of this program is not for it: it is told to stop once.
        let mut process = command.process_group(0).spawn()?;
        // It is not reaped yet, so this number is its own.
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

    /// Tells it to stop, as Ctrl-C would. What is stored stays; told again, it ends at once.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        // One that has ended needs no signal.
        let _ = pidfd_send_signal(&self.descriptor, Signal::INT);
    }

    /// Returns how it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitState> {
        let status = self.process.try_wait().ok().flatten()?;
        Some(ExitState { code: status.code(), said: self.said() })
    }

    /// Returns the last lines that it has said.
    pub(super) fn said(&self) -> Vec<String> {
        lock(&self.said).iter().cloned().collect()
    }

    /// Ends it: tells it to stop, once more if it goes on, and kills it if even that does not help.
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
