//! The part of a transfer that both sides have in common, on a thread of its own: processing events in order, detecting
//! the end of the connection, reporting progress, writing the trace, and telling the peer how the transfer ended.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use net::{Connection, Event, NetError, PIPE_PEER, Stats};
use serde_json::json;
use transport::{ConnectionStats, Connector, Rate, floor};

use super::bottleneck::{Bottleneck, Overload, Watch};
use super::figures::{Attempts, MemoryTicks, Meter, Progress, Summary, counted, path_share, share};
use super::headway::Headway;
use super::step::{Acquaintance, Counts, Input, Lives, Origin, SessionConfig, Step, Totals};
use super::{Events, TransferEvent};
use crate::error::{CloseCode, Error, Other};
use crate::files::{FailReason, Failed, Notice, SkipReason, Skipped};
use crate::messages::{Message, MessageReader, NoticeKind, Strain};
use crate::path_cache::Lease;
use crate::protocol::handshake::TRANSFER;
use crate::ticket::Role;
use crate::wait::block_on;

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(200);

/// How long a side waits for the last messages while the peer is silent: the receiver for the sender's goodbye, either
/// side for its own to be sent.
const LINGER: Duration = Duration::from_secs(3);

/// And the limit while the peer is heard: over a bad path the receiver's confirmation may take several tries.
const LONGEST_LINGER: Duration = Duration::from_secs(30);

/// How long a peer whose place another one wants may be silent while it owes a response: long enough for several
/// probes.
const PROOF_OF_LIFE: Duration = Duration::from_secs(2);

/// Bytes of the control stream that may be outstanding before another part of a manifest is written or processed.
pub(super) const MAX_BACKLOG: usize = 512 << 10;

/// Maximum length of the reason in a close frame, in bytes.
const MAX_REASON: usize = 256;

/// A receiver's flag: it may already hold some of the bytes, and lists what it wants of each batch.
const MAY_HOLD_SOME: u8 = 1;

/// Flag of a sender that understands [`Message::Untouched`].
const HEARS_UNTOUCHED: u8 = 2;

/// Flag of a side that understands [`Message::Strain`].
const HEARS_STRAIN: u8 = 4;

/// Flag of a sender that lists the chunks of files: [`Message::ListChunks`].
const LISTS_CHUNKS: u8 = 8;

/// A receiver's flag: it takes all of a batch though it may hold some.
const TAKES_WHOLE: u8 = 16;

/// A receiver's flag: files that have changed while they were read may come again.
const TAKES_AGAIN: u8 = 32;

/// Flag of a side that understands the reasons and kinds of notices that are not known to all
/// ([`SkipReason::is_known_to_all`], [`NoticeKind::known_to_all`]).
const KNOWS_REASONS: u8 = 64;

/// Returns the application bytes that a side sends in the handshake.
pub(super) fn application(role: Role, may_hold_some: bool, takes_again: bool) -> Vec<u8> {
    let again = if takes_again { TAKES_AGAIN } else { 0 };
    let flags = match role {
        Role::Sends => HEARS_UNTOUCHED | LISTS_CHUNKS,
        Role::Receives if may_hold_some => MAY_HOLD_SOME | TAKES_WHOLE | again,
        Role::Receives | Role::Tunnels | Role::Streams => again,
    };
    vec![TRANSFER, role as u8, flags | HEARS_STRAIN | KNOWS_REASONS]
}

/// Another peer that wants the place of this one.
struct Rival {
    /// When this peer was asked for a sign of life, and the bytes received by then.
    asked: Option<(Instant, u64)>,
    lives: Lives,
}

/// The transfer over one connection.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) events: Events,
    config: SessionConfig,
    inputs: Receiver<Input>,
    started: Instant,
    ended: Option<Instant>,
    /// Time spent waiting for the user.
    waited: Duration,
    /// When the user was asked, if the answer is outstanding.
    asked: Option<Instant>,
    next_tick: Instant,
    meter: Meter,
    watch: Watch,
    overload: Overload,
    peer: Option<SocketAddr>,
    /// The flags from its handshake.
    peer_flags: u8,
    /// The limits set by this side's user and by the peer's user.
    limits: [Option<Rate>; 2],
    /// When something was last received from the peer.
    heard: Option<Instant>,
    bytes_heard: u64,
    rival: Option<Rival>,
    headway: Headway,
    /// Whether this side has work to do before the peer can continue.
    busy: bool,
    /// When the side last got a step to handle.
    given: Option<Instant>,
    /// Whether the peer has lost its place because it made no progress.
    stalled: bool,
    stats: Option<Stats>,
    closed: bool,
    reader: MessageReader,
    messages: VecDeque<Message>,
    /// Bytes of the control stream behind `messages`, to be released when those are processed.
    untold: usize,
    /// Whether this side buffers messages, so that their bytes are not released.
    holding: bool,
    /// Whether messages are left in the queue.
    paused: bool,
    written: usize,
    /// Whether the trace has begun.
    is_traced: bool,
    /// Why the trace is not complete.
    trace_lost: Option<String>,
    /// What is known of the path.
    lease: Option<Lease>,
    remembered: Option<Rate>,
    /// Counts as last reported.
    counts: Counts,
    /// What holds this machine back, and what its peer says of its own.
    strain: Strain,
    peer_strain: Strain,
    memory: MemoryTicks,
}

impl Session {
    /// Creates a session whose first datagram was sent or received just now.
    ///
    /// # Errors
    /// [`Error::Trace`] if the trace file cannot be opened.
    pub(super) fn new(
        connection: Connection,
        events: Events,
        config: SessionConfig,
        inputs: Receiver<Input>,
        started: Instant,
    ) -> Result<Self, Error> {
        config.trace.as_ref().map_or(Ok(()), |trace| trace.open().map(drop))?;
        Ok(Self {
            connection,
            events,
            inputs,
            started,
            ended: None,
            waited: Duration::ZERO,
            asked: None,
            next_tick: started + TICK,
            meter: Meter::new(started),
            watch: Watch::new(started),
            overload: Overload::default(),
            peer: None,
            peer_flags: 0,
            limits: [config.options.engine.profile.limit, None],
            heard: None,
            bytes_heard: 0,
            rival: None,
            headway: Headway::new(started),
            busy: false,
            given: None,
            stalled: false,
            stats: None,
            closed: false,
            reader: MessageReader::new(),
            messages: VecDeque::new(),
            untold: 0,
            holding: false,
            paused: false,
            written: 0,
            is_traced: false,
            trace_lost: None,
            lease: None,
            remembered: None,
            counts: Counts::default(),
            strain: Strain::default(),
            peer_strain: Strain::default(),
            memory: MemoryTicks::default(),
            config,
        })
    }

    /// Whether the peer is authenticated and its application data is valid.
    pub(super) const fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Whether the receiver lists what it wants of each batch.
    pub(super) const fn peer_may_hold_some(&self) -> bool {
        self.peer_flags & MAY_HOLD_SOME != 0
    }

    /// Whether the receiver takes all of a batch without being asked what it wants of it.
    pub(super) const fn peer_takes_whole(&self) -> bool {
        self.peer_flags & TAKES_WHOLE != 0
    }

    /// Whether the receiver takes files again that have changed while they were read.
    pub(super) const fn peer_takes_again(&self) -> bool {
        self.peer_flags & TAKES_AGAIN != 0
    }

    /// Returns whether the peer understands every reason and kind of notice.
    pub(super) const fn peer_knows_reasons(&self) -> bool {
        self.peer_flags & KNOWS_REASONS != 0
    }

    /// Returns whether the sender understands [`Message::Untouched`].
    pub(super) const fn peer_hears_untouched(&self) -> bool {
        self.peer_flags & HEARS_UNTOUCHED != 0
    }

    /// Returns whether the sender lists the chunks of files on request.
    pub(super) const fn peer_lists_chunks(&self) -> bool {
        self.peer_flags & LISTS_CHUNKS != 0
    }

    /// Returns the rate that the path is known to carry, or is limited to, if any is.
    pub(super) fn line_rate(&self) -> Option<Rate> {
        let learned = || self.stats.as_ref().and_then(|stats| stats.connection.memory).map(|memory| memory.rate);
        let line = self.config.fixed_rate().or_else(learned).or(self.remembered);
        self.limits.into_iter().flatten().chain(line).min()
    }

    /// Whether the peer was found by a ticket.
    pub(super) const fn by_ticket(&self) -> bool {
        matches!(self.config.acquaintance, Acquaintance::Ticket(_))
    }

    /// Returns when something was last received from the peer.
    pub(super) const fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Caps the rate on behalf of this side's user.
    pub(super) fn limit(&mut self, limit: Option<Rate>) {
        self.limits[0] = limit;
        self.apply_limits();
    }

    /// Caps the rate on behalf of the receiver's user.
    pub(super) fn limit_by_peer(&mut self, limit: Option<Rate>) {
        self.limits[1] = limit;
        self.apply_limits();
    }

    fn apply_limits(&self) {
        self.connection.set_limit(self.limits.into_iter().flatten().min());
    }

    /// Tells the user what happens to a name at the receiver, or to its source.
    pub(super) fn notice(&self, notice: Notice, done: &mut Totals) {
        if notice.kind.is_failure() {
            done.fail(&notice.path, FailReason::Refused(notice.kind));
        } else if notice.kind == NoticeKind::UnsafeLink {
            let reason = FailReason::Refused(notice.kind);
            self.events.tell(TransferEvent::LeftOut(Failed { path: notice.path, reason }));
        } else {
            done.deleted += u64::from(notice.kind == NoticeKind::Delete);
            done.removed += u64::from(notice.kind == NoticeKind::SourceRemoved);
            self.events.tell(TransferEvent::Notice { kind: notice.kind, path: notice.path });
        }
    }

    /// Reports a name that was left out on purpose to the user. Links are only counted: see [`Self::tell_links`].
    pub(super) fn left_out(&self, skipped: &Skipped) {
        if !skipped.reason.is_failure() && skipped.reason != SkipReason::Link {
            let left_out = Failed { path: skipped.path.clone(), reason: FailReason::Skipped(skipped.reason) };
            self.events.tell(TransferEvent::LeftOut(left_out));
        }
    }

    /// Reports to the user how many links were left out as requested.
    pub(super) fn tell_links(&self, count: u64) {
        if count > 0 {
            let links = if count == 1 { "link" } else { "links" };
            self.events.tell(TransferEvent::Note(format!("left out: {count} symbolic {links}")));
        }
    }

    /// Returns the bytes written to the control stream that have not arrived.
    pub(super) const fn backlog(&self) -> usize {
        self.written
    }

    /// Appends to the control stream.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        self.written += bytes.len();
        self.connection.write_control(bytes);
    }

    /// Sets whether messages taken from the queue keep counting against what the peer may send.
    pub(super) const fn hold(&mut self, holding: bool) {
        self.holding = holding;
    }

    /// Sets whether messages are left in the queue.
    pub(super) const fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Sets whether this side has work to do before the peer can continue.
    pub(super) const fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    /// Puts messages back at the front of the queue.
    pub(super) fn put_back(&mut self, messages: Vec<Message>) {
        for message in messages.into_iter().rev() {
            self.messages.push_front(message);
        }
    }

    /// Returns the next message, if it has arrived.
    pub(super) fn peek(&self) -> Option<&Message> {
        self.messages.front()
    }

    /// Returns the bytes of messages that are not released.
    pub(super) const fn held(&self) -> usize {
        self.untold
    }

    /// Records that the user is asked: the time until [`Session::answered`] is not counted.
    pub(super) fn ask(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Records the user's answer.
    pub(super) fn answered(&mut self) {
        self.waited += self.asked.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// Returns the time from the first datagram to `until`, without waiting for the user.
    fn elapsed(&self, until: Instant) -> Duration {
        let waits = self.asked.map_or(Duration::ZERO, |since| until.saturating_duration_since(since));
        until.saturating_duration_since(self.started).saturating_sub(self.waited + waits)
    }

    /// Waits for the next step.
    ///
    /// # Errors
    /// Whatever ends the transfer: the peer, the network, the disk, the user.
    pub(super) fn next(&mut self) -> Result<Step, Error> {
        // Input of the peer was not processed while the last step was handled.
        let handled = self.given.take().map_or(Duration::ZERO, |given| given.elapsed());
        self.headway.excuse(handled);
        let step = self.wait()?;
        self.given = Some(Instant::now());
        Ok(step)
    }

    fn wait(&mut self) -> Result<Step, Error> {
        loop {
            if !self.paused {
                if let Some(message) = self.messages.pop_front() {
                    self.headway.on_message(Instant::now(), &message);
                    return Ok(Step::Message(message));
                }
                if self.untold > 0 && !self.holding {
                    self.connection.control_taken(std::mem::take(&mut self.untold));
                }
            }
            let now = Instant::now();
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                let before = self.strain;
                self.take_stats()?;
                self.memory.count(&self.strain, &self.peer_strain);
                self.tell_strain(before);
                return Ok(Step::Tick);
            }
            let input = match self.inputs.recv_timeout(self.next_tick.saturating_duration_since(now)) {
                Ok(input) => input,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("the network thread has ended")),
            };
            if let Some(step) = self.take(input)? {
                return Ok(step);
            }
        }
    }

    fn take(&mut self, input: Input) -> Result<Option<Step>, Error> {
        match input {
            Input::Step(Step::Network(event)) => self.network(event),
            Input::Step(step) => Ok(Some(step)),
            Input::Rival(lives) => {
                // Further rivals give this peer no more time, and are answered with the first.
                self.rival.get_or_insert(Rival { asked: None, lives });
                Ok(None)
            }
            Input::End(error) => Err(error),
        }
    }

    /// Handles network events that concern every session, and returns the others for the side to handle.
    fn network(&mut self, event: Event) -> Result<Option<Step>, Error> {
        match event {
            Event::Connected { remote, ref application } => {
                self.peer_flags = self.check(application)?;
                self.peer = Some(remote);
                self.heard = Some(Instant::now());
                self.recall(remote);
                self.events.tell(TransferEvent::Connected { peer: (remote != PIPE_PEER).then_some(remote) });
            }
            Event::Control(bytes) => {
                self.read(&bytes)?;
                return Ok(None);
            }
            Event::ControlAcknowledged(bytes) => self.written = self.written.saturating_sub(bytes),
            Event::StreamOpened => {
                return Err(Error::Violation("it opens a stream in a transfer of files".to_owned()));
            }
            Event::Failed(error) => return Err(error.into()),
            Event::Trace(bytes) => {
                self.write_trace(&bytes);
                return Ok(None);
            }
            Event::Closed(error) => {
                self.stats = Some(block_on(self.connection.stats()));
                self.closed = true;
                return Err(self.ended_by(error));
            }
            _ => {}
        }
        Ok(Some(Step::Network(event)))
    }

    /// Begins with what an earlier transfer has learned of the path.
    fn recall(&mut self, peer: SocketAddr) {
        let is_told = self.config.role == Role::Receives || self.config.fixed_rate().is_some() || peer == PIPE_PEER;
        let Some(paths) = self.config.options.paths.as_ref().filter(|_| !is_told) else { return };
        self.lease = paths.lease(peer);
        if let Some(memory) = self.lease.as_ref().and_then(Lease::memory) {
            self.connection.recall(memory);
            // A rate that is known comes first.
            self.remembered = Some(memory.rate).filter(|_| self.config.options.engine.profile.min_rate().is_none());
        }
    }

    fn take_stats(&mut self) -> Result<(), Error> {
        let stats = block_on(self.connection.stats());
        let bytes = stats.connection.bytes_received;
        if bytes > self.bytes_heard {
            (self.heard, self.bytes_heard) = (Some(Instant::now()), bytes);
        }
        self.stats = Some(stats);
        self.strain = Strain {
            memory: stats.connection.memory_binds,
            overflowed: stats.overflowed.unwrap_or(self.strain.overflowed),
        };
        self.check_headway(&stats)?;
        self.look_for_life(bytes, stats.connection.in_flight)
    }

    /// Tells the peer what holds this machine back, if that is no longer what it `was`.
    fn tell_strain(&mut self, was: Strain) {
        let mut bytes = Vec::new();
        let is_news = self.strain != was && self.peer_flags & HEARS_STRAIN != 0;
        // A message of fixed length can be encoded.
        if is_news && Message::Strain(self.strain).encode(&mut bytes).is_ok() {
            self.write(bytes);
        }
    }

    /// Checks that a peer that connected to this side makes progress.
    ///
    /// # Errors
    /// [`Error::Stalled`] if it has made no progress for too long. The limit is shorter if another peer wants its
    /// place.
    fn check_headway(&mut self, stats: &Stats) -> Result<(), Error> {
        let (now, connection) = (Instant::now(), &stats.connection);
        self.headway.on_bytes(now, connection.bytes_written + connection.bytes_acknowledged);
        // A pause is no excuse: it lasts until the peer takes notices, or sends what is missing of earlier batches.
        // What the peer alone can end is none either: blocks that it never reports as done.
        self.headway.set_ours(now, self.busy || self.asked.is_some() || connection.reading > 0);
        let Acquaintance::Ticket(patience) = self.config.acquaintance else { return Ok(()) };
        let limit = if self.rival.is_some() { patience.contested } else { patience.alone };
        self.stalled |= matches!(self.config.origin, Origin::Accepted) && self.headway.is_stalled(now, limit);
        if self.stalled { Err(Error::Stalled(limit)) } else { Ok(()) }
    }

    /// Checks whether this peer is still alive when another one wants its place.
    ///
    /// # Errors
    /// [`Error::Vanished`] if it was asked and has not been heard since.
    fn look_for_life(&mut self, heard: u64, in_flight: u64) -> Result<(), Error> {
        let Some(rival) = &mut self.rival else { return Ok(()) };
        match rival.asked {
            // Only while something is in flight does the peer owe a response.
            None => {
                rival.asked = Some((Instant::now(), heard));
                self.connection.ping();
            }
            Some((_, before)) if heard > before => self.rival.take().into_iter().for_each(|rival| (rival.lives)()),
            Some((since, _)) if in_flight > 0 && since.elapsed() >= PROOF_OF_LIFE => return Err(Error::Vanished),
            Some(_) => {}
        }
        Ok(())
    }

    /// Checks the application bytes of the peer's handshake. Returns its flags.
    fn check(&self, application: &[u8]) -> Result<u8, Error> {
        match *application {
            [TRANSFER, role, _] if role == self.config.role as u8 => Err(Error::WrongRole { both: self.config.role }),
            [TRANSFER, role, flags] if role == self.config.role.other() as u8 => Ok(flags),
            _ => Err(Error::Version),
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.untold += bytes.len();
        while let Some(message) = self.reader.next(&mut bytes)? {
            match message {
                // It is about the moment, and does not wait for what was said before.
                Message::Strain(strain) => self.peer_strain = strain,
                message => self.messages.push_back(message),
            }
        }
        Ok(())
    }

    /// Writes the trace as far as that can be written: the transfer goes on without.
    fn write_trace(&mut self, bytes: &[u8]) {
        let Some(trace) = self.config.trace.as_ref().filter(|_| self.trace_lost.is_none()) else { return };
        self.is_traced = true;
        if let Err(error) = trace.write(bytes) {
            self.trace_lost = Some(error.to_string());
        }
    }

    fn ended_by(&self, error: NetError) -> Error {
        let tried = match &self.config.origin {
            Origin::Connected { addresses, timeout } => Some((&addresses[..], *timeout)),
            Origin::Accepted => None,
        };
        Error::ended(error, &Other { role: self.config.role.other(), tried })
    }

    /// Returns the error that ended the session, when something else has noticed the end first.
    pub(super) fn end(&mut self) -> Error {
        loop {
            if let Err(error) = self.next() {
                return error;
            }
        }
    }

    /// Reports progress with the latest statistics.
    pub(super) fn report(&mut self, counts: Counts) {
        self.counts = counts.clone();
        let Some(stats) = &self.stats else { return };
        let now = Instant::now();
        let goodput = self.meter.update(now, counts.bytes_done + counts.bytes_underway);
        let limited_by = self.watch.bottleneck(now, stats, &self.strain, &self.peer_strain);
        if let Some(note) = self.overload.note(self.config.fixed_rate(), &stats.connection) {
            self.events.tell(TransferEvent::Note(note));
        }
        let sends = self.config.role == Role::Sends;
        // A receiver's few packets say nothing about the path.
        let controller = stats.connection.controller.filter(|_| sends);
        let progress = Progress {
            bytes_done: counts.bytes_done + counts.bytes_present,
            bytes_present: counts.bytes_present,
            bytes_underway: counts.bytes_underway,
            bytes_known: counts.bytes_known,
            total_is_final: counts.total_is_final,
            files_done: counts.files_done,
            files_known: counts.files_known,
            current: counts.current,
            goodput,
            rtt: stats.connection.rtt,
            loss: sends.then_some(stats.connection.loss),
            limited_by,
            elapsed: self.elapsed(now),
            connection: ConnectionStats { controller, ..stats.connection },
        };
        self.trace_progress(&progress);
        self.events.try_tell(TransferEvent::Progress(progress));
    }

    /// Writes the progress to the trace, so that whatever draws it says the same as this program: what is left, and what
    /// holds the transfer back.
    fn trace_progress(&mut self, progress: &Progress) {
        // A trace begins with the engine's header.
        let Some(trace) = self.config.trace.as_ref().filter(|_| self.is_traced) else { return };
        let time = self.started.elapsed().as_secs_f64() * 1e3;
        let data = json!({
            "bytes": progress.bytes_arrived(),
            "known_bytes": progress.bytes_known,
            "known_is_all": progress.total_is_final,
            "files": progress.files_done,
            "known_files": progress.files_known,
            "goodput": progress.goodput,
            "left": progress.left().map(|left| left.as_secs_f64()),
            "limited_by": progress.limited_by.map(Bottleneck::name),
        });
        let record = json!({ "time": time, "name": "downpour:progress", "data": data });
        // A file that takes no more fails with the next record of the engine.
        let _ = trace.write(format!("\u{1e}{record}\n").as_bytes());
    }

    /// Returns the latest statistics of the engine.
    pub(super) const fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }

    /// Stops the clock: everything is verified. The sender gets the last word on this machine, ahead of the receiver's
    /// confirmation. The sender closes next, and has nobody to tell.
    pub(super) fn complete(&mut self) {
        self.ended = Some(Instant::now());
        let before = self.strain;
        // A transfer that is complete does not fail because of its peer's silence.
        drop(self.take_stats());
        if self.config.role == Role::Receives {
            self.tell_strain(before);
        }
    }

    /// Says goodbye and creates the summary.
    ///
    /// # Errors
    /// The error with which the session ended.
    pub(super) fn conclude(&mut self, result: Result<Totals, Error>) -> Result<Summary, Error> {
        let since = Instant::now();
        // What was started by this side's login ends with it, and has no user to whom the result matters.
        let leaves = result.is_ok() && !self.by_ticket() && matches!(self.config.origin, Origin::Connected { .. });
        // The sender has the receiver's confirmation; the receiver first waits until its confirmation has arrived.
        let mut may_close = result.is_err() || self.config.role == Role::Sends;
        if leaves {
            self.connection.leave();
        } else if !may_close {
            self.connection.expect_close();
        }
        let (code, reason) = match &result {
            Ok(_) => (CloseCode::Done, String::new()),
            Err(error) => (error.close_code(), shortened(error.close_reason())),
        };
        while !self.closed {
            if !leaves && (may_close || self.written == 0) {
                may_close = false;
                self.connection.close(code as u32, reason.clone());
            }
            // A stalled peer cannot prolong the lingering by sending more.
            let heard = self.heard.filter(|_| !self.stalled);
            let deadline = lingers_until(since, heard);
            match self.inputs.recv_timeout(deadline.saturating_duration_since(Instant::now()).min(TICK)) {
                // Later events do not change the result.
                Ok(input @ Input::Step(Step::Network(_))) => drop(self.take(input)),
                Ok(_) => {}
                Err(_) => {
                    // The summary needs the counters, and the deadline depends on when the peer was last heard.
                    drop(self.take_stats());
                    if Instant::now() >= deadline {
                        // Close in any case, so that the peer learns how the session ended rather than that a program
                        // ended.
                        self.connection.close(code as u32, reason);
                        break;
                    }
                }
            }
        }
        let is_moved = |stats: &Stats| stats.connection.path_changes > 0;
        if let Some(lease) = self.lease.take() {
            let learned =
                self.stats.as_ref().filter(|stats| !is_moved(stats)).and_then(|stats| stats.connection.memory);
            lease.give_back(learned);
        }
        if result.is_err() {
            // A final progress report.
            self.report(self.counts.clone());
            if let Some(why) = self.trace_lost.take() {
                self.events.tell(TransferEvent::Note(why));
            }
        }
        result.and_then(|done| self.summary(done))
    }

    /// Returns cost and results of this attempt, if a peer was found.
    pub(super) fn attempt(&self) -> Attempts {
        let Some(stats) = self.stats.as_ref().filter(|_| self.is_connected()) else { return Attempts::default() };
        let connection = &stats.connection;
        let (crossed, wire_bytes) = match self.config.role {
            Role::Sends => (connection.bytes_acknowledged, connection.bytes_sent),
            Role::Receives | Role::Tunnels | Role::Streams => (connection.bytes_written, connection.bytes_received),
        };
        Attempts {
            since: Some(self.started),
            crossed,
            wire_bytes,
            refused: stats.refused,
            overflowed: self.overflowed(stats).unwrap_or(0),
            memory: self.memory,
        }
    }

    /// Returns the datagrams that the kernel of the receiver of the files has dropped; `None` if this side does not
    /// know.
    fn overflowed(&self, stats: &Stats) -> Option<u64> {
        match self.config.role {
            Role::Receives | Role::Tunnels | Role::Streams => stats.overflowed,
            // Over pipes nobody has a socket.
            Role::Sends => {
                let says = self.peer_flags & HEARS_STRAIN != 0 && self.peer != Some(PIPE_PEER);
                says.then_some(self.peer_strain.overflowed)
            }
        }
    }

    fn summary(&self, done: Totals) -> Result<Summary, Error> {
        let (Some(stats), Some(peer)) = (&self.stats, self.peer) else {
            return Err(Error::Internal("a complete transfer without a connection"));
        };
        let connection = &stats.connection;
        let elapsed = self.elapsed(self.ended.unwrap_or_else(Instant::now));
        let sends = self.config.role == Role::Sends;
        // The actual loss, not the engine's forecast.
        let lost = connection.packets_lost as f64 / connection.packets_sent.max(1) as f64;
        let connected = matches!(self.config.origin, Origin::Connected { .. });
        let connector = if connected { Connector::Sender } else { Connector::Receiver };
        // Only the side that sends much knows the loss and the configured rate.
        let told = self.config.fixed_rate().zip(connection.min_rtt).filter(|_| sends);
        // What was there before has not crossed.
        let crossed = done.bytes.saturating_sub(done.present);
        let least = told.map(|(rate, rtt)| floor(crossed, rate, rtt, lost.clamp(0.0, 0.99), connector));
        let symbols = connection.source_symbols + connection.resent_symbols + connection.repair_symbols;
        Ok(Summary {
            role: self.config.role,
            peer,
            into: done.into,
            files: done.files,
            directories: done.directories,
            symlinks: done.symlinks,
            bytes: done.bytes,
            bytes_present: done.present,
            unchecked: done.unchecked,
            altered: done.altered,
            links_left_out: done.links_left_out,
            unchanged: done.unchanged,
            kept: done.kept,
            deleted: done.deleted,
            removed: done.removed,
            links_followed: done.links_followed,
            elapsed,
            failed: done.failed,
            failed_count: done.failed_count,
            vanished_count: done.vanished_count,
            wire_bytes: if sends { connection.bytes_sent } else { connection.bytes_received },
            repair_share: share(connection.repair_symbols, symbols).filter(|_| sends),
            rtt: connection.rtt,
            loss: share(connection.packets_lost, connection.packets_sent).filter(|_| sends),
            refused: stats.refused.total(),
            refused_for: counted(&stats.refused),
            path_share: least.and_then(|least| path_share(least, elapsed)),
            remembered: self.remembered,
            memory_bound: self.memory.bound(),
            overflowed: self.overflowed(stats),
            trace_lost: self.trace_lost.clone(),
        })
    }
}

/// Returns until when a side that is done at `since` waits for the last messages, having last heard the peer at
/// `heard`.
fn lingers_until(since: Instant, heard: Option<Instant>) -> Instant {
    (since.max(heard.unwrap_or(since)) + LINGER).min(since + LONGEST_LINGER)
}

/// Cuts `reason` to the length allowed in a close frame.
fn shortened(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::headway::Patience;
    use crate::transfer::mailbox::Mailbox;
    use crate::transfer::{Transfer, TransferOptions};

    /// Slow feedback keeps the receiver from leaving before its confirmation has arrived; a peer that has left does
    /// not.
    #[test]
    fn a_side_lingers_while_the_peer_is_heard() {
        let since = Instant::now();
        let after = |heard: Option<u64>| {
            let heard = heard.map(|seconds| since + Duration::from_secs(seconds));
            (lingers_until(since, heard) - since).as_secs()
        };
        assert_eq!([None, Some(0), Some(2), Some(20), Some(29)].map(after), [3, 3, 5, 23, 30]);
        assert_eq!(lingers_until(since, since.checked_sub(Duration::from_secs(9))), since + LINGER);
    }

    /// The sender may have left before its confirmation arrived. A transfer shorter than a tick has not asked for
    /// counters by then.
    #[test]
    fn a_receiver_that_hears_no_confirmation_ends_well() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (read, write) = (ours.try_clone().unwrap().into(), ours.into());
        let endpoint =
            net::Endpoint::over_pipes(read, write, &net::EndpointOptions::new(Duration::from_secs(30)), ()).unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let options = transport::ConnectOptions::new(vec![PIPE_PEER]);
        let connection = endpoint.connect([1; 32], options, Box::new(mailbox.events()));
        let config = SessionConfig {
            role: Role::Receives,
            origin: Origin::Accepted,
            options: TransferOptions::default(),
            trace: None,
            acquaintance: Acquaintance::Ticket(Patience::default()),
        };
        let (events, _transfer) = Transfer::new();
        let mut session = Session::new(connection, events, config, inputs, Instant::now()).unwrap();
        (session.peer, session.written) = (Some(PIPE_PEER), 1);
        let summary = session.conclude(Ok(Totals { files: 1, ..Totals::default() })).unwrap();
        assert_eq!(summary.files, 1);
    }
}
