//! Messages between the network thread and the program: events in one direction, commands in the other.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;
use transport::congestion::SavedPath;
use transport::{AcceptOptions, ConnectOptions, FlowId, Priority, Rate, ReconfigureError, Time};

use crate::buffers::WriteHalf;
use crate::error::NetError;
use crate::inbox::Inbox;
use crate::object::{BlockDigest, Sink, Source};
use crate::options::StreamOptions;
use crate::shared::Shared;
use crate::stats::{RejectedDatagrams, Stats};
use crate::stream::{RecvStream, SendStream};
use crate::workers::Finished;

/// The code with which connections and streams are closed that the program does not accept.
pub(crate) const NOT_ACCEPTED: u32 = 0x100;

/// An event of a connection, its objects or its control stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer has proved that it has the key.
    Connected {
        /// The address of the peer.
        remote: SocketAddr,
        /// The application data that the peer's program put into the handshake.
        application: Vec<u8>,
    },
    /// Bytes of the control stream, in order. Release them with
    /// [`Connection::release_control`](crate::Connection::release_control).
    Control(Vec<u8>),
    /// This many bytes passed to [`Connection::write_control`](crate::Connection::write_control) have arrived.
    ControlAcknowledged(usize),
    /// The peer has opened a stream, which [`Connection::accept_uni`](crate::Connection::accept_uni) returns.
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
    /// The peer has received every byte of an object; it may still be writing them.
    ObjectSent {
        /// Its tag.
        tag: u64,
    },
    /// A source or a sink failed, or an object cannot be opened. The connection continues, but the object makes no more
    /// progress.
    ObjectFailed(NetError),
    /// Further bytes of the trace (qlog, JSON text sequence), if the connection records one.
    Trace(Vec<u8>),
    /// The last event.
    Closed(NetError),
}

/// Handles the events of one connection, in order. It runs on the network thread and must not block: send them through
/// a channel, or drop unneeded ones. If it panics, its connection ends with [`NetError::Panicked`], and it is not
/// called again.
pub type EventHandler = Box<dyn FnMut(Event) + Send>;

/// The name of a stream between the program and the network thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Flow(FlowId),
    /// To read: the peer's answer to this one.
    AnswerTo(FlowId),
    /// To write: this one of the answers of this side.
    Answer(u64),
}

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
        options: StreamOptions,
        /// If the receiver is dropped the stream is dropped, which resets it.
        opened: oneshot::Sender<Result<SendStream, NetError>>,
    },
    /// The same, and waits for the peer's answer.
    Open {
        options: StreamOptions,
        opened: oneshot::Sender<Result<(SendStream, RecvStream), NetError>>,
    },
    /// Opens a stream in answer to this one of the peer, by which number the program will name it.
    Answer {
        number: u64,
        to: FlowId,
        class: Priority,
        half: PendingReply,
    },
    /// The program has written to the stream, or finished it.
    Written(Name),
    Reset {
        stream: Name,
        code: u32,
    },
    /// The program has accepted the stream, or has read from it after its buffer was full.
    Read(Name),
    Stop {
        stream: Name,
        code: u32,
    },
    SetLimit(Option<Rate>),
    Recall(SavedPath),
    Set {
        key: String,
        value: String,
        done: oneshot::Sender<Result<(), ReconfigureError>>,
    },
    Stats(oneshot::Sender<Stats>),
    Ping,
    ExpectClose,
    Leave,
    Close {
        code: u32,
        reason: String,
    },
}

/// The writer's half of an unopened answer. If the connection has ended in the meantime, so has the half.
pub(crate) struct PendingReply {
    half: Option<Arc<WriteHalf>>,
    shared: Arc<Shared>,
}

impl PendingReply {
    pub(crate) const fn new(half: Arc<WriteHalf>, shared: Arc<Shared>) -> Self {
        Self { half: Some(half), shared }
    }

    pub(crate) fn take(mut self) -> Arc<WriteHalf> {
        self.half.take().unwrap_or_default()
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let Some(half) = self.half.take() {
            half.end(Err(self.shared.ended().0));
        }
    }
}

/// An object that the peer wants to send. Data that arrives before it is accepted is buffered in the engine, bounded by
/// the peer's credit, and delays the objects after it. If this is dropped, the object is received and discarded without
/// further events.
pub struct IncomingObject {
    pub(crate) controls: CommandSender,
    pub(crate) flow: FlowId,
    pub(crate) tag: u64,
    pub(crate) length: u64,
    pub(crate) accepted: bool,
}

impl IncomingObject {
    /// Returns the tag chosen by the peer's program. A peer may use a tag twice.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Returns the length in bytes that the peer claims.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Receives the object into `sink`. [`Event::Digest`](crate::Event::Digest) follows for each written block, and
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

/// Number of a connection within its endpoint, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(u64);

/// A message to the network thread.
pub(crate) enum Message {
    Connect {
        controls: CommandSender,
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
    Refused(oneshot::Sender<RejectedDatagrams>),
    HalfOpen(oneshot::Sender<usize>),
    Connection(ConnectionId, Command),
    /// A worker has finished a job.
    Finished(Finished),
    /// The endpoint was dropped.
    Stop,
}

/// Accepts a connection that has begun.
pub(crate) type Accept = Box<dyn FnMut(CommandSender, Arc<Shared>) -> EventHandler + Send>;

/// The sending end for messages to a network thread.
#[derive(Clone)]
pub(crate) struct MessageSender {
    pub(crate) inbox: Arc<Inbox<Message>>,
    next_connection: Arc<AtomicU64>,
}

impl MessageSender {
    pub(crate) fn new(inbox: Inbox<Message>) -> Self {
        Self { inbox: Arc::new(inbox), next_connection: Arc::default() }
    }

    pub(crate) fn push(&self, message: Message) {
        self.inbox.push(message);
    }

    /// Creates the controls of a new connection.
    pub(crate) fn new_controls(&self) -> CommandSender {
        CommandSender {
            id: ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed)),
            inbox: Arc::clone(&self.inbox),
        }
    }
}

/// The sending end for commands to one connection.
#[derive(Clone)]
pub(crate) struct CommandSender {
    pub(crate) id: ConnectionId,
    inbox: Arc<Inbox<Message>>,
}

impl CommandSender {
    pub(crate) fn command(&self, command: Command) {
        self.inbox.push(Message::Connection(self.id, command));
    }
}

impl fmt::Debug for CommandSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controls").field(&self.id.0).finish()
    }
}
