//! The carrier of datagrams for the network thread: a UDP socket, or a pair of descriptors such as ssh's pipes.

mod datagram;
mod error_queue;
mod pipe;
mod refused;
mod socket;
mod socket_drops;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

pub use datagram::PIPE_PEER;
pub(crate) use datagram::{CarrierError, Outgoing, Received, Sent};
pub(crate) use pipe::Pipe;
pub(crate) use refused::CarrierRefused;
pub(crate) use socket::{KERNEL_BUFFER, Socket};

/// The carrier with which the network thread sends and receives. Neither operation blocks.
pub(crate) enum Carrier {
    Socket(Box<Socket>),
    Pipe(Pipe),
}

impl Carrier {
    /// Passes the datagrams of one system call to `each`; returns whether more are probably available.
    ///
    /// # Errors
    /// Only if nothing can be received any more.
    pub(crate) fn receive(&mut self, each: impl FnMut(Received<'_>)) -> Result<bool, CarrierError> {
        match self {
            Self::Socket(socket) => {
                socket.receive(each).map(|count| count == Socket::BATCH).map_err(CarrierError::System)
            }
            Self::Pipe(pipe) => pipe.receive(each),
        }
    }

    /// Sends `out` from byte `sent` on and advances `sent` by the bytes that the kernel took. If it was blocked, the
    /// rest must be offered again, with the same `sent`, before anything else.
    pub(crate) fn send(&mut self, out: Outgoing<'_>, sent: &mut usize) -> Sent {
        match self {
            Self::Socket(socket) => socket.send(out, sent),
            Self::Pipe(pipe) => pipe.send(out, sent),
        }
    }

    /// Records that `poll` has reported an error.
    pub(crate) const fn note_error(&mut self) {
        match self {
            Self::Socket(socket) => socket.note_error(),
            // The next read or write returns the error.
            Self::Pipe(_) => {}
        }
    }

    /// Passes the addresses that the network reports as unreachable to `each`, which returns whether the report is
    /// useful. Returns whether more may follow.
    pub(crate) fn unreachable(&mut self, each: impl FnMut(SocketAddr) -> bool) -> bool {
        match self {
            Self::Socket(socket) => socket.unreachable(each),
            Self::Pipe(_) => false,
        }
    }

    /// Returns the descriptor that becomes readable with a datagram.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.reader(),
        }
    }

    /// Returns the descriptor that becomes writable when blocked datagrams can continue.
    pub(crate) fn writer(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.descriptor().as_fd(),
            Self::Pipe(pipe) => pipe.writer(),
        }
    }

    /// Whether the peer has stopped reading permanently.
    pub(crate) const fn is_peer_gone(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Pipe(pipe) => pipe.is_peer_gone(),
        }
    }

    /// Takes the last error of sending, which may explain why a peer was never reached.
    pub(crate) fn take_send_error(&mut self) -> Option<io::Error> {
        match self {
            Self::Socket(socket) => socket.take_send_error(),
            Self::Pipe(_) => None,
        }
    }

    /// Returns the counts of datagrams refused before they reach the engine.
    pub(crate) fn refused(&self) -> CarrierRefused {
        match self {
            Self::Socket(socket) => socket.refused(),
            Self::Pipe(pipe) => CarrierRefused { empty: pipe.refused(), icmp: 0 },
        }
    }

    /// Reads the kernel's counter of dropped datagrams, unless that was done just before.
    pub(crate) fn update_socket_drops(&mut self) {
        match self {
            Self::Socket(socket) => socket.update_socket_drops(),
            // A full pipe blocks its writer.
            Self::Pipe(_) => {}
        }
    }

    /// Returns how many datagrams the kernel had dropped then because the receive buffer was full; `None` if it does
    /// not report it.
    pub(crate) fn overflowed(&self) -> Option<u64> {
        match self {
            Self::Socket(socket) => socket.overflowed(),
            Self::Pipe(_) => None,
        }
    }
}
