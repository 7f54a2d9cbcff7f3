//! A connection's streams, by the tags that the program knows them by.

use std::collections::BTreeMap;

use transport::{Connection, Event, FlowError, FlowId, StreamOptions, Time};

use crate::LinkEvent;

/// Bytes of a stream that a program may hold unread before no more are read for it.
const MAX_UNREAD: usize = 1 << 20;

/// What is written and not yet taken by the engine.
#[derive(Debug)]
struct Outgoing {
    flow: FlowId,
    waiting: Vec<u8>,
    /// Nothing follows what waits.
    finished: bool,
}

/// What is read and not yet taken by the program.
#[derive(Debug)]
struct Incoming {
    flow: FlowId,
    unread: usize,
}

/// All streams of a connection that are open.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    outgoing: BTreeMap<u64, Outgoing>,
    incoming: BTreeMap<u64, Incoming>,
}

impl Streams {
    /// Opens a stream to the peer.
    pub(crate) fn open(&mut self, connection: &mut Connection, now: Time, tag: u64) -> Result<(), FlowError> {
        let flow = connection.open_stream(now, StreamOptions { tag })?;
        self.outgoing.insert(tag, Outgoing { flow, waiting: Vec::new(), finished: false });
        Ok(())
    }

    /// Appends to a stream; gives the bytes that the engine has taken, of these and earlier ones. A stream that was stopped takes all.
    pub(crate) fn write(&mut self, connection: &mut Connection, now: Time, tag: u64, bytes: &[u8]) -> usize {
        let Some(stream) = self.outgoing.get_mut(&tag) else { return bytes.len() };
        stream.waiting.extend_from_slice(bytes);
        stream.push(connection, now)
    }

    /// Ends a stream behind what has been written.
    pub(crate) fn finish(&mut self, connection: &mut Connection, now: Time, tag: u64) -> usize {
        let Some(stream) = self.outgoing.get_mut(&tag) else { return 0 };
        stream.finished = true;
        stream.push(connection, now)
    }

    /// The program has dealt with `count` bytes of a stream of the peer: gives more of them.
    pub(crate) fn taken(
        &mut self,
        connection: &mut Connection,
        now: Time,
        tag: u64,
        count: usize,
    ) -> Option<LinkEvent> {
        let stream = self.incoming.get_mut(&tag)?;
        stream.unread = stream.unread.saturating_sub(count);
        stream.read(connection, now, tag)
    }

    /// What an event of the engine is for the program; the event itself if it is about no stream.
    pub(crate) fn event(
        &mut self,
        connection: &mut Connection,
        now: Time,
        event: Event,
    ) -> Result<Option<LinkEvent>, Event> {
        Ok(match event {
            Event::StreamAnnounced { flow, tag } => {
                self.incoming.insert(tag, Incoming { flow, unread: 0 });
                Some(LinkEvent::StreamAnnounced { tag })
            }
            Event::StreamReadable { flow } => self.read(connection, now, flow),
            Event::StreamFinished { flow } => self.forget_incoming(flow).map(|tag| LinkEvent::StreamFinished { tag }),
            Event::StreamReset { flow, .. } => self.forget_incoming(flow).map(|tag| LinkEvent::StreamReset { tag }),
            Event::StreamWritable { flow } => {
                let found = self.outgoing.iter_mut().find(|(_, stream)| stream.flow == flow);
                found.map(|(tag, stream)| LinkEvent::StreamTaken { tag: *tag, bytes: stream.push(connection, now) })
            }
            Event::StreamSent { flow } => self.forget_outgoing(flow).map(|tag| LinkEvent::StreamSent { tag }),
            Event::StreamStopped { flow, .. } => self.forget_outgoing(flow).map(|tag| LinkEvent::StreamStopped { tag }),
            other => return Err(other),
        })
    }

    fn read(&mut self, connection: &mut Connection, now: Time, flow: FlowId) -> Option<LinkEvent> {
        let (tag, stream) = self.incoming.iter_mut().find(|(_, stream)| stream.flow == flow)?;
        stream.read(connection, now, *tag)
    }

    fn forget_incoming(&mut self, flow: FlowId) -> Option<u64> {
        let tag = self.incoming.iter().find(|(_, stream)| stream.flow == flow).map(|(tag, _)| *tag)?;
        self.incoming.remove(&tag).map(|_| tag)
    }

    fn forget_outgoing(&mut self, flow: FlowId) -> Option<u64> {
        let tag = self.outgoing.iter().find(|(_, stream)| stream.flow == flow).map(|(tag, _)| *tag)?;
        self.outgoing.remove(&tag).map(|_| tag)
    }
}

impl Outgoing {
    /// Gives the engine what it takes; says how much that was. A stream that the engine does not know any more takes all.
    fn push(&mut self, connection: &mut Connection, now: Time) -> usize {
        let taken = match connection.write_stream(now, self.flow, &self.waiting) {
            Ok(taken) => taken,
            Err(_) => self.waiting.len(),
        };
        self.waiting.drain(..taken);
        if self.finished && self.waiting.is_empty() {
            self.finished = false;
            // Its end is told by an event, or it has been told already.
            let _ = connection.finish_stream(now, self.flow);
        }
        taken
    }
}

impl Incoming {
    fn read(&mut self, connection: &mut Connection, now: Time, tag: u64) -> Option<LinkEvent> {
        let mut bytes = Vec::new();
        let count = connection.read_stream(now, self.flow, &mut bytes, MAX_UNREAD.saturating_sub(self.unread));
        self.unread += count;
        (count > 0).then_some(LinkEvent::StreamBytes { tag, bytes })
    }
}
