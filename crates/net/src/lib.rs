//! Reliable, encrypted connections over UDP, or over a pair of pipes: the sockets, clocks and threads around the
//! sans-IO engine in [`transport`].
//!
//! An [`Endpoint`] owns a socket and any number of [`Connection`]s over it. Both sides of a connection hold the same
//! 32-byte key; an endpoint does not answer peers without it. A connection carries:
//!
//! - **streams**: ordered bytes in both directions ([`Stream`]) or in one ([`SendStream`] and [`RecvStream`]). They
//!   implement tokio's `AsyncWrite` and `AsyncRead`, can be cancelled at any point, and buffer a bounded number of
//!   bytes. An aborted stream is distinguished from a finished one.
//! - **objects**: bytes of known length, read from a [`Source`] and written to a [`Sink`] in blocks, several at once
//!   and in any order. [`Event`]s report their progress.
//! - a **control stream** for the program's short messages, which take precedence over everything else.
//!
//! ```
//! use downpour_net::{AcceptOptions, Endpoint};
//! use std::net::SocketAddr;
//! use std::time::{Duration, SystemTime};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let (key, loopback) = ([7; 32], SocketAddr::from(([127, 0, 0, 1], 0)));
//! let server = Endpoint::bind(loopback)?;
//! let expires = SystemTime::now() + Duration::from_secs(60);
//! let mut incoming = server.incoming(key, expires, AcceptOptions::default());
//!
//! let client = Endpoint::bind(loopback)?;
//! let connection = client.connect((key, server.local_address())).await?;
//! let peer = incoming.accept().await.ok_or("no longer listening")?;
//!
//! let mut stream = connection.open_with(1).await?;
//! stream.write_all(b"hello").await?;
//! stream.finish();
//! let (mut text, mut accepted) = (String::new(), peer.accept().await?);
//! accepted.read_to_string(&mut text).await?;
//! assert_eq!((accepted.tag(), text.as_str()), (1, "hello"));
//!
//! for (reason, count) in peer.stats().await.refused.by_reason() {
//!     assert_eq!(count, 0, "{reason}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! Each endpoint has a network thread that owns the engine and the socket. It is not a task of an async runtime,
//! because pacing needs finer timers than a runtime provides and because feedback to the peer must not wait for the
//! program. It receives commands through a queue that wakes it, and wakes the tasks that wait for a stream, a reply or
//! the end of a connection, on whatever executor they run. Workers read and write objects, hash, encode and decode.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/EMBEDDING.md")]
struct Embedding;

mod bind;
mod buffers;
mod carrier;
mod connecting;
mod connection;
mod driver;
mod endpoint;
mod error;
mod inbox;
mod messages;
mod object;
mod options;
mod shared;
mod socket_info;
mod stats;
mod stream;
mod stream_fd;
#[cfg(test)]
mod tests;
mod workers;

pub use bind::{Bind, Family};
pub use carrier::PIPE_PEER;
pub use connecting::{Connecting, Peer};
pub use connection::Connection;
pub use endpoint::{Acceptor, Endpoint, EndpointBuilder, Incoming};
pub use error::NetError;
pub use messages::{Event, EventHandler, IncomingObject};
pub use object::{BlockDigest, Sink, Source};
pub use options::{EndpointOptions, MIN_MEMORY, StreamOptions, default_memory};
pub use socket_info::{BufferFacts, SocketInfo, ThreadClock, ThreadTime};
pub use stats::{RejectedDatagrams, Stats};
pub use stream::{RecvStream, SendStream, Stream};
pub use stream_fd::FdResult;
pub use transport::congestion::SavedPath;
pub use transport::{
    AcceptOptions, CongestionStats, ConnectError, ConnectOptions, ConnectionStats, FlowError, ObjectStats, PacketStats,
    PathStats, Priority, Profile, Rate, ReconfigureError, SymbolStats, TimerStats,
};
