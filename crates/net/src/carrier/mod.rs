//! What carries datagrams for the network thread: a UDP socket, or a pair of descriptors such as ssh's pipes.

mod datagram;
mod pipe;
mod socket;
mod unreachable;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::stats::CarrierRefused;
pub use datagram::PIPE_PEER;
pub(crate) use datagram::{Broken, Outgoing, Received, Sent};
pub(crate) use pipe::Pipe;
pub(crate) use socket::{KERNEL_BUFFER, Socket};

/// What the network thread sends and receives with. Neither call blocks.
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
    pub(crate) fn refused(&self) -> CarrierRefused {
        match self {
            Self::Socket(socket) => socket.refused(),
            Self::Pipe(pipe) => CarrierRefused { empty: pipe.refused(), icmp: 0 },
        }
    }
}
