//! The signals that a transfer handles: Ctrl-C, SIGTERM, a hang-up of the terminal, and those that ask how far it is.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{announce, background};

/// A signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C: SIGINT.
    Interrupted,
    /// SIGTERM: another process, perhaps the system, wants this process to end soon.
    Terminated,
}

impl From<StopSignal> for downpour::Stop {
    fn from(stop: StopSignal) -> Self {
        match stop {
            StopSignal::Interrupted => Self::Cancelled,
            StopSignal::Terminated => Self::Terminated,
        }
    }
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A signal to stop.
    Stop(StopSignal),
    /// SIGHUP: the terminal is gone, or the user has logged out. Transfers that have begun continue.
    HangUp,
    /// SIGUSR1, or SIGINFO (Ctrl-T) where there is one: the user asks how far it is.
    Ask,
}

/// All signals since the start. While this exists, the signals that it handles do not end the process by themselves:
/// every wait must also wait for this.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// `None` unless SIGHUP is handled.
    hang_up: Option<Signal>,
    ask: Questions,
}

impl Interrupts {
    /// Installs handlers for all signals; not for SIGHUP if that is ignored, as under `nohup`, or if the system does not
    /// tell.
    pub(crate) fn install() -> io::Result<Self> {
        let hang_up = match is_hang_up_ignored() {
            Some(false) => Some(signal(SignalKind::hangup())?),
            Some(true) | None => None,
        };
        Self::with(hang_up)
    }

    /// Installs handlers for the signals to stop. SIGHUP has its default effect, ending the process as well as the one
    /// that feeds it, unless the caller has set it to be ignored.
    pub(crate) fn without_hang_up() -> io::Result<Self> {
        Self::with(None)
    }

    fn with(hang_up: Option<Signal>) -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up, ask: Questions::install()? })
    }

    /// Waits for the next signal.
    pub(crate) async fn heard(&mut self) -> Heard {
        // A stream ends only when the runtime shuts down; no task waits then.
        tokio::select! {
            Some(()) = self.interrupt.recv() => Heard::Stop(StopSignal::Interrupted),
            Some(()) = self.terminate.recv() => Heard::Stop(StopSignal::Terminated),
            Some(()) = hung_up(&mut self.hang_up) => Heard::HangUp,
            Some(()) = self.ask.next() => Heard::Ask,
            else => std::future::pending().await,
        }
    }

    /// Same as [`Interrupts::next`]; in a background process that nobody waits for any more, that stops it as well.
    pub(crate) async fn next_in_background(&mut self, is_in_background: bool) -> StopSignal {
        tokio::select! {
            stop = self.next() => stop,
            () = background::abandoned(), if is_in_background => StopSignal::Terminated,
        }
    }

    /// Waits for the next signal to stop; `None` for a hang-up.
    pub(crate) async fn next_or_hang_up(&mut self) -> Option<StopSignal> {
        loop {
            match self.heard().await {
                Heard::Stop(stop) => return Some(stop),
                Heard::HangUp => return None,
                Heard::Ask => announce::tell(),
            }
        }
    }

    /// Waits for the next signal to stop.
    pub(crate) async fn next(&mut self) -> StopSignal {
        loop {
            match self.heard().await {
                Heard::Stop(stop) => return stop,
                Heard::HangUp => {}
                Heard::Ask => announce::tell(),
            }
        }
    }
}

/// The signals that ask how far a transfer is. Their default effect would end the process.
#[derive(Debug)]
struct Questions {
    user: Signal,
    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    info: Signal,
}

impl Questions {
    fn install() -> io::Result<Self> {
        Ok(Self {
            user: signal(SignalKind::user_defined1())?,
            #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
            info: signal(SignalKind::info())?,
        })
    }

    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    async fn next(&mut self) -> Option<()> {
        tokio::select! {
            asked = self.user.recv() => asked,
            asked = self.info.recv() => asked,
        }
    }

    #[cfg(not(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")))]
    async fn next(&mut self) -> Option<()> {
        self.user.recv().await
    }
}

/// Whether SIGHUP was set to be ignored when this program was started; `None` if that cannot be found out.
fn is_hang_up_ignored() -> Option<bool> {
    /// Signal 1, as a mask.
    const HANG_UP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    Some(u64::from_str_radix(ignored.trim(), 16).ok()? & HANG_UP != 0)
}

async fn hung_up(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}
