//! `--web`: the live picture of a transfer, which `downpour-lab web` draws from its trace.

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

/// The program that draws, and that measures beside `demo`.
pub(crate) const LAB: &str = "downpour-lab";
/// How long it may take to print its address.
const TO_START: Duration = Duration::from_secs(20);
/// How long it may take to end: it lets viewers see the end, and ends the runs that were started on its page, for which
/// it takes up to 10 s.
const TO_END: Duration = Duration::from_secs(12);
/// After how long a user is told what is waited for.
const TO_TELL: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);
/// How much of a trace of its own is kept on the disk behind what was written last, and how often the rest is given
/// back.
const KEPT: u64 = 64 << 20;
const TRIM: Duration = Duration::from_secs(1);
/// The beginning of the trace, by which its reader recognises the file.
const BEGINNING: u64 = 64 << 10;

/// The picture, while the transfer goes on. Ends with it, and removes what it has made.
#[derive(Debug)]
pub(crate) struct WebViewer {
    lab: Child,
    trim: Option<AbortHandle>,
    /// What the lab says beside its address, and the trace unless the user wants it; private to this user.
    _directory: TempDir,
}

impl WebViewer {
    /// Opens the picture of the transfer whose trace is written to `qlog`, or to a temporary file, which is put there.
    ///
    /// # Errors
    /// No lab on this machine, or one that does not start.
    pub(crate) async fn open(qlog: &mut Option<PathBuf>) -> Result<Self, Failure> {
        let program = lab().ok_or_else(|| {
            let message = format!("--web needs {LAB}, which is neither beside downpour nor in PATH");
            Failure::new(Code::Usage, format!("{message}: build it with cargo build --release -p lab"))
        })?;
        let failed = |error: io::Error| Failure::new(Code::Other, format!("--web: {error}"));
        let directory =
            tempfile::Builder::new().prefix("downpour-").permissions(Permissions::from_mode(0o700)).tempdir();
        let directory = directory.map_err(failed)?;
        let trim = match qlog {
            Some(_) => None,
            None => {
                let trace = directory.path().join("transfer.qlog");
                // What was read of the trace need not stay on the disk for as long as the transfer lasts.
                let trim = tokio::spawn(trim(File::create(&trace).map_err(failed)?)).abort_handle();
                *qlog = Some(trace);
                Some(trim)
            }
        };
        let said = directory.path().join("said");
        let mut command = Command::new(&program);
        command.args(["web", "--until-eof", "--open", "--follow"]).args(qlog.as_deref());
        // Its input ends with this process, however that happens.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&said).map_err(failed)?);
        let mut lab = command
            .spawn()
            .map_err(|error| Failure::new(Code::Other, format!("cannot start {}: {error}", program.display())))?;
        let stdout = lab.stdout.take();
        let picture = Self { lab, trim, _directory: directory };
        match address(stdout).await {
            Some(url) => print::err(format_args!("picture of this transfer: {url}")),
            None => {
                let said = first_line(&said).unwrap_or_else(|| "it printed no address".to_owned());
                return Err(Failure::new(Code::Other, format!("{} did not start: {said}", program.display())));
            }
        }
        Ok(picture)
    }
}

impl Drop for WebViewer {
    fn drop(&mut self) {
        if let Some(trim) = &self.trim {
            trim.abort();
        }
        // Nothing is to be said of a program that has ended already.
        let _ = kill_process(Pid::from_child(&self.lab), Signal::TERM);
        let (begun, mut is_told) = (Instant::now(), false);
        while matches!(self.lab.try_wait(), Ok(None)) {
            if begun.elapsed() > TO_END {
                print::err(format_args!(
                    "{LAB} does not end: it is killed, and runs that were started on its page go on"
                ));
                let _ = self.lab.kill();
                let _ = self.lab.wait();
                return;
            }
            if begun.elapsed() > TO_TELL && !is_told {
                is_told = true;
                print::err(format_args!("waiting for {LAB}, which ends the runs that were started on its page"));
            }
            thread::sleep(STEP);
        }
    }
}

/// Returns the lab: beside this program, or in PATH.
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
    timeout(TO_START, read).await.ok()?.ok()?
}

fn first_line(file: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(file).ok()?.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().next().map(|line| crate::escape::text(line).to_string())
}

/// Gives the disk back what was written of a trace long ago, while it grows.
async fn trim(file: File) {
    let (mut every, mut from) = (interval(TRIM), BEGINNING);
    loop {
        every.tick().await;
        let Ok(found) = file.metadata() else { return };
        let to = found.len().saturating_sub(KEPT);
        if to > from {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(&file, flags, from, to - from).is_err() {
                // Not on this file system: the trace is removed as a whole at the end.
                return;
            }
            from = to;
        }
    }
}
