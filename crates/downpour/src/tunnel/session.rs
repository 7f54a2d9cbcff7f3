//! One side of a tunnel: requests connections for local programs from the peer, and opens those that the peer requests.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use net::{Connection, FlowError, NetError, SendStream, Stream};
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::counts::{ConnectionStage, Origin, TunnelCounters};
use super::events::{ConnectionEvent, Note, Notes};
use super::grammar::{ForwardAddress, ForwardTarget, Permit};
use super::listener::{Listener, no_home};
use super::messages::{ConnectReply, ConnectRequest, Refusal};
use super::relay::{ConnectResult, ConnectionTotals, Socket};
use super::socks;
use crate::error::{Closing, ErrorKind};
use crate::home;

/// The code of a stream that was not requested, or begins with invalid bytes.
const UNWANTED: u32 = 2;

/// Time for a program's SOCKS request, and for the peer's request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of connections. Each has a stream of either side, of which a side has 1,024 at once in a connection
/// of `net`: where both sides open connections, each opens half of them. Further programs wait to be accepted.
const MOST: usize = 1_000;
const MOST_EACH: usize = 480;

/// The requests that the peer may make.
#[derive(Debug)]
pub(crate) enum Permitted {
    /// Any address that this host reaches: at the remote host of a login.
    Places,
    /// These addresses.
    Some(Arc<[Permit]>),
    /// The targets of these requested listeners.
    Listeners(Vec<ForwardTarget>),
}

/// The target of a local listener's connections.
#[derive(Clone, Debug)]
enum ListenerTarget {
    /// A fixed request.
    Request(ConnectRequest),
    /// The address of each SOCKS request.
    Socks(SocksReplyTime),
}

/// When a SOCKS client gets the reply that it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocksReplyTime {
    /// When it is connected.
    Answered,
    /// At once, so that its first bytes travel with the request. A refusal can then only reset it.
    Eagerly,
}

/// One side of a tunnel.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) connection: Connection,
    permitted: Permitted,
    /// Room for own requests, and for those of the peer.
    room: [Arc<Semaphore>; 2],
    /// Connections that are open, of both sides.
    open: watch::Sender<usize>,
    /// The total number of connections.
    numbers: AtomicU64,
    pub(super) counts: TunnelCounters,
    notes: Notes,
}

/// A requested or open connection.
struct Open<'a> {
    session: &'a Session,
    from: Origin,
    number: u64,
    begun: Instant,
    stage: Mutex<ConnectionStage>,
}

impl<'a> Open<'a> {
    fn new(session: &'a Session, from: Origin) -> Self {
        session.open.send_modify(|open| *open += 1);
        Self {
            session,
            from,
            number: session.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            begun: runtime::now(),
            stage: Mutex::new(ConnectionStage::Unasked),
        }
    }

    fn emit(&self, event: ConnectionEvent) {
        (self.session.notes.0)(Note::Connection(self.number, event));
    }

    /// Counts it in its next stage; returns the previous one.
    fn advance(&self, next: ConnectionStage) -> ConnectionStage {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *stage, next);
        self.session.counts.count(self.from, before, next);
        before
    }

    fn wanted(&self, to: &ForwardAddress) {
        self.advance(ConnectionStage::Wanted);
        self.emit(ConnectionEvent::OpenRequested { to: to.to_string(), is_from_remote: self.from == Origin::Remote });
    }

    fn opened(&self) {
        self.advance(ConnectionStage::Open);
        self.emit(ConnectionEvent::Open { after: runtime::since(self.begun) });
    }

    fn refused(&self, why: String) {
        self.advance(ConnectionStage::Refused);
        self.emit(ConnectionEvent::Refused { why });
    }

    /// Reports the end, unless it was refused.
    fn over(&self, ConnectionTotals { sent, received, is_cut }: ConnectionTotals) {
        let is_pending = matches!(
            *self.stage.lock().unwrap_or_else(PoisonError::into_inner),
            ConnectionStage::Wanted | ConnectionStage::Open
        );
        if !is_pending {
            return;
        }
        self.advance(if is_cut { ConnectionStage::Cut } else { ConnectionStage::Completed });
        self.emit(ConnectionEvent::Closed { sent, received, after: runtime::since(self.begun), is_cut });
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.over(ConnectionTotals { is_cut: true, ..ConnectionTotals::default() });
        self.session.open.send_modify(|open| *open -= 1);
    }
}

impl Permitted {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Places => false,
            Self::Some(permits) => permits.is_empty(),
            Self::Listeners(all) => all.is_empty(),
        }
    }
}

impl Session {
    /// Creates a side of a tunnel. `listens`: it requests connections too.
    pub(crate) fn new(connection: Connection, permitted: Permitted, listens: bool, notes: Notes) -> Arc<Self> {
        let most = if listens && !permitted.is_nothing() { MOST_EACH } else { MOST };
        let room = [0, 1].map(|_| Arc::new(Semaphore::new(most)));
        let (numbers, open, counts) = (AtomicU64::new(0), watch::Sender::new(0), TunnelCounters::new());
        Arc::new(Self { connection, permitted, room, open, numbers, counts, notes })
    }

    /// Waits until no connection has been open for this long.
    pub(crate) async fn idle(&self, span: Duration) {
        let mut open = self.open.subscribe();
        // Its sender lives as long as this.
        loop {
            drop(open.wait_for(|open| *open == 0).await);
            let used = async { drop(open.wait_for(|open| *open > 0).await) };
            if tokio::time::timeout(span, used).await.is_err() {
                return;
            }
        }
    }

    /// Serves the peer until the connection ends.
    pub(crate) async fn run(self: &Arc<Self>) -> NetError {
        loop {
            let stream = match self.connection.accept().await {
                Ok(stream) => stream,
                Err(error) => return error,
            };
            let session = Arc::clone(self);
            // Requests beyond the room are refused.
            let room = Arc::clone(&self.room[1]).try_acquire_owned().ok();
            tokio::spawn(async move {
                session.grant(stream, room, &Open::new(&session, Origin::Remote)).await;
            });
        }
    }

    /// Accepts the connections of a listener until the tunnel ends. `proxied` is the reply time of a proxy.
    pub(crate) async fn listen(self: Arc<Self>, listener: Listener, to: ForwardTarget, proxied: SocksReplyTime) {
        let asked = match to {
            ForwardTarget::Place(place) => ListenerTarget::Request(ConnectRequest::Place(place)),
            ForwardTarget::Socks => ListenerTarget::Socks(proxied),
        };
        self.take(listener, asked).await;
    }

    /// Accepts the connections of the listener with this number that the peer has requested.
    pub(crate) async fn listen_for(self: Arc<Self>, listener: Listener, number: u16) {
        self.take(listener, ListenerTarget::Request(ConnectRequest::Listener(number))).await;
    }

    /// Accepts the connections of a listener, as far as there is room.
    async fn take(self: Arc<Self>, listener: Listener, asked: ListenerTarget) {
        loop {
            let socket = listener.accept().await;
            // It is never closed. Further programs wait meanwhile, accepted or not.
            let room = Arc::clone(&self.room[0]).acquire_owned().await.ok();
            let (session, asked) = (Arc::clone(&self), asked.clone());
            tokio::spawn(async move {
                let open = Open::new(&session, Origin::Local);
                match asked {
                    ListenerTarget::Request(request) => session.connect(socket, &request, None, &open).await,
                    ListenerTarget::Socks(proxied) => session.proxy(socket, proxied, &open).await,
                }
                drop(room);
            });
        }
    }

    /// Reads the SOCKS request of a program, and connects it.
    async fn proxy(&self, mut socket: Socket, proxied: SocksReplyTime, open: &Open<'_>) {
        match tokio::time::timeout(PATIENCE, socks::asked(&mut socket)).await {
            Ok(Ok((version, place))) => {
                self.connect(socket, &ConnectRequest::Place(place), Some((version, proxied)), open).await;
            }
            // It has received the reason.
            _ => socket.finish().await,
        }
    }

    /// Connects a program to its target, until both directions are finished.
    async fn connect(
        &self,
        socket: Socket,
        request: &ConnectRequest,
        proxy: Option<(socks::Version, SocksReplyTime)>,
        open: &Open<'_>,
    ) {
        if let ConnectRequest::Place(place) = request {
            open.wanted(place);
        }
        let (mut recv, send) = match self.open(request).await {
            Ok(opened) => opened.into_split(),
            Err(error) => return self.on_unopened(&error),
        };
        let opened = async |writer: &mut WriteHalf<Socket>| {
            let replied = match proxy {
                Some((version, SocksReplyTime::Eagerly)) => socks::answer(writer, version, None).await,
                _ => Ok(()),
            };
            if replied.is_err() {
                return ConnectResult::Failed;
            }
            let Ok(answer) = ConnectReply::read(&mut recv).await else { return ConnectResult::Failed };
            let refusal = match &answer {
                ConnectReply::Connected => {
                    open.opened();
                    None
                }
                ConnectReply::Refused(refusal, words) => {
                    open.refused(words.clone());
                    Some(*refusal)
                }
            };
            let replied = match proxy {
                Some((version, SocksReplyTime::Answered)) => socks::answer(writer, version, refusal).await.is_ok(),
                _ => refusal.is_none(),
            };
            match refusal {
                _ if !replied => ConnectResult::Failed,
                None => ConnectResult::Connected(recv),
                Some(_) => ConnectResult::Refused,
            }
        };
        open.over(socket.carry(send, opened, &self.counts.traffic).await);
    }

    /// Sends a request to the peer. The bytes of the program may follow at once.
    async fn open(&self, request: &ConnectRequest) -> io::Result<Stream> {
        let bytes = request.encode().map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut stream = self.connection.open_with(0).await?;
        stream.write_all(&bytes).await?;
        Ok(stream)
    }

    /// Ends the tunnel if no further connection can be opened: a connection of `net` has numbers for 65,535 streams of
    /// each side.
    fn on_unopened(&self, error: &io::Error) {
        let of_net = error.get_ref().and_then(|error| error.downcast_ref());
        if let Some(NetError::Flow(FlowError::Exhausted)) = of_net {
            Closing::as_text(ErrorKind::Exhausted, "no connection numbers left").close(&self.connection);
        }
    }

    /// Grants a request of the peer, or replies why not.
    async fn grant(&self, mut stream: Stream, room: Option<OwnedSemaphorePermit>, open: &Open<'_>) {
        let request = match &room {
            Some(_) => {
                tokio::time::timeout(PATIENCE, ConnectRequest::read(&mut stream)).await.ok().and_then(Result::ok)
            }
            None => None,
        };
        let target = match request {
            _ if room.is_none() => Err((Refusal::Failed, "connection limit reached".to_owned())),
            Some(request) => tokio::time::timeout(PATIENCE, self.socket_for(&request, open))
                .await
                .unwrap_or_else(|_| Err((Refusal::TimedOut, format!("no answer in {} s", PATIENCE.as_secs())))),
            None => Err((Refusal::Failed, "no request received".to_owned())),
        };
        let answer = match &target {
            Ok(_) => ConnectReply::Connected,
            Err((refusal, words)) => {
                open.refused(words.clone());
                ConnectReply::Refused(*refusal, words.clone())
            }
        };
        if let Err(error) = stream.write_all(&answer.encode()).await {
            return self.on_unopened(&error);
        }
        match target {
            Ok(Target::Socket(socket)) => self.carry(socket, stream, open).await,
            Ok(Target::Socks) => self.serve_proxy(stream, open).await,
            Err(_) => {
                let (recv, send) = stream.into_split();
                if let Err(error) = finish(send).await {
                    self.on_unopened(&error.into());
                }
                recv.stop(UNWANTED);
            }
        }
    }

    /// Connects to the requested target.
    async fn socket_for(&self, request: &ConnectRequest, open: &Open<'_>) -> Result<Target, (Refusal, String)> {
        let place = match (request, &self.permitted) {
            (ConnectRequest::Place(place), Permitted::Places) => place,
            (ConnectRequest::Place(place), Permitted::Some(permits))
                if permits.iter().any(|permit| permit.covers(place)) =>
            {
                place
            }
            (ConnectRequest::Place(place), Permitted::Some(_)) => {
                open.wanted(place);
                return Err((Refusal::Forbidden, format!("{place} is not allowed")));
            }
            (ConnectRequest::Listener(number), Permitted::Listeners(all)) => match all.get(usize::from(*number)) {
                Some(ForwardTarget::Place(place)) => place,
                Some(ForwardTarget::Socks) => return Ok(Target::Socks),
                None => return Err((Refusal::Forbidden, "this listener was not requested".to_owned())),
            },
            _ => return Err((Refusal::Forbidden, "this connection was not requested".to_owned())),
        };
        open.wanted(place);
        let socket = connect_to(place).await.map_err(|error| (Refusal::of(&error), format!("{place}: {error}")))?;
        Ok(Target::Socket(socket))
    }

    /// Relays a connection that the peer requested.
    async fn carry(&self, socket: Socket, stream: Stream, open: &Open<'_>) {
        open.opened();
        let (recv, send) = stream.into_split();
        let connected = async |_: &mut WriteHalf<Socket>| ConnectResult::Connected(recv);
        open.over(socket.carry(send, connected, &self.counts.traffic).await);
    }

    /// Reads the SOCKS request of a remote program, and connects it locally.
    async fn serve_proxy(&self, mut program: Stream, open: &Open<'_>) {
        let Ok(Ok((version, place))) = tokio::time::timeout(PATIENCE, socks::asked(&mut program)).await else {
            // It has received the reason, if it reads it.
            let _ = finish(program.into_split().1).await;
            return;
        };
        open.wanted(&place);
        match connect_to(&place).await {
            Ok(socket) => {
                if socks::answer(&mut program, version, None).await.is_ok() {
                    self.carry(socket, program, open).await;
                }
            }
            Err(error) => {
                open.refused(format!("{place}: {error}"));
                if socks::answer(&mut program, version, Some(Refusal::of(&error))).await.is_ok() {
                    let _ = finish(program.into_split().1).await;
                }
            }
        }
    }
}

/// Finishes a stream, and waits until all of it has arrived.
async fn finish(mut send: SendStream) -> Result<(), NetError> {
    send.finish();
    send.sent().await
}

enum Target {
    Socket(Socket),
    /// A local proxy.
    Socks,
}

/// Connects to an address from this host.
async fn connect_to(place: &ForwardAddress) -> io::Result<Socket> {
    match place {
        ForwardAddress::Tcp { host, port } => {
            let addresses = tokio::net::lookup_host((host.as_str(), *port)).await;
            // The name could not be resolved, for any reason.
            let addresses = addresses.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in addresses {
                match TcpStream::connect(address).await {
                    Ok(socket) => return Ok(Socket::of_tcp(socket)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
        ForwardAddress::Unix(path) => {
            let path = if path.as_os_str().as_bytes().starts_with(b"~") {
                let path = path.clone();
                // The lookup may use the network.
                tokio::task::spawn_blocking(move || home::expand(&path)).await?.map_err(no_home)?
            } else {
                path.clone()
            };
            UnixStream::connect(path).await.map(Socket::Unix)
        }
    }
}
