//! How a connection begins: the peer to connect to, and the wait for it.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use transport::ConnectOptions;

use crate::connection::Connection;
use crate::error::NetError;
use crate::messages::{Event, EventHandler, Message, MessageSender};
use crate::shared::Shared;

/// A peer to connect to: the key that both sides hold, the addresses at which the peer may listen, and how to connect.
///
/// It converts from a key and an address, from a key and several addresses, and from a key and [`ConnectOptions`]; in
/// the crate `downpour` also from a ticket: `endpoint.connect(&ticket)`.
#[derive(Clone)]
pub struct Peer {
    /// 32 random bytes that both sides have exchanged over a channel that they trust.
    pub key: [u8; 32],
    /// The addresses, of which all are tried, and how to connect.
    pub options: ConnectOptions,
}

impl From<([u8; 32], SocketAddr)> for Peer {
    fn from((key, address): ([u8; 32], SocketAddr)) -> Self {
        (key, vec![address]).into()
    }
}

impl From<([u8; 32], Vec<SocketAddr>)> for Peer {
    fn from((key, addresses): ([u8; 32], Vec<SocketAddr>)) -> Self {
        (key, ConnectOptions::new(addresses)).into()
    }
}

impl From<([u8; 32], ConnectOptions)> for Peer {
    fn from((key, options): ([u8; 32], ConnectOptions)) -> Self {
        Self { key, options }
    }
}

/// Without the key, which is a secret.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A connection that has not begun, from [`Endpoint::connect`](crate::Endpoint::connect). It begins when it is awaited,
/// or by [`Connecting::start`].
#[must_use = "a connection begins when this is awaited, or by `start`"]
pub struct Connecting<'a> {
    pub(crate) sender: &'a MessageSender,
    pub(crate) peer: Peer,
    pub(crate) events: EventHandler,
}

impl<'a> Connecting<'a> {
    /// Calls `handler` for each event of the connection, on the network thread: it must not block. A program that uses
    /// only streams needs no events.
    pub fn events(self, handler: impl FnMut(Event) + Send + 'static) -> Self {
        Self { events: Box::new(handler), ..self }
    }

    /// Begins the connection. Objects and control messages may be passed to it at once, and are sent as soon as the
    /// peer has answered; streams can be opened after [`Connection::established`].
    #[must_use]
    pub fn start(self) -> Connection {
        let (controls, shared) = (self.sender.new_controls(), Arc::<Shared>::default());
        let connection = Connection::new(controls.clone(), Arc::clone(&shared));
        let Self { sender, peer: Peer { key, options }, events } = self;
        sender.push(Message::Connect { controls, shared, key, options: Box::new(options), events });
        connection
    }
}

/// Begins the connection and waits for the peer to prove that it has the key. Dropping the future closes the
/// connection.
///
/// # Errors
/// How the connection ended instead: [`NetError::HandshakeTimedOut`] if there was no answer.
impl<'a> IntoFuture for Connecting<'a> {
    type Output = Result<Connection, NetError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let pending = Pending(self.start());
            pending.0.established().await?;
            let connection = pending.0.clone();
            std::mem::forget(pending);
            Ok(connection)
        })
    }
}

/// A connection whose peer has not answered yet: closed if nothing waits for it any more.
struct Pending(Connection);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.close(0, "no longer wanted");
    }
}

impl fmt::Debug for Connecting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("peer", &self.peer).finish_non_exhaustive()
    }
}
