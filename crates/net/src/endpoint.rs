//! Endpoints: a socket, or a pair of pipes, with the thread that owns it and every connection over it.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use transport::AcceptOptions;

use crate::bind::Bind;
use crate::carrier::{Carrier, PIPE_PEER, Pipe, Socket};
use crate::connecting::{Connecting, Peer};
use crate::connection::Connection;
use crate::driver::{self, EngineClock};
use crate::error::NetError;
use crate::messages::{Event, EventHandler, Message, MessageSender, NOT_ACCEPTED};
use crate::options::EndpointOptions;
use crate::socket_info::{SocketInfo, ThreadClock};
use crate::stats::RejectedDatagrams;

/// One UDP socket or one pair of pipes, for any number of connections. Clones are the same endpoint; when the last is
/// dropped, its connections are closed and its threads end.
#[derive(Clone)]
pub struct Endpoint {
    handle: Arc<Handle>,
}

struct Handle {
    sender: MessageSender,
    local_address: SocketAddr,
    facts: Option<SocketInfo>,
    clock: EngineClock,
    thread: ThreadClock,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.sender.push(Message::Stop);
    }
}

/// Called by an endpoint for each peer that has proved that it has the key: the function receives the connection and
/// returns its event handler, whose first event is [`Event::Connected`]. It runs on the network thread and must not
/// block. If it panics, the endpoint ends with all its connections.
pub type Acceptor = Box<dyn FnMut(Connection) -> EventHandler + Send>;

impl Endpoint {
    /// Binds a UDP socket with the default options, and starts the threads. An address has port 0 for any free port;
    /// `Bind::default()` is every address of this host.
    ///
    /// # Errors
    /// Those of [`EndpointBuilder::bind`].
    pub fn bind(bind: impl Into<Bind>) -> Result<Self, NetError> {
        Self::builder().bind(bind)
    }

    /// Returns a builder, for an endpoint with other options or over pipes.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    fn start(
        carrier: Carrier,
        (local_address, facts): (SocketAddr, Option<SocketInfo>),
        options: &EndpointOptions,
        until_end: Box<dyn Any + Send>,
    ) -> Result<Self, NetError> {
        let clock = EngineClock::start();
        let thread = ThreadClock::default();
        let sender = driver::start(carrier, clock, options, thread.clone(), until_end)?;
        Ok(Self { handle: Arc::new(Handle { sender, local_address, facts, clock, thread }) })
    }

    /// Returns the address of the socket; [`PIPE_PEER`] over pipes.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.handle.local_address
    }

    /// Returns the options that the kernel granted the socket; `None` over pipes, or if the kernel does not report
    /// them.
    #[must_use]
    pub fn facts(&self) -> Option<SocketInfo> {
        self.handle.facts
    }

    /// Returns the network thread, to find out how busy it is. The value does not keep the endpoint alive.
    #[must_use]
    pub fn thread(&self) -> ThreadClock {
        self.handle.thread.clone()
    }

    /// Returns the counts of refused datagrams that belong to no connection.
    ///
    /// # Errors
    /// [`NetError::ConnectionLost`] if the network thread has ended.
    pub async fn refused(&self) -> Result<RejectedDatagrams, NetError> {
        let (sender, receiver) = oneshot::channel();
        self.handle.sender.push(Message::Refused(sender));
        receiver.await.map_err(|_| NetError::ConnectionLost)
    }

    /// Returns the number of peers answered in the last half minute that have not connected: their first messages
    /// arrived, but the answers may not reach them.
    ///
    /// # Errors
    /// [`NetError::ConnectionLost`] if the network thread has ended.
    pub async fn half_open(&self) -> Result<usize, NetError> {
        let (sender, receiver) = oneshot::channel();
        self.handle.sender.push(Message::HalfOpen(sender));
        receiver.await.map_err(|_| NetError::ConnectionLost)
    }

    /// Connects to a peer, such as `(key, address)`: `connect(peer).await` waits for it, and
    /// [`Connecting::start`] does not wait.
    pub fn connect(&self, peer: impl Into<Peer>) -> Connecting<'_> {
        Connecting { sender: &self.handle.sender, peer: peer.into(), events: Box::new(drop) }
    }

    /// Answers peers that show `key` until `expires`. An endpoint has one key at a time: it no longer answers peers
    /// with a previous one. The acceptor is dropped when no answered peer may still connect: half a minute later at
    /// most.
    pub fn listen(&self, key: [u8; 32], expires: SystemTime, options: AcceptOptions, mut acceptor: Acceptor) {
        let left = expires.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
        let expires = self.handle.clock.now() + left;
        let acceptor = move |controls, shared| acceptor(Connection::new(controls, shared));
        self.handle.sender.push(Message::Listen {
            key,
            expires,
            options: Box::new(options),
            acceptor: Box::new(acceptor),
        });
    }

    /// Like [`Endpoint::listen`], with a queue for programs that use only streams: [`Incoming::accept`] returns the
    /// connected peers.
    #[must_use]
    pub fn incoming(&self, key: [u8; 32], expires: SystemTime, options: AcceptOptions) -> Incoming {
        let queue = Arc::new(Mutex::new(AcceptQueue::default()));
        let end = QueueEnd(Arc::clone(&queue));
        let acceptor = move |connection: Connection| -> EventHandler {
            let queue = Arc::clone(&end.0);
            Box::new(move |event| match event {
                Event::Connected { .. } => change(&queue, |queue| queue.add(connection.clone())),
                // A connection with streams can still be accepted, to read them.
                Event::Closed(_) if !connection.has_streams() => change(&queue, |queue| queue.remove(&connection)),
                _ => {}
            })
        };
        self.listen(key, expires, options, Box::new(acceptor));
        Incoming(queue)
    }

    /// Stops answering new peers, and drops the acceptor. Existing connections stay.
    pub fn stop_listening(&self) {
        self.handle.sender.push(Message::StopListening);
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_address", &self.handle.local_address).finish_non_exhaustive()
    }
}

/// How to make an [`Endpoint`], from [`Endpoint::builder`].
#[must_use = "`bind` makes the endpoint"]
pub struct EndpointBuilder {
    options: EndpointOptions,
    until_end: Box<dyn Any + Send>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self { options: EndpointOptions::default(), until_end: Box::new(()) }
    }
}

impl EndpointBuilder {
    /// Sets how long connections wait for the peer, and how much memory they may fill.
    pub fn options(self, options: EndpointOptions) -> Self {
        Self { options, ..self }
    }

    /// Drops `value` when all connections are closed and the network thread has ended.
    pub fn until_end(self, value: impl Any + Send) -> Self {
        Self { until_end: Box::new(value), ..self }
    }

    /// Binds a UDP socket and starts the threads.
    ///
    /// # Errors
    /// [`NetError::Bind`] or [`NetError::PortsTaken`] if the address cannot be bound; [`NetError::OutOfResources`] if a
    /// thread or a descriptor cannot be created.
    pub fn bind(self, bind: impl Into<Bind>) -> Result<Endpoint, NetError> {
        let socket = Socket::new(bind.into().open()?).map_err(NetError::system)?;
        let local_address = socket.local_address().map_err(NetError::system)?;
        let facts = SocketInfo::of(&socket).ok();
        Endpoint::start(Carrier::Socket(Box::new(socket)), (local_address, facts), &self.options, self.until_end)
    }

    /// Creates an endpoint over two descriptors without other users: pipes, or one stream socket given twice. Their
    /// flags are not changed, so they may be this process's standard input and output. All connections end at once when
    /// the peer closes its side ([`NetError::ConnectionLost`], unless it has sent a close), and so does
    /// [`Endpoint::listen`], whose acceptor is dropped. Congestion control runs as over UDP; rates count IP headers,
    /// although pipes have none.
    ///
    /// # Errors
    /// [`NetError::OutOfResources`] if a thread cannot be spawned.
    pub fn over_pipes(self, read: OwnedFd, write: OwnedFd) -> Result<Endpoint, NetError> {
        Endpoint::start(Carrier::Pipe(Pipe::new(read, write)), (PIPE_PEER, None), &self.options, self.until_end)
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Peers that have connected, from [`Endpoint::incoming`]. Dropping it closes the connections of unaccepted and of
/// later peers.
#[derive(Debug)]
pub struct Incoming(Arc<Mutex<AcceptQueue>>);

#[derive(Debug, Default)]
struct AcceptQueue {
    connections: VecDeque<Connection>,
    /// Whether no more peers can connect.
    closed: bool,
    /// Whether no more peers are accepted.
    dropped: bool,
    waker: Option<Waker>,
}

impl AcceptQueue {
    fn add(&mut self, connection: Connection) {
        if self.dropped {
            connection.close(NOT_ACCEPTED, "connections are not accepted");
        } else {
            self.connections.push_back(connection);
        }
    }

    fn remove(&mut self, connection: &Connection) {
        self.connections.retain(|waiting| !waiting.is_same(connection));
    }
}

/// Held by the acceptor: after it is dropped no more peers connect.
struct QueueEnd(Arc<Mutex<AcceptQueue>>);

impl Drop for QueueEnd {
    fn drop(&mut self) {
        change(&self.0, |queue| queue.closed = true);
    }
}

fn change(queue: &Mutex<AcceptQueue>, change: impl FnOnce(&mut AcceptQueue)) {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut queue);
    let waker = queue.waker.take();
    drop(queue);
    waker.into_iter().for_each(Waker::wake);
}

impl Incoming {
    /// Waits for the next peer that has proved to have the key; `None` when the endpoint no longer listens for this
    /// queue, or its key has expired. Closed peers without a stream are skipped.
    pub async fn accept(&mut self) -> Option<Connection> {
        poll_fn(|context| {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match queue.connections.pop_front() {
                None if !queue.closed => {
                    queue.waker = Some(context.waker().clone());
                    Poll::Pending
                }
                found => Poll::Ready(found),
            }
        })
        .await
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.dropped = true;
        for connection in std::mem::take(&mut queue.connections) {
            queue.add(connection);
        }
    }
}
