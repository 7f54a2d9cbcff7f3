//! `--web`: live charts of a transfer, which `downpour-lab web` draws from its trace.

use std::env;
use std::fs::{File, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{interval, timeout};

use crate::exit::{Code, Failure};
use crate::print;

/// The program that draws the charts, and that runs the kernel's TCP for `demo`.
pub(crate) const LAB: &str = "downpour-lab";
/// Time for it to print its address.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for it to exit: it shows viewers the end, and stops the runs started on its page within 10 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
/// Time after which the user learns of the wait.
const NOTICE_DELAY: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);
/// Bytes of the end of a temporary trace that stay on the disk, and the interval at which older ones are freed.
const KEPT: u64 = 64 << 20;
const TRIM: Duration = Duration::from_secs(1);
/// The beginning of the trace, by which its reader recognises the file.
const BEGINNING: u64 = 64 << 10;

/// The running viewer of a transfer. Dropping it stops the program and removes its files.
#[derive(Debug)]
pub(crate) struct WebViewer {
    lab: Child,
    trim: Option<AbortHandle>,
    /// Holds the lab's stderr, and the trace unless the user requested it; private to this user.
    _directory: TempDir,
}

impl WebViewer {
    /// Starts the viewer of the trace `qlog`, which is set to a temporary file if it is `None`.
    ///
    /// # Errors
    /// The lab is not installed or does not start.
    pub(crate) async fn open(qlog: &mut Option<PathBuf>) -> Result<Self, Failure> {
        let program = lab().ok_or_else(|| {
            let message = format!("--web needs {LAB}, which was not found beside downpour or in PATH");
            Failure::new(Code::Usage, format!("{message}: build it with `cd lab && cargo build --release`"))
        })?;
        let failed = |error: io::Error| Failure::new(Code::Other, format!("--web: {error}"));
        let directory =
            tempfile::Builder::new().prefix("downpour-").permissions(Permissions::from_mode(0o700)).tempdir();
        let directory = directory.map_err(failed)?;
        let trim = match qlog {
            Some(_) => None,
            None => {
                let trace = directory.path().join("transfer.qlog");
                // The part of the trace that was read is freed during the transfer.
                let trim = tokio::spawn(trim(File::create(&trace).map_err(failed)?)).abort_handle();
                *qlog = Some(trace);
                Some(trim)
            }
        };
        let messages = directory.path().join("stderr");
        let mut command = Command::new(&program);
        command.args(["web", "--until-eof", "--open", "--follow"]).args(qlog.as_deref());
        // Its stdin is closed when this process ends, even by SIGKILL.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&messages).map_err(failed)?);
        let mut lab = command
            .spawn()
            .map_err(|error| Failure::new(Code::Other, format!("cannot start {}: {error}", program.display())))?;
        let stdout = lab.stdout.take();
        let viewer = Self { lab, trim, _directory: directory };
        match address(stdout).await {
            Some(url) => print::err(format_args!("charts of this transfer: {url}")),
            None => {
                let reason = first_line(&messages).unwrap_or_else(|| "it printed no address".to_owned());
                return Err(Failure::new(Code::Other, format!("cannot start {}: {reason}", program.display())));
            }
        }
        Ok(viewer)
    }
}

impl Drop for WebViewer {
    fn drop(&mut self) {
        if let Some(trim) = &self.trim {
            trim.abort();
        }
        // The program may have exited already.
        let _ = kill_process(Pid::from_child(&self.lab), Signal::TERM);
        let (begun, mut is_noticed) = (Instant::now(), false);
        while matches!(self.lab.try_wait(), Ok(None)) {
            if begun.elapsed() > STOP_TIMEOUT {
                print::warn(format_args!("{LAB} did not exit and is killed; runs started on its page continue"));
                let _ = self.lab.kill();
                let _ = self.lab.wait();
                return;
            }
            if begun.elapsed() > NOTICE_DELAY && !is_noticed {
                is_noticed = true;
                print::err(format_args!("waiting for {LAB}, which stops the runs started on its page"));
            }
            thread::sleep(STEP);
        }
    }
}

/// Returns the path of the lab: beside this program, or in PATH.
pub(crate) fn lab() -> Option<PathBuf> {
    let beside = env::current_exe().ok().map(|own| own.with_file_name(LAB));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|directory| directory.join(LAB)).collect::<Vec<_>>();
    let is_program =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    beside.into_iter().chain(in_path).find(is_program)
}

/// Returns the address that the lab prints first.
async fn address(stdout: Option<ChildStdout>) -> Option<String> {
    let stdout = stdout?;
    let read = spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(stdout.take(4096)).read_line(&mut line).ok()?;
        line.strip_suffix('\n').filter(|line| line.starts_with("http://")).map(str::to_owned)
    });
    timeout(START_TIMEOUT, read).await.ok()?.ok()?
}

fn first_line(file: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(file).ok()?.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().next().map(|line| crate::escape::text(line).to_string())
}

/// Frees old parts of a growing trace.
async fn trim(file: File) {
    let (mut every, mut from) = (interval(TRIM), BEGINNING);
    loop {
        every.tick().await;
        let Ok(found) = file.metadata() else { return };
        let to = found.len().saturating_sub(KEPT);
        if to > from {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(&file, flags, from, to - from).is_err() {
                // Not supported by this file system: the trace is removed at the end.
                return;
            }
            from = to;
        }
    }
}
