//! What carries datagrams for the driver: a UDP socket, or a pair of descriptors such as ssh's pipes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use transport::recovery::EcnCodepoint;
use transport::{Answer, Batch, Closed, ReceivedEcn};

use super::pipe::Pipe;
use super::socket::Socket;
use crate::error::Error;

/// Datagrams of equal size (the last may be shorter) from one address.
pub(super) struct Received<'a> {
    pub(super) from: SocketAddr,
    pub(super) local: Option<IpAddr>,
    pub(super) ecn: ReceivedEcn,
    pub(super) bytes: &'a mut [u8],
    pub(super) stride: usize,
}

/// Datagrams of equal size (the last may be shorter) to one address.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) destination: SocketAddr,
    pub(super) source: Option<IpAddr>,
    pub(super) ecn: EcnCodepoint,
    pub(super) segment_size: usize,
    pub(super) bytes: &'a [u8],
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
pub(super) enum Sent {
    /// All of it, or what it refused is as lost as on the path.
    All,
    /// Its queue is full: go on from the same place when the carrier is writable.
    Blocked,
}

/// Why a carrier carries nothing any more.
#[derive(Debug)]
pub(super) enum Broken {
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
    pub(super) fn closed(&self) -> Closed {
        match self {
            Self::Gone | Self::System(_) | Self::Fault => Closed::Dead,
            Self::Malformed(what) => Closed::Violation((*what).to_owned()),
        }
    }

    /// Why no connection can be opened.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Gone => Error::Vanished,
            Self::Malformed(what) => Error::Violation((*what).to_owned()),
            Self::System(error) => Error::System(io::Error::new(error.kind(), error.to_string())),
            Self::Fault => Error::Internal("the network's thread has ended"),
        }
    }

    /// In the system's words, for a peer that was never reached.
    pub(super) fn hint(&self) -> Option<io::Error> {
        match self {
            Self::Gone => Some(io::Error::new(io::ErrorKind::UnexpectedEof, "the pipe to the other side has ended")),
            Self::Malformed(_) | Self::System(_) | Self::Fault => None,
        }
    }
}

/// What the driver's thread sends and receives with. Neither call blocks.
pub(super) enum Carrier {
    Socket(Box<Socket>),
    Pipe(Pipe),
}

impl Carrier {
    /// Hands what one call to the kernel brings to `each`; true when there is likely to be more at once.
    ///
    /// # Errors
    /// Only when nothing will come any more.
    pub(super) fn receive(&mut self, each: impl FnMut(Received<'_>)) -> Result<bool, Broken> {
        match self {
            Self::Socket(socket) => socket.receive(each).map(|count| count == Socket::BATCH).map_err(Broken::System),
            Self::Pipe(pipe) => pipe.receive(each),
        }
    }

    /// Sends `out` from byte `sent` on and moves `sent` over what the kernel took. What is blocked is to be offered again, with the
    /// same `sent`, before anything else.
    pub(super) fn send(&mut self, out: Outgoing<'_>, sent: &mut usize) -> Sent {
        match self {
            Self::Socket(socket) => socket.send(out, sent),
            Self::Pipe(pipe) => pipe.send(out, sent),
        }
    }

    /// `poll` says that something is wrong with it.
    pub(super) const fn note_error(&mut self) {
        match self {
            Self::Socket(socket) => socket.note_error(),
            // The next read or write finds out.
            Self::Pipe(_) => {}
        }
    }

    /// Hands the addresses to `each` where nobody listens, as far as the network says so; it answers whether that is of use. True when
    /// there may be more.
    pub(super) fn unreachable(&mut self, each: impl FnMut(SocketAddr) -> bool) -> bool {
        match self {
            Self::Socket(socket) => socket.unreachable(each),
            Self::Pipe(_) => false,
        }
    }

    /// What becomes readable when there are datagrams.
    pub(super) fn reader(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.reader(),
        }
    }

    /// What becomes writable when blocked datagrams can go on.
    pub(super) fn writer(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.writer(),
        }
    }

    /// Nobody reads what is sent, and nobody ever will.
    pub(super) const fn is_unheard(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Pipe(pipe) => pipe.is_unheard(),
        }
    }

    /// The last error of sending, to explain a peer that was never reached.
    pub(super) fn take_send_error(&mut self) -> Option<io::Error> {
        match self {
            Self::Socket(socket) => socket.take_send_error(),
            Self::Pipe(_) => None,
        }
    }

    /// Datagrams refused before the engine saw them.
    pub(super) const fn refused(&self) -> u64 {
        match self {
            Self::Socket(socket) => socket.refused(),
            Self::Pipe(pipe) => pipe.refused(),
        }
    }
}
