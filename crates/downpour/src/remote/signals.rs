//! Signals to the process that ssh starts.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask this program to exit, which first informs the peer.
pub(super) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// Asks for the progress, which the local host shows. Its default effect would end this process.
    _ask: Signal,
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _ask: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.hang_up.recv() => {}
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            // They end only with the runtime.
            else => std::future::pending().await,
        }
    }
}
