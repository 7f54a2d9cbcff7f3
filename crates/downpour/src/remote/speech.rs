//! The stderr output of ssh: its own messages, and those of the remote host.
//!
//! A hostile host could use it to write to the user's terminal. It is therefore relayed line by line, and the program
//! decides how to show each line. Prompts of ssh are not: it writes them to the terminal itself.

use std::fmt;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::SshOptions;
use crate::error::Error;

/// Maximum length of a relayed part of a line, in bytes; a longer line is relayed in several parts.
const LONGEST: usize = 1000;
/// Bytes that are relayed at once: more than ssh itself prints with -vvv.
const BURST: usize = 64 << 10;
/// Bytes that are relayed for each second after that.
const PER_SECOND: usize = 4 << 10;
/// Cost of a line beside its bytes: empty lines make a terminal scroll, too.
const LINE: usize = 32;
/// Bytes at the end that are kept for an error.
const KEPT: usize = 4096;
/// How long to wait for the end of a line, in seconds and nanoseconds, before its beginning is relayed.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
/// How long to wait for the reader once ssh has exited: a process that it has started may continue to write.
const REST: Duration = Duration::from_millis(500);

/// A part of the stderr output of ssh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StderrPart<'a> {
    /// A line without its end, of any bytes: hostile.
    Line(&'a [u8]),
    /// This many lines were skipped, since there were too many.
    Skipped(u64),
}

/// Receives the stderr output of the ssh to a host.
#[derive(Clone)]
pub struct StderrHandler(Arc<Handle>);

/// A callback with a host and a part of its output.
type Handle = dyn Fn(&str, StderrPart<'_>) + Send + Sync;

impl StderrHandler {
    /// Calls `handle` with the host, on another thread.
    pub fn new(handle: impl Fn(&str, StderrPart<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handle))
    }
}

impl fmt::Debug for StderrHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrHandler").finish_non_exhaustive()
    }
}

impl SshOptions {
    /// Redirects the stderr of `ssh`, which is about to be started.
    pub(super) fn redirect(&self, ssh: &mut Command) {
        if !self.asks || self.stderr_handler.is_some() {
            ssh.stderr(Stdio::piped());
        }
    }

    /// Reads the stderr of an ssh that was started after [`Self::redirect`]; `None` if that is this process's stderr.
    pub(super) fn listen(&self, stderr: Option<ChildStderr>, host: &str) -> Result<Option<Speech>, Error> {
        let shown =
            self.stderr_handler.clone().filter(|_| self.asks).map(|stderr_handler| (stderr_handler, host.to_owned()));
        stderr.map(|stderr| Speech::listen(stderr, shown)).transpose()
    }
}

/// The stderr of an ssh. Dropping it waits for its end, so the process must have exited before.
#[derive(Debug)]
pub(super) struct Speech {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Closed when ssh has exited.
    is_over: Option<PipeWriter>,
    end: Receiver<()>,
}

impl Speech {
    fn listen(stderr: ChildStderr, shown: Option<(StderrHandler, String)>) -> Result<Self, Error> {
        let (over, is_over) = std::io::pipe().map_err(Error::OutOfResources)?;
        let (kept, (ended, end)) = (Arc::<Mutex<Vec<u8>>>::default(), channel());
        let keeping = Arc::clone(&kept);
        let listen = move || {
            follow(stderr, &over, &keeping, shown);
            // The receiver may be closed.
            let _ = ended.send(());
        };
        runtime::spawn("downpour-speech", listen).map_err(Error::OutOfResources)?;
        Ok(Self { kept, is_over: Some(is_over), end })
    }

    /// Waits until all earlier output is relayed.
    fn finish(&mut self) {
        if self.is_over.take().is_some() {
            let _ = runtime::recv_timeout(&self.end, REST);
        }
    }

    /// Returns the last line.
    pub(super) fn last(mut self) -> Option<String> {
        self.finish();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.trim_end_matches('.').to_owned())
    }
}

impl Drop for Speech {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Reads until the end of the pipe or, once it `is_over`, until it is empty: a connection that is kept for the next
/// login (`ControlPersist`) may hold the pipe open for long.
fn follow(
    mut stderr: ChildStderr,
    is_over: &PipeReader,
    kept: &Mutex<Vec<u8>>,
    shown: Option<(StderrHandler, String)>,
) {
    let mut lines =
        shown.map(|(stderr_handler, host)| Lines::new(runtime::now(), move |output| (stderr_handler.0)(&host, output)));
    let mut buffer = [0; 4096];
    loop {
        let patience = lines.as_ref().filter(|lines| !lines.begun.is_empty()).map(|_| &PATIENCE);
        let mut waiting = [PollFd::new(&stderr, PollFlags::IN), PollFd::new(is_over, PollFlags::IN)];
        match poll(&mut waiting, patience) {
            Ok(0) => {
                lines.iter_mut().for_each(|lines| lines.end_line(runtime::now()));
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => break,
        }
        if waiting[0].revents().is_empty() {
            break;
        }
        // An error is an end, too.
        let Ok(count @ 1..) = stderr.read(&mut buffer) else { break };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
        drop(kept);
        lines.iter_mut().for_each(|lines| lines.take(&buffer[..count], runtime::now()));
    }
    lines.iter_mut().for_each(|lines| lines.end(runtime::now()));
}

/// Divides the output into lines, and limits their number.
struct Lines<F> {
    relay: F,
    /// The beginning of a line.
    begun: Vec<u8>,
    /// Bytes that may be relayed now.
    budget: usize,
    since: Instant,
    skipped: u64,
}

impl<F: FnMut(StderrPart<'_>)> Lines<F> {
    fn new(now: Instant, relay: F) -> Self {
        Self { relay, begun: Vec::new(), budget: BURST, since: now, skipped: 0 }
    }

    fn take(&mut self, bytes: &[u8], now: Instant) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line, is_whole) = piece.strip_suffix(b"\n").map_or((piece, false), |line| (line, true));
            for byte in line {
                self.begun.push(*byte);
                if self.begun.len() == LONGEST {
                    self.end_line(now);
                }
            }
            if is_whole {
                self.end_line(now);
            }
        }
    }

    /// Relays the beginning of a line.
    fn end_line(&mut self, now: Instant) {
        let mut line = std::mem::take(&mut self.begun);
        // ssh ends its lines for a terminal that is in raw mode.
        line.truncate(line.trim_ascii_end().len());
        if line.is_empty() {
            return;
        }
        let seconds = now.saturating_duration_since(self.since).as_secs();
        if seconds > 0 {
            let earned = usize::try_from(seconds).unwrap_or(usize::MAX).saturating_mul(PER_SECOND);
            (self.budget, self.since) = (self.budget.saturating_add(earned).min(BURST), now);
        }
        match self.budget.checked_sub(line.len() + LINE) {
            Some(budget) => {
                self.relay_skipped();
                self.budget = budget;
                (self.relay)(StderrPart::Line(&line));
            }
            None => self.skipped += 1,
        }
    }

    fn relay_skipped(&mut self) {
        match std::mem::take(&mut self.skipped) {
            0 => {}
            count => (self.relay)(StderrPart::Skipped(count)),
        }
    }

    fn end(&mut self, now: Instant) {
        self.end_line(now);
        self.relay_skipped();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Child;

    use super::*;

    /// Returns the relayed parts of these pieces; `None` is a pause of a second.
    fn relayed(pieces: &[Option<&[u8]>]) -> Vec<Result<Vec<u8>, u64>> {
        let (mut relayed, mut now) = (Vec::new(), Instant::now());
        let mut lines = Lines::new(now, |output: StderrPart<'_>| match output {
            StderrPart::Line(line) => relayed.push(Ok(line.to_vec())),
            StderrPart::Skipped(count) => relayed.push(Err(count)),
        });
        for piece in pieces {
            match piece {
                Some(bytes) => lines.take(bytes, now),
                None => now += Duration::from_secs(1),
            }
        }
        lines.end(now);
        relayed
    }

    #[test]
    fn stderr_lines_relayed_whole_from_any_pieces() {
        let wanted = [b"one".to_vec(), b"t\xff\x1bwo".to_vec(), b" three".to_vec()].map(Ok);
        assert_eq!(relayed(&[Some(b"one\r\nt\xff\x1bwo\n\n\r\n three")]), wanted);
        let pieces: Vec<Option<&[u8]>> = b"one\r\nt\xff\x1bwo\n\n\r\n three".chunks(1).map(Some).collect();
        assert_eq!(relayed(&pieces), wanted);
        let long = relayed(&[Some(&vec![b'x'; 2500]), Some(b"\ny")]);
        let lengths: Vec<_> = long.iter().map(|line| line.as_ref().map(Vec::len)).collect();
        assert_eq!(lengths, [Ok(1000), Ok(1000), Ok(500), Ok(1)]);
    }

    #[test]
    fn stderr_flood_counted() {
        let flood = b"x\n".repeat(1_000_000);
        let relayed = relayed(&[Some(&flood), None, Some(b"later\n")]);
        assert_eq!(relayed.len(), BURST / (LINE + 1) + 2);
        assert!(matches!(relayed[relayed.len() - 2], Err(count) if count == 1_000_000 - (BURST / (LINE + 1)) as u64));
        assert_eq!(relayed.last(), Some(&Ok(b"later".to_vec())));
        // ssh -vvv.
        let talk = b"debug3: receive packet: type 98, of a usual length of sixty bytes\r\n".repeat(600);
        assert!(self::relayed(&[Some(&talk)]).iter().all(Result::is_ok));
    }

    fn listened(script: &str) -> (Child, Speech, Receiver<String>) {
        let (sender, lines) = channel();
        let stderr_handler = StderrHandler::new(move |host, output| {
            let StderrPart::Line(line) = output else { return };
            let _ = sender.send(format!("{host}: {}", String::from_utf8_lossy(line)));
        });
        let options = SshOptions { stderr_handler: Some(stderr_handler), ..SshOptions::default() };
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        options.redirect(&mut command);
        let mut child = command.spawn().unwrap();
        let stderr = options.listen(child.stderr.take(), "far").unwrap().unwrap();
        (child, stderr, lines)
    }

    #[test]
    fn stderr_of_background_process_not_awaited() {
        // As a connection that is kept for the next login.
        let (mut child, stderr, lines) = listened("sleep 1000 & echo $! >&2; echo last >&2");
        child.wait().unwrap();
        drop(stderr);
        let lines: Vec<String> = lines.try_iter().collect();
        let [pid, last] = &lines[..] else { panic!("{lines:?}") };
        let pid = pid.strip_prefix("far: ").unwrap();
        assert!(std::path::Path::new("/proc").join(pid).exists(), "it keeps running");
        assert_eq!(last, "far: last");
        Command::new("kill").arg(pid).status().unwrap();
    }

    #[test]
    fn stderr_prompt_without_newline_relayed() {
        let (mut child, stderr, lines) = listened("printf 'code: ' >&2; exec sleep 1000");
        assert_eq!(lines.recv_timeout(Duration::from_secs(30)).unwrap(), "far: code:");
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stderr);
    }
}
