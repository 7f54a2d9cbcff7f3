//! The engine in a loop around a `std::net::UdpSocket`: one side sends an object, the other receives it, over loopback.
//! It has no runtime and no worker; requests of the engine are handled at once. `cargo run -p downpour-transport --example
//! bare_engine`.
//!
//! This is where the *poll contract* is written down. A connection is polled in turns, and a turn is [`Side::turn`]:
//!
//! 1. **Datagrams.** Everything that has arrived goes into [`Endpoint::handle_datagrams`], which decrypts in place.
//! 2. **Time.** If [`Connection::poll_timeout`] is due, [`Connection::handle_timeout`] is called. Calling it early is
//!    harmless; calling it late delays probes and pacing. A listener calls [`Endpoint::handle_timeout`] too, which
//!    forgets peers that began a handshake and did not continue.
//! 3. **Events.** [`Connection::poll_event`] until it returns `None`. [`Event::Closed`] is the last one.
//! 4. **Requests and packets, alternately.** [`Connection::poll_request`] until `None`, each answered by
//!    [`Connection::handle_reply`], now or later and in any order; then [`Connection::poll_transmit`] until it returns
//!    `false`. A reply can make packets ready and a packet can cause a request, so both are repeated until neither
//!    yields anything. Replies can also cause events: these belong to the next turn, which must follow without waiting.
//! 5. **Answers.** [`Endpoint::poll_answer`] until `None`: datagrams for peers without a connection.
//! 6. **The end.** A connection that [`Connection::is_drained`] has nothing left to send and is removed.
//! 7. **Waiting**, until a datagram arrives, a reply is ready, or [`Endpoint::poll_timeout`] is due; the deadline
//!    changes with every call above, so it is read last.
//!
//! The packet numbers in a [`Batch`] are fixed once `poll_transmit` has returned it: the batch is sealed
//! ([`Batch::seal`]) and sent as it is. A datagram that the kernel refuses counts as lost on the way; the batch is
//! never dropped in order to build another one. [`Batch::seal`] is pure and may run on another thread.
//!
//! Time is set by the caller and never goes back, and the seed of an endpoint must be secret and used once.

#![allow(clippy::disallowed_methods, reason = "a program around the engine has a clock and threads")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use downpour_transport::{
    AcceptOptions, Batch, ConnectOptions, Connection, ConnectionError, Endpoint, EndpointConfig, Event, ObjectOptions,
    Profile, ReceivedEcn, Time, WorkReply, WorkRequest,
};

/// Both sides know it; it is a constant in this example, otherwise random and secret.
const KEY: [u8; 32] = [7; 32];

/// The task of one side of a connection.
enum Task {
    /// Sends this object.
    Send(Vec<u8>),
    /// Receives an object into this buffer.
    Receive(Vec<u8>),
}

/// One socket, one endpoint, one object.
struct Side {
    socket: UdpSocket,
    endpoint: Endpoint,
    started: Instant,
    batch: Batch,
    task: Task,
    closed: Option<ConnectionError>,
}

impl Side {
    fn new(task: Task, seed: [u8; 32]) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let endpoint = Endpoint::new(EndpointConfig::default(), seed);
        Ok(Self { socket, endpoint, started: Instant::now(), batch: Batch::new(), task, closed: None })
    }

    fn now(&self) -> Time {
        Time::ZERO + self.started.elapsed()
    }

    /// Runs until the connection has ended and everything that belongs to it has been sent.
    fn run(mut self) -> io::Result<Self> {
        while self.closed.is_none() || self.endpoint.handles().next().is_some() {
            let busy = self.turn()?;
            self.receive(busy)?;
        }
        Ok(self)
    }

    /// Runs steps 2 to 6; returns whether more work may remain.
    fn turn(&mut self) -> io::Result<bool> {
        // A listener lets its peers in; the connection itself reports `Connected`.
        while self.endpoint.poll_event().is_some() {}
        self.endpoint.handle_timeout(self.now());
        let handles: Vec<_> = self.endpoint.handles().collect();
        let mut busy = false;
        for handle in handles {
            let now = self.now();
            let Some(connection) = self.endpoint.connection(handle) else { continue };
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll_event() {
                on_event(connection, now, &mut self.task, &mut self.closed, event);
            }
            loop {
                let mut idle = true;
                while let Some(request) = connection.poll_request() {
                    connection.handle_reply(now, answer(&mut self.task, request));
                    (idle, busy) = (false, true);
                }
                while connection.poll_transmit(now, &mut self.batch) {
                    self.batch.seal();
                    send(&self.socket, &self.batch)?;
                    idle = false;
                }
                if idle {
                    break;
                }
            }
            if connection.is_drained() && self.closed.is_some() {
                self.endpoint.remove(handle);
            }
        }
        while let Some(answer) = self.endpoint.poll_answer() {
            ignore_refusal(self.socket.send_to(&answer.bytes, answer.destination))?;
        }
        Ok(busy)
    }

    /// Steps 7 and 1: waits for a datagram or the deadline, but not at all when `busy`, and takes in all that has
    /// arrived.
    fn receive(&mut self, busy: bool) -> io::Result<()> {
        let deadline = self.endpoint.poll_timeout();
        let wait = deadline.map_or(Duration::from_secs(1), |at| at.since(self.now()));
        self.socket.set_nonblocking(busy || wait.is_zero())?;
        // Zero would mean forever.
        self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
        let mut buffer = [0; 65_536];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    // Without offload every read is one datagram. Its ECN mark takes a control message, which `std`
                    // does not read.
                    let (now, datagram) = (self.now(), &mut buffer[..length]);
                    self.endpoint.handle_datagrams(now, from, None, ReceivedEcn::NotEct, datagram, length);
                    self.socket.set_nonblocking(true)?;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(());
                }
                // The peer's socket is closed: its close frame has the reason.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Handles an event. The receiver closes the connection, since only it knows that the object is complete.
fn on_event(
    connection: &mut Connection,
    now: Time,
    task: &mut Task,
    closed: &mut Option<ConnectionError>,
    event: Event,
) {
    match (event, task) {
        (Event::Connected, Task::Send(object)) => {
            let options = ObjectOptions { length: object.len() as u64, tag: 0, digest: false };
            if let Err(error) = connection.send_object(now, options) {
                connection.close(now, 0x100, &error.to_string());
            }
        }
        (Event::ObjectAnnounced { flow, length, .. }, Task::Receive(object)) => {
            // A program that does not trust its peer checks the length first.
            object.resize(length as usize, 0);
            connection.accept_flow(now, flow, false);
        }
        (Event::ObjectReceived { .. }, Task::Receive(_)) => connection.close(now, 0, "complete"),
        (Event::Closed(reason), _) => *closed = Some(reason),
        _ => {}
    }
}

/// Handles the engine's requests. A larger program would hand reads, writes, encoding and decoding to other threads.
fn answer(task: &mut Task, request: WorkRequest) -> WorkReply {
    match (request, task) {
        (WorkRequest::Read { flow, block, offset, length, mut buffer }, Task::Send(object)) => {
            buffer.clear();
            buffer.extend_from_slice(&object[offset as usize..][..length]);
            WorkReply::Read { flow, block, buffer }
        }
        (WorkRequest::Write { flow, block, offset, length, data }, Task::Receive(object)) => {
            object[offset as usize..][..length].copy_from_slice(&data.bytes()[..length]);
            WorkReply::Written { flow, block }
        }
        (request, _) => request.run_pure().expect("no digests are wanted, and no side does the work of the other"),
    }
}

/// Sends a batch, datagram by datagram. With segmentation offload it is one call to the kernel.
fn send(socket: &UdpSocket, batch: &Batch) -> io::Result<()> {
    batch
        .bytes()
        .chunks(batch.segment_size())
        .try_for_each(|datagram| ignore_refusal(socket.send_to(datagram, batch.destination())))
}

/// Linux reports on a later call that the peer's port is closed. To a transport this is one more lost datagram.
fn ignore_refusal(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        other => other.map(drop),
    }
}

/// Sends `object` from one thread to another; returns the received bytes and both sides' reasons of the close.
///
/// # Errors
/// The system refuses a socket or a thread.
pub(crate) fn transfer(object: Vec<u8>, profile: &Profile) -> io::Result<(Vec<u8>, [Option<ConnectionError>; 2])> {
    let mut receiver = Side::new(Task::Receive(Vec::new()), [1; 32])?;
    let accept = AcceptOptions::default().profile(profile.clone());
    receiver.endpoint.add_key(KEY, None, accept);
    let remote: SocketAddr = receiver.socket.local_addr()?;
    let receiving = thread::Builder::new().spawn(|| receiver.run())?;

    let mut sender = Side::new(Task::Send(object), [2; 32])?;
    let connect = ConnectOptions::new(vec![remote]).profile(profile.clone());
    let now = sender.now();
    sender.endpoint.connect(now, KEY, connect).map_err(io::Error::other)?;
    let sender = sender.run()?;

    let receiver = receiving.join().map_err(|_| io::Error::other("the receiver panicked"))??;
    let Task::Receive(received) = receiver.task else { return Err(io::Error::other("a receiver receives")) };
    Ok((received, [sender.closed, receiver.closed]))
}

#[allow(dead_code, reason = "the test of this example calls `transfer` itself")]
fn main() -> io::Result<()> {
    let object: Vec<u8> = (0..10_000_000_u32).map(|at| (at / 7) as u8).collect();
    let started = Instant::now();
    let (received, closed) = transfer(object.clone(), &Profile::auto())?;
    let [sender, receiver] = closed;
    println!("{} bytes in {:?}; equal: {}", received.len(), started.elapsed(), received == object);
    println!("the sender ended with {sender:?}, the receiver with {receiver:?}");
    Ok(())
}
