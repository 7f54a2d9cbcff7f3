//! Probes of a path: objects of made-up bytes from nowhere to nowhere, over an endpoint as a transfer. One connection each way. The
//! side that connects says in the handshake which way, ends the probe by a word on the control stream, and is answered there with the
//! other side's counts.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use net::{Connection, Endpoint, Event, EventHandler, NetError, Sink, Source, Thread};
use transport::{AcceptOptions, ConnectOptions, ConnectionStats, Profile};

use super::meter::{Counts, Meter, TICK};
use crate::error::{CloseCode, Error};
use crate::protocol::handshake::PROBE;
use crate::remote::serve::VALID_FOR;
use crate::wait::block_on;

/// Bytes of a probe's object: more than any path carries in the time.
const LENGTH: u64 = 1 << 40;

/// The word that ends a probe.
const ENOUGH: u8 = b'.';

/// Longest answer to it.
const MAX_ANSWER: usize = 4 << 10;

/// How long the answer is waited for.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// A probe is ended by the side that answers if the other has forgotten it.
const LONGEST: Duration = Duration::from_secs(120);

/// Round trips that a controller may need to find its rate.
const ROUND_TRIPS: u32 = 20;
const LONGEST_FOR_ROUND_TRIPS: Duration = Duration::from_secs(15);

/// Probes that are answered at the same time.
const MAX_AT_ONCE: usize = 8;

/// Which way the bytes go, seen from the side that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Up { "up" } else { "down" })
    }
}

impl Direction {
    fn application(self) -> Vec<u8> {
        [&PROBE[..], &[if self == Self::Up { b'u' } else { b'd' }]].concat()
    }

    fn of(application: &[u8]) -> Option<Self> {
        [Self::Up, Self::Down].into_iter().find(|direction| direction.application() == application)
    }
}

/// Where a probe goes, and how.
pub(super) struct Target<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) key: [u8; 32],
    pub(super) remotes: Vec<SocketAddr>,
    /// How long the other side may be silent at first.
    pub(super) patience: Duration,
    pub(super) profile: &'a Profile,
    /// How long bytes flow; longer where round trips are long.
    pub(super) time: Duration,
    pub(super) stopped: &'a dyn Fn() -> Result<(), Error>,
}

/// Why a probe does not begin.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody answered; what the kernel said, if anything.
    Silence(Option<String>),
    /// Anything else.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Reads and writes nothing at all.
struct Nowhere;

impl Source for Nowhere {
    fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Nowhere {
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A probe whose other side has answered.
pub(super) struct Opened<'a> {
    target: &'a Target<'a>,
    direction: Direction,
    end: End,
    pub(super) remote: SocketAddr,
    /// Of the connection before anything flows.
    pub(super) stats: ConnectionStats,
}

impl<'a> Opened<'a> {
    /// Connects for one probe.
    ///
    /// # Errors
    /// [`Failure::Silence`] where nobody answers.
    pub(super) fn new(target: &'a Target<'a>, direction: Direction) -> Result<Self, Failure> {
        let (handler, events) = handler();
        let options = ConnectOptions {
            profile: target.profile.clone(),
            application: direction.application(),
            remotes: target.remotes.clone(),
            handshake_timeout: target.patience,
            qlog: false,
        };
        let connection = target.endpoint.connect(target.key, options, handler);
        let mut end = End::new(connection, events, target.endpoint.thread());
        let remote = end.connected(target)?;
        let stats = loop {
            end.turn(target.stopped)?;
            if let Some(stats) = end.meter.last() {
                break stats;
            }
        };
        Ok(Self { target, direction, end, remote, stats })
    }

    /// Payload bytes of the largest datagram that the handshake sends.
    pub(super) fn largest_tried(&self) -> usize {
        let symbol = self.target.profile.symbols.largest();
        usize::from(symbol) + transport::wire::SYMBOL_OVERHEAD
    }

    /// Lets bytes flow: the counts of the side that sends them, and of the one that takes them.
    pub(super) fn run(mut self) -> Result<(Counts, Counts), Error> {
        let Self { target, direction, end, .. } = &mut self;
        end.meter = end.meter.again();
        if *direction == Direction::Up {
            end.connection.send_object(1, LENGTH, Arc::new(Nowhere));
        }
        let began = Instant::now();
        let long_enough = |end: &End| {
            let rtt = end.meter.last().and_then(|stats| stats.rtt).unwrap_or_default();
            let round_trips = rtt.saturating_mul(ROUND_TRIPS).min(LONGEST_FOR_ROUND_TRIPS);
            began.elapsed() >= target.time.max(round_trips)
        };
        while !long_enough(end) {
            end.turn(target.stopped)?;
        }
        let ours = end.meter.counts();
        let theirs = end.ask_counts(target.stopped)?;
        Ok(if *direction == Direction::Up { (ours, theirs) } else { (theirs, ours) })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.end.connection.close(CloseCode::Done as u32, "");
    }
}

/// One end of a probe's connection.
struct End {
    connection: Connection,
    events: Receiver<Event>,
    meter: Meter,
    next_look: Instant,
    /// What the other side has said on the control stream.
    said: Vec<u8>,
}

fn handler() -> (EventHandler, Receiver<Event>) {
    let (sender, events) = channel();
    // A probe that has ended has no use for more.
    (Box::new(move |event| sender.send(event).unwrap_or_default()), events)
}

impl End {
    fn new(connection: Connection, events: Receiver<Event>, thread: Thread) -> Self {
        Self { connection, events, meter: Meter::new(thread), next_look: Instant::now(), said: Vec::new() }
    }

    fn connected(&mut self, target: &Target<'_>) -> Result<SocketAddr, Failure> {
        loop {
            (target.stopped)()?;
            match self.events.recv_timeout(TICK) {
                Ok(Event::Connected { remote, .. }) => return Ok(remote),
                Ok(Event::Closed(NetError::HandshakeTimedOut { send_error })) => {
                    return Err(Failure::Silence(send_error.map(|error| error.to_string())));
                }
                // No address can be tried at all, for want of a route or of the address family.
                Ok(Event::Closed(NetError::Connect(error))) => {
                    return Err(Failure::Silence(Some(error.to_string())));
                }
                Ok(event) => heard(event)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Vanished.into()),
            }
        }
    }

    /// Takes one event, or waits a tick.
    fn turn(&mut self, stopped: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        stopped()?;
        let now = Instant::now();
        if now >= self.next_look {
            self.meter.look(block_on(self.connection.stats()).connection);
            self.next_look = now + TICK;
        }
        match self.events.recv_timeout(self.next_look.saturating_duration_since(now)) {
            Ok(Event::ObjectAnnounced(object)) => object.accept(Arc::new(Nowhere)),
            Ok(Event::Control(bytes)) => {
                self.connection.control_taken(bytes.len());
                self.said.extend(bytes);
                if self.said.len() > MAX_ANSWER {
                    return Err(Error::Violation("an answer that is too long".to_owned()));
                }
            }
            Ok(event) => heard(event)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Vanished),
        }
        Ok(())
    }

    /// Ends the probe: the other side's counts.
    fn ask_counts(&mut self, stopped: &dyn Fn() -> Result<(), Error>) -> Result<Counts, Error> {
        self.connection.write_control(vec![ENOUGH]);
        let deadline = Instant::now() + ANSWER_TIME;
        while Instant::now() < deadline {
            if let Some(text) = self.said.strip_suffix(b"\n") {
                let unreadable = |_| Error::Violation("counts that cannot be understood".to_owned());
                return serde_json::from_slice(text).map_err(unreadable);
            }
            self.turn(stopped)?;
        }
        Err(Error::Vanished)
    }
}

/// What ends a probe early.
fn heard(event: Event) -> Result<(), Error> {
    match event {
        Event::Failed(error) => Err(error.into()),
        Event::Closed(
            NetError::ClosedByPeer { .. }
            | NetError::ClosedLocally
            | NetError::HandshakeTimedOut { .. }
            | NetError::Undecodable,
        ) => Err(Error::Vanished),
        Event::Closed(error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Answers the probes of whoever shows the key.
#[derive(Clone, Default)]
pub(super) struct Answering {
    running: Arc<AtomicUsize>,
    arrivals: Arc<AtomicUsize>,
}

impl Answering {
    /// How many probes have begun, the first datagram of each at least: where the other side saw no answer, the way back is closed.
    pub(super) fn arrivals(&self) -> usize {
        self.arrivals.load(Ordering::Relaxed)
    }

    /// Answers at `endpoint` from now on. `until_closed` is dropped when nobody can come any more.
    pub(super) fn begin(&self, endpoint: &Endpoint, key: [u8; 32], profile: Profile, until_closed: impl Any + Send) {
        let options = AcceptOptions { profile, application: PROBE.to_vec(), qlog: false };
        let (answering, network) = (self.clone(), endpoint.thread());
        let acceptor = Box::new(move |connection| {
            let _ = &until_closed;
            let (handler, events) = handler();
            answering.arrivals.fetch_add(1, Ordering::Relaxed);
            answering.take(End::new(connection, events, network.clone()));
            handler
        });
        endpoint.listen(key, SystemTime::now() + VALID_FOR, options, acceptor);
    }

    fn take(&self, mut end: End) {
        let running = Arc::clone(&self.running);
        if running.fetch_add(1, Ordering::Relaxed) >= MAX_AT_ONCE {
            running.fetch_sub(1, Ordering::Relaxed);
            end.connection.close(CloseCode::Busy as u32, "enough probes at once");
            return;
        }
        let answer = move || {
            // How a probe ends is the other side's to tell.
            let reason = end.answer().err().map_or_else(String::new, |error| error.close_reason());
            end.connection.close(CloseCode::Done as u32, reason);
            running.fetch_sub(1, Ordering::Relaxed);
        };
        // Without a thread there is no answer, and the other side says that.
        if thread::Builder::new().name("downpour-probe".into()).spawn(answer).is_err() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl End {
    /// Answers one probe until the other side ends it.
    fn answer(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + LONGEST;
        loop {
            match self.events.recv_timeout(LONGEST) {
                Ok(Event::Connected { application, .. }) => {
                    match Direction::of(&application) {
                        Some(Direction::Up) => {}
                        Some(Direction::Down) => self.connection.send_object(1, LENGTH, Arc::new(Nowhere)),
                        None => return Err(Error::Version),
                    }
                    break;
                }
                Ok(event) => heard(event)?,
                Err(_) => return Err(Error::Vanished),
            }
        }
        self.meter = self.meter.again();
        let mut answered = false;
        while Instant::now() < deadline {
            self.turn(&|| Ok(()))?;
            if !answered && self.said.first() == Some(&ENOUGH) {
                answered = true;
                let counts = self.meter.counts();
                let mut text = serde_json::to_vec(&counts).map_err(|_| Error::Internal("counts that are no text"))?;
                text.push(b'\n');
                self.connection.write_control(text);
            }
        }
        Err(Error::Vanished)
    }
}
