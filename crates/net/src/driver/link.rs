//! The state of one connection in the network thread: its event handler, its objects and its streams.

use std::collections::BTreeMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use transport::{
    Connection, ConnectionHandle, Direction, Event as EngineEvent, FlowId, FlowKey, ObjectOptions, Time, WorkReply,
    WorkRequest,
};

use super::streams::{IncomingStream, Streams};
use crate::error::NetError;
use crate::messages::{Command, CommandSender, Event, EventHandler, IncomingObject, Name};
use crate::object::{BlockDigest, Sink};
use crate::shared::Shared;
use crate::socket_info::ThreadTime;
use crate::stats::{EndpointCounters, Stats};
use crate::stream::{RecvStream, SendStream};
use crate::workers::{Data, Finished, Job};

/// Bytes of the control stream that a program may leave unread before the peer gets no more credit for it.
const MAX_CONTROL_UNREAD: usize = 1 << 20;

/// Bytes of trace collected before they are passed on.
const TRACE_CHUNK: usize = 64 << 10;

/// How long less than that is buffered: the trace may be read while it is written.
const TRACE_AGE: Duration = Duration::from_millis(200);

/// The code with which a connection is closed after a panic of the program's event handler: for a file transfer, any
/// other error.
const FAULT: u32 = 0x108;

/// The completed half of the work on a received block: writing or computing the digest. Both are requested at once and
/// complete in any order; the digest is reported when the bytes are written.
#[derive(Debug)]
enum Half {
    Written,
    Digested(BlockDigest),
}

struct Object {
    tag: u64,
    /// `None` until the program accepts the object, or drops it.
    data: Option<Data>,
    /// Whether the program has dropped the object, and gets no more events about it.
    unwanted: bool,
}

/// Passes an event to the program. Returns false if its handler panicked: it is not called again.
pub(super) fn call(events: &mut EventHandler, event: Event) -> bool {
    let sound = panic::catch_unwind(AssertUnwindSafe(|| events(event))).is_ok();
    if !sound {
        *events = Box::new(|_| ());
    }
    sound
}

/// A sink for the blocks of objects that the program has dropped.
struct NullSink;

impl Sink for NullSink {
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A connection as the network thread sees it.
pub(super) struct ConnectionDriver {
    pub(super) handle: ConnectionHandle,
    controls: CommandSender,
    shared: Arc<Shared>,
    events: EventHandler,
    objects: BTreeMap<FlowKey, Object>,
    streams: Streams,
    /// Received blocks with one half completed.
    halves: BTreeMap<(FlowId, u32), Half>,
    control_unread: usize,
    control_backlog: usize,
    /// The datagrams dropped by the endpoint's receive buffer before the connection began.
    overflowed_before: u64,
    trace: Option<Vec<u8>>,
    /// When the trace was last passed on.
    traced: Time,
    connected: bool,
    /// Whether to leave once the written bytes are sent.
    pub(super) leaves: bool,
    /// Whether the program has got the event of the close.
    closed: bool,
    /// Whether the program's handler panicked.
    faulty: bool,
}

impl Drop for ConnectionDriver {
    /// Reports the end of the connection if the network thread panics, so that no task waits forever.
    fn drop(&mut self) {
        if !self.closed {
            let error = NetError::Panicked("the network thread");
            self.streams.abandon(&error);
            self.shared.end(error.clone(), Stats::default());
            self.emit(Event::Closed(error));
        }
    }
}

impl ConnectionDriver {
    pub(super) fn new(
        handle: ConnectionHandle,
        controls: CommandSender,
        shared: Arc<Shared>,
        events: EventHandler,
        trace: bool,
        counters: EndpointCounters,
    ) -> Self {
        Self {
            handle,
            controls,
            shared,
            events,
            objects: BTreeMap::new(),
            streams: Streams::default(),
            halves: BTreeMap::new(),
            control_unread: 0,
            control_backlog: 0,
            overflowed_before: counters.overflowed.unwrap_or(0),
            trace: trace.then(Vec::new),
            traced: Time::ZERO,
            connected: false,
            leaves: false,
            closed: false,
            faulty: false,
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Passes an event to the program, unless [`Event::Closed`] was passed before.
    fn emit(&mut self, event: Event) {
        if !self.closed {
            self.closed = matches!(event, Event::Closed(_));
            self.faulty |= !call(&mut self.events, event);
        }
    }

    /// Closes the connection if its event handler panicked: the program no longer knows the state of this connection.
    /// Others are not affected.
    fn end_if_faulty(&mut self, connection: &mut Connection, counters: EndpointCounters, now: Time) {
        if self.faulty && !self.closed {
            connection.close(now, FAULT, "a fault in the program");
            self.close(connection, NetError::Panicked("an event handler"), counters, now);
        }
    }

    /// Ends the connection because the carrier is broken: passes on the last events, and the error unless the peer's
    /// close arrived just before.
    pub(super) fn end(
        &mut self,
        connection: &mut Connection,
        why: &NetError,
        counters: EndpointCounters,
        now: Time,
        send_error: &mut Option<io::Error>,
    ) {
        self.events(connection, counters, now, send_error);
        if self.closed {
            return;
        }
        let why = match why {
            NetError::PipeEnded if self.connected => NetError::ConnectionLost,
            other => other.clone(),
        };
        self.close(connection, why, counters, now);
    }

    fn close(&mut self, connection: &mut Connection, why: NetError, counters: EndpointCounters, now: Time) {
        self.hand_on_trace(connection, now, 1);
        self.streams.end(connection, now, &why);
        self.objects.clear();
        self.shared.end(why.clone(), self.stats(connection, counters));
        self.emit(Event::Closed(why));
    }

    pub(super) fn command(
        &mut self,
        connection: &mut Connection,
        command: Command,
        counters: EndpointCounters,
        now: Time,
    ) {
        // A reply fails only if the program no longer waits for it.
        match command {
            Command::WriteControl(bytes) => {
                connection.write_control(&bytes);
                self.control_backlog += bytes.len();
            }
            Command::ControlTaken(bytes) => {
                self.control_unread = self.control_unread.saturating_sub(bytes);
                self.read_control(connection);
            }
            Command::SendObject { tag, length, source } => {
                match connection.send_object(now, ObjectOptions { length, tag, digest: true }) {
                    Ok(flow) => {
                        self.objects
                            .insert(sending(flow), Object { tag, data: Some(Data::Source(source)), unwanted: false });
                    }
                    Err(error) => self.emit(Event::ObjectFailed(NetError::Flow(error))),
                }
            }
            Command::AcceptObject { flow, sink } => {
                if let Some(object) = self.objects.get_mut(&receiving(flow)) {
                    object.data = Some(Data::Sink(sink));
                    connection.accept_flow(now, flow, true);
                }
            }
            // Otherwise the peer would wait forever with this object, and with every object after it.
            Command::DropObject(flow) => {
                if let Some(object) = self.objects.get_mut(&receiving(flow)) {
                    object.data = Some(Data::Sink(Arc::new(NullSink)));
                    object.unwanted = true;
                    connection.accept_flow(now, flow, false);
                }
            }
            Command::OpenStream { options, opened } => {
                let stream = self.streams.open(connection, now, options);
                let name = |(flow, half)| SendStream::new(self.controls.clone(), Name::Flow(flow), half);
                drop(opened.send(stream.map(name)));
            }
            Command::Open { options, opened } => {
                let streams = self.streams.open(connection, now, options).map(|(flow, half)| {
                    let (controls, answer) = (self.controls.clone(), self.streams.await_answer(flow));
                    let recv = RecvStream::new(controls.clone(), Name::AnswerTo(flow), options.tag, answer);
                    (SendStream::new(controls, Name::Flow(flow), half), recv)
                });
                drop(opened.send(streams));
            }
            Command::Answer { number, to, class, half } => {
                let half = half.take();
                if let Err(error) = self.streams.answer(connection, now, (number, to, class), &half) {
                    // It may have ended while the close is still being sent.
                    half.end(Err(self.shared.end_known().unwrap_or(error)));
                }
            }
            Command::Written(stream) => self.streams.write(connection, now, stream),
            Command::Reset { stream, code } => self.streams.reset(connection, now, stream, code),
            Command::Read(stream) => self.streams.read(connection, now, stream),
            Command::Stop { stream, code } => self.streams.stop(connection, now, stream, code),
            Command::Recall(memory) => connection.restore_path(&memory),
            Command::SetLimit(limit) => connection.set_limit(now, limit),
            Command::Set { key, value, done } => drop(done.send(connection.set(now, &key, &value))),
            Command::Stats(asked) => drop(asked.send(self.stats(connection, counters))),
            Command::Ping => connection.ping(),
            Command::ExpectClose => connection.expect_close(),
            Command::Leave => self.leaves = true,
            Command::Close { code, reason } => connection.close(now, code, &reason),
        }
    }

    /// Passes the result of a worker to the engine.
    pub(super) fn finished(&mut self, connection: &mut Connection, finished: Finished, now: Time) {
        match finished.result {
            Ok(reply) => {
                // The digest is reported before the completion of the object.
                match (finished.digest, &reply) {
                    (Some((FlowKey { direction: Direction::Sending, .. }, digest)), _) => {
                        self.emit(Event::Digest(digest))
                    }
                    (Some((FlowKey { direction: Direction::Receiving, flow }, digest)), _) => {
                        self.half((flow, digest.block), Half::Digested(digest));
                    }
                    (None, WorkReply::Written { flow, block }) => {
                        if self.objects.get(&receiving(*flow)).is_none_or(|object| !object.unwanted) {
                            self.half((*flow, *block), Half::Written);
                        }
                    }
                    (None, _) => {}
                }
                connection.handle_reply(now, reply);
            }
            Err(error) => self.emit(Event::ObjectFailed(error)),
        }
    }

    /// Records one half of the work on a received block; after the second, reports its digest.
    fn half(&mut self, block: (FlowId, u32), done: Half) {
        match (self.halves.remove(&block), done) {
            (Some(Half::Digested(digest)), Half::Written) | (Some(Half::Written), Half::Digested(digest)) => {
                self.emit(Event::Digest(digest));
            }
            (_, done) => {
                self.halves.insert(block, done);
            }
        }
    }

    /// Passes the engine's requests to the workers.
    pub(super) fn requests(&self, connection: &mut Connection, jobs: &mut Vec<Job>) {
        while let Some(request) = connection.poll_request() {
            let key = match &request {
                WorkRequest::Read { flow, .. } => Some(sending(*flow)),
                WorkRequest::Write { flow, .. } => Some(receiving(*flow)),
                WorkRequest::Digest { key, .. } => Some(*key),
                WorkRequest::Encode(_) | WorkRequest::Decode(_) => None,
            };
            let object = key.and_then(|key| self.objects.get(&key));
            let object = object.and_then(|object| Some((object.tag, object.data.clone()?)));
            jobs.push(Job { connection: self.handle, request, object });
        }
    }

    /// Passes events to the program; returns whether any were passed, after which the engine may have more to send.
    /// Called after sending, so that a program that exits at the last event has sent its close.
    pub(super) fn events(
        &mut self,
        connection: &mut Connection,
        counters: EndpointCounters,
        now: Time,
        send_error: &mut Option<io::Error>,
    ) -> bool {
        let mut any = false;
        while let Some(event) = connection.poll_event() {
            any = true;
            match self.streams.event(connection, now, event) {
                Ok(None) => {}
                Ok(Some(IncomingStream { flow, tag, half })) => {
                    if self.shared.add_stream(flow, tag, half) {
                        self.emit(Event::StreamOpened);
                    } else {
                        self.streams.refuse(connection, now, flow);
                    }
                }
                Err(EngineEvent::Closed(why)) => {
                    let send_error = if self.connected { None } else { send_error.take() };
                    self.close(connection, NetError::closed(why, send_error), counters, now);
                }
                Err(event) => self.event(connection, event),
            }
        }
        self.watch_control(connection);
        let enough = if now.since(self.traced) < TRACE_AGE { TRACE_CHUNK } else { 1 };
        self.hand_on_trace(connection, now, enough);
        self.end_if_faulty(connection, counters, now);
        any
    }

    /// Passes on the trace if it has `enough` bytes.
    fn hand_on_trace(&mut self, connection: &mut Connection, now: Time, enough: usize) {
        let Some(trace) = &mut self.trace else { return };
        connection.take_qlog(trace);
        if trace.len() >= enough {
            let chunk = std::mem::take(trace);
            self.traced = now;
            self.emit(Event::Trace(chunk));
        }
    }

    fn event(&mut self, connection: &mut Connection, event: EngineEvent) {
        match event {
            EngineEvent::Connected => {
                self.connected = true;
                self.shared.establish();
                let application = connection.peer_application().to_vec();
                self.emit(Event::Connected { remote: connection.remote(), application });
            }
            EngineEvent::ControlReadable => self.read_control(connection),
            EngineEvent::ObjectAnnounced { flow, length, tag } => {
                self.objects.insert(receiving(flow), Object { tag, data: None, unwanted: false });
                let controls = self.controls.clone();
                self.emit(Event::ObjectAnnounced(IncomingObject { controls, flow, tag, length, accepted: false }));
            }
            EngineEvent::ObjectReceived { flow } => {
                if let Some(Object { tag, unwanted: false, .. }) = self.objects.remove(&receiving(flow)) {
                    self.emit(Event::ObjectReceived { tag });
                }
            }
            EngineEvent::ObjectDelivered { flow } => {
                if let Some(Object { tag, .. }) = self.objects.remove(&sending(flow)) {
                    self.emit(Event::ObjectSent { tag });
                }
            }
            // Handled above.
            _ => {}
        }
    }

    /// Returns the statistics.
    fn stats(&self, connection: &Connection, counters: EndpointCounters) -> Stats {
        let EndpointCounters { mut refused, overflowed } = counters;
        refused.engine.merge(connection.refused());
        let overflowed = overflowed.map(|count| count.saturating_sub(self.overflowed_before));
        Stats {
            connection: connection.stats(),
            refused,
            socket_drops: overflowed,
            unexpected_answers: self.streams.unexpected_answers(),
            network_thread: ThreadTime::of_this_thread(),
        }
    }

    fn read_control(&mut self, connection: &mut Connection) {
        if self.control_unread >= MAX_CONTROL_UNREAD {
            return;
        }
        let mut bytes = Vec::new();
        let count = connection.read_control(&mut bytes);
        if count > 0 {
            self.control_unread += count;
            self.emit(Event::Control(bytes));
        }
    }

    fn watch_control(&mut self, connection: &Connection) {
        let backlog = connection.control_backlog();
        if backlog < self.control_backlog {
            let arrived = self.control_backlog - backlog;
            self.control_backlog = backlog;
            self.emit(Event::ControlAcknowledged(arrived));
        }
    }
}

const fn receiving(flow: FlowId) -> FlowKey {
    FlowKey { direction: Direction::Receiving, flow }
}

const fn sending(flow: FlowId) -> FlowKey {
    FlowKey { direction: Direction::Sending, flow }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use transport::{AcceptOptions, Batch, ConnectOptions, Endpoint, EndpointConfig, ReceivedEcn};

    use super::*;
    use crate::inbox::Inbox;
    use crate::messages::MessageSender;
    use crate::shared::MAX_WAITING_STREAMS;
    use crate::{PIPE_PEER, Source};

    fn options() -> ConnectOptions {
        ConnectOptions::new(vec![PIPE_PEER]).handshake_timeout(Duration::from_secs(1))
    }

    struct Nothing;

    impl Source for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }
    }

    fn overflowed(count: u64) -> EndpointCounters {
        EndpointCounters { overflowed: Some(count), ..EndpointCounters::default() }
    }

    /// Creates a link whose events are sent to the channel.
    fn link(handle: ConnectionHandle) -> (ConnectionDriver, Receiver<Event>) {
        let (sender, events) = channel();
        // Fails if the test has ended.
        let on_event = Box::new(move |event| sender.send(event).unwrap_or_default());
        let controls = MessageSender::new(Inbox::new().unwrap()).new_controls();
        (ConnectionDriver::new(handle, controls, Arc::default(), on_event, false, overflowed(3)), events)
    }

    /// Delivers the datagrams of `from` to `to`.
    fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Time) {
        let mut batch = Batch::new();
        for handle in from.handles().collect::<Vec<_>>() {
            let connection = from.connection(handle).unwrap();
            while connection.poll_transmit(now, &mut batch) {
                batch.seal();
                let stride = batch.segment_size();
                to.handle_datagrams(now, PIPE_PEER, None, ReceivedEcn::NotEct, &mut batch.bytes().to_vec(), stride);
            }
        }
        while let Some(mut answer) = from.poll_answer() {
            let stride = answer.bytes.len();
            to.handle_datagrams(now, PIPE_PEER, None, ReceivedEcn::NotEct, &mut answer.bytes, stride);
        }
    }

    /// Two connected endpoints, and the link of the second.
    struct Joined {
        a: Endpoint,
        local: ConnectionHandle,
        b: Endpoint,
        remote: ConnectionHandle,
        link: ConnectionDriver,
        events: Receiver<Event>,
    }

    fn joined() -> Joined {
        let mut a = Endpoint::new(EndpointConfig::default(), [1; 32]);
        let mut b = Endpoint::new(EndpointConfig::default(), [2; 32]);
        let accept = AcceptOptions::default();
        b.add_key([3; 32], None, accept);
        let local = a.connect(Time::ZERO, [3; 32], options()).unwrap();
        for _ in 0..3 {
            carry(&mut a, &mut b, Time::ZERO);
            carry(&mut b, &mut a, Time::ZERO);
        }
        let remote = b.handles().next().unwrap();
        let (link, events) = link(remote);
        let mut joined = Joined { a, local, b, remote, link, events };
        joined.exchange(Time::ZERO);
        assert!(matches!(joined.events.try_recv(), Ok(Event::Connected { .. })));
        joined
    }

    impl Joined {
        /// Lets each endpoint send once, and passes events to the program of the second.
        fn exchange(&mut self, now: Time) {
            carry(&mut self.a, &mut self.b, now);
            self.link.events(self.b.connection(self.remote).unwrap(), EndpointCounters::default(), now, &mut None);
            carry(&mut self.b, &mut self.a, now);
        }

        /// Gives the link a command of its program.
        fn command(&mut self, command: Command) {
            self.link.command(
                self.b.connection(self.remote).unwrap(),
                command,
                EndpointCounters::default(),
                Time::ZERO,
            );
        }
    }

    #[test]
    fn socket_drops_count_from_the_beginning_of_the_connection() {
        let Joined { mut b, remote, link, .. } = joined();
        let connection = b.connection(remote).unwrap();
        let counts = [overflowed(3), overflowed(10), EndpointCounters::default()];
        assert_eq!(counts.map(|count| link.stats(connection, count).socket_drops), [Some(0), Some(7), None]);
    }

    #[test]
    fn bytes_of_a_stream_stay_in_the_engine_until_it_is_accepted() {
        let mut joined = joined();
        let connection = joined.a.connection(joined.local).unwrap();
        let flow = connection.open_stream(Time::ZERO, 1).unwrap();
        assert_eq!(connection.write_stream(Time::ZERO, flow, b"some bytes").unwrap(), 10);
        joined.exchange(Time::ZERO);
        let context = Context::from_waker(Waker::noop());
        let found = joined.link.shared.poll(&context, |state| state.streams.pop_front());
        let Poll::Ready(Ok((flow, 1, half))) = found else { panic!("no stream has arrived") };
        assert_eq!(half.lock().buffer, b"");
        joined.command(Command::Read(Name::Flow(flow)));
        assert_eq!(half.lock().buffer, b"some bytes");
    }

    #[test]
    fn unaccepted_streams_are_bounded_though_empty() {
        let mut joined = joined();
        for nth in 0..MAX_WAITING_STREAMS as u64 + 10 {
            let now = Time::ZERO + Duration::from_millis(100 * nth);
            let connection = joined.a.connection(joined.local).unwrap();
            let flow = connection.open_stream(now, nth).unwrap();
            joined.exchange(now);
            joined.a.connection(joined.local).unwrap().reset_stream(now, flow, 0);
            joined.exchange(now);
        }
        let opened = joined.events.try_iter().filter(|event| matches!(event, Event::StreamOpened)).count();
        assert_eq!(opened, MAX_WAITING_STREAMS);
    }

    #[test]
    fn a_dropped_object_blocks_nothing_and_has_no_more_events() {
        let mut joined = joined();
        for tag in 1..3 {
            let options = ObjectOptions { length: 10, tag, digest: false };
            joined.a.connection(joined.local).unwrap().send_object(Time::ZERO, options).unwrap();
        }
        joined.exchange(Time::ZERO);
        let flows: Vec<FlowId> = joined.events.try_iter().map(|event| announced(&event)).collect();
        assert_eq!(flows.len(), 2);
        joined.command(Command::DropObject(flows[0]));
        assert!(joined.link.objects[&receiving(flows[0])].data.is_some());
        assert!(joined.link.objects[&receiving(flows[1])].data.is_none(), "the program may still accept it");
        let written = WorkReply::Written { flow: flows[0], block: 0 };
        let finished = Finished { connection: joined.remote, result: Ok(written), digest: None };
        joined.link.finished(joined.b.connection(joined.remote).unwrap(), finished, Time::ZERO);
        joined.link.event(joined.b.connection(joined.remote).unwrap(), EngineEvent::ObjectReceived { flow: flows[0] });
        assert_eq!((joined.link.halves.len(), joined.events.try_iter().count()), (0, 0));
    }

    fn announced(event: &Event) -> FlowId {
        let Event::ObjectAnnounced(object) = event else { panic!("{event:?}") };
        object.flow
    }

    #[test]
    fn closed_connection_emits_no_event() {
        let mut joined = joined();
        joined.command(Command::SendObject { tag: 1, length: 10, source: Arc::new(Nothing) });
        joined.a.connection(joined.local).unwrap().close(Time::ZERO, 7, "enough");
        joined.exchange(Time::ZERO);
        joined.command(Command::SendObject { tag: 2, length: 10, source: Arc::new(Nothing) });
        let events: Vec<Event> = joined.events.try_iter().collect();
        assert!(matches!(events[..], [Event::Closed(NetError::ClosedByPeer { code: 7, .. })]), "{events:?}");
        assert!(joined.link.objects.is_empty(), "their sources are released");
    }

    #[test]
    fn a_close_before_the_end_of_the_pipe_counts() {
        for closes in [true, false] {
            let Joined { mut a, local, mut b, remote, mut link, events } = joined();
            let now = Time::ZERO;
            if closes {
                a.connection(local).unwrap().close(now, 7, "enough");
                carry(&mut a, &mut b, now);
            }
            for _ in 0..2 {
                link.end(
                    b.connection(remote).unwrap(),
                    &NetError::PipeEnded,
                    EndpointCounters::default(),
                    now,
                    &mut None,
                );
            }
            let ends: Vec<Event> = events.try_iter().collect();
            match &ends[..] {
                [Event::Closed(NetError::ClosedByPeer { code: 7, reason })] if closes => assert_eq!(reason, "enough"),
                [Event::Closed(NetError::ConnectionLost)] if !closes => {}
                _ => panic!("{ends:?}"),
            }
        }
    }

    #[test]
    fn a_digest_is_reported_once_and_only_when_its_block_is_written() {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
        let handle = endpoint.connect(Time::ZERO, [2; 32], options()).unwrap();
        let connection = endpoint.connection(handle).unwrap();
        let (mut link, events) = link(handle);
        let flow = FlowId(1);
        let mut finish = |reply, digest| -> Vec<u32> {
            link.finished(connection, Finished { connection: handle, result: Ok(reply), digest }, Time::ZERO);
            events.try_iter().map(|event| if let Event::Digest(digest) = event { digest.block } else { 0 }).collect()
        };
        let written = |block| (WorkReply::Written { flow, block }, None);
        let digested = |block, key| {
            let digest = BlockDigest { tag: 1, block, range: 0..10, digest: [3; 32] };
            (WorkReply::Digested { key, block }, Some((key, digest)))
        };
        let steps = [
            (digested(1, receiving(flow)), vec![]),
            (written(2), vec![]),
            (written(1), vec![1]),
            (digested(2, receiving(flow)), vec![2]),
            // On the sending side the digest alone completes a block.
            (digested(3, sending(flow)), vec![3]),
        ];
        for (at, ((reply, digest), expected)) in steps.into_iter().enumerate() {
            let found: Vec<u32> = finish(reply, digest);
            assert_eq!(found, expected, "step {at}");
        }
        assert!(link.halves.is_empty());
    }
}
