//! Options of the listening peer.

use std::time::Duration;

use net::Bind;

/// Options of the listening peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

impl ListenOptions {
    /// Listens on this address.
    #[must_use]
    pub fn bind(self, bind: impl Into<Bind>) -> Self {
        Self { bind: bind.into(), ..self }
    }

    /// Makes a ticket that is valid for this long.
    #[must_use]
    pub fn valid_for(self, valid_for: Duration) -> Self {
        Self { valid_for, ..self }
    }

    /// Whether the ticket is valid for more than one complete transfer.
    #[must_use]
    pub fn keep(self, keep: bool) -> Self {
        Self { keep, ..self }
    }

    /// Whether the ticket is valid for a single attempt.
    #[must_use]
    pub fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }
}
