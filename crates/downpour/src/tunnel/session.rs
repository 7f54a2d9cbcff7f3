//! One end of a tunnel: opens connections at the other end for the programs here, and here for those there.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use net::{Connection, FlowError, NetError, SendStream, Stream};
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::counts::{Counts, Origin, Stage};
use super::events::{ConnectionEvent, Note, Notes};
use super::grammar::{Destination, Permit, Place};
use super::listener::{Listener, no_home};
use super::messages::{Answer, Refusal, Wish};
use super::relay::{Carried, Opened, Socket};
use super::socks;
use crate::error::{Closing, ErrorKind};
use crate::home;

/// The code of a stream that nobody has asked for, or that does not begin as it should.
const UNWANTED: u32 = 2;

/// How long a program may take to say by SOCKS where it wants to, and the other side to say what it wishes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections at once. Each has a stream of either side, of which a side has 1,024 at once in a connection of `net`: where
/// both sides open connections, each opens half of them. Programs beyond them wait to be accepted.
const MOST: usize = 1_000;
const MOST_EACH: usize = 480;

/// What the other side may wish for.
#[derive(Debug)]
pub(crate) enum Permitted {
    /// Any place that this machine reaches: at the side that was logged in to.
    Places,
    /// These places.
    Some(Arc<[Permit]>),
    /// Where the connections of these listeners go, which were asked for.
    Listeners(Vec<Destination>),
}

/// Where the connections of a listener here go.
#[derive(Clone, Debug)]
enum Asked {
    /// Always there.
    Wish(Wish),
    /// Where each asks to, by SOCKS.
    Socks(Proxied),
}

/// When a program that has asked by SOCKS is told that it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxied {
    /// When it is.
    Answered,
    /// At once, so that its first bytes travel with the wish. A refusal can only break it off then.
    Eagerly,
}

/// One end of a tunnel.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) connection: Connection,
    permitted: Permitted,
    /// Room for own wishes, and for those of the other side.
    room: [Arc<Semaphore>; 2],
    /// Connections that are open, of both sides.
    open: watch::Sender<usize>,
    /// How many there were.
    numbers: AtomicU64,
    pub(super) counts: Counts,
    notes: Notes,
}

/// A connection that is wanted or open.
struct Open<'a> {
    session: &'a Session,
    from: Origin,
    number: u64,
    begun: Instant,
    stage: Mutex<Stage>,
}

impl<'a> Open<'a> {
    fn new(session: &'a Session, from: Origin) -> Self {
        session.open.send_modify(|open| *open += 1);
        Self {
            session,
            from,
            number: session.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            begun: runtime::now(),
            stage: Mutex::new(Stage::Unasked),
        }
    }

    fn tell(&self, event: ConnectionEvent) {
        (self.session.notes.0)(Note::Connection(self.number, event));
    }

    /// Counts it in its next stage; returns the one before.
    fn go_on(&self, next: Stage) -> Stage {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *stage, next);
        self.session.counts.count(self.from, before, next);
        before
    }

    fn wanted(&self, to: &Place) {
        self.go_on(Stage::Wanted);
        self.tell(ConnectionEvent::Wanted { to: to.to_string(), is_from_there: self.from == Origin::There });
    }

    fn opened(&self) {
        self.go_on(Stage::Open);
        self.tell(ConnectionEvent::Open { after: runtime::since(self.begun) });
    }

    fn refused(&self, why: String) {
        self.go_on(Stage::Refused);
        self.tell(ConnectionEvent::Refused { why });
    }

    /// Tells of the end, unless it was refused.
    fn over(&self, Carried { sent, received, is_cut }: Carried) {
        let is_pending =
            matches!(*self.stage.lock().unwrap_or_else(PoisonError::into_inner), Stage::Wanted | Stage::Open);
        if !is_pending {
            return;
        }
        self.go_on(if is_cut { Stage::Cut } else { Stage::Completed });
        self.tell(ConnectionEvent::Over { sent, received, after: runtime::since(self.begun), is_cut });
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.over(Carried { is_cut: true, ..Carried::default() });
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
    /// Creates an end of a tunnel. `listens`: it opens connections too.
    pub(crate) fn new(connection: Connection, permitted: Permitted, listens: bool, notes: Notes) -> Arc<Self> {
        let most = if listens && !permitted.is_nothing() { MOST_EACH } else { MOST };
        let room = [0, 1].map(|_| Arc::new(Semaphore::new(most)));
        let (numbers, open, counts) = (AtomicU64::new(0), watch::Sender::new(0), Counts::new());
        Arc::new(Self { connection, permitted, room, open, numbers, counts, notes })
    }

    /// Waits until no connection has been open for this long.
    pub(crate) async fn idle(&self, span: Duration) {
        let mut open = self.open.subscribe();
        // What changes it lives as long as this.
        loop {
            drop(open.wait_for(|open| *open == 0).await);
            let used = async { drop(open.wait_for(|open| *open > 0).await) };
            if tokio::time::timeout(span, used).await.is_err() {
                return;
            }
        }
    }

    /// Serves the other side until the connection ends.
    pub(crate) async fn run(self: &Arc<Self>) -> NetError {
        loop {
            let stream = match self.connection.accept().await {
                Ok(stream) => stream,
                Err(error) => return error,
            };
            let session = Arc::clone(self);
            // What does not fit is refused.
            let room = Arc::clone(&self.room[1]).try_acquire_owned().ok();
            tokio::spawn(async move {
                session.grant(stream, room, &Open::new(&session, Origin::There)).await;
            });
        }
    }

    /// Takes the connections of a listener until the tunnel ends. Those of a proxy are told so that they are connected.
    pub(crate) async fn listen(self: Arc<Self>, listener: Listener, to: Destination, proxied: Proxied) {
        let asked = match to {
            Destination::Place(place) => Asked::Wish(Wish::Place(place)),
            Destination::Socks => Asked::Socks(proxied),
        };
        self.take(listener, asked).await;
    }

    /// Takes the connections of a listener that the other side has asked for, as this one of several.
    pub(crate) async fn listen_for(self: Arc<Self>, listener: Listener, number: u16) {
        self.take(listener, Asked::Wish(Wish::Listener(number))).await;
    }

    /// Takes the connections of a listener, as far as there is room.
    async fn take(self: Arc<Self>, listener: Listener, asked: Asked) {
        loop {
            let socket = listener.accept().await;
            // It is never closed. Further programs wait meanwhile, this one and those that are not accepted yet.
            let room = Arc::clone(&self.room[0]).acquire_owned().await.ok();
            let (session, asked) = (Arc::clone(&self), asked.clone());
            tokio::spawn(async move {
                let open = Open::new(&session, Origin::Here);
                match asked {
                    Asked::Wish(wish) => session.connect(socket, &wish, None, &open).await,
                    Asked::Socks(proxied) => session.proxy(socket, proxied, &open).await,
                }
                drop(room);
            });
        }
    }

    /// Asks a program by SOCKS where it wants to, and connects it.
    async fn proxy(&self, mut socket: Socket, proxied: Proxied, open: &Open<'_>) {
        match tokio::time::timeout(PATIENCE, socks::asked(&mut socket)).await {
            Ok(Ok((version, place))) => {
                self.connect(socket, &Wish::Place(place), Some((version, proxied)), open).await;
            }
            // It has been told why.
            _ => socket.finish().await,
        }
    }

    /// Connects a program to what it wishes for, until both directions are over.
    async fn connect(&self, socket: Socket, wish: &Wish, proxy: Option<(socks::Version, Proxied)>, open: &Open<'_>) {
        if let Wish::Place(place) = wish {
            open.wanted(place);
        }
        let (mut recv, send) = match self.open(wish).await {
            Ok(opened) => opened.into_split(),
            Err(error) => return self.on_unopened(&error),
        };
        let opened = async |writer: &mut WriteHalf<Socket>| {
            let is_told = match proxy {
                Some((version, Proxied::Eagerly)) => socks::answer(writer, version, None).await,
                _ => Ok(()),
            };
            if is_told.is_err() {
                return Opened::Failed;
            }
            let Ok(answer) = Answer::read(&mut recv).await else { return Opened::Failed };
            let refusal = match &answer {
                Answer::Connected => {
                    open.opened();
                    None
                }
                Answer::Refused(refusal, words) => {
                    open.refused(words.clone());
                    Some(*refusal)
                }
            };
            let told = match proxy {
                Some((version, Proxied::Answered)) => socks::answer(writer, version, refusal).await.is_ok(),
                _ => refusal.is_none(),
            };
            match refusal {
                _ if !told => Opened::Failed,
                None => Opened::Connected(recv),
                Some(_) => Opened::Refused,
            }
        };
        open.over(socket.carry(send, opened, &self.counts.traffic).await);
    }

    /// Tells the other side of a wish. What the program writes may follow at once.
    async fn open(&self, wish: &Wish) -> io::Result<Stream> {
        let bytes = wish.encode().map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut stream = self.connection.open(0).await?;
        stream.write_all(&bytes).await?;
        Ok(stream)
    }

    /// Ends the tunnel if no further connection can be opened: a connection of `net` has numbers for 65,535 streams of each
    /// side.
    fn on_unopened(&self, error: &io::Error) {
        let of_net = error.get_ref().and_then(|error| error.downcast_ref());
        if let Some(NetError::Flow(FlowError::Exhausted)) = of_net {
            Closing::in_words(ErrorKind::Exhausted, "no numbers are left for further connections")
                .close(&self.connection);
        }
    }

    /// Grants a wish of the other side, or says why not.
    async fn grant(&self, mut stream: Stream, room: Option<OwnedSemaphorePermit>, open: &Open<'_>) {
        let wish = match &room {
            Some(_) => tokio::time::timeout(PATIENCE, Wish::read(&mut stream)).await.ok().and_then(Result::ok),
            None => None,
        };
        let target = match wish {
            _ if room.is_none() => Err((Refusal::Failed, "there are as many connections as there can be".to_owned())),
            Some(wish) => tokio::time::timeout(PATIENCE, self.socket_for(&wish, open))
                .await
                .unwrap_or_else(|_| Err((Refusal::TimedOut, format!("no answer in {} s", PATIENCE.as_secs())))),
            None => Err((Refusal::Failed, "what was wished for has not arrived".to_owned())),
        };
        let answer = match &target {
            Ok(_) => Answer::Connected,
            Err((refusal, words)) => {
                open.refused(words.clone());
                Answer::Refused(*refusal, words.clone())
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

    /// Connects to what was wished for.
    async fn socket_for(&self, wish: &Wish, open: &Open<'_>) -> Result<Target, (Refusal, String)> {
        let place = match (wish, &self.permitted) {
            (Wish::Place(place), Permitted::Places) => place,
            (Wish::Place(place), Permitted::Some(permits)) if permits.iter().any(|permit| permit.covers(place)) => {
                place
            }
            (Wish::Place(place), Permitted::Some(_)) => {
                open.wanted(place);
                return Err((Refusal::Forbidden, format!("{place} is not permitted")));
            }
            (Wish::Listener(number), Permitted::Listeners(all)) => match all.get(usize::from(*number)) {
                Some(Destination::Place(place)) => place,
                Some(Destination::Socks) => return Ok(Target::Socks),
                None => return Err((Refusal::Forbidden, "nobody asked for this listener".to_owned())),
            },
            _ => return Err((Refusal::Forbidden, "nobody asked for this connection".to_owned())),
        };
        open.wanted(place);
        let socket = connect_to(place).await.map_err(|error| (Refusal::of(&error), format!("{place}: {error}")))?;
        Ok(Target::Socket(socket))
    }

    /// Carries a connection that the other side wished for.
    async fn carry(&self, socket: Socket, stream: Stream, open: &Open<'_>) {
        open.opened();
        let (recv, send) = stream.into_split();
        let connected = async |_: &mut WriteHalf<Socket>| Opened::Connected(recv);
        open.over(socket.carry(send, connected, &self.counts.traffic).await);
    }

    /// Asks a program at the other side by SOCKS where it wants to, and connects it here.
    async fn serve_proxy(&self, mut program: Stream, open: &Open<'_>) {
        let Ok(Ok((version, place))) = tokio::time::timeout(PATIENCE, socks::asked(&mut program)).await else {
            // It has been told why, if it takes it.
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

/// Ends a stream, and waits until all of it has arrived.
async fn finish(mut send: SendStream) -> Result<(), NetError> {
    send.finish();
    send.sent().await
}

enum Target {
    Socket(Socket),
    /// A proxy here.
    Socks,
}

/// Connects to a place, as seen from here.
async fn connect_to(place: &Place) -> io::Result<Socket> {
    match place {
        Place::Tcp { host, port } => {
            let addresses = tokio::net::lookup_host((host.as_str(), *port)).await;
            // Whatever the resolver says, the name led nowhere.
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
        Place::Unix(path) => {
            let path = if path.as_os_str().as_bytes().starts_with(b"~") {
                let path = path.clone();
                // The system may ask others.
                tokio::task::spawn_blocking(move || home::expand(&path)).await?.map_err(no_home)?
            } else {
                path.clone()
            };
            UnixStream::connect(path).await.map(Socket::Unix)
        }
    }
}
