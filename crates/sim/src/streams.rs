//! The streams of one connection of a host: the bytes written and read, and when.

use crate::host::object;
use std::collections::BTreeMap;
use std::time::Duration;
use transport::{Connection, Event, FlowId, Time};

/// A stream that a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamScript {
    /// Bytes in all.
    pub length: u64,
    /// Bytes of each write.
    pub write: u64,
    /// Time between two writes; zero: as fast as they are accepted.
    pub every: Duration,
    /// The sender resets it when this many bytes are written.
    pub reset_at: Option<u64>,
    /// Its reader stops it when this many bytes are read.
    pub stop_at: Option<u64>,
}

impl StreamScript {
    /// Creates a stream of `length` bytes, written as fast as they are accepted.
    pub const fn bulk(length: u64) -> Self {
        Self { length, write: 1 << 20, every: Duration::ZERO, reset_at: None, stop_at: None }
    }

    /// Returns whether all of it arrives if the connection lives.
    pub const fn is_whole(&self) -> bool {
        self.reset_at.is_none() && self.stop_at.is_none()
    }
}

/// How a host reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadScript {
    /// Most bytes of each read.
    pub most: usize,
    /// Time between two reads; zero: at once.
    pub every: Duration,
}

impl Default for ReadScript {
    fn default() -> Self {
        Self { most: usize::MAX, every: Duration::ZERO }
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamEnd {
    /// Not yet.
    #[default]
    Open,
    /// All of it arrived, or was read.
    Whole,
    /// Its sender reset it.
    Reset,
    /// Its reader stopped it.
    Stopped,
}

/// A stream that a host sends.
#[derive(Clone, Debug)]
pub struct StreamWriter {
    /// The script.
    pub script: StreamScript,
    /// Bytes accepted so far, and when.
    pub log: Vec<(u64, Time)>,
    /// How it ended.
    pub end: StreamEnd,
    written: u64,
    finished: bool,
    /// When to write next; `None` while the engine has no room.
    next: Option<Time>,
}

/// A stream that a host receives.
#[derive(Clone, Debug, Default)]
pub struct StreamReader {
    /// Bytes read so far, and when.
    pub log: Vec<(u64, Time)>,
    /// Bytes read.
    pub read: u64,
    /// Reads that returned other bytes than were written.
    pub wrong: u64,
    /// How it ended.
    pub end: StreamEnd,
    stop_at: Option<u64>,
    resets: bool,
    next: Option<Time>,
}

/// The streams of one connection.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// The sent ones.
    pub writing: BTreeMap<FlowId, StreamWriter>,
    /// The received ones.
    pub reading: BTreeMap<FlowId, StreamReader>,
    seed: u64,
    reads: ReadScript,
}

const CODE: u32 = 7;

/// A stream's tag encodes when its reader stops, and whether it will be reset.
const RESETS: u64 = 1 << 63;
const NEVER: u64 = RESETS - 1;

impl Streams {
    pub(crate) fn new(seed: u64, reads: ReadScript) -> Self {
        Self { writing: BTreeMap::new(), reading: BTreeMap::new(), seed, reads }
    }

    /// Returns whether every sent stream has ended.
    pub fn all_sent(&self) -> bool {
        self.writing.values().all(|stream| stream.end != StreamEnd::Open)
    }

    /// Returns the number of ended received streams, without those that their sender resets: their reader may never
    /// know of them.
    pub fn received(&self) -> usize {
        self.reading.values().filter(|stream| stream.end != StreamEnd::Open && !stream.resets).count()
    }

    pub(crate) fn open(&mut self, now: Time, connection: &mut Connection, scripts: &[StreamScript]) {
        for script in scripts {
            let tag = script.stop_at.unwrap_or(NEVER) | if script.reset_at.is_some() { RESETS } else { 0 };
            // The peer may have closed already.
            let Ok(flow) = connection.open_stream(now, tag) else { continue };
            let (end, next) = (StreamEnd::Open, Some(now));
            let writing = StreamWriter { script: *script, log: Vec::new(), end, written: 0, finished: false, next };
            self.writing.insert(flow, writing);
        }
        self.work(now, connection);
    }

    pub(crate) fn act(&mut self, now: Time, connection: &mut Connection, event: &Event) {
        match *event {
            Event::StreamAnnounced { flow, tag } => {
                let stop_at = Some(tag & !RESETS).filter(|stop_at| *stop_at != NEVER);
                self.reading
                    .insert(flow, StreamReader { stop_at, resets: tag & RESETS != 0, ..StreamReader::default() });
                self.read(now, connection, flow);
            }
            Event::StreamReadable { flow } => self.note_readable(now, connection, flow),
            Event::StreamFinished { flow } => self.end_reading(flow, StreamEnd::Whole),
            Event::StreamReset { flow, .. } => self.end_reading(flow, StreamEnd::Reset),
            Event::StreamDelivered { flow } => self.end_writing(flow, StreamEnd::Whole),
            Event::StreamStopped { flow, .. } => self.end_writing(flow, StreamEnd::Stopped),
            Event::StreamWritable { flow } => {
                if let Some(stream) = self.writing.get_mut(&flow) {
                    stream.next = Some(now);
                }
                self.work(now, connection);
            }
            Event::Closed(_) => {
                // Received bytes can still be read, but no event will announce the end of the stream.
                let flows: Vec<FlowId> = self.reading.keys().copied().collect();
                self.reads = ReadScript::default();
                for flow in flows {
                    self.read(now, connection, flow);
                    if self.reading[&flow].end == StreamEnd::Open && connection.is_stream_read(flow) {
                        self.end_reading(flow, StreamEnd::Whole);
                    }
                }
                self.writing.values_mut().for_each(|stream| stream.next = None);
                self.reading.values_mut().for_each(|stream| stream.next = None);
            }
            _ => {}
        }
    }

    fn end_reading(&mut self, flow: FlowId, end: StreamEnd) {
        let stream = self.reading.get_mut(&flow).expect("announced before");
        // Its end may have been in flight when the reader stopped it.
        assert!(matches!(stream.end, StreamEnd::Open | StreamEnd::Stopped), "{flow:?} ends twice");
        (stream.end, stream.next) = (end, None);
    }

    fn end_writing(&mut self, flow: FlowId, end: StreamEnd) {
        let stream = self.writing.get_mut(&flow).expect("opened by this host");
        // The reader's stop may have been in flight when it was reset.
        assert!(matches!(stream.end, StreamEnd::Open | StreamEnd::Reset), "{flow:?} ends twice");
        assert!(end != StreamEnd::Whole || stream.finished, "{flow:?} is sent before it is finished");
        (stream.end, stream.next) = (end, None);
    }

    fn note_readable(&mut self, now: Time, connection: &mut Connection, flow: FlowId) {
        if self.reads.every.is_zero() {
            return self.read(now, connection, flow);
        }
        let stream = self.reading.get_mut(&flow).expect("announced before");
        // Reported before it was stopped.
        if stream.end == StreamEnd::Open {
            stream.next = stream.next.or(Some(now + self.reads.every));
        }
    }

    /// Returns the next deadline.
    pub(crate) fn due(&self) -> Option<Time> {
        let writing = self.writing.values().filter_map(|stream| stream.next);
        writing.chain(self.reading.values().filter_map(|stream| stream.next)).min()
    }

    /// Performs the writes and reads due by now.
    pub(crate) fn work(&mut self, now: Time, connection: &mut Connection) {
        if connection.is_closed() {
            return;
        }
        let seed = self.seed;
        for (flow, stream) in &mut self.writing {
            stream.work(now, connection, *flow, seed);
        }
        let due = |stream: &StreamReader| stream.next.is_some_and(|next| next <= now);
        let flows: Vec<FlowId> = self.reading.iter().filter(|(_, stream)| due(stream)).map(|(flow, _)| *flow).collect();
        flows.into_iter().for_each(|flow| self.read(now, connection, flow));
    }

    fn read(&mut self, now: Time, connection: &mut Connection, flow: FlowId) {
        let Some(stream) = self.reading.get_mut(&flow).filter(|stream| stream.end == StreamEnd::Open) else { return };
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let count = connection.read_stream(now, flow, &mut bytes, self.reads.most);
            assert_eq!(count, bytes.len());
            stream.wrong += u64::from(!object(self.seed, flow).matches(stream.read, &bytes));
            stream.read += count as u64;
            if count > 0 {
                stream.log.push((stream.read, now));
            }
            if stream.stop_at.is_some_and(|stop_at| stream.read >= stop_at) {
                connection.stop_stream(now, flow, CODE);
                (stream.end, stream.next) = (StreamEnd::Stopped, None);
                return;
            }
            stream.next = (count > 0 && !self.reads.every.is_zero()).then(|| now + self.reads.every);
            if count == 0 || stream.next.is_some() {
                return;
            }
        }
    }
}

impl StreamWriter {
    fn work(&mut self, now: Time, connection: &mut Connection, flow: FlowId, seed: u64) {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            let until = self.script.reset_at.unwrap_or(self.script.length).min(self.script.length);
            let mut bytes = vec![0; self.script.write.min(until - self.written) as usize];
            object(seed, flow).fill(self.written, &mut bytes);
            let Ok(taken) = connection.write_stream(now, flow, &bytes) else { return self.next = None };
            self.written += taken as u64;
            self.log.push((self.written, now));
            if self.written < until {
                self.next = (taken == bytes.len()).then_some(next + self.script.every);
                continue;
            }
            self.next = None;
            if self.script.reset_at.is_some() {
                connection.reset_stream(now, flow, CODE);
                self.end = StreamEnd::Reset;
            } else {
                self.finished = connection.finish_stream(now, flow).is_ok();
            }
        }
    }
}
