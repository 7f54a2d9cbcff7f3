//! Input and output of a carrier: runs of datagrams of equal size, and the reason why it has failed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use transport::recovery::EcnCodepoint;
use transport::{Batch, ReceivedEcn, Transmit};

use crate::error::NetError;

/// The address of both sides if datagrams go through pipes. It is then the only remote to connect to.
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

impl<'a> From<&'a Transmit> for Outgoing<'a> {
    fn from(answer: &'a Transmit) -> Self {
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
    /// Everything was taken; datagrams that the kernel rejected count as lost on the path.
    All,
    /// The kernel's queue is full: continue from the same place when the carrier is writable.
    Blocked,
}

/// The reason why a carrier has failed.
#[derive(Debug)]
pub(crate) enum CarrierError {
    /// The peer has closed its end of a pipe.
    Gone,
    /// The bytes from a pipe are not a sequence of datagrams.
    Malformed(&'static str),
    /// The system returned an error.
    System(io::Error),
}

impl From<CarrierError> for NetError {
    fn from(broken: CarrierError) -> Self {
        match broken {
            CarrierError::Gone => Self::PipeEnded,
            CarrierError::Malformed(what) => Self::ProtocolViolation { reason: what },
            CarrierError::System(error) => Self::system(error),
        }
    }
}
