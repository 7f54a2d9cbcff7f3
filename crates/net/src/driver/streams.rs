//! The network thread's side of streams: moves bytes between the engine and the buffers that programs share.

use std::collections::BTreeMap;
use std::sync::Arc;

use transport::{Connection, Event, FlowId, StreamOptions, Time};

use crate::buffers::{ReadHalf, WriteHalf};
use crate::error::NetError;

#[derive(Debug)]
struct Incoming {
    half: Arc<ReadHalf>,
    /// Until then its bytes stay in the engine, where the peer's credit bounds them.
    accepted: bool,
}

#[derive(Debug)]
struct Outgoing {
    half: Arc<WriteHalf>,
    /// Taken from the shared buffer, and not yet taken by the engine from `at` on.
    chunk: Vec<u8>,
    at: usize,
    /// Nothing follows the chunk.
    last: bool,
    /// The engine knows the end.
    finished: bool,
}

/// A stream that the peer has opened.
pub(super) struct Opened {
    pub(super) flow: FlowId,
    pub(super) tag: u64,
    pub(super) half: Arc<ReadHalf>,
}

/// All streams of a connection that have not ended, by their flow: what a peer calls them is the program's business.
#[derive(Debug, Default)]
pub(super) struct Streams {
    outgoing: BTreeMap<FlowId, Outgoing>,
    incoming: BTreeMap<FlowId, Incoming>,
}

impl Streams {
    /// Opens a stream to the peer.
    pub(super) fn open(
        &mut self,
        connection: &mut Connection,
        now: Time,
        tag: u64,
    ) -> Result<(FlowId, Arc<WriteHalf>), NetError> {
        let flow = connection.open_stream(now, StreamOptions { tag }).map_err(NetError::Flow)?;
        let half = Arc::<WriteHalf>::default();
        let stream = Outgoing { half: Arc::clone(&half), chunk: Vec::new(), at: 0, last: false, finished: false };
        self.outgoing.insert(flow, stream);
        Ok((flow, half))
    }

    /// The program has written to a stream or finished it, or the engine has room again.
    pub(super) fn write(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        if let Some(stream) = self.outgoing.get_mut(&flow) {
            stream.write(connection, now, flow);
        }
    }

    pub(super) fn reset(&mut self, connection: &mut Connection, now: Time, flow: FlowId, code: u32) {
        connection.reset_stream(now, flow, code);
        self.end_outgoing(flow, Err(NetError::StreamClosed));
    }

    /// The program has accepted a stream, or has room for more of it.
    pub(super) fn read(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        if let Some(stream) = self.incoming.get_mut(&flow) {
            stream.accepted = true;
            self.on_readable(connection, now, flow);
        }
    }

    fn on_readable(&self, connection: &mut Connection, now: Time, flow: FlowId) {
        if let Some(Incoming { half, accepted: true }) = self.incoming.get(&flow) {
            half.fill(|buffer, room| connection.read_stream(now, flow, buffer, room));
        }
    }

    pub(super) fn stop(&mut self, connection: &mut Connection, now: Time, flow: FlowId, code: u32) {
        if self.incoming.remove(&flow).is_some() {
            connection.stop_stream(now, flow, code);
        }
    }

    /// Takes what is about streams, and gives back a stream that is new.
    ///
    /// # Errors
    /// `Err` holds an event about something else.
    pub(super) fn event(
        &mut self,
        connection: &mut Connection,
        now: Time,
        event: Event,
    ) -> Result<Option<Opened>, Event> {
        match event {
            Event::StreamAnnounced { flow, tag } => {
                let half = Arc::<ReadHalf>::default();
                self.incoming.insert(flow, Incoming { half: Arc::clone(&half), accepted: false });
                return Ok(Some(Opened { flow, tag, half }));
            }
            Event::StreamReadable { flow } => self.on_readable(connection, now, flow),
            Event::StreamFinished { flow } => self.end_incoming(flow, Ok(())),
            Event::StreamReset { flow, code } => self.end_incoming(flow, Err(NetError::StreamReset { code })),
            Event::StreamWritable { flow } => self.write(connection, now, flow),
            Event::StreamSent { flow } => self.end_outgoing(flow, Ok(())),
            Event::StreamStopped { flow, code } => self.end_outgoing(flow, Err(NetError::StreamStopped { code })),
            other => return Err(other),
        }
        Ok(None)
    }

    /// The connection has ended: so does every stream, behind what has come of it.
    pub(super) fn end(&mut self, connection: &mut Connection, now: Time, error: &NetError) {
        for (flow, Incoming { half, .. }) in std::mem::take(&mut self.incoming) {
            half.end(|buffer| {
                connection.read_stream(now, flow, buffer, usize::MAX);
                if connection.is_stream_read(flow) { Ok(()) } else { Err(error.clone()) }
            });
        }
        self.abandon(error);
    }

    /// The same without a connection to read from.
    pub(super) fn abandon(&mut self, error: &NetError) {
        for Incoming { half, .. } in std::mem::take(&mut self.incoming).into_values() {
            half.end(|_| Err(error.clone()));
        }
        for stream in std::mem::take(&mut self.outgoing).into_values() {
            stream.half.end(Err(error.clone()));
        }
    }

    fn end_incoming(&mut self, flow: FlowId, end: Result<(), NetError>) {
        if let Some(Incoming { half, .. }) = self.incoming.remove(&flow) {
            half.end(|_| end);
        }
    }

    fn end_outgoing(&mut self, flow: FlowId, end: Result<(), NetError>) {
        if let Some(stream) = self.outgoing.remove(&flow) {
            stream.half.end(end);
        }
    }
}

impl Outgoing {
    /// Gives the engine what it takes of what the program has written.
    fn write(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        loop {
            if self.at == self.chunk.len() {
                self.chunk.clear();
                self.at = 0;
                self.last = self.half.take(&mut self.chunk);
            }
            if self.chunk.is_empty() {
                break;
            }
            // A stream that the engine does not know any more has ended, and that is told by an event.
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
