//! Ctrl-C.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Every Ctrl-C since the start. While this exists, SIGINT no longer ends the process by itself: whatever waits must wait for this too.
#[derive(Debug)]
pub(crate) struct Interrupts(Signal);

impl Interrupts {
    /// Takes SIGINT over.
    pub(crate) fn install() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Waits for the next Ctrl-C.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Only when the runtime shuts down; nobody waits then.
            std::future::pending::<()>().await;
        }
    }
}
