//! Buffers of streams, shared by the program and the network thread. Neither blocks the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::error::NetError;

/// Maximum number of bytes received and not yet read.
pub(crate) const MAX_BUFFERED: usize = 1 << 20;

/// The buffer of a writer, and the bytes that the network thread has taken from it, are each this part of the engine's
/// buffer ([`transport::Connection::stream_room`]).
const ROOM: usize = 4;
const LEAST_ROOM: usize = (40 << 10) / ROOM;

/// Bytes written by the program and not yet sent by the network thread.
#[derive(Debug, Default)]
pub(crate) struct WriteHalf(Mutex<WriteBuffer>);

#[derive(Debug)]
pub(crate) struct WriteBuffer {
    pub(crate) buffer: Vec<u8>,
    /// The most bytes that it may have.
    room: usize,
    /// Whether nothing follows.
    pub(crate) finished: bool,
    /// Whether the network thread was notified and has not looked yet.
    pub(crate) notified: bool,
    /// Set once every byte has arrived, or none will any more.
    pub(crate) end: Option<Result<(), NetError>>,
    pub(crate) waker: Option<Waker>,
}

impl Default for WriteBuffer {
    fn default() -> Self {
        Self { buffer: Vec::new(), room: LEAST_ROOM, finished: false, notified: false, end: None, waker: None }
    }
}

impl WriteBuffer {
    /// Appends as many of `bytes` as fit; returns their number.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room.saturating_sub(self.buffer.len()));
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }
}

impl WriteHalf {
    /// Exchanges the buffered bytes for `empty`; returns whether the stream ends after them. The engine buffers
    /// `engine` bytes.
    pub(crate) fn take(&self, empty: &mut Vec<u8>, engine: usize) -> bool {
        let mut state = self.lock();
        state.notified = false;
        state.room = engine / ROOM;
        std::mem::swap(&mut state.buffer, empty);
        let waker = (!empty.is_empty()).then(|| state.waker.take()).flatten();
        let finished = state.finished;
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        finished
    }

    pub(crate) fn end(&self, end: Result<(), NetError>) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        state.buffer = Vec::new();
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WriteBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes received by the network thread and not yet read by the program.
#[derive(Debug, Default)]
pub(crate) struct ReadHalf(Mutex<ReadBuffer>);

#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    pub(crate) buffer: Vec<u8>,
    /// Whether the network thread has left bytes in the engine for lack of room, and waits to be notified of some.
    pub(crate) full: bool,
    /// The end after the last byte of the buffer: of the stream, or an error.
    pub(crate) end: Option<Result<(), NetError>>,
    pub(crate) waker: Option<Waker>,
}

impl ReadHalf {
    /// Lets `read` append at most the given number of bytes; it returns how many it did.
    pub(crate) fn fill(&self, read: impl FnOnce(&mut Vec<u8>, usize) -> usize) {
        let mut state = self.lock();
        let room = MAX_BUFFERED.saturating_sub(state.buffer.len());
        state.full = read(&mut state.buffer, room) == room;
        let waker = if state.buffer.is_empty() { None } else { state.waker.take() };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends the buffer after the bytes that `read` appends; `read` returns whether that is the end of the stream or an
    /// error.
    pub(crate) fn end(&self, read: impl FnOnce(&mut Vec<u8>) -> Result<(), NetError>) {
        let mut state = self.lock();
        if state.end.is_none() {
            let end = read(&mut state.buffer);
            state.end = Some(end);
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ReadBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_bytes_before_the_first_end_as_far_as_they_fit() {
        let half = ReadHalf::default();
        half.fill(|buffer, room| {
            assert_eq!(room, MAX_BUFFERED);
            buffer.extend([1; 10]);
            10
        });
        assert!(!half.lock().full, "the engine has no more");
        half.fill(|buffer, room| {
            assert_eq!(room, MAX_BUFFERED - 10);
            buffer.resize(MAX_BUFFERED, 2);
            room
        });
        assert!(half.lock().full, "the engine may have more");
        half.end(|buffer| {
            buffer.push(3);
            Ok(())
        });
        half.end(|_| panic!("it has ended"));
        let state = half.lock();
        assert!(matches!(state.end, Some(Ok(()))));
        assert_eq!((state.buffer.len(), state.buffer.last()), (MAX_BUFFERED + 1, Some(&3)));
    }

    #[test]
    fn a_writer_is_notified_of_its_end_and_its_bytes_are_released() {
        let half = WriteHalf::default();
        half.lock().buffer.extend(b"bytes");
        half.lock().notified = true;
        let mut taken = Vec::new();
        assert!(!half.take(&mut taken, 400), "more may follow");
        assert_eq!(taken, b"bytes");
        assert!(!half.lock().notified, "the next write notifies the network thread again");
        half.lock().finished = true;
        taken.clear();
        assert!(half.take(&mut taken, 400));
        let pushed = half.lock().push(&[7; 1_000]);
        assert_eq!((pushed, half.lock().push(&[7])), (100, 0));
        half.lock().buffer.extend(b"late");
        half.end(Err(NetError::StreamStopped { code: 1 }));
        half.end(Ok(()));
        let state = half.lock();
        assert!(matches!(state.end, Some(Err(NetError::StreamStopped { code: 1 }))));
        assert!(state.buffer.is_empty());
    }
}
