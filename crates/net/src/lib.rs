//! Connections over UDP, or over a pair of pipes: sockets, clocks and threads for the `transport` engine.

mod bind;
mod buffers;
mod carrier;
mod connection;
mod driver;
mod endpoint;
mod error;
mod facts;
mod inbox;
mod messages;
mod object;
mod shared;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod workers;

pub use bind::{Bind, Family};
pub use carrier::PIPE_PEER;
pub use connection::Connection;
pub use endpoint::{Acceptor, Endpoint, Incoming};
pub use error::NetError;
pub use facts::{BufferFacts, SocketFacts, Thread, ThreadTime};
pub use messages::{Event, EventHandler, IncomingObject};
pub use object::{BlockDigest, Sink, Source};
pub use stats::{Refused, Stats};
pub use stream::{RecvStream, SendStream};
pub use transport::{AcceptOptions, ConnectError, ConnectOptions, ConnectionStats, FlowError, Profile, Rate, SetError};
