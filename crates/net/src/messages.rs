//! What the network thread and the program say to each other: events one way, commands the other.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;
use transport::{AcceptOptions, ConnectOptions, FlowId, Rate, SetError, Time};

use crate::error::NetError;
use crate::inbox::Inbox;
use crate::object::{BlockDigest, Sink, Source};
use crate::shared::Shared;
use crate::stats::{Refused, Stats};
use crate::stream::SendStream;
use crate::workers::Finished;

/// The code that a peer is told when nobody accepts its connection or its stream.
pub(crate) const NOT_ACCEPTED: u32 = 0x100;

/// What happens to a connection, to its objects and to its control stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer has proved that it has the key.
    Connected {
        /// Where the peer is.
        remote: SocketAddr,
        /// What its program said in the handshake.
        application: Vec<u8>,
    },
    /// Bytes of the control stream, in order. Give their count back with [`Connection::control_taken`](crate::Connection::control_taken).
    Control(Vec<u8>),
    /// So many bytes of what [`Connection::write_control`](crate::Connection::write_control) took have arrived.
    ControlAcknowledged(usize),
    /// The peer has opened a stream, which [`Connection::accept_stream`](crate::Connection::accept_stream) gives.
    StreamOpened,
    /// The peer wants to send an object.
    ObjectAnnounced(IncomingObject),
    /// A block was read (sending) or written (receiving).
    Digest(BlockDigest),
    /// Every byte of an accepted object is written.
    ObjectReceived {
        /// Its tag.
        tag: u64,
    },
    /// The peer has every byte of an object; it may still be writing them.
    ObjectSent {
        /// Its tag.
        tag: u64,
    },
    /// A source or a sink failed, or an object cannot be opened. The connection stands, and the object makes no more progress.
    Failed(NetError),
    /// More of the trace (qlog, JSON text sequence), if the connection records one.
    Trace(Vec<u8>),
    /// The last event.
    Closed(NetError),
}

/// Takes the events of one connection, in order. It runs on the network thread and must not block: put them into a channel, or drop
/// those that are of no use. If it panics, its connection ends with [`NetError::Panicked`], and it is not called again.
pub type EventHandler = Box<dyn FnMut(Event) + Send>;

pub(crate) enum Command {
    WriteControl(Vec<u8>),
    ControlTaken(usize),
    SendObject {
        tag: u64,
        length: u64,
        source: Arc<dyn Source>,
    },
    AcceptObject {
        flow: FlowId,
        sink: Arc<dyn Sink>,
    },
    /// The program does not want the object.
    DropObject(FlowId),
    OpenStream {
        tag: u64,
        /// A stream that arrives nowhere is dropped, and with that reset.
        opened: oneshot::Sender<Result<SendStream, NetError>>,
    },
    /// The program has written to the stream, or finished it.
    Written(FlowId),
    Reset {
        flow: FlowId,
        code: u32,
    },
    /// The program has accepted the stream, or has read from it after it had no more room.
    Read(FlowId),
    Stop {
        flow: FlowId,
        code: u32,
    },
    SetLimit(Option<Rate>),
    Set {
        key: String,
        value: String,
        done: oneshot::Sender<Result<(), SetError>>,
    },
    Stats(oneshot::Sender<Stats>),
    Ping,
    ExpectClose,
    Close {
        code: u32,
        reason: String,
    },
}

/// An object that the peer wants to send. What comes of it before it is accepted waits in the engine, bounded by the peer's credit, and
/// holds up the objects after it. One that is dropped is received and thrown away: no event follows.
pub struct IncomingObject {
    pub(crate) controls: Controls,
    pub(crate) flow: FlowId,
    pub(crate) tag: u64,
    pub(crate) length: u64,
    pub(crate) accepted: bool,
}

impl IncomingObject {
    /// What the peer's program calls it. Nothing keeps a peer from using a tag twice.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Its length in bytes, as the peer claims.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Receives the object into `sink`. [`Event::Digest`](crate::Event::Digest) follows for each block that is written, and
    /// [`Event::ObjectReceived`](crate::Event::ObjectReceived) after the last.
    pub fn accept(mut self, sink: Arc<dyn Sink>) {
        self.accepted = true;
        self.controls.command(Command::AcceptObject { flow: self.flow, sink });
    }
}

impl Drop for IncomingObject {
    fn drop(&mut self) {
        if !self.accepted {
            self.controls.command(Command::DropObject(self.flow));
        }
    }
}

impl fmt::Debug for IncomingObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flow, tag, length, .. } = self;
        f.debug_struct("IncomingObject")
            .field("flow", flow)
            .field("tag", tag)
            .field("length", length)
            .finish_non_exhaustive()
    }
}

/// A connection of an endpoint, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(u64);

/// What the network thread is told.
pub(crate) enum Message {
    Connect {
        controls: Controls,
        shared: Arc<Shared>,
        key: [u8; 32],
        options: Box<ConnectOptions>,
        events: EventHandler,
    },
    Listen {
        key: [u8; 32],
        expires: Time,
        options: Box<AcceptOptions>,
        acceptor: Accept,
    },
    StopListening,
    Refused(oneshot::Sender<Refused>),
    Connection(ConnectionId, Command),
    /// A worker is done.
    Finished(Finished),
    /// Nobody wants the endpoint any more.
    Stop,
}

/// Takes a connection that has begun.
pub(crate) type Accept = Box<dyn FnMut(Controls, Arc<Shared>) -> EventHandler + Send>;

/// Where messages for a network thread go in.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) inbox: Arc<Inbox<Message>>,
    next_connection: Arc<AtomicU64>,
}

impl Door {
    pub(crate) fn new(inbox: Inbox<Message>) -> Self {
        Self { inbox: Arc::new(inbox), next_connection: Arc::default() }
    }

    pub(crate) fn push(&self, message: Message) {
        self.inbox.push(message);
    }

    /// The controls of a connection that is about to begin.
    pub(crate) fn new_controls(&self) -> Controls {
        Controls {
            id: ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed)),
            inbox: Arc::clone(&self.inbox),
        }
    }
}

/// Leads to one connection of a network thread.
#[derive(Clone)]
pub(crate) struct Controls {
    pub(crate) id: ConnectionId,
    inbox: Arc<Inbox<Message>>,
}

impl Controls {
    pub(crate) fn command(&self, command: Command) {
        self.inbox.push(Message::Connection(self.id, command));
    }
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controls").field(&self.id.0).finish()
    }
}
