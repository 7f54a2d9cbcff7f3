//! Streams in the network thread: moves bytes between the engine and the buffers shared with programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use transport::{Connection, Event, FlowId, StreamOptions, Time};

use crate::buffers::{ReadHalf, WriteHalf};
use crate::error::NetError;

#[derive(Debug)]
struct Incoming {
    half: Arc<ReadHalf>,
    /// Until the program accepts the stream its bytes stay in the engine, bounded by the peer's credit.
    accepted: bool,
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
}

/// A stream that the peer has opened.
pub(super) struct Opened {
    pub(super) flow: FlowId,
    pub(super) tag: u64,
    pub(super) half: Arc<ReadHalf>,
}

/// All streams of a connection that have not ended, by flow: tags are the program's business.
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
        options: StreamOptions,
    ) -> Result<(FlowId, Arc<WriteHalf>), NetError> {
        let flow = connection.open_stream(now, options).map_err(NetError::Flow)?;
        let half = Arc::<WriteHalf>::default();
        let stream = Outgoing { half: Arc::clone(&half), chunk: Vec::new(), at: 0, last: false, finished: false };
        self.outgoing.insert(flow, stream);
        Ok((flow, half))
    }

    /// Continues a stream after the program has written to it or finished it, or when the engine has room again.
    pub(super) fn write(&mut self, connection: &mut Connection, now: Time, flow: FlowId) {
        if let Some(stream) = self.outgoing.get_mut(&flow) {
            stream.write(connection, now, flow);
        }
    }

    pub(super) fn reset(&mut self, connection: &mut Connection, now: Time, flow: FlowId, code: u32) {
        connection.reset_stream(now, flow, code);
        self.end_outgoing(flow, Err(NetError::StreamClosed));
    }

    /// Continues a stream after the program has accepted it, or has room for more of it.
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

    /// Handles an event about streams; returns a new stream.
    ///
    /// # Errors
    /// Returns events about anything else as `Err`.
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
    /// Passes to the engine as much as it takes of what the program has written.
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
