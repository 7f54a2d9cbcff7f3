//! Streams: ordered bytes, in one direction or in both.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use crate::buffers::{ReadHalf, WriteHalf};
use crate::error::NetError;
use crate::messages::{Command, CommandSender, Name};

/// The code of a stream dropped before its end.
const DROPPED: u32 = 0;

/// The sending half of a stream.
///
/// Dropping it without [`finish`](Self::finish) resets the stream: the peer never takes a part for the whole. All
/// methods can be cancelled: unwritten bytes are not buffered.
pub struct SendStream {
    controls: CommandSender,
    name: Name,
    half: Arc<WriteHalf>,
    /// Whether this side has finished or reset it.
    closed: bool,
}

impl SendStream {
    pub(crate) const fn new(controls: CommandSender, name: Name, half: Arc<WriteHalf>) -> Self {
        Self { controls, name, half, closed: false }
    }

    /// Ends the stream after the bytes written so far. The peer's [`RecvStream`] then reads to its end.
    pub fn finish(&mut self) {
        if !self.closed {
            self.closed = true;
            self.half.lock().finished = true;
            self.controls.command(Command::Written(self.name));
        }
    }

    /// Resets the stream: unsent bytes are dropped, and the peer's reader fails with [`NetError::StreamReset`].
    pub fn reset(&mut self, code: u32) {
        self.closed = true;
        self.controls.command(Command::Reset { stream: self.name, code });
    }

    /// Waits until the peer has received every byte of a finished stream. Its program may not have read them yet.
    ///
    /// # Errors
    /// [`NetError::StreamStopped`] if the peer stops reading before that; how the connection ended.
    pub async fn sent(&mut self) -> Result<(), NetError> {
        poll_fn(|context| {
            let mut state = self.half.lock();
            match &state.end {
                Some(end) => Poll::Ready(end.clone()),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.closed {
            return Poll::Ready(Err(NetError::StreamClosed.into()));
        }
        let mut state = self.half.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone().err().unwrap_or(NetError::StreamClosed).into()));
        }
        let count = state.push(bytes);
        if count == 0 && !bytes.is_empty() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let tell = !std::mem::replace(&mut state.notified, true);
        drop(state);
        if tell {
            self.controls.command(Command::Written(self.name));
        }
        Poll::Ready(Ok(count))
    }

    /// Returns at once: no byte is held back.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Calls [`SendStream::finish`]. It does not wait for the bytes to arrive; [`SendStream::sent`] does.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.closed {
            self.reset(DROPPED);
        }
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("name", &self.name).field("closed", &self.closed).finish_non_exhaustive()
    }
}

/// The receiving half of a stream.
///
/// It reads 0 bytes only after the peer has finished the stream; if the stream breaks off, reading fails with an error
/// that carries a [`NetError`]. Dropping it before the end stops the stream. All methods can be cancelled without
/// losing a byte.
pub struct RecvStream {
    controls: CommandSender,
    name: Name,
    tag: u64,
    half: Arc<ReadHalf>,
    /// Bytes taken from the shared buffer; those from `at` on are not yet read.
    chunk: Vec<u8>,
    at: usize,
    /// Whether it was read to its end, or stopped.
    over: bool,
}

impl RecvStream {
    pub(crate) const fn new(controls: CommandSender, name: Name, tag: u64, half: Arc<ReadHalf>) -> Self {
        Self { controls, name, tag, half, chunk: Vec::new(), at: 0, over: false }
    }

    /// Returns its name on the network thread.
    pub(crate) const fn name(&self) -> Name {
        self.name
    }

    /// Returns the tag chosen by the program that has opened the stream. A peer may use a tag twice.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Stops reading: received bytes are dropped, and the peer's writer fails with [`NetError::StreamStopped`].
    pub fn stop(mut self, code: u32) {
        self.abort_with(code);
    }

    fn abort_with(&mut self, code: u32) {
        if !std::mem::replace(&mut self.over, true) {
            self.controls.command(Command::Stop { stream: self.name, code });
        }
    }
}

impl AsyncBufRead for RecvStream {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let stream = self.get_mut();
        if stream.at == stream.chunk.len() {
            stream.chunk.clear();
            stream.at = 0;
            let mut state = stream.half.lock();
            std::mem::swap(&mut stream.chunk, &mut state.buffer);
            if !stream.chunk.is_empty() {
                if std::mem::take(&mut state.full) {
                    drop(state);
                    stream.controls.command(Command::Read(stream.name));
                }
            } else if let Some(end) = &state.end {
                stream.over = true;
                end.clone()?;
            } else {
                state.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(&stream.chunk[stream.at..]))
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        self.at = (self.at + count).min(self.chunk.len());
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let found = std::task::ready!(self.as_mut().poll_fill_buf(context))?;
        let count = found.len().min(out.remaining());
        out.put_slice(&found[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.abort_with(DROPPED);
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("name", &self.name).field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// Bytes in both directions: one stream of each side, of which the second answers the first. Each direction ends by
/// itself.
///
/// It implements tokio's `AsyncRead` and `AsyncWrite`. Bytes written before the peer has accepted are sent with the
/// packet that opens it, and reading waits for the peer. Dropping it resets an unfinished direction and stops one not
/// read to its end. All methods can be cancelled, as those of [`SendStream`] and [`RecvStream`].
#[derive(Debug)]
pub struct Stream {
    send: SendStream,
    recv: RecvStream,
}

impl Stream {
    pub(crate) const fn new(send: SendStream, recv: RecvStream) -> Self {
        Self { send, recv }
    }

    /// Returns the tag chosen by the program that has opened the stream. A peer may use a tag twice.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.recv.tag()
    }

    /// Finishes this side's direction; the peer's can still be read.
    pub fn finish(&mut self) {
        self.send.finish();
    }

    /// Breaks both directions off with this code. The peer's program reads no more than has arrived, and can write no
    /// more.
    pub fn abort(mut self, code: u32) {
        self.send.reset(code);
        self.recv.stop(code);
    }

    /// Returns the two directions, which then live on their own.
    #[must_use]
    pub fn into_split(self) -> (RecvStream, SendStream) {
        (self.recv, self.send)
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.recv).poll_read(context, out)
    }
}

impl AsyncBufRead for Stream {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().recv).poll_fill_buf(context)
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        Pin::new(&mut self.recv).consume(count);
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.send).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_shutdown(context)
    }
}
