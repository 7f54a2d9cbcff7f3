//! The driver's thread: receive, answer, send, sleep.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::{Answer, Batch, ConnectionHandle, Endpoint, EndpointEvent, KeyId, Time};

use crate::carrier::{Broken, Carrier, Outgoing, Sent};
use crate::error::NetError;
use crate::inbox::Inbox;
use crate::link::LinkState;
use crate::workers::{Job, Workers};
use crate::{Accepted, Acceptor, Clock, Command, Link, LinkEvent, LinkId, Message};

/// Calls to the kernel for received datagrams before something may be sent again.
const MAX_RECEIVES: usize = 2;

/// Batches that one connection sends before the others, and what has been received, get their turn.
const MAX_BATCHES: usize = 4;

/// The code that a peer is told when its endpoint is dropped: to a file transfer, that its user interrupted it.
const ENDPOINT_DROPPED: u32 = 0x105;

/// How long a driver that is no longer wanted stays for a peer that has not answered its close.
const LINGER: Duration = Duration::from_secs(1);

/// How long a full kernel queue is waited for before timers get their turn: a pipe's reader may be stopped for as long as it likes.
const BLOCKED_NAP: Duration = Duration::from_millis(10);

/// How long a peer that no longer reads may go on saying why: what it wrote before may still be on its way through ssh.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the kernel did not take yet.
enum Unsent {
    Nothing,
    /// The rest of `Running::batch`, from this byte on.
    Batch(usize),
    Answer(Answer),
}

/// Everything the thread owns.
pub(crate) struct Running {
    endpoint: Endpoint,
    carrier: Carrier,
    clock: Clock,
    inbox: Arc<Inbox<Message>>,
    messages: Vec<Message>,
    workers: Workers,
    jobs: Vec<Job>,
    next_link: Arc<AtomicU64>,
    links: BTreeMap<LinkId, LinkState>,
    by_handle: BTreeMap<ConnectionHandle, LinkId>,
    listening: Option<(KeyId, Acceptor)>,
    traces: bool,
    batch: Batch,
    unsent: Unsent,
    /// The kernel may have datagrams for us.
    readable: bool,
    send_error: Option<io::Error>,
    stop_at: Option<Time>,
    /// Nobody hears us: when to stop listening.
    give_up_at: Option<Time>,
}

impl Running {
    pub(crate) fn new(
        endpoint: Endpoint,
        carrier: Carrier,
        clock: Clock,
        inbox: Arc<Inbox<Message>>,
        workers: Workers,
        next_link: Arc<AtomicU64>,
    ) -> Self {
        Self {
            endpoint,
            carrier,
            clock,
            inbox,
            messages: Vec::new(),
            workers,
            jobs: Vec::new(),
            next_link,
            links: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            listening: None,
            traces: false,
            batch: Batch::new(),
            unsent: Unsent::Nothing,
            readable: true,
            send_error: None,
            stop_at: None,
            give_up_at: None,
        }
    }

    /// Runs until nobody wants the endpoint any more and its connections have ended.
    pub(crate) fn run(mut self) {
        // The kernel may otherwise add 50 microseconds to every sleep, two batches at 20 Gbit/s. Not fatal.
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::debug!(%error, "timers stay as coarse as they are");
        }
        loop {
            match self.turn() {
                Ok(busy) => {
                    let now = self.clock.now();
                    if self.may_end(now) {
                        return;
                    }
                    if !busy {
                        self.sleep(now);
                    }
                }
                Err(broken) => return self.give_up(&broken),
            }
        }
    }

    /// Whether nobody wants the endpoint any more and its peers know, or have had long enough to hear, that it goes.
    fn may_end(&mut self, now: Time) -> bool {
        let Some(end) = self.stop_at else { return false };
        let Self { endpoint, links, unsent, .. } = self;
        let mut connections =
            links.values().filter_map(|link| endpoint.connection(link.handle).map(|it| it.may_leave()));
        now >= end || (matches!(unsent, Unsent::Nothing) && connections.all(|may_leave| may_leave))
    }

    /// One round of everything there is to do; true when there is more.
    fn turn(&mut self) -> Result<bool, Broken> {
        self.read_messages();
        self.send_unsent();
        let mut busy = self.receive()?;
        busy |= self.hear_errors();
        self.accept();
        busy |= self.serve_and_send();
        self.workers.submit(&mut self.jobs);
        if self.carrier.is_unheard() {
            let now = self.clock.now();
            if now >= *self.give_up_at.get_or_insert(now + LAST_WORDS) {
                return Err(Broken::Gone);
            }
        }
        Ok(busy)
    }

    fn read_messages(&mut self) {
        let mut messages = mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Finished(finished) => {
                    let now = self.clock.now();
                    if let Some(link) = self.by_handle.get(&finished.connection).and_then(|id| self.links.get_mut(id))
                        && let Some(connection) = self.endpoint.connection(finished.connection)
                    {
                        link.finished(connection, finished, now);
                    }
                }
                Message::Command(command) => self.command(command),
            }
        }
        self.messages = messages;
    }

    fn command(&mut self, command: Command) {
        let now = self.clock.now();
        match command {
            Command::Connect { link, key, options, mut accepted } => {
                let trace = options.qlog;
                match self.endpoint.connect(now, key, *options) {
                    Ok(handle) => self.add_link(link, handle, accepted, trace),
                    Err(error) => (accepted.events)(LinkEvent::Failed(NetError::Connect(error))),
                }
            }
            Command::AddKey { key, expires, options, acceptor } => {
                self.traces = options.qlog;
                let key = self.endpoint.add_key(key, expires, *options);
                self.listening = Some((key, acceptor));
            }
            Command::RemoveKey => {
                if let Some((key, _)) = self.listening.take() {
                    self.endpoint.remove_key(key);
                }
            }
            Command::Link(id, command) => {
                let refused = self.refused();
                if let Some(link) = self.links.get_mut(&id)
                    && let Some(connection) = self.endpoint.connection(link.handle)
                {
                    link.command(connection, command, refused, now);
                }
            }
            Command::Stop => {
                self.stop_at = Some(now + LINGER);
                for link in self.links.values().filter(|link| !link.is_closed()) {
                    if let Some(connection) = self.endpoint.connection(link.handle) {
                        connection.close(now, ENDPOINT_DROPPED, "the program ended");
                    }
                }
            }
        }
    }

    /// Datagrams refused that belong to no connection.
    fn refused(&self) -> u64 {
        self.endpoint.refused().total() + self.carrier.refused()
    }

    fn add_link(&mut self, id: LinkId, handle: ConnectionHandle, accepted: Accepted, trace: bool) {
        self.by_handle.insert(handle, id);
        self.links.insert(id, LinkState::new(handle, accepted, trace));
    }

    /// Feeds the engine what has arrived; true when there is more.
    fn receive(&mut self) -> Result<bool, Broken> {
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

    /// Tells the engine whom the network calls unreachable, after what has come from them; true when there is more.
    fn hear_errors(&mut self) -> bool {
        let (endpoint, clock) = (&mut self.endpoint, self.clock);
        self.carrier.unreachable(|remote| endpoint.hint_unreachable(clock.now(), remote))
    }

    /// Gives peers that have shown the key to the program.
    fn accept(&mut self) {
        while let Some(EndpointEvent::Accepted { handle, key }) = self.endpoint.poll_event() {
            match &mut self.listening {
                Some((listening, acceptor)) if *listening == key => {
                    let id = LinkId(self.next_link.fetch_add(1, Ordering::Relaxed));
                    let accepted = acceptor(Link { id, inbox: Arc::clone(&self.inbox) });
                    let trace = self.traces;
                    self.add_link(id, handle, accepted, trace);
                }
                // It came just before the key was removed: silence, as for those who come later.
                _ => self.endpoint.remove(handle),
            }
        }
    }

    /// Timers, events, requests and packets of every connection; true when one has more to send.
    fn serve_and_send(&mut self) -> bool {
        let mut busy = false;
        let refused = self.refused();
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
            let mut batches = 0;
            while matches!(self.unsent, Unsent::Nothing) && batches < MAX_BATCHES {
                if !connection.poll_transmit(self.clock.now(), &mut self.batch) {
                    break;
                }
                self.batch.seal();
                let mut sent = 0;
                if self.carrier.send(Outgoing::from(&self.batch), &mut sent) == Sent::Blocked {
                    self.unsent = Unsent::Batch(sent);
                }
                batches += 1;
            }
            busy |= batches == MAX_BATCHES;
            link.requests(connection, &mut self.jobs);
            link.events(connection, refused, self.clock.now(), &mut self.send_error);
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

    fn remove(&mut self, id: LinkId) {
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

    /// Tries again what the kernel did not take.
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

    /// Waits for datagrams, messages, room to send, or the next deadline.
    fn sleep(&mut self, now: Time) {
        let mut deadline = self.stop_at.into_iter().chain(self.give_up_at).min();
        for link in self.links.values() {
            if let Some(at) = self.endpoint.connection(link.handle).and_then(|connection| connection.poll_timeout()) {
                deadline = Some(deadline.map_or(at, |earliest| earliest.min(at)));
            }
        }
        self.readable = true;
        let blocked = !matches!(self.unsent, Unsent::Nothing);
        let timeout = match deadline {
            // What is due cannot leave before the kernel takes what waits: the carrier will say when.
            Some(at) if at <= now && blocked => Timespec::try_from(BLOCKED_NAP).ok(),
            Some(at) if at <= now => return,
            Some(at) => Timespec::try_from(at.since(now)).ok(),
            None => None,
        };
        if !self.inbox.fall_asleep() {
            return;
        }
        let mut waiting = [
            PollFd::new(self.inbox.descriptor(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.carrier.reader(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.carrier.writer(), PollFlags::OUT),
        ];
        let watched = if blocked { 3 } else { 2 };
        // Interrupted by a signal: as if woken for nothing.
        let result = poll(&mut waiting[..watched], timeout.as_ref());
        let [inbox, reader, _] = waiting.map(|fd| if result.is_ok() { fd.revents() } else { PollFlags::empty() });
        self.inbox.awake(!inbox.is_empty());
        self.readable = !reader.is_empty();
        if reader.contains(PollFlags::ERR) {
            self.carrier.note_error();
        }
    }

    /// The carrier is of no more use: every connection ends now.
    fn give_up(mut self, broken: &Broken) {
        let refused = self.refused();
        for link in self.links.values_mut() {
            if let Some(connection) = self.endpoint.connection(link.handle) {
                link.end(connection, broken, refused, self.clock.now(), &mut self.send_error);
            }
        }
        let (inbox, stopping) = (Arc::clone(&self.inbox), self.stop_at.is_some());
        // The peer sees the end of our side, and whoever waits for peers that none will come.
        drop(self);
        if !stopping {
            refuse(&inbox, broken);
        }
    }
}

/// Tells everybody who wants a connection why there is none, until nobody can want one.
pub(crate) fn refuse(inbox: &Inbox<Message>, broken: &Broken) {
    let mut messages = Vec::new();
    loop {
        inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Command(Command::Stop) => return,
                Message::Command(Command::Connect { mut accepted, .. }) => {
                    (accepted.events)(LinkEvent::Failed(broken.error()));
                }
                // An acceptor is dropped, and links have been told of their end.
                Message::Command(_) | Message::Finished(_) => {}
            }
        }
        if inbox.fall_asleep() {
            let mut waiting = [PollFd::new(inbox.descriptor(), PollFlags::IN)];
            let woken = poll(&mut waiting, None).is_ok();
            inbox.awake(woken);
        }
    }
}
