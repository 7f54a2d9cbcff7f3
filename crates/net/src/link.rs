//! What the driver keeps for one connection: where its events go, where its objects' bytes are, what its flows are called.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use transport::{
    Closed, Connection, ConnectionHandle, Direction, Event, FlowId, FlowKey, ObjectOptions, Reply, Request, Time,
};

use crate::carrier::Broken;
use crate::error::NetError;
use crate::streams::Streams;
use crate::workers::{Finished, Job};
use crate::{Accepted, BlockDigest, LinkCommand, LinkEvent, LinkStats};

/// Bytes of the control stream that a program may hold unread before the peer gets no more credit for it.
const MAX_CONTROL_UNREAD: usize = 1 << 20;

/// Bytes of trace gathered before they are handed on.
const TRACE_CHUNK: usize = 64 << 10;

/// What is done of a received block while the other half is not: it is written, or digested. Both are asked for at once and end in any
/// order; a digest is told when the bytes are where they belong.
#[derive(Debug)]
enum Half {
    Written,
    Digested(BlockDigest),
}

/// A connection as the driver sees it.
pub(crate) struct LinkState {
    pub(crate) handle: ConnectionHandle,
    accepted: Accepted,
    tags: BTreeMap<FlowKey, u64>,
    streams: Streams,
    /// Received blocks that are half done.
    halves: BTreeMap<(FlowId, u32), Half>,
    control_unread: usize,
    control_backlog: usize,
    trace: Option<Vec<u8>>,
    connected: bool,
    closed: bool,
}

impl Drop for LinkState {
    /// Nothing comes after it: whoever waits for more must not wait for ever.
    fn drop(&mut self) {
        if !self.closed {
            self.tell(LinkEvent::Failed(NetError::Internal("the network's thread has ended")));
        }
    }
}

impl LinkState {
    pub(crate) fn new(handle: ConnectionHandle, accepted: Accepted, trace: bool) -> Self {
        Self {
            handle,
            accepted,
            tags: BTreeMap::new(),
            streams: Streams::default(),
            halves: BTreeMap::new(),
            control_unread: 0,
            control_backlog: 0,
            trace: trace.then(Vec::new),
            connected: false,
            closed: false,
        }
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    fn tell(&mut self, event: LinkEvent) {
        (self.accepted.events)(event);
    }

    /// The carrier is broken: the last events, unless the peer's close came just before and is told now.
    pub(crate) fn end(
        &mut self,
        connection: &mut Connection,
        broken: &Broken,
        refused: u64,
        now: Time,
        send_error: &mut Option<io::Error>,
    ) {
        self.events(connection, refused, now, send_error);
        if self.closed {
            return;
        }
        if let Broken::System(_) = broken {
            self.tell(LinkEvent::Failed(broken.error()));
        }
        let hint = broken.hint().filter(|_| !self.connected);
        self.close(connection, broken.closed(), refused, hint);
    }

    fn close(&mut self, connection: &mut Connection, why: Closed, refused: u64, send_error: Option<io::Error>) {
        self.closed = true;
        self.hand_on_trace(connection, 1);
        let stats = Box::new(LinkStats::of(connection, refused));
        self.tell(LinkEvent::Closed { why, stats, send_error });
    }

    pub(crate) fn command(&mut self, connection: &mut Connection, command: LinkCommand, refused: u64, now: Time) {
        match command {
            LinkCommand::WriteControl(bytes) => {
                connection.write_control(&bytes);
                self.control_backlog += bytes.len();
            }
            LinkCommand::ControlTaken(bytes) => {
                self.control_unread = self.control_unread.saturating_sub(bytes);
                self.read_control(connection);
            }
            LinkCommand::SendObject { length, tag } => {
                match connection.send_object(now, ObjectOptions { length, tag, digest: true }) {
                    Ok(flow) => {
                        self.tags.insert(FlowKey { direction: Direction::Sending, flow }, tag);
                    }
                    Err(error) => self.tell(LinkEvent::Failed(NetError::Flow(error))),
                }
            }
            LinkCommand::AcceptFlow(flow) => connection.accept_flow(now, flow, true),
            LinkCommand::OpenStream { tag } => {
                if let Err(error) = self.streams.open(connection, now, tag) {
                    self.tell(LinkEvent::Failed(NetError::Flow(error)));
                }
            }
            LinkCommand::WriteStream { tag, bytes } => {
                let taken = self.streams.write(connection, now, tag, &bytes);
                self.tell(LinkEvent::StreamTaken { tag, bytes: taken });
            }
            LinkCommand::FinishStream { tag } => {
                let taken = self.streams.finish(connection, now, tag);
                self.tell(LinkEvent::StreamTaken { tag, bytes: taken });
            }
            LinkCommand::StreamTaken { tag, bytes } => {
                if let Some(event) = self.streams.taken(connection, now, tag, bytes) {
                    self.tell(event);
                }
            }
            LinkCommand::SetLimit(limit) => connection.set_limit(now, limit),
            LinkCommand::AskStats => {
                let stats = LinkStats::of(connection, refused);
                self.tell(LinkEvent::Stats(Box::new(stats)));
            }
            LinkCommand::Ping => connection.ping(),
            LinkCommand::Close { code, reason } => connection.close(now, code, &reason),
        }
    }

    /// Gives the engine what a worker has finished.
    pub(crate) fn finished(&mut self, connection: &mut Connection, finished: Finished, now: Time) {
        match finished.result {
            Ok(reply) => {
                // The program hears of a digest before it hears that the object is complete.
                match (&reply, finished.digest) {
                    (Reply::Written { flow, block }, _) => self.half((*flow, *block), Half::Written),
                    (Reply::Digest { key, block, .. }, Some(digest)) => match key.direction {
                        Direction::Sending => self.tell(LinkEvent::Digest(digest)),
                        Direction::Receiving => self.half((key.flow, *block), Half::Digested(digest)),
                    },
                    _ => {}
                }
                connection.handle_reply(now, reply);
            }
            Err(error) => self.tell(LinkEvent::Failed(error)),
        }
    }

    /// One half of a received block is done; with the second its digest is told.
    fn half(&mut self, block: (FlowId, u32), done: Half) {
        match (self.halves.remove(&block), done) {
            (Some(Half::Digested(digest)), Half::Written) | (Some(Half::Written), Half::Digested(digest)) => {
                self.tell(LinkEvent::Digest(digest));
            }
            (_, done) => {
                self.halves.insert(block, done);
            }
        }
    }

    /// Hands the workers what the engine asks for.
    pub(crate) fn requests(&mut self, connection: &mut Connection, jobs: &mut Vec<Job>) {
        while let Some(request) = connection.poll_request() {
            self.request(request, jobs);
        }
    }

    /// Tells the program what has happened. Comes after sending, so that a program that ends at the last event has said goodbye.
    pub(crate) fn events(
        &mut self,
        connection: &mut Connection,
        refused: u64,
        now: Time,
        send_error: &mut Option<io::Error>,
    ) {
        while let Some(event) = connection.poll_event() {
            match self.streams.event(connection, now, event) {
                Ok(told) => told.into_iter().for_each(|event| self.tell(event)),
                Err(event) => self.event(connection, event, refused, send_error),
            }
        }
        self.watch_control(connection);
        self.hand_on_trace(connection, TRACE_CHUNK);
    }

    /// Hands on the trace if it has `enough` bytes.
    fn hand_on_trace(&mut self, connection: &mut Connection, enough: usize) {
        let Some(trace) = &mut self.trace else { return };
        connection.take_qlog(trace);
        if trace.len() >= enough {
            let chunk = std::mem::take(trace);
            self.tell(LinkEvent::Trace(chunk));
        }
    }

    fn event(&mut self, connection: &mut Connection, event: Event, refused: u64, send_error: &mut Option<io::Error>) {
        match event {
            Event::Connected => {
                self.connected = true;
                let application = connection.peer_application().to_vec();
                self.tell(LinkEvent::Connected { remote: connection.remote(), application });
            }
            Event::ControlReadable => self.read_control(connection),
            Event::Announced { flow, length, tag } => {
                self.tags.insert(receiving(flow), tag);
                self.tell(LinkEvent::Announced { flow, length, tag });
            }
            // The worker's result was told already, with its place.
            Event::Digest { .. } => {}
            Event::Received { flow } => self.ended(receiving(flow), |tag| LinkEvent::Received { tag }),
            Event::Sent { flow } => self.ended(sending(flow), |tag| LinkEvent::Sent { tag }),
            Event::Closed(why) => {
                let send_error = if self.connected { None } else { send_error.take() };
                self.close(connection, why, refused, send_error);
            }
            // Dealt with before.
            _ => {}
        }
    }

    fn ended(&mut self, key: FlowKey, event: impl FnOnce(u64) -> LinkEvent) {
        if let Some(tag) = self.tags.remove(&key) {
            self.tell(event(tag));
        }
    }

    fn request(&mut self, request: Request, jobs: &mut Vec<Job>) {
        let key = match &request {
            Request::Read { flow, .. } => Some(sending(*flow)),
            Request::Write { flow, .. } => Some(receiving(*flow)),
            Request::Digest { key, .. } => Some(*key),
            Request::Encode(_) | Request::Decode(_) => None,
        };
        let tag = match key {
            None => 0,
            Some(key) => match self.tags.get(&key) {
                Some(tag) => *tag,
                None => {
                    return self.tell(LinkEvent::Failed(NetError::Internal("work for a flow that was never opened")));
                }
            },
        };
        jobs.push(Job { connection: self.handle, request, tag, storage: Arc::clone(&self.accepted.storage) });
    }

    fn read_control(&mut self, connection: &mut Connection) {
        if self.control_unread >= MAX_CONTROL_UNREAD {
            return;
        }
        let mut bytes = Vec::new();
        let count = connection.read_control(&mut bytes);
        if count > 0 {
            self.control_unread += count;
            self.tell(LinkEvent::Control(bytes));
        }
    }

    fn watch_control(&mut self, connection: &Connection) {
        let backlog = connection.control_backlog();
        if backlog < self.control_backlog {
            let arrived = self.control_backlog - backlog;
            self.control_backlog = backlog;
            self.tell(LinkEvent::ControlAcknowledged(arrived));
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
    use std::time::Duration;

    use transport::{AcceptOptions, Batch, ConnectOptions, Endpoint, EndpointConfig, Profile, ReceivedEcn};

    use super::*;
    use crate::{PIPE_PEER, Storage};

    struct Nothing;

    impl Storage for Nothing {
        fn read(&self, _: u64, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }

        fn write(&self, _: u64, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
    }

    fn options() -> ConnectOptions {
        ConnectOptions {
            profile: Profile::auto(),
            application: Vec::new(),
            remotes: vec![PIPE_PEER],
            handshake_timeout: Duration::from_secs(1),
            qlog: false,
        }
    }

    /// A link whose events come out of the channel.
    fn link(handle: ConnectionHandle) -> (LinkState, Receiver<LinkEvent>) {
        let (sender, events) = channel();
        // A test that has seen enough has no use for more.
        let told = Box::new(move |event| sender.send(event).unwrap_or_default());
        (LinkState::new(handle, Accepted { events: told, storage: Arc::new(Nothing) }, false), events)
    }

    /// Gives `to` what `from` has to send.
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

    #[test]
    fn a_close_that_came_before_the_end_of_the_pipe_is_what_counts() {
        for closes in [true, false] {
            let mut a = Endpoint::new(EndpointConfig::default(), [1; 32]);
            let mut b = Endpoint::new(EndpointConfig::default(), [2; 32]);
            let accept = AcceptOptions { profile: Profile::auto(), application: Vec::new(), qlog: false };
            b.add_key([3; 32], None, accept);
            let now = Time::ZERO;
            let here = a.connect(now, [3; 32], options()).unwrap();
            for _ in 0..3 {
                carry(&mut a, &mut b, now);
                carry(&mut b, &mut a, now);
            }
            let there = b.handles().next().unwrap();
            let (mut link, events) = link(there);
            link.events(b.connection(there).unwrap(), 0, now, &mut None);
            assert!(matches!(events.try_recv(), Ok(LinkEvent::Connected { .. })));
            if closes {
                a.connection(here).unwrap().close(now, 7, "enough");
                carry(&mut a, &mut b, now);
            }
            for _ in 0..2 {
                link.end(b.connection(there).unwrap(), &Broken::Gone, 0, now, &mut None);
            }
            let ends: Vec<Closed> = events
                .try_iter()
                .map(|event| if let LinkEvent::Closed { why, .. } = event { why } else { panic!("{event:?}") })
                .collect();
            let by_peer = Closed::ByPeer { code: 7, reason: "enough".into() };
            assert_eq!(ends, [if closes { by_peer } else { Closed::Dead }]);
        }
    }

    #[test]
    fn a_digest_is_told_once_and_only_when_its_block_is_written() {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
        let handle = endpoint.connect(Time::ZERO, [2; 32], options()).unwrap();
        let connection = endpoint.connection(handle).unwrap();
        let (mut link, events) = link(handle);
        let flow = FlowId(1);
        let mut finish = |reply, digest| {
            link.finished(connection, Finished { connection: handle, result: Ok(reply), digest }, Time::ZERO);
            events.try_iter().map(|event| if let LinkEvent::Digest(told) = event { told.block } else { 0 }).collect()
        };
        let written = |block| (Reply::Written { flow, block }, None);
        let digested = |block, key| {
            let digest = BlockDigest { tag: 1, block, range: 0..10, digest: [3; 32] };
            (Reply::Digest { key, block, digest: [3; 32] }, Some(digest))
        };
        let steps = [
            (digested(1, receiving(flow)), vec![]),
            (written(2), vec![]),
            (written(1), vec![1]),
            (digested(2, receiving(flow)), vec![2]),
            // What is sent was read before.
            (digested(3, sending(flow)), vec![3]),
        ];
        for (at, ((reply, digest), told)) in steps.into_iter().enumerate() {
            let found: Vec<u32> = finish(reply, digest);
            assert_eq!(found, told, "step {at}");
        }
        assert!(link.halves.is_empty());
    }
}
