//! Datagrams through two descriptors that carry a byte stream: the pipes of ssh or of a child, a socket pair, this
//! process's own standard input and output. Each datagram is its length (2 bytes, big-endian, 1 to 65,535) followed by
//! its bytes.
//!
//! No operation blocks, and no flag of the descriptors is changed. `O_NONBLOCK` belongs to the open file description,
//! which standard input and output share with the shell that started this process: left set by a killed process, it
//! breaks the next commands of the shell. Non-blocking flags for a single call (`RWF_NOWAIT`) are not supported for
//! pipes before Linux 6.5. Therefore `poll` is called first: reading from a readable descriptor does not block, and
//! neither does a write of at most `PIPE_BUF` bytes to a writable one, as long as no other process uses the same end.
//! If the reader has exited, a write returns an error and raises no signal: Rust programs ignore SIGPIPE.
//!
//! No datagram is lost, so a controller that slows down only after a loss fills every queue: the pipe's, ssh's, the
//! network's. Memory is bounded all the same: by one batch in the carrier, by the receiver's credit in the engine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use transport::ReceivedEcn;

use super::datagram::{CarrierError, Outgoing, PIPE_PEER, Received, Sent};

/// Size in bytes of the length before each datagram.
const HEADER: usize = 2;

/// Size of the receive buffer in bytes: twice the longest datagram, so that a whole one fits after a part of another.
const BUFFER_SIZE: usize = 1 << 17;

/// Maximum bytes per write: Linux's `PIPE_BUF`, for which a writable pipe has room.
const MAX_WRITE: usize = 4096;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Two descriptors with their buffers.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    /// The first `filled` bytes were received and are not yet a whole datagram.
    buffer: Vec<u8>,
    filled: usize,
    /// The batch being sent, including lengths; `written` bytes have been written.
    framed: Vec<u8>,
    written: usize,
    peer_gone: bool,
    refused: u64,
}

impl Pipe {
    pub(crate) fn new(read: OwnedFd, write: OwnedFd) -> Self {
        Self {
            read,
            write,
            buffer: vec![0; BUFFER_SIZE],
            filled: 0,
            framed: Vec::new(),
            written: 0,
            peer_gone: false,
            refused: 0,
        }
    }

    /// Returns the descriptor that becomes readable.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Returns the descriptor that becomes writable.
    pub(crate) fn writer(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }

    /// Returns whether the peer has closed its end.
    pub(crate) const fn is_peer_gone(&self) -> bool {
        self.peer_gone
    }

    /// Returns the number of invalid lengths.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Passes the datagrams completed by one read to `each`; returns whether more are probably available.
    ///
    /// # Errors
    /// [`CarrierError::Gone`] at the end of file, [`CarrierError::Malformed`] after a length of 0; preceding datagrams are passed
    /// on first.
    pub(crate) fn receive(&mut self, each: impl FnMut(Received<'_>)) -> Result<bool, CarrierError> {
        if ready(self.read.as_fd(), PollFlags::IN).map_err(CarrierError::System)?.is_empty() {
            return Ok(false);
        }
        let room = self.buffer.len() - self.filled;
        match rustix::io::read(&self.read, &mut self.buffer[self.filled..]) {
            Ok(0) | Err(Errno::CONNRESET) => Err(CarrierError::Gone),
            Ok(count) => {
                self.filled += count;
                self.hand_out(each)?;
                Ok(count == room)
            }
            Err(Errno::INTR) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(CarrierError::System(error.into())),
        }
    }

    /// Passes on the received datagrams. Datagrams of equal size are moved together, over the lengths between them, so
    /// that the engine gets them in one call.
    fn hand_out(&mut self, mut each: impl FnMut(Received<'_>)) -> Result<(), CarrierError> {
        let mut at = 0;
        while let Some(stride) = self.length_at(at) {
            if stride == 0 {
                self.refused += 1;
                return Err(CarrierError::Malformed("sent an empty datagram through the pipe"));
            }
            let start = at + HEADER;
            let mut end = start + stride;
            at = end;
            let mut last = stride;
            while last == stride
                && let Some(length @ 1..) = self.length_at(at)
                && length <= stride
            {
                self.buffer.copy_within(at + HEADER..at + HEADER + length, end);
                at += HEADER + length;
                end += length;
                last = length;
            }
            let bytes = &mut self.buffer[start..end];
            each(Received { from: PIPE_PEER, local: None, ecn: ReceivedEcn::NotEct, bytes, stride });
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }

    /// Returns the length of the datagram that begins at `at`, if it is complete.
    fn length_at(&self, at: usize) -> Option<usize> {
        let (header, rest) = self.buffer[at..self.filled].split_first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_be_bytes(*header));
        (length <= rest.len()).then_some(length)
    }

    /// Sends all of `out`, or keeps the rest to continue when called again with the same. A pipe without a reader takes
    /// everything, which is lost.
    pub(crate) fn send(&mut self, out: Outgoing<'_>, sent: &mut usize) -> Sent {
        if self.framed.is_empty() {
            for datagram in out.bytes[*sent..].chunks(out.segment_size.max(1)) {
                // Longer ones count as lost, as on a path whose packets are smaller.
                let Ok(length) = u16::try_from(datagram.len()) else { continue };
                self.framed.extend_from_slice(&length.to_be_bytes());
                self.framed.extend_from_slice(datagram);
            }
        }
        if self.flush() == Sent::Blocked {
            return Sent::Blocked;
        }
        self.framed.clear();
        self.written = 0;
        *sent = out.bytes.len();
        Sent::All
    }

    fn flush(&mut self) -> Sent {
        while !self.peer_gone && self.written < self.framed.len() {
            let state = ready(self.write.as_fd(), PollFlags::OUT).unwrap_or(PollFlags::ERR);
            if state.is_empty() {
                return Sent::Blocked;
            }
            let piece = self.framed.len().min(self.written + MAX_WRITE);
            match rustix::io::write(&self.write, &self.framed[self.written..piece]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Blocked,
                Err(error) => {
                    tracing::debug!(%error, "the reader of the pipe has closed it");
                    self.peer_gone = true;
                }
            }
        }
        Sent::All
    }
}

/// Returns which of the wanted states, or errors, a descriptor has now.
fn ready(descriptor: BorrowedFd<'_>, wanted: PollFlags) -> io::Result<PollFlags> {
    let mut asked = [PollFd::new(&descriptor, wanted)];
    match poll(&mut asked, Some(&NO_WAIT)) {
        Ok(_) => Ok(asked[0].revents()),
        // The caller polls again at once.
        Err(Errno::INTR) => Ok(PollFlags::empty()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write, pipe};
    use std::os::unix::net::UnixStream;

    use transport::recovery::EcnCodepoint;

    use super::*;

    fn outgoing(bytes: &[u8], segment_size: usize) -> Outgoing<'_> {
        Outgoing { destination: PIPE_PEER, source: None, ecn: EcnCodepoint::NotEct, segment_size, bytes }
    }

    /// Creates a carrier and the peer's ends of its pipes: the one that it reads from and the one that it writes to.
    fn joined(sockets: bool) -> (Pipe, File, File) {
        let ends = || -> (OwnedFd, OwnedFd) {
            if sockets {
                let (read, write) = UnixStream::pair().unwrap();
                (read.into(), write.into())
            } else {
                let (read, write) = pipe().unwrap();
                (read.into(), write.into())
            }
        };
        let ((read, to), (from, write)) = (ends(), ends());
        (Pipe::new(read, write), to.into(), from.into())
    }

    /// Bytes and stride of one call.
    type Datagrams = (Vec<u8>, usize);

    /// Returns the datagrams of one read, call by call.
    fn received(pipe: &mut Pipe) -> (Vec<Datagrams>, Result<bool, CarrierError>) {
        let mut calls = Vec::new();
        let result = pipe.receive(|received| calls.push((received.bytes.to_vec(), received.stride)));
        (calls, result)
    }

    #[test]
    fn a_batch_for_a_blocked_peer_is_kept_once_and_continued_from_the_same_byte() {
        for sockets in [false, true] {
            let (mut pipe, _to, mut from) = joined(sockets);
            let batches: Vec<Vec<u8>> = (0..200u32)
                .map(|batch| (0..45 * 1451 - 700).map(|at: u32| (at.wrapping_mul(batch + 3) >> 5) as u8).collect())
                .collect();
            let mut blocked = None;
            for (number, batch) in batches.iter().enumerate() {
                let mut sent = 0;
                if pipe.send(outgoing(batch, 1451), &mut sent) == Sent::Blocked {
                    // Offered again and again, without effect.
                    for _ in 0..10 {
                        assert_eq!((pipe.send(outgoing(batch, 1451), &mut sent), sent), (Sent::Blocked, 0));
                    }
                    assert_eq!(pipe.framed.len(), batch.len() + 45 * HEADER);
                    blocked = Some(number);
                    break;
                }
                assert_eq!(sent, batch.len());
            }
            let blocked = blocked.expect("13 MB do not fit");
            for descriptor in [&pipe.read, &pipe.write] {
                assert!(!rustix::fs::fcntl_getfl(descriptor).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
            }
            let expected: Vec<u8> = batches[..=blocked]
                .iter()
                .flat_map(|batch| batch.chunks(1451))
                .flat_map(|datagram| [&(datagram.len() as u16).to_be_bytes(), datagram].concat())
                .collect();
            let mut read = Vec::new();
            let mut sent = 0;
            let mut buffer = [0; 10_000];
            while pipe.send(outgoing(&batches[blocked], 1451), &mut sent) == Sent::Blocked {
                let count = from.read(&mut buffer).unwrap();
                read.extend_from_slice(&buffer[..count]);
            }
            assert_eq!(sent, batches[blocked].len());
            drop(pipe);
            from.read_to_end(&mut read).unwrap();
            assert!(read == expected, "sockets: {sockets}, {} bytes of {}", read.len(), expected.len());
        }
    }

    #[test]
    fn datagrams_of_any_length_survive_any_cuts_between_writes() {
        for seed in 0..50u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut pipe, mut to, _from) = joined(false);
            let lengths: Vec<usize> = (0..60)
                .map(|_| match random.u8(0..10) {
                    0 => 65_535,
                    1..4 => random.usize(1..2000),
                    _ => 1451,
                })
                .collect();
            let datagrams: Vec<Vec<u8>> =
                lengths.iter().map(|length| (0..*length).map(|_| random.u8(..)).collect()).collect();
            let mut stream = Vec::new();
            for datagram in &datagrams {
                stream.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
                stream.extend_from_slice(datagram);
            }
            let mut found: Vec<Vec<u8>> = Vec::new();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(random.usize(1..=rest.len().min(40_000)));
                to.write_all(piece).unwrap();
                rest = later;
                let (calls, result) = received(&mut pipe);
                assert!(result.is_ok(), "seed {seed}");
                found.extend(calls.iter().flat_map(|(bytes, stride)| bytes.chunks(*stride).map(<[u8]>::to_vec)));
            }
            assert!(
                found == datagrams,
                "seed {seed}: {} of {} datagrams, or other bytes",
                found.len(),
                datagrams.len()
            );
            assert_eq!(pipe.filled, 0, "seed {seed}");
        }
    }

    #[test]
    fn equal_datagrams_are_joined_and_a_shorter_one_ends_the_run() {
        let (mut pipe, mut to, _from) = joined(false);
        let framed = |lengths: &[u8]| -> Vec<u8> {
            lengths
                .iter()
                .flat_map(|length| [&[0, *length][..], &vec![*length; usize::from(*length)]].concat())
                .collect()
        };
        to.write_all(&framed(&[9, 9, 9, 4, 4, 7, 7, 1])).unwrap();
        let (calls, result) = received(&mut pipe);
        assert!(matches!(result, Ok(false)));
        let joined = |lengths: &[u8]| -> Vec<u8> {
            lengths.iter().flat_map(|length| vec![*length; usize::from(*length)]).collect()
        };
        assert_eq!(calls, [(joined(&[9, 9, 9, 4]), 9), (joined(&[4]), 4), (joined(&[7, 7, 1]), 7)]);
    }

    #[test]
    fn an_invalid_datagram_ends_the_pipe_after_earlier_ones() {
        let (mut pipe, mut to, from) = joined(true);
        to.write_all(&[0, 1, 5, 0, 1, 6, 0, 0, 0, 1, 7]).unwrap();
        let (calls, result) = received(&mut pipe);
        assert_eq!(calls, [(vec![5, 6], 1)]);
        assert!(matches!(result, Err(CarrierError::Malformed(_))), "{result:?}");
        assert_eq!(pipe.refused(), 1);
        drop((to, from));
        let (calls, result) = received(&mut pipe);
        assert!(calls.is_empty() && matches!(result, Err(CarrierError::Gone)), "{result:?}");
        assert!(!pipe.is_peer_gone());
        let mut sent = 0;
        assert_eq!((pipe.send(outgoing(&[1, 2, 3], 3), &mut sent), sent), (Sent::All, 3), "lost");
        assert!(pipe.is_peer_gone());
    }
}
