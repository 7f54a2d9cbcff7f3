//! The options of one side of a transfer.

use std::path::PathBuf;
use std::time::Duration;

use crate::files::{Outputs, SourceItem, SourceOptions};
use crate::options::EngineOptions;
use crate::path_cache::PathCache;

/// No reachable peer needs longer, and an unreachable one is not worth a longer wait.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The items of a sender.
#[derive(Clone, Debug, Default)]
pub struct SendSpec {
    /// The items.
    pub roots: Vec<SourceItem>,
    /// How they are sent.
    pub scan: SourceOptions,
}

impl<T: Into<SourceItem>, const N: usize> From<[T; N]> for SendSpec {
    fn from(roots: [T; N]) -> Self {
        Vec::from(roots).into()
    }
}

impl<T: Into<SourceItem>> From<Vec<T>> for SendSpec {
    fn from(roots: Vec<T>) -> Self {
        Self { roots: roots.into_iter().map(Into::into).collect(), scan: SourceOptions::default() }
    }
}

/// Options of one side of a transfer, which are not sent to the peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransferOptions {
    /// The sending profile and the limits of the endpoint.
    pub engine: EngineOptions,
    /// How long a peer may be silent before its first response, if this side connects.
    pub handshake_timeout: Duration,
    /// How long to retry after a lost connection, from when something was last received. A listener does not reconnect:
    /// it waits.
    pub retry_for: Option<Duration>,
    /// Whether a receiver writes nothing before [`Transfer::accept`](super::Transfer::accept) is called for the
    /// [`TransferEvent::Offer`](super::TransferEvent::Offer).
    pub confirm: bool,
    /// A file for the BLAKE3 hashes of all files, in b3sum's format. A receiver lists the paths below its target, a
    /// sender those that it sends. It contains only files that the sender's scan has hashed: see
    /// [`SourceOptions::hash`].
    pub checksums: Option<PathBuf>,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
    /// The path cache that a sender reads and writes; `None` by default.
    pub paths: Option<PathCache>,
}

impl Default for TransferOptions {
    fn default() -> Self {
        Self {
            engine: EngineOptions::default(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            retry_for: None,
            confirm: false,
            checksums: None,
            qlog: None,
            paths: None,
        }
    }
}

impl TransferOptions {
    /// Sets the sending profile and the limits of the endpoint.
    #[must_use]
    pub fn engine(self, engine: EngineOptions) -> Self {
        Self { engine, ..self }
    }

    /// Waits this long for the first response of a peer, if this side connects.
    #[must_use]
    pub fn handshake_timeout(self, handshake_timeout: Duration) -> Self {
        Self { handshake_timeout, ..self }
    }

    /// Retries for this long after a lost connection.
    #[must_use]
    pub fn retry_for(self, retry_for: impl Into<Option<Duration>>) -> Self {
        Self { retry_for: retry_for.into(), ..self }
    }

    /// Whether a receiver waits for [`Transfer::accept`](super::Transfer::accept) before it writes.
    #[must_use]
    pub fn confirm(self, confirm: bool) -> Self {
        Self { confirm, ..self }
    }

    /// Writes the BLAKE3 hashes of all files to this file.
    #[must_use]
    pub fn checksums(self, checksums: impl Into<Option<PathBuf>>) -> Self {
        Self { checksums: checksums.into(), ..self }
    }

    /// Appends the engine's trace to this file.
    #[must_use]
    pub fn qlog(self, qlog: impl Into<Option<PathBuf>>) -> Self {
        Self { qlog: qlog.into(), ..self }
    }

    /// Reads and writes this path cache.
    #[must_use]
    pub fn paths(self, paths: impl Into<Option<PathCache>>) -> Self {
        Self { paths: paths.into(), ..self }
    }

    /// Returns the files that are written about the transfer.
    pub(crate) fn outputs(&self) -> Outputs {
        Outputs::new(self.checksums.as_deref(), self.qlog.as_deref())
    }
}
