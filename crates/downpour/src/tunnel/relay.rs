//! The bytes between two connected programs, one on each host: the two directions are independent, and either may end
//! before the other.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use net::{RecvStream, SendStream};
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf,
};
use tokio::net::{TcpStream, UnixStream};

/// The code of a stream whose program has exited without finishing it, or reads no more.
const GONE: u32 = 1;

/// Bytes read from a socket at once.
const CHUNK: usize = 32 << 10;

/// The socket of a program.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The result of a requested connection.
pub(super) enum ConnectResult {
    /// The bytes of the other program follow.
    Connected(RecvStream),
    /// It was refused, and the program was informed.
    Refused,
    /// It was refused.
    Failed,
}

/// Bytes of programs so far.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// The bytes of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionTotals {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Whether it was reset.
    pub(super) is_cut: bool,
}

/// How a direction ended.
#[derive(Debug, PartialEq, Eq)]
enum CloseKind {
    /// After all bytes, or its receiver reads no more.
    Over,
    /// In the middle: the other program or the tunnel has ended.
    Cut,
}

impl Socket {
    /// Small writes are sent at once: a tunnel has its own rules for them. Until the end the socket is reset if it is
    /// dropped, even by the death of this process, so that truncated data is not taken as complete. A unix socket has
    /// no reset; its peer gets an error if it writes.
    pub(super) fn of_tcp(socket: TcpStream) -> Self {
        // Without the first it works, and without the second it is closed instead of reset.
        let _ = socket.set_nodelay(true);
        let _ = set_socket_linger(&socket, Some(Duration::ZERO));
        Self::Tcp(socket)
    }

    /// Finishes a connection without data, after the reply to the program.
    pub(super) async fn finish(mut self) {
        // Fails if the program has exited.
        let _ = self.shutdown().await;
        self.end();
    }

    /// Closes without a reset when it is dropped.
    fn end(&self) {
        if let Self::Tcp(socket) = self {
            // The last written bytes may still be in flight.
            let _ = set_socket_linger(socket, None);
        }
    }

    /// Relays the bytes of the program to `send`, and those that follow `opened` to the program; adds to `total`
    /// meanwhile. An interruption resets the socket.
    pub(super) async fn carry(
        self,
        send: SendStream,
        opened: impl AsyncFnOnce(&mut WriteHalf<Self>) -> ConnectResult,
        total: &Traffic,
    ) -> ConnectionTotals {
        let own = Traffic::default();
        let (mut reader, mut writer) = tokio::io::split(self);
        let up = up(&mut reader, send, [&own.sent, &total.sent]);
        let down = down(&mut writer, opened, [&own.received, &total.received]);
        let end = both(up, down).await;
        if end == CloseKind::Over {
            reader.unsplit(writer).end();
        }
        ConnectionTotals {
            sent: own.sent.into_inner(),
            received: own.received.into_inner(),
            is_cut: end == CloseKind::Cut,
        }
    }
}

fn count(counts: [&AtomicU64; 2], bytes: usize) {
    for count in counts {
        count.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Waits for both directions; an interruption of either ends the other.
async fn both(up: impl Future<Output = CloseKind>, down: impl Future<Output = CloseKind>) -> CloseKind {
    let (mut up, mut down) = (pin!(up), pin!(down));
    let (first, other_is_up) = tokio::select! {
        end = &mut up => (end, false),
        end = &mut down => (end, true),
    };
    match first {
        CloseKind::Cut => CloseKind::Cut,
        CloseKind::Over if other_is_up => up.await,
        CloseKind::Over => down.await,
    }
}

/// Relays the bytes of the program.
async fn up(reader: &mut ReadHalf<Socket>, mut send: SendStream, sent: [&AtomicU64; 2]) -> CloseKind {
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => {
                send.finish();
                return CloseKind::Over;
            }
            Ok(bytes) => {
                if let Err(error) = send.write_all(&buffer[..bytes]).await {
                    // The other program may still send, unless the tunnel has ended.
                    return if error.kind() == io::ErrorKind::BrokenPipe { CloseKind::Over } else { CloseKind::Cut };
                }
                count(sent, bytes);
            }
            Err(_) => {
                send.reset(GONE);
                return CloseKind::Cut;
            }
        }
    }
}

/// Relays the bytes of the other program.
async fn down(
    writer: &mut WriteHalf<Socket>,
    opened: impl AsyncFnOnce(&mut WriteHalf<Socket>) -> ConnectResult,
    received: [&AtomicU64; 2],
) -> CloseKind {
    let mut recv = match opened(writer).await {
        ConnectResult::Connected(recv) => recv,
        ConnectResult::Refused => {
            // The reply is in flight; later bytes of the program are dropped.
            let _ = writer.shutdown().await;
            return CloseKind::Over;
        }
        ConnectResult::Failed => return CloseKind::Cut,
    };
    loop {
        let Ok(chunk) = recv.fill_buf().await else { return CloseKind::Cut };
        if chunk.is_empty() {
            // Fails if the program has exited.
            let _ = writer.shutdown().await;
            return CloseKind::Over;
        }
        match writer.write(chunk).await {
            Ok(bytes @ 1..) => {
                recv.consume(bytes);
                count(received, bytes);
            }
            _ => {
                recv.stop(GONE);
                return CloseKind::Over;
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Unix(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(context),
            Self::Unix(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
