//! What carries datagrams for the driver: a UDP socket, or a pair of descriptors such as ssh's pipes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use transport::recovery::EcnCodepoint;
use transport::{Answer, Batch, Closed, ReceivedEcn};

use crate::error::NetError;
use crate::pipe::Pipe;
use crate::socket::Socket;

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
    /// The thread that drives it met what it cannot handle.
    Fault,
}

impl Broken {
    /// How the connections end that are open.
    pub(crate) fn closed(&self) -> Closed {
        match self {
            Self::Gone | Self::System(_) | Self::Fault => Closed::Dead,
            Self::Malformed(what) => Closed::Violation((*what).to_owned()),
        }
    }

    /// Why no connection can be opened.
    pub(crate) fn error(&self) -> NetError {
        match self {
            Self::Gone => NetError::PeerLost,
            Self::Malformed(what) => NetError::ProtocolViolation { reason: (*what).to_owned() },
            Self::System(error) => NetError::System(io::Error::new(error.kind(), error.to_string())),
            Self::Fault => NetError::Internal("the network's thread has ended"),
        }
    }

    /// In the system's words, for a peer that was never reached.
    pub(crate) fn hint(&self) -> Option<io::Error> {
        match self {
            Self::Gone => Some(io::Error::new(io::ErrorKind::UnexpectedEof, "the pipe to the other side has ended")),
            Self::Malformed(_) | Self::System(_) | Self::Fault => None,
        }
    }
}

/// What the driver's thread sends and receives with. Neither call blocks.
pub(crate) enum Carrier {
    Socket(Box<Socket>),
    Pipe(Pipe),
}

impl Carrier {
    /// Hands what one call to the kernel brings to `each`; true when there is likely to be more at once.
    ///
    /// # Errors
    /// Only when nothing will come any more.
    pub(crate) fn receive(&mut self, each: impl FnMut(Received<'_>)) -> Result<bool, Broken> {
        match self {
            Self::Socket(socket) => socket.receive(each).map(|count| count == Socket::BATCH).map_err(Broken::System),
            Self::Pipe(pipe) => pipe.receive(each),
        }
    }

    /// Sends `out` from byte `sent` on and moves `sent` over what the kernel took. What is blocked is to be offered again, with the
    /// same `sent`, before anything else.
    pub(crate) fn send(&mut self, out: Outgoing<'_>, sent: &mut usize) -> Sent {
        match self {
            Self::Socket(socket) => socket.send(out, sent),
            Self::Pipe(pipe) => pipe.send(out, sent),
        }
    }

    /// `poll` says that something is wrong with it.
    pub(crate) const fn note_error(&mut self) {
        match self {
            Self::Socket(socket) => socket.note_error(),
            // The next read or write finds out.
            Self::Pipe(_) => {}
        }
    }

    /// Hands the addresses to `each` where nobody listens, as far as the network says so; it answers whether that is of use. True when
    /// there may be more.
    pub(crate) fn unreachable(&mut self, each: impl FnMut(SocketAddr) -> bool) -> bool {
        match self {
            Self::Socket(socket) => socket.unreachable(each),
            Self::Pipe(_) => false,
        }
    }

    /// What becomes readable when there are datagrams.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.reader(),
        }
    }

    /// What becomes writable when blocked datagrams can go on.
    pub(crate) fn writer(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.writer(),
        }
    }

    /// Nobody reads what is sent, and nobody ever will.
    pub(crate) const fn is_unheard(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Pipe(pipe) => pipe.is_unheard(),
        }
    }

    /// The last error of sending, to explain a peer that was never reached.
    pub(crate) fn take_send_error(&mut self) -> Option<io::Error> {
        match self {
            Self::Socket(socket) => socket.take_send_error(),
            Self::Pipe(_) => None,
        }
    }

    /// Datagrams refused before the engine saw them.
    pub(crate) const fn refused(&self) -> u64 {
        match self {
            Self::Socket(socket) => socket.refused(),
            Self::Pipe(pipe) => pipe.refused(),
        }
    }
}
