//! One transfer by the program itself: one process sends, one receives.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::stage::{Stage, remove};
use xtask::failure::Failure;

/// For a listener to be ready, and for the sender to end after the receiver.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the memory of a process is read.
const PERIOD: Duration = Duration::from_millis(10);
/// The unit of times in `/proc`: USER_HZ, the same on every processor that Linux and downpour share.
const TICKS_PER_SECOND: f64 = 100.0;

/// One transfer that went well.
pub(super) struct Crossing {
    /// From the start of the receiver, with the sender waiting, to its end.
    pub(super) took: Duration,
    /// Seconds of processor time of both processes together; 0 without `/proc`.
    pub(super) processor: f64,
    /// Peak resident memory of sender and receiver in bytes; 0 without `/proc`.
    pub(super) peaks: [u64; 2],
}

/// Sends a file to an empty directory over 127.0.0.1. Comparing the bytes is left to the caller.
pub(super) fn cross(program: &Path, stage: &Stage, source: &Path, into: &Path) -> Result<Crossing, Failure> {
    let ticket = stage.path("ticket");
    remove(&ticket)?;
    let processor = processor_of_children();
    let mut send = Command::new(program);
    send.args(["send", "--quiet", "--listen", "127.0.0.1:0", "--ticket-file"]).arg(&ticket).arg(source);
    let mut sender = Guard(start(&mut send)?);
    let listening = Instant::now();
    while !ticket.exists() {
        if sender.0.try_wait().map_err(Failure::at("send"))?.is_some() || listening.elapsed() > PATIENCE {
            return Err(Failure::new("downpour send did not begin to listen"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut receive = Command::new(program);
    receive.args(["recv", "--quiet", "--yes", "--ticket-file"]).arg(&ticket).arg("--into").arg(into);
    let started = Instant::now();
    let mut receiver = Guard(start(&mut receive)?);
    let processes = [sender.0.id(), receiver.0.id()];
    let (status, took, peaks) = thread::scope(|scope| {
        let peaks = scope.spawn(|| watch_peaks(processes));
        let status = receiver.0.wait();
        (status, started.elapsed(), peaks.join().unwrap_or_default())
    });
    let status = status.map_err(Failure::at("recv"))?;
    if !status.success() {
        return Err(Failure::new(format_args!("downpour recv: {status}")));
    }
    let status = wait(&mut sender.0)?;
    if !status.success() {
        return Err(Failure::new(format_args!("downpour send: {status}")));
    }
    Ok(Crossing { took, processor: processor_of_children() - processor, peaks })
}

/// A process that does not outlive the measurement.
pub(super) struct Guard(pub(super) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program that prints only errors.
pub(super) fn start(command: &mut Command) -> Result<Child, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(Failure::at(name))
}

fn wait(child: &mut Child) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::at("downpour send"))? {
            return Ok(status);
        }
        if started.elapsed() > PATIENCE {
            return Err(Failure::new("downpour send did not exit after the receiver"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The kernel's own high-water marks, read until the second process has ended.
fn watch_peaks(processes: [u32; 2]) -> [u64; 2] {
    let mut peaks = [0, 0];
    while let Some(receiver) = peak(processes[1]) {
        peaks = [peaks[0].max(peak(processes[0]).unwrap_or_default()), receiver];
        thread::sleep(PERIOD);
    }
    peaks
}

/// `VmHWM` in bytes; `None` for an exited process.
pub(super) fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Seconds of processor time, in user space and in the kernel, of all children that have ended and were waited for.
fn processor_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc_pid_stat(5): the name of the program, in parentheses, is field 2 and may hold anything; cutime and cstime
    // are 16 and 17.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(13).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}
