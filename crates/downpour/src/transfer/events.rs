//! The events that a transfer reports to the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::sync::mpsc;

use super::progress::Progress;
use super::summary::Summary;
use crate::error::{Error, ErrorKind};
use crate::files::{FailReason, Failed, NoticeKind, SkipReason, Skipped};

/// Maximum number of queued events. A program that does not read them stops its transfer, but never its network.
pub(super) const MAX_EVENTS: usize = 256;

/// An event of a transfer. Names and texts are raw: programs must escape them before display.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few events a second, each read once")]
pub enum TransferEvent {
    /// A peer with the right key has connected.
    Connected {
        /// Its address; `None` over pipes, of ssh or within this process.
        peer: Option<SocketAddr>,
    },
    /// At the receiver: the sender's offer. With [`TransferOptions::confirm`](super::TransferOptions::confirm) the
    /// transfer waits for an answer.
    Offer(Offer),
    /// Progress of the transfer. Omitted if the program does not keep up.
    Progress(Progress),
    /// Transferred files, each with its path in the transfer and its length in bytes. At the receiver they have their
    /// final names; at the sender the receiver has every byte of their batch.
    Files(Vec<(Vec<u8>, u64)>),
    /// A change of a name at the receiver or, in a dry run, a change that would be made.
    Notice {
        /// Kind of notice.
        kind: NoticeKind,
        /// The name.
        path: Vec<u8>,
    },
    /// A name that the sender skipped on purpose, such as a socket.
    Skipped(Failed),
    /// A message for the user. It may quote the peer. A line break at its beginning means that ssh may have left a
    /// prompt on the terminal, on a line that must not be written on.
    UserNote(String),
    /// UDP does not reach the host: the transfer uses ssh, which is slower.
    UdpClosed {
        /// The host, as ssh knows it.
        host: String,
        /// The remote port that does not answer.
        port: u16,
        /// Whether it did not answer in an earlier transfer either.
        was_closed: bool,
    },
    /// At a listener without [`ListenOptions::keep`](super::ListenOptions::keep): an attempt has failed, and the ticket
    /// is still valid.
    AttemptFailed {
        /// Description of the failure in one line.
        message: String,
        /// Kind of failure.
        kind: ErrorKind,
    },
    /// The last event; with [`ListenOptions::keep`](super::ListenOptions::keep) the last of each peer.
    Done(Result<Summary, Error>),
}

/// Sends events to the program.
#[derive(Clone, Debug)]
pub(crate) struct Events(pub(super) mpsc::Sender<TransferEvent>);

impl Events {
    /// Sends an event, waiting for room; does nothing if the program has dropped its [`Transfer`].
    pub(crate) fn emit(&self, event: TransferEvent) {
        let _ = self.0.blocking_send(event);
    }

    /// Reports a name that was skipped on purpose. Links are only counted: see [`Self::report_skipped_links`].
    pub(super) fn report_skipped(&self, skipped: &Skipped) {
        if !skipped.reason.is_failure() && skipped.reason != SkipReason::Link {
            let failed = Failed { path: skipped.path.clone(), reason: FailReason::Skipped(skipped.reason) };
            self.emit(TransferEvent::Skipped(failed));
        }
    }

    /// Reports how many links were skipped as requested.
    pub(super) fn report_skipped_links(&self, count: u64) {
        if count > 0 {
            let links = if count == 1 { "link" } else { "links" };
            self.emit(TransferEvent::UserNote(format!("skipped: {count} symbolic {links}")));
        }
    }

    /// Sends an event if there is room, otherwise drops it.
    pub(super) fn try_emit(&self, event: TransferEvent) {
        let _ = self.0.try_send(event);
    }
}

/// A sender's offer, as far as it is known when the user is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The items, as the sender names them; at most a hundred.
    pub names: Vec<Vec<u8>>,
    /// Entries known so far: files, directories and links.
    pub entries: u64,
    /// Bytes known so far.
    pub bytes: u64,
    /// Whether the offer is complete. If so, the sender can announce nothing else; if not, more files and items may
    /// follow, within the limits.
    pub is_all: bool,
    /// Maximum total number of bytes and of entries, those known so far included.
    pub limits: (Option<u64>, Option<u64>),
    /// The directory that they are written to.
    pub into: PathBuf,
}
