//! Options of the listening peer.

use std::time::Duration;

use net::Bind;

/// Options of the listening peer.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Local address; by default any port of every address of this host.
    pub bind: Bind,
    /// How long the ticket is valid. Peers that connect in time are served to the end.
    pub valid_for: Duration,
    /// Whether the ticket is valid for more than one complete transfer. A failed transfer never uses it up.
    pub keep: bool,
    /// Whether the ticket is valid for one attempt only, whether it succeeds or not.
    pub once: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { bind: Bind::default(), valid_for: Duration::from_secs(3600), keep: false, once: false }
    }
}
