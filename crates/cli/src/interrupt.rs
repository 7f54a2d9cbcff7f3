//! The signals that a transfer minds: Ctrl-C, the request to end, and a terminal that goes away.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A reason to stop that came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C: SIGINT.
    Interrupted,
    /// SIGTERM: somebody, perhaps the system, wants this process to end soon.
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

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A reason to stop.
    Stop(StopSignal),
    /// SIGHUP: the terminal is gone, or whoever started this has logged out. Transfers go on.
    HangUp,
}

/// Every signal since the start. While this exists none that it has taken over ends the process by itself: whatever waits must wait for
/// this too.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// Where it is taken over.
    hang_up: Option<Signal>,
}

impl Interrupts {
    /// Takes the signals over.
    pub(crate) fn install() -> io::Result<Self> {
        Self::with(Some(signal(SignalKind::hangup())?))
    }

    /// Takes over those that ask for an end. A hang-up ends the process as it ends any other, and what feeds it, unless whoever started
    /// it wanted it ignored.
    pub(crate) fn without_hang_up() -> io::Result<Self> {
        Self::with(None)
    }

    fn with(hang_up: Option<Signal>) -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    /// Waits for the next signal.
    pub(crate) async fn heard(&mut self) -> Heard {
        // A stream ends only when the runtime shuts down; nobody waits then.
        tokio::select! {
            Some(()) = self.interrupt.recv() => Heard::Stop(StopSignal::Interrupted),
            Some(()) = self.terminate.recv() => Heard::Stop(StopSignal::Terminated),
            Some(()) = hung_up(&mut self.hang_up) => Heard::HangUp,
            else => std::future::pending().await,
        }
    }

    /// Waits for the next reason to stop.
    pub(crate) async fn next(&mut self) -> StopSignal {
        loop {
            if let Heard::Stop(stop) = self.heard().await {
                return stop;
            }
        }
    }
}

async fn hung_up(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}
