//! What a carrier is given and gives: runs of datagrams of equal size, and why it carries nothing any more.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use transport::recovery::EcnCodepoint;
use transport::{Answer, Batch, ReceivedEcn};

use crate::error::NetError;

/// Stands for the peer's address, and for one's own, where datagrams go through pipes. To connect, it is the only remote.
pub const PIPE_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

/// Datagrams of equal size (the last may be shorter) from one address.
pub(crate) struct Received<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: ReceivedEcn,
    pub(crate) bytes: &'a mut [u8],
    pub(crate) stride: usize,
}

/// Datagrams of equal size (the last may be shorter) to one address.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) destination: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) ecn: EcnCodepoint,
    pub(crate) segment_size: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> From<&'a Batch> for Outgoing<'a> {
    fn from(batch: &'a Batch) -> Self {
        Self {
            destination: batch.destination(),
            source: batch.source(),
            ecn: batch.ecn(),
            segment_size: batch.segment_size(),
            bytes: batch.bytes(),
        }
    }
}

impl<'a> From<&'a Answer> for Outgoing<'a> {
    fn from(answer: &'a Answer) -> Self {
        Self {
            destination: answer.destination,
            source: answer.source,
            ecn: EcnCodepoint::NotEct,
            segment_size: answer.bytes.len(),
            bytes: &answer.bytes,
        }
    }
}

/// Whether the kernel took everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it, or what it refused is as lost as on the path.
    All,
    /// Its queue is full: go on from the same place when the carrier is writable.
    Blocked,
}

/// Why a carrier carries nothing any more.
#[derive(Debug)]
pub(crate) enum Broken {
    /// A pipe's other end is closed.
    Gone,
    /// What came through a pipe is no sequence of datagrams.
    Malformed(&'static str),
    /// The system refuses.
    System(io::Error),
}

impl From<Broken> for NetError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Gone => Self::PipeEnded,
            Broken::Malformed(what) => Self::ProtocolViolation { reason: what },
            Broken::System(error) => Self::system(error),
        }
    }
}
