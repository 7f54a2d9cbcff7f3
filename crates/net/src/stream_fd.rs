//! Streams as descriptors, for programs that know sockets and no futures.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::NetError;
use crate::stream::{RecvStream, SendStream, Stream};

/// Bytes read from a socket at once.
const CHUNK: usize = 32 << 10;

/// The thread that carries bytes between streams and sockets; started with the first.
static CARRIER: Mutex<Option<Handle>> = Mutex::new(None);

/// The result of a stream used through a descriptor: a socket has the same end for an aborted stream as for a finished
/// one. A future, ready once both directions are over: that of the peer ends with the peer.
#[derive(Debug)]
pub struct FdResult(oneshot::Receiver<Result<(), NetError>>);

impl FdResult {
    /// Returns how it ended; `None` while it has not.
    pub fn try_get(&mut self) -> Option<Result<(), NetError>> {
        match self.0.try_recv() {
            Ok(end) => Some(end),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(Err(NetError::Panicked("the carrier of descriptors"))),
        }
    }
}

impl Future for FdResult {
    type Output = Result<(), NetError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|end| end.unwrap_or(Err(NetError::Panicked("the carrier of descriptors"))))
    }
}

impl Stream {
    /// Returns the stream as one end of a pair of unix sockets, as `socketpair(2)` makes them: to `read`, `write`,
    /// `poll` and `shutdown`, in C, in Python's `socket.socket(fileno=...)`, or as the standard input of a child
    /// process. Closing it finishes the written direction. All such streams of a process share one thread.
    ///
    /// # Errors
    /// The system has no more descriptors, or no thread.
    pub fn into_fd(self) -> io::Result<(OwnedFd, FdResult)> {
        let carrier = carrier()?;
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (sender, ended) = oneshot::channel();
        carrier.spawn(async move {
            let end = match UnixStream::from_std(ours) {
                Ok(socket) => carry(self, socket).await,
                Err(error) => Err(NetError::system(error)),
            };
            // The receiver may have been dropped.
            let _ = sender.send(end);
        });
        Ok((theirs.into(), FdResult(ended)))
    }
}

/// Returns the runtime on the thread of descriptors.
fn carrier() -> io::Result<Handle> {
    let mut carrier = CARRIER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*carrier {
        return Ok(handle.clone());
    }
    let (sender, started) = mpsc::channel();
    thread::Builder::new().name("downpour-fds".into()).spawn(move || {
        // It lives and ends on this thread: where a runtime is running already, another must not be dropped.
        let runtime = Builder::new_current_thread().enable_io().build();
        let handle = runtime.as_ref().map(|runtime| runtime.handle().clone()).map_err(|error| error.kind());
        // The caller waits for it.
        let _ = sender.send(handle);
        if let Ok(runtime) = runtime {
            runtime.block_on(std::future::pending::<()>());
        }
    })?;
    let handle = started.recv().map_err(|_| io::ErrorKind::Other)??;
    Ok(carrier.insert(handle).clone())
}

/// Carries both directions to their ends. If the stream breaks off, so does the socket.
async fn carry(stream: Stream, socket: UnixStream) -> Result<(), NetError> {
    let (recv, send) = stream.into_split();
    let (reader, writer) = socket.into_split();
    tokio::try_join!(up(reader, send), down(recv, writer)).map(drop)
}

/// Carries the program's bytes, and waits until they have arrived.
async fn up(mut reader: OwnedReadHalf, mut send: SendStream) -> Result<(), NetError> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => break send.finish(),
            Ok(count) => send.write_all(&buffer[..count]).await.map_err(of_stream)?,
            // Closed with unread bytes: those written before are complete.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break send.finish(),
            Err(error) => return Err(NetError::system(error)),
        }
    }
    match send.sent().await {
        // It is the peer's to decide how much it reads.
        Err(NetError::StreamStopped { .. }) => Ok(()),
        sent => sent,
    }
}

/// Carries the peer's bytes, until the program takes no more.
async fn down(mut recv: RecvStream, mut writer: OwnedWriteHalf) -> Result<(), NetError> {
    loop {
        let chunk = recv.fill_buf().await.map_err(of_stream)?;
        if chunk.is_empty() {
            // Fails if the program has closed its end.
            let _ = writer.shutdown().await;
            return Ok(());
        }
        let Ok(count) = writer.write(chunk).await else { return Ok(()) };
        recv.consume(count);
    }
}

fn of_stream(error: io::Error) -> NetError {
    error.downcast().unwrap_or_else(NetError::system)
}
