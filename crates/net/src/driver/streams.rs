//! Streams in the network thread: moves bytes between the engine and the buffers shared with programs.
//!
//! The engine's streams have one direction. Two of them form one of both directions: the tag of the second has the id
//! of the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use transport::StreamOptions as Engine;
use transport::{Connection, Event, FlowId, Priority, Time};

use crate::buffers::{ReadHalf, WriteHalf};
use crate::error::NetError;
use crate::messages::{NOT_ACCEPTED, Name};
use crate::options::StreamOptions;

/// The bit of a tag that marks answers; the rest of the tag is then the answered flow. Programs have the tags without
/// it.
pub(crate) const ANSWERS: u64 = 1 << 63;

#[derive(Debug)]
struct Incoming {
    half: Arc<ReadHalf>,
    /// Until the program accepts the stream its bytes stay in the engine, bounded by the peer's credit.
    accepted: bool,
    /// The stream of this side that it answers.
    answers: Option<FlowId>,
}

/// The answer to a stream that this side has opened.
#[derive(Debug)]
enum ReplyState {
    /// The peer has not opened it yet.
    Awaited(Arc<ReadHalf>),
    Given(FlowId),
}

#[derive(Debug)]
struct Outgoing {
    half: Arc<WriteHalf>,
    /// Bytes taken from the shared buffer; those from `at` on are not yet taken by the engine.
    chunk: Vec<u8>,
    at: usize,
    /// Whether the chunk is the last.
    last: bool,
    /// Whether the engine knows the end.
    finished: bool,
    /// Which answer it is, if it is one.
    answer: Option<u64>,
}

/// A stream that the peer has opened.
pub(super) struct IncomingStream {
    pub(super) flow: FlowId,
    pub(super) tag: u64,
    pub(super) half: Arc<ReadHalf>,
}

/// All streams of a connection that have not ended, by flow: tags are the program's business.
#[derive(Debug, Default)]
pub(super) struct Streams {
    outgoing: BTreeMap<FlowId, Outgoing>,
    incoming: BTreeMap<FlowId, Incoming>,
    /// The answers of the peer, by the streams of this side.
    answers: BTreeMap<FlowId, ReplyState>,
    /// The answers of this side.
    answered: BTreeMap<u64, FlowId>,
    unexpected_answers: u64,
}

impl Streams {
    /// Opens a stream to the peer.
    pub(super) fn open(
        &mut self,
        connection: &mut Connection,
        now: Time,
        options: StreamOptions,
    ) -> Result<(FlowId, Arc<WriteHalf>), NetError> {
        let half = Arc::<WriteHalf>::default();
        let options = Engine { tag: options.tag, class: options.priority, is_awaited: false };
        let flow = self.send(connection, now, options, (Arc::clone(&half), None))?;
        Ok((flow, half))
    }

    /// Waits for the peer's answer to a new stream.
    pub(super) fn await_answer(&mut self, flow: FlowId) -> Arc<ReadHalf> {
        let half = Arc::<ReadHalf>::default();
        self.answers.insert(flow, ReplyState::Awaited(Arc::clone(&half)));
        half
    }

    /// Answers a stream of the peer, whether or not it has ended. The peer stops a second answer.
    pub(super) fn answer(
        &mut self,
        connection: &mut Connection,
        now: Time,
        (number, to, class): (u64, FlowId, Priority),
        half: &Arc<WriteHalf>,
    ) -> Result<(), NetError> {
        let options = Engine { tag: ANSWERS | u64::from(to.0), class, is_awaited: true };
        let flow = self.send(connection, now, options, (Arc::clone(half), Some(number)))?;
        self.answered.insert(number, flow);
        // The program may have written to it.
        self.write(connection, now, Name::Flow(flow));
        Ok(())
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        now: Time,
        options: Engine,
        (half, answer): (Arc<WriteHalf>, Option<u64>),
    ) -> Result<FlowId, NetError> {
        let flow = connection.open_stream(now, options).map_err(NetError::Flow)?;
        let stream = Outgoing { half, chunk: Vec::new(), at: 0, last: false, finished: false, answer };
        self.outgoing.insert(flow, stream);
        Ok(flow)
    }

    /// Returns the number of unexpected answers.
    pub(super) const fn unexpected_answers(&self) -> u64 {
        self.unexpected_answers
    }

    fn outgoing_flow(&self, stream: Name) -> Option<FlowId> {
        match stream {
            Name::Flow(flow) => Some(flow),
            Name::Answer(number) => self.answered.get(&number).copied(),
            Name::AnswerTo(_) => None,
        }
    }

    fn incoming_flow(&self, stream: Name) -> Option<FlowId> {
        match stream {
            Name::Flow(flow) => Some(flow),
            Name::AnswerTo(own) => match self.answers.get(&own)? {
                ReplyState::Awaited(_) => None,
                ReplyState::Given(flow) => Some(*flow),
            },
            Name::Answer(_) => None,
        }
    }

    /// Turns a stream of the peer away, which may wait for an answer.
    pub(super) fn refuse(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        self.stop(connection, now, Name::Flow(flow), NOT_ACCEPTED);
        let options = Engine { tag: ANSWERS | u64::from(flow.0), class: Priority::Auto, is_awaited: true };
        if let Ok(answer) = connection.open_stream(now, options) {
            connection.reset_stream(now, answer, NOT_ACCEPTED);
        }
    }

    /// Continues a stream after the program has written to it or finished it, or when the engine has room again.
    pub(super) fn write(&mut self, connection: &mut Connection, now: Time, stream: Name) {
        let Some(flow) = self.outgoing_flow(stream) else { return };
        if let Some(stream) = self.outgoing.get_mut(&flow) {
            stream.write(connection, now, flow);
        }
    }

    pub(super) fn reset(&mut self, connection: &mut Connection, now: Time, stream: Name, code: u32) {
        let Some(flow) = self.outgoing_flow(stream) else { return };
        connection.reset_stream(now, flow, code);
        self.end_outgoing(flow, Err(NetError::StreamClosed));
    }

    /// Continues a stream after the program has accepted it, or has room for more of it.
    pub(super) fn read(&mut self, connection: &mut Connection, now: Time, stream: Name) {
        let Some(flow) = self.incoming_flow(stream) else { return };
        if let Some(stream) = self.incoming.get_mut(&flow) {
            stream.accepted = true;
            self.on_readable(connection, now, flow);
        }
    }

    fn on_readable(&self, connection: &mut Connection, now: Time, flow: FlowId) {
        if let Some(Incoming { half, accepted: true, .. }) = self.incoming.get(&flow) {
            half.fill(|buffer, room| connection.read_stream(now, flow, buffer, room));
        }
    }

    pub(super) fn stop(&mut self, connection: &mut Connection, now: Time, stream: Name, code: u32) {
        match self.incoming_flow(stream) {
            Some(flow) => {
                if let Some(incoming) = self.incoming.remove(&flow) {
                    self.forget_answer(&incoming);
                    connection.stop_stream(now, flow, code);
                }
            }
            // It is stopped when it arrives.
            None => {
                if let Name::AnswerTo(own) = stream {
                    self.answers.remove(&own);
                }
            }
        }
    }

    fn forget_answer(&mut self, incoming: &Incoming) {
        if let Some(own) = incoming.answers {
            self.answers.remove(&own);
        }
    }

    /// Accepts the answer to a stream of this side, and stops an unexpected one.
    fn on_answer(&mut self, connection: &mut Connection, now: Time, flow: FlowId, to: u64) {
        let own = u16::try_from(to).ok().map(FlowId);
        match own.and_then(|own| self.answers.get_mut(&own)) {
            Some(answer @ ReplyState::Awaited(_)) => {
                let ReplyState::Awaited(half) = std::mem::replace(answer, ReplyState::Given(flow)) else { return };
                self.incoming.insert(flow, Incoming { half, accepted: true, answers: own });
            }
            _ => {
                self.unexpected_answers += 1;
                connection.stop_stream(now, flow, NOT_ACCEPTED);
            }
        }
    }

    /// Handles an event about streams; returns a new stream.
    ///
    /// # Errors
    /// Returns events about anything else as `Err`.
    pub(super) fn event(
        &mut self,
        connection: &mut Connection,
        now: Time,
        event: Event,
    ) -> Result<Option<IncomingStream>, Event> {
        match event {
            Event::StreamAnnounced { flow, tag } if tag & ANSWERS != 0 => {
                self.on_answer(connection, now, flow, tag & !ANSWERS);
            }
            Event::StreamAnnounced { flow, tag } => {
                let half = Arc::<ReadHalf>::default();
                self.incoming.insert(flow, Incoming { half: Arc::clone(&half), accepted: false, answers: None });
                return Ok(Some(IncomingStream { flow, tag, half }));
            }
            Event::StreamReadable { flow } => self.on_readable(connection, now, flow),
            Event::StreamFinished { flow } => self.end_incoming(flow, Ok(())),
            Event::StreamReset { flow, code } => self.end_incoming(flow, Err(NetError::StreamReset { code })),
            Event::StreamWritable { flow } => self.write(connection, now, Name::Flow(flow)),
            Event::StreamDelivered { flow } => self.end_outgoing(flow, Ok(())),
            Event::StreamStopped { flow, code } => self.end_outgoing(flow, Err(NetError::StreamStopped { code })),
            other => return Err(other),
        }
        Ok(None)
    }

    /// Ends all streams with the connection, after the bytes received so far.
    pub(super) fn end(&mut self, connection: &mut Connection, now: Time, error: &NetError) {
        for (flow, Incoming { half, .. }) in std::mem::take(&mut self.incoming) {
            half.end(|buffer| {
                connection.read_stream(now, flow, buffer, usize::MAX);
                if connection.is_stream_read(flow) { Ok(()) } else { Err(error.clone()) }
            });
        }
        self.abandon(error);
    }

    /// Ends all streams without a connection to read from.
    pub(super) fn abandon(&mut self, error: &NetError) {
        for Incoming { half, .. } in std::mem::take(&mut self.incoming).into_values() {
            half.end(|_| Err(error.clone()));
        }
        for stream in std::mem::take(&mut self.outgoing).into_values() {
            stream.half.end(Err(error.clone()));
        }
        for answer in std::mem::take(&mut self.answers).into_values() {
            if let ReplyState::Awaited(half) = answer {
                half.end(|_| Err(error.clone()));
            }
        }
    }

    fn end_incoming(&mut self, flow: FlowId, end: Result<(), NetError>) {
        if let Some(incoming) = self.incoming.remove(&flow) {
            self.forget_answer(&incoming);
            incoming.half.end(|_| end);
        }
    }

    fn end_outgoing(&mut self, flow: FlowId, end: Result<(), NetError>) {
        if let Some(stream) = self.outgoing.remove(&flow) {
            if let Some(number) = stream.answer {
                self.answered.remove(&number);
            }
            stream.half.end(end);
        }
    }
}

impl Outgoing {
    /// Passes as many of the program's written bytes to the engine as it takes.
    fn write(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        loop {
            if self.at == self.chunk.len() {
                self.chunk.clear();
                self.at = 0;
                self.last = self.half.take(&mut self.chunk, connection.stream_room());
            }
            if self.chunk.is_empty() {
                break;
            }
            // A stream unknown to the engine has ended, which an event reports.
            let Ok(taken) = connection.write_stream(now, flow, &self.chunk[self.at..]) else { return };
            self.at += taken;
            if self.at < self.chunk.len() {
                return;
            }
        }
        if self.last && !self.finished {
            self.finished = connection.finish_stream(now, flow).is_ok();
        }
    }
}
