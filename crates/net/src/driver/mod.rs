//! The network thread: receive, answer, send, sleep. It owns the engine and the carrier.
//!
//! It is a thread and not a task of an async runtime, because pacing needs timers finer than a runtime's milliseconds
//! and because nothing that a program does may delay feedback.

mod link;
mod streams;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::num::NonZeroU64;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::secure::with_clean_stack;
use transport::{
    Batch, Connection, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent, KeyHandle, Time, Transmit,
};

use crate::carrier::{Carrier, CarrierError, Outgoing, Sent};
use crate::error::NetError;
use crate::inbox::Inbox;
use crate::messages::{
    Accept, Command, CommandSender, ConnectionId, Event, EventHandler, Message, MessageSender, NOT_ACCEPTED,
};
use crate::options::EndpointOptions;
use crate::shared::Shared;
use crate::socket_info::ThreadClock;
use crate::stats::{EndpointCounters, RejectedDatagrams, Stats};
use crate::workers::{Job, Workers};
use link::{ConnectionDriver, call};
pub(crate) use streams::ANSWERS;

/// Maximum number of receive calls before sending.
const MAX_RECEIVES: usize = 2;

/// Maximum number of batches sent for one connection before the others, and received datagrams, get their turn.
const MAX_BATCHES: usize = 4;

/// The code with which connections are closed when their endpoint is dropped: for a file transfer, an interruption by
/// the user.
const ENDPOINT_DROPPED: u32 = 0x105;

/// How long the thread of a dropped endpoint waits for peers to answer the close.
const LINGER: Duration = Duration::from_secs(1);

/// How long to wait for a full kernel queue before timers get their turn: a pipe's reader may be stopped indefinitely.
const BLOCKED_NAP: Duration = Duration::from_millis(10);

/// How long to keep receiving after the peer has stopped reading: its reason may still be on its way through ssh.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The engine's clock: monotonic, from the endpoint's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineClock {
    origin: Instant,
}

impl EngineClock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }
}

/// Starts the network thread and its workers. `until_end` is dropped when it has ended.
///
/// # Errors
/// [`NetError::OutOfResources`].
pub(crate) fn start(
    carrier: Carrier,
    clock: EngineClock,
    options: &EndpointOptions,
    own: ThreadClock,
    until_end: impl Any + Send,
) -> Result<MessageSender, NetError> {
    let sender = MessageSender::new(Inbox::new().map_err(NetError::system)?);
    let workers = Workers::start({
        let sender = sender.clone();
        move |finished| sender.push(Message::Finished(finished))
    })
    .map_err(NetError::system)?;
    let config = EndpointConfig { limits: options.limits(), ..EndpointConfig::default() };
    // Every key is derived from the seed, so no copy of it may remain on the stack.
    let endpoint = with_clean_stack(|| seed().map(|seed| Endpoint::new(config, seed)))?;
    let running = Driver::new(endpoint, carrier, clock, sender.clone(), workers);
    let inbox = Arc::clone(&sender.inbox);
    let run = move || {
        own.begin();
        // Unwinding closes existing connections; new ones are rejected.
        if panic::catch_unwind(AssertUnwindSafe(|| running.run())).is_err() {
            refuse(&inbox, &NetError::Panicked("the network thread"));
        }
        inbox.close();
        drop(until_end);
    };
    thread::Builder::new().name("downpour-net".into()).spawn(run).map_err(NetError::system)?;
    Ok(sender)
}

/// Returns the seed of the engine's randomness.
fn seed() -> Result<[u8; 32], NetError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| NetError::system(io::Error::other(error)))?;
    Ok(seed)
}

/// Data that the kernel did not take yet.
enum Unsent {
    Nothing,
    /// The rest of `Driver::batch`, from this byte on.
    Batch(usize),
    Answer(Transmit),
}

/// A key, its expiry, and the acceptor of peers answered with it.
struct Listening {
    key: KeyHandle,
    expires: Time,
    acceptor: Accept,
    traces: bool,
}

/// The state of the thread.
struct Driver {
    endpoint: Endpoint,
    carrier: Carrier,
    clock: EngineClock,
    sender: MessageSender,
    messages: Vec<Message>,
    workers: Workers,
    jobs: Vec<Job>,
    links: BTreeMap<ConnectionId, ConnectionDriver>,
    by_handle: BTreeMap<ConnectionHandle, ConnectionId>,
    /// The key to answer.
    listening: Option<Listening>,
    /// Keys that are no longer answered, while an answered peer may still connect.
    retired: Vec<Listening>,
    batch: Batch,
    unsent: Unsent,
    /// Whether the kernel may have datagrams for us.
    readable: bool,
    send_error: Option<io::Error>,
    stop_at: Option<Time>,
    /// The peer no longer reads: when to stop receiving.
    give_up_at: Option<Time>,
}

impl Driver {
    fn new(endpoint: Endpoint, carrier: Carrier, clock: EngineClock, sender: MessageSender, workers: Workers) -> Self {
        Self {
            endpoint,
            carrier,
            clock,
            sender,
            messages: Vec::new(),
            workers,
            jobs: Vec::new(),
            links: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            listening: None,
            retired: Vec::new(),
            batch: Batch::new(),
            unsent: Unsent::Nothing,
            readable: true,
            send_error: None,
            stop_at: None,
            give_up_at: None,
        }
    }

    /// Runs until the endpoint is dropped and its connections have ended.
    fn run(mut self) {
        // By default the kernel may add 50 microseconds to every sleep: two batches at 20 Gbit/s. An error is not
        // fatal.
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::debug!(%error, "cannot reduce the timer slack");
        }
        loop {
            match self.run_once() {
                Ok(busy) => {
                    let now = self.clock.now();
                    if self.may_end(now) {
                        return;
                    }
                    if !busy {
                        self.sleep(now);
                    }
                }
                Err(broken) => return self.close_all(broken),
            }
        }
    }

    /// Whether the endpoint is dropped, and its peers know that or have had enough time to learn it.
    fn may_end(&mut self, now: Time) -> bool {
        let Some(end) = self.stop_at else { return false };
        let Self { endpoint, links, unsent, .. } = self;
        let mut connections =
            links.values().filter_map(|link| endpoint.connection(link.handle).map(|it| it.may_leave()));
        now >= end || (matches!(unsent, Unsent::Nothing) && connections.all(|may_leave| may_leave))
    }

    /// Runs one round of the loop; returns whether work remains.
    fn run_once(&mut self) -> Result<bool, CarrierError> {
        self.read_messages();
        self.retire(self.clock.now());
        self.send_unsent();
        let mut busy = self.receive()?;
        busy |= self.read_socket_errors();
        self.accept();
        busy |= self.poll_connections();
        self.workers.submit(&mut self.jobs);
        if self.carrier.is_peer_gone() {
            let now = self.clock.now();
            if now >= *self.give_up_at.get_or_insert(now + DRAIN_TIMEOUT) {
                return Err(CarrierError::Gone);
            }
        }
        Ok(busy)
    }

    fn read_messages(&mut self) {
        let mut messages = mem::take(&mut self.messages);
        self.sender.inbox.take(&mut messages);
        for message in messages.drain(..) {
            self.take(message);
        }
        self.messages = messages;
    }

    fn take(&mut self, message: Message) {
        let now = self.clock.now();
        match message {
            Message::Finished(finished) => {
                if let Some(link) = self.by_handle.get(&finished.connection).and_then(|id| self.links.get_mut(id))
                    && let Some(connection) = self.endpoint.connection(finished.connection)
                {
                    link.finished(connection, finished, now);
                }
            }
            Message::Connection(id, command) => {
                if matches!(command, Command::Stats(_)) {
                    self.carrier.update_socket_drops();
                }
                let counters = self.endpoint_counters();
                if let Some(link) = self.links.get_mut(&id)
                    && let Some(connection) = self.endpoint.connection(link.handle)
                {
                    link.command(connection, command, counters, now);
                }
            }
            Message::Connect { controls, shared, key, options, events } => {
                let trace = options.qlog;
                match self.endpoint.connect(now, key, *options) {
                    Ok(handle) => self.add_link(handle, controls, shared, events, trace),
                    Err(error) => end(&shared, events, NetError::Connect(error)),
                }
            }
            Message::Listen { key, expires, options, acceptor } => {
                self.retire_listening();
                let traces = options.qlog;
                let key = self.endpoint.add_key(key, Some(expires), *options);
                self.listening = Some(Listening { key, expires, acceptor, traces });
            }
            Message::StopListening => self.stop_listening(),
            // Fails if the caller no longer waits.
            Message::Refused(asked) => drop(asked.send(self.endpoint_counters().refused)),
            Message::HalfOpen(asked) => drop(asked.send(self.endpoint.half_open())),
            Message::Stop => {
                self.stop_listening();
                self.stop_at = Some(now + LINGER);
                for link in self.links.values().filter(|link| !link.is_closed()) {
                    if let Some(connection) = self.endpoint.connection(link.handle) {
                        connection.close(now, ENDPOINT_DROPPED, "the program ended");
                    }
                }
            }
        }
    }

    /// Stops answering new peers, and drops the acceptors.
    fn stop_listening(&mut self) {
        self.retire_listening();
        self.retired.clear();
    }

    /// Stops answering new peers. Answered peers may still connect, with the content of the answer.
    fn retire_listening(&mut self) {
        if let Some(listening) = self.listening.take() {
            self.endpoint.remove_key(listening.key);
            self.retired.push(listening);
        }
    }

    /// Stops answering with an expired key, and drops acceptors without a peer left to accept.
    fn retire(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        if self.listening.as_ref().is_some_and(|listening| listening.expires <= now) {
            self.retire_listening();
        }
        let endpoint = &self.endpoint;
        self.retired.retain(|listening| endpoint.awaits(listening.key));
    }

    /// Returns the counters that belong to no connection.
    fn endpoint_counters(&self) -> EndpointCounters {
        let refused = RejectedDatagrams { engine: *self.endpoint.refused(), carrier: self.carrier.refused() };
        EndpointCounters { refused, overflowed: self.carrier.overflowed() }
    }

    fn add_link(
        &mut self,
        handle: ConnectionHandle,
        controls: CommandSender,
        shared: Arc<Shared>,
        events: EventHandler,
        trace: bool,
    ) {
        self.carrier.update_socket_drops();
        let id = controls.id;
        self.by_handle.insert(handle, id);
        self.links.insert(id, ConnectionDriver::new(handle, controls, shared, events, trace, self.endpoint_counters()));
    }

    /// Passes received datagrams to the engine; returns whether more wait.
    fn receive(&mut self) -> Result<bool, CarrierError> {
        if !self.readable {
            return Ok(false);
        }
        let (endpoint, clock) = (&mut self.endpoint, self.clock);
        for _ in 0..MAX_RECEIVES {
            let more = self.carrier.receive(|datagrams| {
                let now = clock.now();
                endpoint.handle_datagrams(
                    now,
                    datagrams.from,
                    datagrams.local,
                    datagrams.ecn,
                    datagrams.bytes,
                    datagrams.stride,
                );
            })?;
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes on the peers reported as unreachable, after the datagrams received from them; returns whether more wait.
    fn read_socket_errors(&mut self) -> bool {
        let (endpoint, clock) = (&mut self.endpoint, self.clock);
        self.carrier.unreachable(|remote| endpoint.hint_unreachable(clock.now(), remote))
    }

    /// Passes new connections with proved peers to the program.
    fn accept(&mut self) {
        while let Some(EndpointEvent::Accepted { handle, key }) = self.endpoint.poll_event() {
            let (controls, shared) = (self.sender.new_controls(), Arc::<Shared>::default());
            let mut listening = self.listening.iter_mut().chain(&mut self.retired);
            match listening.find(|listening| listening.key == key) {
                Some(Listening { acceptor, traces, .. }) => {
                    let (events, traces) = (acceptor(controls.clone(), Arc::clone(&shared)), *traces);
                    self.add_link(handle, controls, shared, events, traces);
                }
                // Answered just before this side stopped listening.
                None => {
                    self.add_link(handle, controls, shared, Box::new(drop), false);
                    if let Some(connection) = self.endpoint.connection(handle) {
                        connection.close(self.clock.now(), NOT_ACCEPTED, "connections are not accepted");
                    }
                }
            }
        }
    }

    /// Serves timers, events, requests and packets of every connection; returns whether one has more to send.
    fn poll_connections(&mut self) -> bool {
        let mut busy = false;
        let counters = self.endpoint_counters();
        let mut drained = Vec::new();
        for (id, link) in &mut self.links {
            let Some(connection) = self.endpoint.connection(link.handle) else {
                drained.push(*id);
                continue;
            };
            let now = self.clock.now();
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            link.requests(connection, &mut self.jobs);
            let mut transmit = |connection: &mut Connection| {
                for _ in 0..MAX_BATCHES {
                    let free = matches!(self.unsent, Unsent::Nothing);
                    if !free || !connection.poll_transmit(self.clock.now(), &mut self.batch) {
                        return false;
                    }
                    self.batch.seal();
                    let mut sent = 0;
                    if self.carrier.send(Outgoing::from(&self.batch), &mut sent) == Sent::Blocked {
                        self.unsent = Unsent::Batch(sent);
                    }
                }
                true
            };
            let mut more = transmit(connection);
            if mem::take(&mut link.leaves) {
                connection.close_unconfirmed(self.clock.now());
            }
            link.requests(connection, &mut self.jobs);
            // Reading gives the peer credit, which must not wait for the next wake-up.
            if link.events(connection, counters, self.clock.now(), &mut self.send_error) && !more {
                more = transmit(connection);
            }
            busy |= more;
            if connection.is_drained() {
                drained.push(*id);
            }
        }
        for id in drained {
            self.remove(id);
        }
        self.send_answers();
        self.send_error = self.carrier.take_send_error().or(self.send_error.take());
        busy
    }

    fn remove(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.remove(&id) {
            self.by_handle.remove(&link.handle);
            self.endpoint.remove(link.handle);
        }
    }

    fn send_answers(&mut self) {
        while matches!(self.unsent, Unsent::Nothing) {
            let Some(answer) = self.endpoint.poll_answer() else { return };
            if self.carrier.send(Outgoing::from(&answer), &mut 0) == Sent::Blocked {
                self.unsent = Unsent::Answer(answer);
            }
        }
    }

    /// Sends again the bytes that the kernel did not take.
    fn send_unsent(&mut self) {
        let blocked = match mem::replace(&mut self.unsent, Unsent::Nothing) {
            Unsent::Nothing => return,
            Unsent::Batch(mut sent) => {
                let state = self.carrier.send(Outgoing::from(&self.batch), &mut sent);
                (state == Sent::Blocked).then_some(Unsent::Batch(sent))
            }
            Unsent::Answer(answer) => {
                let state = self.carrier.send(Outgoing::from(&answer), &mut 0);
                (state == Sent::Blocked).then_some(Unsent::Answer(answer))
            }
        };
        self.unsent = blocked.unwrap_or(Unsent::Nothing);
    }

    /// Returns the time of the next action if nothing is received.
    fn deadline(&self) -> Option<Time> {
        let expires = self.listening.as_ref().map(|listening| listening.expires);
        let own = self.stop_at.into_iter().chain(self.give_up_at).chain(expires).min();
        own.into_iter().chain(self.endpoint.poll_timeout()).min()
    }

    /// Waits for datagrams, messages, room to send, or the next deadline.
    fn sleep(&mut self, now: Time) {
        let deadline = self.deadline();
        self.readable = true;
        let blocked = !matches!(self.unsent, Unsent::Nothing);
        let timeout = match deadline {
            // Nothing can be sent before the kernel takes the waiting bytes; the carrier becomes writable then.
            Some(at) if at <= now && blocked => Timespec::try_from(BLOCKED_NAP).ok(),
            Some(at) if at <= now => return,
            Some(at) => Timespec::try_from(at.since(now)).ok(),
            None => None,
        };
        if !self.sender.inbox.begin_wait() {
            return;
        }
        let mut waiting = [
            PollFd::new(self.sender.inbox.descriptor(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.carrier.reader(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.carrier.writer(), PollFlags::OUT),
        ];
        let watched = if blocked { 3 } else { 2 };
        // Interrupted by a signal: treat as a spurious wake-up.
        let result = poll(&mut waiting[..watched], timeout.as_ref());
        let [inbox, reader, _] = waiting.map(|fd| if result.is_ok() { fd.revents() } else { PollFlags::empty() });
        self.sender.inbox.awake(!inbox.is_empty());
        self.readable = !reader.is_empty();
        if reader.contains(PollFlags::ERR) {
            self.carrier.note_error();
        }
    }

    /// Ends every connection because the carrier is broken.
    fn close_all(mut self, broken: CarrierError) {
        let (counters, error) = (self.endpoint_counters(), NetError::from(broken));
        for link in self.links.values_mut() {
            if let Some(connection) = self.endpoint.connection(link.handle) {
                link.end(connection, &error, counters, self.clock.now(), &mut self.send_error);
            }
        }
        let (inbox, stopping) = (Arc::clone(&self.sender.inbox), self.stop_at.is_some());
        // Closes our side towards the peer, and drops the acceptor.
        drop(self);
        if !stopping {
            refuse(&inbox, &error);
        }
    }
}

/// Ends a connection that never began.
fn end(shared: &Shared, mut events: EventHandler, error: NetError) {
    shared.end(error.clone(), Stats::default());
    call(&mut events, Event::Closed(error));
}

/// Refuses all connections with `error` until the endpoint is dropped.
fn refuse(inbox: &Inbox<Message>, error: &NetError) {
    let mut messages = Vec::new();
    loop {
        inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Stop => return,
                Message::Connect { shared, mut events, .. } => {
                    shared.end(error.clone(), Stats::default());
                    call(&mut events, Event::Closed(error.clone()));
                }
                // Dropping acceptors and reply channels wakes their waiters; connections have got the event of their
                // close.
                _ => {}
            }
        }
        if inbox.begin_wait() {
            let mut waiting = [PollFd::new(inbox.descriptor(), PollFlags::IN)];
            let woken = poll(&mut waiting, None).is_ok();
            inbox.awake(woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, TryRecvError, channel};

    use transport::{AcceptOptions, ConnectOptions, ReceivedEcn};

    use super::*;
    use crate::carrier::{PIPE_PEER, Pipe};

    /// Creates a network thread's state without the thread, over a pipe that the peer has closed.
    fn running() -> Driver {
        let (socket, _) = UnixStream::pair().unwrap();
        let carrier = Carrier::Pipe(Pipe::new(socket.try_clone().unwrap().into(), socket.into()));
        let workers = Workers::start(|_| ()).unwrap();
        let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
        Driver::new(endpoint, carrier, EngineClock::start(), MessageSender::new(Inbox::new().unwrap()), workers)
    }

    /// Listens with `key`. The channel is closed when the acceptor is dropped.
    fn listen(running: &mut Driver, key: [u8; 32], expires: Time) -> Receiver<()> {
        let (held, dropped) = channel();
        let options = Box::new(AcceptOptions::default());
        let acceptor: Accept = Box::new(move |_, _| {
            held.send(()).unwrap();
            Box::new(|_| ())
        });
        running.take(Message::Listen { key, expires, options, acceptor });
        dropped
    }

    /// A peer that has begun to connect with a key.
    struct Guest {
        endpoint: Endpoint,
        handle: ConnectionHandle,
    }

    impl Guest {
        fn new(seed: u8, key: [u8; 32]) -> Self {
            let mut endpoint = Endpoint::new(EndpointConfig::default(), [seed; 32]);
            let handle = endpoint.connect(Time::ZERO, key, ConnectOptions::new(vec![PIPE_PEER])).unwrap();
            Self { endpoint, handle }
        }

        /// Sends its datagrams.
        fn send(&mut self, running: &mut Driver) {
            let mut batch = Batch::new();
            let now = running.clock.now();
            while self.endpoint.connection(self.handle).unwrap().poll_transmit(Time::ZERO, &mut batch) {
                batch.seal();
                let stride = batch.segment_size();
                let bytes = &mut batch.bytes().to_vec();
                running.endpoint.handle_datagrams(now, PIPE_PEER, None, ReceivedEcn::NotEct, bytes, stride);
            }
        }

        /// Takes the answer to its first message; returns whether it arrived.
        fn hear(&mut self, running: &mut Driver) -> bool {
            let Some(Transmit { mut bytes, .. }) = running.endpoint.poll_answer() else { return false };
            let stride = bytes.len();
            self.endpoint.handle_datagrams(Time::ZERO, PIPE_PEER, None, ReceivedEcn::NotEct, &mut bytes, stride);
            true
        }

        /// Completes the handshake with a listening side, except for the first packet under the agreed keys.
        fn answered(seed: u8, running: &mut Driver) -> Self {
            let mut guest = Self::new(seed, [7; 32]);
            guest.send(running);
            assert!(guest.hear(running));
            guest
        }
    }

    /// Whether a peer that shows `key` is answered.
    fn is_answered(running: &mut Driver, key: [u8; 32]) -> bool {
        let mut guest = Guest::new(2, key);
        guest.send(running);
        guest.hear(running)
    }

    const LATER: Time = Time::from_nanos(600_000_000_000);

    #[test]
    fn a_key_that_has_expired_is_listened_for_no_more() {
        let mut running = running();
        let acceptor = listen(&mut running, [7; 32], LATER);
        assert_eq!(running.deadline(), Some(LATER));
        drop(running.run_once());
        assert_eq!(acceptor.try_recv(), Err(TryRecvError::Empty));
        let acceptor = listen(&mut running, [7; 32], Time::ZERO);
        drop(running.run_once());
        assert_eq!(acceptor.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(running.deadline(), None);
    }

    #[test]
    fn an_endpoint_answers_the_key_it_was_given_last_and_none_when_it_stops() {
        let mut running = running();
        let first = listen(&mut running, [7; 32], LATER);
        assert!(is_answered(&mut running, [7; 32]));
        let second = listen(&mut running, [8; 32], LATER);
        assert_eq!(first.try_recv(), Err(TryRecvError::Empty), "an answered peer may still connect");
        assert!(!is_answered(&mut running, [7; 32]), "another is not answered");
        assert!(is_answered(&mut running, [8; 32]));
        running.take(Message::Stop);
        assert_eq!([&first, &second].map(Receiver::try_recv), [Err(TryRecvError::Disconnected); 2]);
        assert!(!is_answered(&mut running, [8; 32]));
    }

    /// A first message alone, which may be a replay, is nothing to the program.
    #[test]
    fn a_peer_meets_the_acceptor_of_its_handshake_when_it_has_proved_itself() {
        let mut running = running();
        let first = listen(&mut running, [7; 32], LATER);
        let mut guests = [2, 3, 4].map(|seed| Guest::answered(seed, &mut running));
        running.accept();
        assert_eq!((running.links.len(), first.try_recv()), (0, Err(TryRecvError::Empty)), "no peer has connected");
        let second = listen(&mut running, [7; 32], LATER);
        guests[0].send(&mut running);
        running.accept();
        assert_eq!((running.links.len(), first.try_recv()), (1, Ok(())));
        guests[1].send(&mut running);
        running.accept();
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(()), Err(TryRecvError::Empty)));

        // The third does not arrive in time.
        running.retire(running.clock.now() + Duration::from_secs(29));
        assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
        running.retire(running.clock.now() + Duration::from_secs(31));
        assert_eq!((first.try_recv(), second.try_recv()), (Err(TryRecvError::Disconnected), Err(TryRecvError::Empty)));
        guests[2].send(&mut running);
        running.accept();
        assert_eq!(running.links.len(), 2);
    }

    #[test]
    fn an_answered_peer_is_closed_when_listening_stops() {
        let mut running = running();
        let acceptor = listen(&mut running, [7; 32], LATER);
        let mut guest = Guest::answered(2, &mut running);
        running.take(Message::StopListening);
        assert_eq!(acceptor.try_recv(), Err(TryRecvError::Disconnected));
        guest.send(&mut running);
        running.accept();
        let [link] = running.links.values().collect::<Vec<_>>()[..] else { panic!("a closing one") };
        let (connection, mut batch) = (running.endpoint.connection(link.handle).unwrap(), Batch::new());
        assert!(connection.poll_transmit(running.clock.now(), &mut batch));
        batch.seal();
        let (stride, bytes) = (batch.segment_size(), &mut batch.bytes().to_vec());
        guest.endpoint.handle_datagrams(Time::ZERO, PIPE_PEER, None, ReceivedEcn::NotEct, bytes, stride);
        let connection = guest.endpoint.connection(guest.handle).unwrap();
        let events: Vec<_> = std::iter::from_fn(|| connection.poll_event()).collect();
        let reason = "connections are not accepted".to_owned();
        let closed = transport::Event::Closed(transport::ConnectionError::ClosedByPeer { code: NOT_ACCEPTED, reason });
        assert_eq!(events, [transport::Event::Connected, closed]);
    }
}
