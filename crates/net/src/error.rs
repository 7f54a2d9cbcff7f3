//! Why the network cannot do what was asked.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use transport::{ConnectError, FlowError};

/// Why an endpoint cannot be had, or a connection not be opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Every port of the range is in use.
    #[error("{} taken", ports_are(ports))]
    PortsTaken {
        /// The ports that were tried.
        ports: RangeInclusive<u16>,
    },
    /// The system refuses a thread, a descriptor, or random bytes.
    #[error("the system refuses what a connection needs: {0}")]
    System(#[source] io::Error),
    /// No connection can be opened.
    #[error("cannot connect: {0}")]
    Connect(#[source] ConnectError),
    /// No object or stream can be opened.
    #[error("cannot send: {0}")]
    Flow(#[source] FlowError),
    /// The peer was there and is gone, or the pipe to it has ended.
    #[error("the other side has vanished: it has ended without a word, or the network is down")]
    PeerLost,
    /// The peer broke the protocol.
    #[error("the other side broke the protocol: {reason}")]
    ProtocolViolation {
        /// What it did.
        reason: String,
    },
    /// An object's source or sink failed, with the error it returned.
    #[error("{0}")]
    Storage(#[source] io::Error),
    /// A fault of this crate.
    #[error("internal error: {0}")]
    Internal(&'static str),
}

fn ports_are(ports: &RangeInclusive<u16>) -> String {
    if ports.start() == ports.end() {
        format!("UDP port {} is", ports.start())
    } else {
        format!("every UDP port from {} to {} is", ports.start(), ports.end())
    }
}
