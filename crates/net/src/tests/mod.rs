//! Tests with endpoints joined in one process. This file has their shared helpers.

mod measure;
mod pipes;
mod streams;
#[cfg(target_os = "linux")]
mod unreachable;
mod workers;

use std::io::{self, pipe};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread as StdThread};
use std::time::{Duration, Instant, SystemTime};

use super::*;

const KEY: [u8; 32] = [7; 32];

/// Longer than any operation here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Never reached, except in a test that waits for it.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Returns byte `offset` of every object.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A source of the pattern, and a sink that keeps the received bytes.
#[derive(Default)]
struct Memory {
    received: Mutex<Vec<u8>>,
}

impl Source for Memory {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (offset..).zip(out).for_each(|(at, out)| *out = byte(at));
        Ok(())
    }
}

impl Sink for Memory {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let mut received = self.received.lock().unwrap();
        let length = received.len().max(offset + bytes.len());
        received.resize(length, 0);
        received[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// One end of a connection, as a test holds it.
struct End {
    connection: Connection,
    events: Receiver<Event>,
}

impl End {
    /// Waits for the first event for which `wanted` returns a value.
    fn wait<T>(&self, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("the event arrives");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    fn connected(&self) {
        self.wait(|event| matches!(event, Event::Connected { .. }).then_some(()));
    }

    fn announced(&self) -> IncomingObject {
        self.wait(|event| if let Event::ObjectAnnounced(object) = event { Some(object) } else { None })
    }

    /// Returns how the connection ended, with its statistics.
    fn closed(&self) -> (NetError, Stats) {
        let error = self.wait(|event| match event {
            Event::Closed(error) => Some(error),
            Event::ObjectFailed(error) => panic!("failed: {error}"),
            _ => None,
        });
        (error, self.stats())
    }

    fn stats(&self) -> Stats {
        block_on(self.connection.stats())
    }
}

struct Unpark(StdThread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread; panics if it takes too long.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, deadline) = (pin!(future), Instant::now() + PATIENCE);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        assert!(Instant::now() < deadline, "it takes too long");
    }
}

fn handler(sender: Sender<Event>) -> EventHandler {
    // Fails if the test has ended.
    Box::new(move |event| sender.send(event).unwrap_or_default())
}

fn connect(endpoint: &Endpoint) -> End {
    connect_to(endpoint, PIPE_PEER)
}

fn connect_to(endpoint: &Endpoint, remote: SocketAddr) -> End {
    let (sender, events) = channel();
    let options = ConnectOptions::new(vec![remote]).handshake_timeout(PATIENCE);
    End { connection: endpoint.connect((KEY, options)).events(handler(sender)).start(), events }
}

fn accept_options() -> AcceptOptions {
    AcceptOptions::default()
}

fn in_ten_minutes() -> SystemTime {
    SystemTime::now() + Duration::from_secs(600)
}

/// Listens; sends connected peers to the returned channel.
fn listen(endpoint: &Endpoint) -> Receiver<End> {
    let (sender, ends) = channel();
    let acceptor = Box::new(move |connection| {
        let (events_sender, events) = channel();
        sender.send(End { connection, events }).unwrap_or_default();
        handler(events_sender)
    });
    endpoint.listen(KEY, in_ten_minutes(), accept_options(), acceptor);
    ends
}

/// Descriptors of an endpoint over pipes.
type PipePair = (OwnedFd, OwnedFd);

/// Returns both ends of a connection over two pipes.
fn pipes() -> (PipePair, PipePair) {
    let ((read_a, write_b), (read_b, write_a)) = (pipe().unwrap(), pipe().unwrap());
    ((read_a.into(), write_a.into()), (read_b.into(), write_b.into()))
}

/// Returns both ends of a connection over one socket pair.
fn sockets() -> (PipePair, PipePair) {
    let (a, b) = UnixStream::pair().unwrap();
    ((a.try_clone().unwrap().into(), a.into()), (b.try_clone().unwrap().into(), b.into()))
}

fn start(way: PipePair) -> Endpoint {
    Endpoint::builder().over_pipes(way.0, way.1).unwrap()
}

/// Returns two endpoints and a connection between them.
fn joined((here, there): (PipePair, PipePair)) -> (Endpoint, End, Endpoint, End) {
    let (connecting, listening) = (start(here), start(there));
    let arrivals = listen(&listening);
    let sending = connect(&connecting);
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    (connecting, sending, listening, receiving)
}

/// Sends one object of `length` bytes and waits until the receiver has it.
fn transfer(sending: &End, receiving: &End, length: u64, source: Arc<dyn Source>, sink: Arc<dyn Sink>) {
    sending.connected();
    sending.connection.send_object(1, length, source);
    receiving.announced().accept(sink);
    receiving.wait(|event| matches!(event, Event::ObjectReceived { tag: 1 }).then_some(()));
}

/// Sends the pattern, and checks that it arrives.
fn transfer_pattern(sending: &End, receiving: &End, length: u64) {
    let memory = Arc::new(Memory::default());
    transfer(sending, receiving, length, Arc::clone(&memory) as _, Arc::clone(&memory) as _);
    assert!(*memory.received.lock().unwrap() == pattern(length), "the bytes differ");
}

fn pattern(length: u64) -> Vec<u8> {
    (0..length).map(byte).collect()
}
