//! Connections over UDP, or over a pair of pipes: sockets, clocks and threads for the `transport` engine.
//!
//! The driver is one thread per endpoint that owns the engine and what carries its datagrams (a UDP socket, or a pair of pipes), and
//! worker threads for what the engine asks for.
//!
//! A thread of its own and not a task of an async runtime, because pacing needs timers finer than a runtime's milliseconds and
//! because nothing a program does may hold up feedback. Commands go in through a queue that wakes the thread; events go out
//! through a function the program gives with each connection, so that they end in whatever channel it likes.

mod bind;
mod carrier;
mod error;
mod facts;
mod inbox;
mod link;
mod pipe;
mod run;
mod socket;
mod streams;
#[cfg(test)]
mod tests;
mod unreachable;
mod workers;

use std::any::Any;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use transport::{
    AcceptOptions, Closed, ConnectOptions, Connection, ConnectionStats, EndpointConfig, FlowId, Limits, Rate, Time,
};

pub use bind::{Bind, Family};
use carrier::{Broken, Carrier};
pub use error::NetError;
pub use facts::{BufferFacts, SocketFacts, Thread, ThreadTime};
use inbox::Inbox;
use pipe::Pipe;
use run::Running;
use socket::Socket;
use workers::{Finished, Workers};

/// What stands for the peer's address, and for our own, where datagrams go through pipes. To connect, it is the only remote.
pub const PIPE_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

/// Where the bytes of a connection's objects come from and go to. Called from worker threads, several at once.
pub trait Storage: Send + Sync {
    /// Fills `out` with the bytes from `offset` on of the object with tag `tag` that we send.
    ///
    /// # Errors
    /// Any: the program gets it back as [`NetError::Storage`].
    fn read(&self, tag: u64, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Puts `bytes` at `offset` of the object with tag `tag` that we receive.
    ///
    /// # Errors
    /// Any: the program gets it back as [`NetError::Storage`].
    fn write(&self, tag: u64, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// Takes the events of one connection, in order, on the driver's thread: it must not block.
pub type EventSink = Box<dyn FnMut(LinkEvent) + Send>;

/// What happens to a connection.
#[derive(Debug)]
pub enum LinkEvent {
    /// The handshake is done.
    Connected {
        /// Where the peer is.
        remote: SocketAddr,
        /// What its program said in the handshake.
        application: Vec<u8>,
    },
    /// Bytes of the control stream. Give their count back with [`Link::control_taken`].
    Control(Vec<u8>),
    /// So many bytes of what [`Link::write_control`] took have arrived.
    ControlAcknowledged(usize),
    /// The peer sends an object.
    Announced {
        /// For [`Link::accept_flow`].
        flow: FlowId,
        /// Bytes.
        length: u64,
        /// What the peer's program calls it.
        tag: u64,
    },
    /// A block was read (sending) or written (receiving).
    Digest(BlockDigest),
    /// Every byte of the object with this tag is written.
    Received {
        /// The tag.
        tag: u64,
    },
    /// Every byte of the object with this tag has reached the peer.
    Sent {
        /// The tag.
        tag: u64,
    },
    /// The peer opens a stream; its bytes follow as they come.
    StreamAnnounced {
        /// The tag.
        tag: u64,
    },
    /// Bytes of a stream of the peer, in order. Give their count back with [`Link::stream_taken`].
    StreamBytes {
        /// The tag.
        tag: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Every byte of a stream of the peer has been told.
    StreamFinished {
        /// The tag.
        tag: u64,
    },
    /// The peer gave a stream of its own up.
    StreamReset {
        /// The tag.
        tag: u64,
    },
    /// So many bytes of what [`Link::write_stream`] took are on their way. How much is not is the caller's to bound.
    StreamTaken {
        /// The tag.
        tag: u64,
        /// Bytes.
        bytes: usize,
    },
    /// Every byte of a stream that was finished has arrived.
    StreamSent {
        /// The tag.
        tag: u64,
    },
    /// The peer wants no more of a stream.
    StreamStopped {
        /// The tag.
        tag: u64,
    },
    /// A read or write failed, or an object cannot be opened. The connection stands; no reply will come for that block.
    Failed(NetError),
    /// Figures, as asked for with [`Link::ask_stats`].
    Stats(Box<LinkStats>),
    /// More of the trace (qlog, JSON-SEQ).
    Trace(Vec<u8>),
    /// The last event.
    Closed {
        /// Why.
        why: Closed,
        /// The figures at the end.
        stats: Box<LinkStats>,
        /// The kernel's last refusal to send, or the end of the pipe, if the peer was never reached.
        send_error: Option<io::Error>,
    },
}

/// The digest of one block.
#[derive(Debug)]
pub struct BlockDigest {
    /// The object's tag.
    pub tag: u64,
    /// The block's number in the object.
    pub block: u32,
    /// Its bytes in the object.
    pub range: Range<u64>,
    /// BLAKE3 of them.
    pub digest: [u8; 32],
}

/// What is known of a connection's way through the network.
#[derive(Clone, Copy, Debug)]
pub struct LinkStats {
    /// The connection's own figures.
    pub connection: ConnectionStats,
    /// Datagrams refused, for any reason, in this connection or in none.
    pub refused: u64,
}

impl LinkStats {
    /// `elsewhere`: datagrams refused that belong to no connection.
    fn of(connection: &Connection, elsewhere: u64) -> Self {
        let connection = connection.stats();
        Self { connection, refused: elsewhere + connection.refused }
    }
}

/// One connection, by a number that the driver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(u64);

/// What the program does with a peer that has shown a key.
pub type Acceptor = Box<dyn FnMut(Link) -> Accepted + Send>;

/// Where an accepted connection's events and bytes go.
pub struct Accepted {
    /// Takes the events.
    pub events: EventSink,
    /// Has the bytes.
    pub storage: Arc<dyn Storage>,
}

enum Command {
    Connect { link: LinkId, key: [u8; 32], options: Box<ConnectOptions>, accepted: Accepted },
    AddKey { key: [u8; 32], expires: Option<Time>, options: Box<AcceptOptions>, acceptor: Acceptor },
    RemoveKey,
    Link(LinkId, LinkCommand),
    Stop,
}

enum LinkCommand {
    WriteControl(Vec<u8>),
    ControlTaken(usize),
    SendObject { length: u64, tag: u64 },
    AcceptFlow(FlowId),
    OpenStream { tag: u64 },
    WriteStream { tag: u64, bytes: Vec<u8> },
    FinishStream { tag: u64 },
    StreamTaken { tag: u64, bytes: usize },
    SetLimit(Option<Rate>),
    AskStats,
    Ping,
    Close { code: u32, reason: String },
}

enum Message {
    Command(Command),
    Finished(Finished),
}

/// The engine's clock: monotonic, from the driver's start.
#[derive(Clone, Copy, Debug)]
struct Clock {
    origin: Instant,
}

impl Clock {
    fn now(self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }
}

/// A running endpoint. Clones are the same endpoint; when the last goes, its connections are closed and its thread ends.
#[derive(Clone)]
pub struct Driver {
    handle: Arc<Handle>,
}

struct Handle {
    inbox: Arc<Inbox<Message>>,
    local_address: SocketAddr,
    facts: Option<SocketFacts>,
    clock: Clock,
    next_link: Arc<AtomicU64>,
    thread: Thread,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inbox.push(Message::Command(Command::Stop));
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("local_address", &self.handle.local_address).finish_non_exhaustive()
    }
}

impl Driver {
    /// Binds a socket and starts the threads. A connection on which nothing is heard for `dead_after` ends. `until_end` is dropped
    /// when the thread has ended, all connections closed.
    ///
    /// # Errors
    /// [`NetError::Bind`] or [`NetError::PortsTaken`] when the address cannot be had; [`NetError::System`] when the system gives no thread.
    pub fn start(bind: &Bind, dead_after: Duration, until_end: impl Any + Send) -> Result<Self, NetError> {
        let socket = Socket::new(bind.open()?).map_err(NetError::System)?;
        let local_address = socket.local_address().map_err(NetError::System)?;
        let facts = SocketFacts::of(&socket).ok();
        Self::spawn(Carrier::Socket(Box::new(socket)), (local_address, facts), dead_after, until_end)
    }

    /// The same over two descriptors that nobody else uses: pipes, or one stream socket given twice. No flag of them is changed, so they
    /// may be this process's standard input and output. All connections end at once when the peer closes its side
    /// ([`Closed::Dead`], unless it has said why), and then so does [`Driver::listen`]: its acceptor is dropped. Congestion control
    /// runs as over UDP; rates count the IP headers that are not there.
    ///
    /// # Errors
    /// [`NetError::System`] when the system gives no thread.
    pub fn start_over(
        read: OwnedFd,
        write: OwnedFd,
        dead_after: Duration,
        until_end: impl Any + Send,
    ) -> Result<Self, NetError> {
        Self::spawn(Carrier::Pipe(Pipe::new(read, write)), (PIPE_PEER, None), dead_after, until_end)
    }

    fn spawn(
        carrier: Carrier,
        (local_address, facts): (SocketAddr, Option<SocketFacts>),
        dead_after: Duration,
        until_end: impl Any + Send,
    ) -> Result<Self, NetError> {
        let clock = Clock { origin: Instant::now() };
        let next_link = Arc::new(AtomicU64::new(0));
        let inbox = Arc::new(Inbox::new().map_err(NetError::System)?);
        let workers = Workers::start({
            let inbox = Arc::clone(&inbox);
            move |finished| inbox.push(Message::Finished(finished))
        })
        .map_err(NetError::System)?;
        let default = Limits::default();
        let limits = Limits { dead_after, keep_alive: default.keep_alive.min(dead_after / 2), ..default };
        let config = EndpointConfig { limits, ..EndpointConfig::default() };
        let endpoint = transport::Endpoint::new(config, seed()?);
        let running = Running::new(endpoint, carrier, clock, Arc::clone(&inbox), workers, Arc::clone(&next_link));
        let thread = Thread::default();
        let (own, door) = (thread.clone(), Arc::clone(&inbox));
        thread::Builder::new()
            .name("downpour-net".into())
            .spawn(move || {
                own.begin();
                // Unwinding tells those who have a connection; those who want one are told here.
                if panic::catch_unwind(AssertUnwindSafe(|| running.run())).is_err() {
                    run::refuse(&door, &Broken::Fault);
                }
                drop(until_end);
            })
            .map_err(NetError::System)?;
        Ok(Self { handle: Arc::new(Handle { inbox, local_address, facts, clock, next_link, thread }) })
    }

    /// The address of the socket; [`PIPE_PEER`] over pipes.
    pub fn local_address(&self) -> SocketAddr {
        self.handle.local_address
    }

    /// What the kernel gave the socket; nothing over pipes, or where the kernel does not tell.
    pub fn facts(&self) -> Option<SocketFacts> {
        self.handle.facts
    }

    /// Its thread, to learn how busy that is. It does not keep the driver alive.
    pub fn thread(&self) -> Thread {
        self.handle.thread.clone()
    }

    /// Opens a connection; the peer is tried at all of `options.remotes`.
    pub fn connect(&self, key: [u8; 32], options: ConnectOptions, accepted: Accepted) -> Link {
        let id = LinkId(self.handle.next_link.fetch_add(1, Ordering::Relaxed));
        self.command(Command::Connect { link: id, key, options: Box::new(options), accepted });
        Link { id, inbox: Arc::clone(&self.handle.inbox) }
    }

    /// Answers whoever shows `key` until `expires`. A driver has one key at a time.
    pub fn listen(&self, key: [u8; 32], expires: SystemTime, options: AcceptOptions, acceptor: Acceptor) {
        let left = expires.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
        let expires = Some(self.handle.clock.now() + left);
        self.command(Command::AddKey { key, expires, options: Box::new(options), acceptor });
    }

    /// Answers nobody from now on. Connections stay.
    pub fn stop_listening(&self) {
        self.command(Command::RemoveKey);
    }

    fn command(&self, command: Command) {
        self.handle.inbox.push(Message::Command(command));
    }
}

/// One connection of a [`Driver`]. It does not keep the driver alive.
#[derive(Clone)]
pub struct Link {
    id: LinkId,
    inbox: Arc<Inbox<Message>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.id.0).finish()
    }
}

impl Link {
    /// Appends to the control stream. How much has not yet arrived is the caller's to bound.
    pub fn write_control(&self, bytes: Vec<u8>) {
        self.command(LinkCommand::WriteControl(bytes));
    }

    /// Says that `bytes` bytes of [`LinkEvent::Control`] are dealt with, so that more may come.
    pub fn control_taken(&self, bytes: usize) {
        self.command(LinkCommand::ControlTaken(bytes));
    }

    /// Sends the object `tag` of `length` bytes, after those opened before it.
    pub fn send_object(&self, tag: u64, length: u64) {
        self.command(LinkCommand::SendObject { length, tag });
    }

    /// Lets an announced object be written.
    pub fn accept_flow(&self, flow: FlowId) {
        self.command(LinkCommand::AcceptFlow(flow));
    }

    /// Sends at `limit` IP bits per second at most from now on; `None` takes away the profile's limit too.
    pub fn set_limit(&self, limit: Option<Rate>) {
        self.command(LinkCommand::SetLimit(limit));
    }

    /// Opens a stream to the peer under a tag of its own.
    pub fn open_stream(&self, tag: u64) {
        self.command(LinkCommand::OpenStream { tag });
    }

    /// Appends to a stream that was opened.
    pub fn write_stream(&self, tag: u64, bytes: Vec<u8>) {
        self.command(LinkCommand::WriteStream { tag, bytes });
    }

    /// Ends a stream behind what has been written.
    pub fn finish_stream(&self, tag: u64) {
        self.command(LinkCommand::FinishStream { tag });
    }

    /// Says that `bytes` bytes of [`LinkEvent::StreamBytes`] are dealt with, so that more may come.
    pub fn stream_taken(&self, tag: u64, bytes: usize) {
        self.command(LinkCommand::StreamTaken { tag, bytes });
    }

    /// Asks for one [`LinkEvent::Stats`].
    pub fn ask_stats(&self) {
        self.command(LinkCommand::AskStats);
    }

    /// Asks the peer for a sign of life now.
    pub fn ping(&self) {
        self.command(LinkCommand::Ping);
    }

    /// Ends the connection and tells the peer why.
    pub fn close(&self, code: u32, reason: impl Into<String>) {
        self.command(LinkCommand::Close { code, reason: reason.into() });
    }

    fn command(&self, command: LinkCommand) {
        self.inbox.push(Message::Command(Command::Link(self.id, command)));
    }
}

/// The engine's only randomness.
fn seed() -> Result<[u8; 32], NetError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| NetError::System(io::Error::other(error)))?;
    Ok(seed)
}
