//! The data of a stream: from standard input, and whether its end is the end of the data
//! (docs/design/end-of-input.md), or from another reader.

use std::fmt;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::transfer::TransferControl;

/// How long the program may take to report the signal that ended the probe. It decides only which error the user sees:
/// the input has no clean end either way.
const REPORTED: Duration = Duration::from_secs(2);

/// A child process that detects signals to this process group that end processes.
///
/// Such a signal, for example a Ctrl-C, also ends the writer of this process's standard input, whose end then looks
/// like the end of the data. The probe handles no signal: one that was sent to the group ends it before it runs another
/// instruction. This process's own handlers cannot detect as much: a signal that a handler has not yet recorded leaves
/// no trace.
#[derive(Debug)]
pub struct SignalProbe {
    process: Child,
    questions: ChildStdin,
    answers: ChildStdout,
}

impl SignalProbe {
    /// Starts a probe. It cannot detect earlier signals, so it belongs before the installation of signal handlers:
    /// until then a signal ends this process too.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if `cat` cannot be started.
    pub fn start() -> Result<Self, Error> {
        // It answers each byte with the same byte.
        let mut cat = Command::new("cat");
        cat.arg("-u").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = cat.spawn().map_err(Error::OutOfResources)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(questions), Some(answers)) => Ok(Self { process, questions, answers }),
            _ => Err(Error::Internal("a child without pipes")),
        }
    }

    /// Returns whether the group was sent a signal that ends processes, if such a signal has already ended another
    /// process of the group.
    ///
    /// # Errors
    /// The system has no thread.
    fn was_signalled(&mut self) -> io::Result<bool> {
        // The kernel may still be delivering the signal to the group when the first process has ended. It holds a lock
        // that a new thread needs.
        runtime::spawn("downpour-pipe-look", || ())?.join().map_err(|_| io::Error::other("a thread has panicked"))?;
        let mut answer = [0];
        let answered = self.questions.write_all(b"?").and_then(|()| self.answers.read_exact(&mut answer));
        Ok(answered.is_err())
    }
}

impl Drop for SignalProbe {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The data of a stream.
pub enum StreamSource {
    /// This process's standard input.
    Stdin(SignalProbe),
    /// A reader, which a thread of its own reads until its end.
    Reader(Box<dyn Read + Send>),
}

impl StreamSource {
    /// Reads this until its end.
    pub fn reader(reader: impl Read + Send + 'static) -> Self {
        Self::Reader(Box::new(reader))
    }

    /// Returns the reader of the data, which counts bytes in `taken`, and after a stop has no clean end.
    pub(super) fn open(self, switch: Arc<TransferControl>, taken: Arc<AtomicU64>) -> Box<dyn Read + Send> {
        match self {
            Self::Stdin(probe) => Box::new(Stdin::new(probe, switch, taken)),
            Self::Reader(reader) => Box::new(Counted { reader, taken }),
        }
    }
}

impl fmt::Debug for StreamSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdin(_) => "Stdin",
            Self::Reader(_) => "Reader",
        })
    }
}

/// A reader, and the bytes that were read from it.
struct Counted {
    reader: Box<dyn Read + Send>,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// This process's standard input. Its end is the end of the data: an end by a signal, or the loss of a terminal, is an
/// error.
pub(crate) struct Stdin {
    probe: SignalProbe,
    switch: Arc<TransferControl>,
    is_terminal: bool,
    /// Bytes that were read.
    taken: Arc<AtomicU64>,
}

impl Stdin {
    pub(crate) fn new(probe: SignalProbe, switch: Arc<TransferControl>, taken: Arc<AtomicU64>) -> Self {
        Self { probe, switch, is_terminal: io::stdin().is_terminal(), taken }
    }

    /// Checks that the end is that of the data.
    fn check_end(&mut self) -> io::Result<()> {
        // From a closed terminal, reading returns nothing, as after Ctrl-D.
        if self.is_terminal && !io::stdin().is_terminal() {
            return Err(io::Error::other("terminal closed"));
        }
        if self.probe.was_signalled()? {
            self.switch.wait(REPORTED);
            return Err(io::Error::other("it ended by a signal to this process group"));
        }
        match self.switch.stopped() {
            Some(_) => Err(io::Error::other("stopped")),
            None => Ok(()),
        }
    }
}

impl Read for Stdin {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = io::stdin().read(out)?;
        if count == 0 {
            self.check_end()?;
        }
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
