//! Errors of the network.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use transport::{ConnectError, ConnectionError, FlowError, ReconfigureError};

/// The reason why an endpoint cannot be bound, or how a connection, a stream or an object ended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        source: Arc<io::Error>,
    },
    /// Every port of the range is in use.
    #[error("{} taken", ports_are(ports))]
    PortsTaken {
        /// The tried ports.
        ports: RangeInclusive<u16>,
    },
    /// The system refused a thread, a descriptor or random bytes, or the socket has failed.
    #[error("system resource unavailable: {0}")]
    OutOfResources(#[source] Arc<io::Error>),
    /// The engine refused to open a connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] ConnectError),
    /// The engine refused to open an object or a stream.
    #[error("cannot send: {0}")]
    Flow(#[source] FlowError),
    /// The tag of a stream is too large.
    #[error("the tag of a stream must be below 2^63")]
    Tag,
    /// A setting cannot be changed.
    #[error(transparent)]
    Set(ReconfigureError),
    /// No answer in time: the peer is absent, UDP is blocked, or the keys differ (an endpoint does not answer without
    /// the key).
    #[error("no answer from the peer{}", send_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default())]
    HandshakeTimedOut {
        /// The kernel's last error when sending, if any.
        send_error: Option<Arc<io::Error>>,
    },
    /// The peer supports only other versions of the protocol.
    #[error("no common protocol version: update the older program")]
    VersionMismatch {
        /// The versions that it offered.
        offered: Vec<u32>,
    },
    /// This side closed the connection.
    #[error("connection closed locally")]
    ClosedLocally,
    /// The peer closed the connection.
    #[error("connection closed by the peer: {reason} (code {code:#x})")]
    ClosedByPeer {
        /// The program's code; 0 for a normal end.
        code: u32,
        /// The peer's reason, unescaped.
        reason: String,
    },
    /// Nothing was received from the peer for too long.
    #[error("connection lost: the peer exited without closing, or the network is down")]
    ConnectionLost,
    /// The pipe to the peer ended before the peer had answered.
    #[error("the pipe to the peer closed before an answer")]
    PipeEnded,
    /// The peer broke the protocol.
    #[error("protocol error by the peer: {reason}")]
    ProtocolViolation {
        /// The violation.
        reason: &'static str,
    },
    /// A block cannot be decoded, and the sender's profile sends no more symbols of it: its bytes are lost.
    #[error("data lost: block undecodable and the profile sends no more repair")]
    Undecodable,
    /// A sequence number is exhausted, or the keys have reached a usage limit. A new connection can continue.
    #[error("connection closed: {what}")]
    Exhausted {
        /// The exhausted number or key.
        what: &'static str,
    },
    /// The peer reset the stream before its end.
    #[error("stream reset by the peer (code {code})")]
    StreamReset {
        /// The peer's code.
        code: u32,
    },
    /// The peer stopped reading the stream.
    #[error("stream stopped by the peer (code {code})")]
    StreamStopped {
        /// The peer's code.
        code: u32,
    },
    /// The stream was finished or reset by this side.
    #[error("the stream is closed for writing")]
    StreamClosed,
    /// A source or a sink failed with this error.
    #[error("{0}")]
    Storage(#[source] Arc<io::Error>),
    /// A thread panicked: a bug in this crate, or in a source, a sink or an event handler.
    #[error("internal error: {0} panicked")]
    Panicked(&'static str),
}

impl NetError {
    /// Converts the end of a connection. `send_error` may explain why a peer was never reached.
    pub(crate) fn closed(why: ConnectionError, send_error: Option<io::Error>) -> Self {
        match why {
            ConnectionError::LocallyClosed => Self::ClosedLocally,
            ConnectionError::ClosedByPeer { code, reason } => Self::ClosedByPeer { code, reason },
            ConnectionError::HandshakeTimeout => Self::HandshakeTimedOut { send_error: send_error.map(Arc::new) },
            ConnectionError::VersionMismatch { offered } => Self::VersionMismatch { offered },
            ConnectionError::TimedOut => Self::ConnectionLost,
            ConnectionError::Violation(reason) => Self::ProtocolViolation { reason },
            ConnectionError::Undecodable => Self::Undecodable,
            ConnectionError::Exhausted(what) => Self::Exhausted { what },
        }
    }

    pub(crate) fn system(error: io::Error) -> Self {
        Self::OutOfResources(Arc::new(error))
    }
}

/// Streams fail with [`io::Error`], which carries the [`NetError`]; [`io::Error::downcast`] extracts it.
impl From<NetError> for io::Error {
    fn from(error: NetError) -> Self {
        let kind = match &error {
            NetError::StreamReset { .. } | NetError::ClosedByPeer { .. } => io::ErrorKind::ConnectionReset,
            NetError::StreamStopped { .. } | NetError::StreamClosed => io::ErrorKind::BrokenPipe,
            NetError::ClosedLocally => io::ErrorKind::NotConnected,
            NetError::HandshakeTimedOut { .. } | NetError::ConnectionLost => io::ErrorKind::TimedOut,
            NetError::ProtocolViolation { .. } | NetError::Undecodable => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

fn ports_are(ports: &RangeInclusive<u16>) -> String {
    if ports.start() == ports.end() {
        format!("UDP port {} is", ports.start())
    } else {
        format!("every UDP port from {} to {} is", ports.start(), ports.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_error_returns_its_net_error() {
        let error = io::Error::from(NetError::StreamReset { code: 3 });
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(matches!(error.downcast(), Ok(NetError::StreamReset { code: 3 })));
    }

    #[test]
    fn a_peer_that_was_never_reached_is_explained_by_the_kernel() {
        let kernel = io::Error::new(io::ErrorKind::NetworkUnreachable, "no route");
        let error = NetError::closed(ConnectionError::HandshakeTimeout, Some(kernel));
        assert_eq!(error.to_string(), "no answer from the peer: no route");
        let error = NetError::closed(ConnectionError::HandshakeTimeout, None);
        assert_eq!(error.to_string(), "no answer from the peer");
    }
}
