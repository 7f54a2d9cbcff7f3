//! Streams: ordered bytes, in either direction, any number of them.

use super::control::ReliableFrame;
use super::recv_flows::Violation;
use super::{Connection, ConnectionState, Event, FlowError};
use crate::flow::{ScheduleConfig, SendFlow, StreamCoding, WindowCoding, largest_window};
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{FlowId, MAX_STREAM_WINDOW, StreamAnnouncement};
use erasure::{AnyCode, BlockCode};

/// A stream to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// The program's name for it; the peer sees it.
    pub tag: u64,
    /// The priority on the path. Each side chooses it for the streams that it sends.
    pub class: Priority,
    /// The peer's program waits for it: a reset is sent after the announcement, without which the peer would ignore it.
    pub is_awaited: bool,
}

/// A stream of this name, and of [`Priority::Auto`].
impl From<u64> for StreamOptions {
    fn from(tag: u64) -> Self {
        Self { tag, ..Self::default() }
    }
}

/// Which streams go first on the path. Equals take turns, and objects are like streams of [`Priority::Bulk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Before all others while it has data: a user waits for each byte.
    Interactive,
    /// After all interactive ones: only the time of the last byte counts.
    Bulk,
    /// Interactive as long as its program writes little, 16 kB at once or per second, and bulk when it writes more.
    #[default]
    Auto,
}

/// Source symbols of the largest block of a stream, where the stream's own credit is less.
const LARGEST_BLOCK: u32 = 256;

/// The part of the window that a stream buffers, and the least and the most bytes.
const WINDOWS_AHEAD: u64 = 6;
const LEAST_ROOM: usize = 40 << 10;
const MOST_ROOM: usize = 4 << 20;

impl Connection {
    /// Opens a stream to the peer. Interactive streams go first; others and, as one, the objects take turns on the path.
    ///
    /// # Errors
    /// [`FlowError::NotConnected`] before [`Event::Connected`] and after the end, [`FlowError::NoStreams`] when the
    /// peer accepts none, [`FlowError::Exhausted`], [`FlowError::Unsendable`] when the profile's symbols cannot carry a
    /// stream.
    pub fn open_stream(&mut self, now: Time, options: impl Into<StreamOptions>) -> Result<FlowId, FlowError> {
        let options = options.into();
        let Some(peer) = self.peer.as_ref().filter(|_| matches!(self.phase, ConnectionState::Open)) else {
            return Err(FlowError::NotConnected);
        };
        let allowed = peer.streams;
        if allowed.count == 0 || allowed.window == 0 {
            return Err(FlowError::NoStreams);
        }
        let flow = FlowId(self.next_flow);
        let symbol_size = self.acceptable_symbol_size(peer)?;
        let (blocks, schedule) = (&self.profile.blocks, &self.profile.schedule);
        let (k, code, short_code, schedule) = match self.profile.streams {
            // A block is as large as the credit allows when it is opened, so that the stream can always continue.
            StreamCoding::Blocks(_) => {
                let blocks = blocks.of_streams(symbol_size);
                (
                    blocks.k.min(allowed.window.max(LARGEST_BLOCK)),
                    AnyCode::Block(blocks.code),
                    blocks.small_code,
                    schedule.build(),
                )
            }
            StreamCoding::Window(WindowCoding { code, symbols, .. }) => {
                let most = largest_window(allowed.window).min(MAX_STREAM_WINDOW);
                (symbols.min(most), AnyCode::Window(code), BlockCode::Uncoded, ScheduleConfig::Arq.build())
            }
        };
        let k = k.min(peer.max_k);
        let size = usize::from(symbol_size);
        let coded = code.check(k, size).is_ok() && short_code.check(k, size).is_ok();
        if !coded || usize::from(symbol_size) <= crate::wire::STREAM_HEADER {
            return Err(FlowError::Unsendable);
        }
        self.next_flow = self.next_flow.checked_add(1).ok_or(FlowError::Exhausted)?;
        let announcement = StreamAnnouncement { flow, symbol_size, tag: options.tag, k, code, short_code };
        let mut stream = SendFlow::stream(announcement, allowed.window, schedule);
        if let StreamCoding::Blocks(_) = self.profile.streams {
            stream.set_sizer(self.profile.blocks.sizer(symbol_size), k);
        }
        stream.set_awaited(options.is_awaited);
        self.send_flows.open_stream(stream, options.class, &mut self.control);
        self.trace.record(now, TraceEvent::StreamOpened { flow });
        Ok(flow)
    }

    /// Accepts as many of `bytes` as fit: a stream buffers [`Connection::stream_room`] bytes not yet in a block, and
    /// blocks as far as the path and the peer's credit allow. After a partial write [`Event::StreamWritable`] follows.
    ///
    /// # Errors
    /// [`FlowError::NotConnected`] after the end, [`FlowError::UnknownStream`] when the stream is finished, reset or
    /// unknown.
    pub fn write_stream(&mut self, now: Time, flow: FlowId, bytes: &[u8]) -> Result<usize, FlowError> {
        if !matches!(self.phase, ConnectionState::Open) {
            return Err(FlowError::NotConnected);
        }
        let room = self.stream_room();
        let stream = self.send_flows.wake(flow).ok_or(FlowError::UnknownStream)?;
        let taken = stream.write(bytes, room).ok_or(FlowError::UnknownStream)?;
        // Blocks are opened when packets are polled. Room for the rest is made now.
        if taken < bytes.len() {
            self.settle_sending(now);
        }
        Ok(taken)
    }

    /// Returns the bytes that a stream buffers before they are in a block: a sixth of the path's content, so that a
    /// program which buffers half as much again is ahead of the path by a quarter of a round trip.
    pub fn stream_room(&self) -> usize {
        let share = usize::try_from(self.recovery.window() / WINDOWS_AHEAD).unwrap_or(usize::MAX);
        share.clamp(LEAST_ROOM, MOST_ROOM)
    }

    /// Ends a stream after the bytes written so far. [`Event::StreamDelivered`] follows when all of it has arrived.
    ///
    /// # Errors
    /// [`FlowError::NotConnected`] after the end, [`FlowError::UnknownStream`] for an unknown stream.
    pub fn finish_stream(&mut self, now: Time, flow: FlowId) -> Result<(), FlowError> {
        if !matches!(self.phase, ConnectionState::Open) {
            return Err(FlowError::NotConnected);
        }
        if !self.send_flows.wake(flow).is_some_and(SendFlow::finish) {
            return Err(FlowError::UnknownStream);
        }
        self.settle_sending(now);
        Ok(())
    }

    /// Resets a stream that this side sends: nothing more of it is sent, and the peer's program gets `code`. Has no
    /// effect if the peer has read all of it.
    pub fn reset_stream(&mut self, now: Time, flow: FlowId, code: u32) {
        if matches!(self.phase, ConnectionState::Open) && self.send_flows.reset(flow, code, &mut self.control) {
            self.trace.record(now, TraceEvent::StreamReset { flow, code });
            self.settle(now);
        }
    }

    /// Appends at most `max` bytes of a stream of the peer, the next in order, to `out`; returns how many. The credit
    /// for blocks read to their end goes back to the peer. Received bytes can be read after the end of the connection
    /// too.
    pub fn read_stream(&mut self, now: Time, flow: FlowId, out: &mut Vec<u8>, max: usize) -> usize {
        let read = self.recv_flows.read(flow, out, max);
        if matches!(self.phase, ConnectionState::Open) {
            self.settle_receiving(now);
        }
        read
    }

    /// Returns whether every byte of a stream of the peer has been read. Once the connection has ended, when no
    /// [`Event::StreamFinished`] follows any more, it distinguishes the end of a stream from an interruption.
    pub fn is_stream_read(&self, flow: FlowId) -> bool {
        self.recv_flows.is_read(flow)
    }

    /// Stops a stream of the peer: its unread bytes are dropped, and its sender is asked to reset it with `code`.
    pub fn stop_stream(&mut self, now: Time, flow: FlowId, code: u32) {
        if matches!(self.phase, ConnectionState::Open) && self.recv_flows.stop(flow) {
            self.trace.record(now, TraceEvent::StreamStopped { flow, code });
            self.control.push(ReliableFrame::Stop(flow, code));
        }
    }

    /// Handles the peer's request to stop a stream that this side sends.
    pub(super) fn on_stop(&mut self, now: Time, flow: FlowId, code: u32) -> Result<(), Violation> {
        if flow.0 >= self.next_flow || self.send_flows.is_object(flow) {
            return Err(Violation("stopped a flow other than a stream"));
        }
        // For a stream that has arrived, read or not, the program has had its last event.
        let sent = self.send_flows.named_mut(flow).is_some_and(|stream| stream.is_sent());
        if self.send_flows.reset(flow, code, &mut self.control) {
            self.trace.record(now, TraceEvent::StreamReset { flow, code });
            if !sent {
                self.events.push_back(Event::StreamStopped { flow, code });
            }
        }
        Ok(())
    }

    /// Handles the report of how much of a stream the peer's program has read.
    pub(super) fn on_stream_read(&mut self, flow: FlowId, symbols: u64) -> Result<(), Violation> {
        if flow.0 >= self.next_flow || self.send_flows.is_object(flow) {
            return Err(Violation("reported a flow other than a stream as read"));
        }
        self.send_flows.on_peer_read(flow, symbols);
        Ok(())
    }

    /// Opens blocks as far as credit, the read-ahead and the path's capacity allow.
    pub(super) fn open_blocks(&mut self, now: Time) {
        let (path, most) = (self.path_estimate(), self.open_limit());
        self.send_flows.open_blocks(now, &path, most, &mut self.control, &mut self.requests);
    }

    /// Moves out the events of the peer's flows.
    pub(super) fn move_recv_events(&mut self, now: Time) {
        while let Some(event) = self.recv_flows.poll_event() {
            self.push_flow_event(now, event);
        }
    }

    /// Queues a flow's event for the program.
    pub(super) fn push_flow_event(&mut self, now: Time, event: Event) {
        let record = match event {
            Event::ObjectAnnounced { flow, length, .. } => Some(TraceEvent::FlowAnnounced { flow, length }),
            Event::StreamAnnounced { flow, .. } => Some(TraceEvent::StreamAnnounced { flow }),
            Event::ObjectReceived { flow } | Event::StreamFinished { flow } => Some(TraceEvent::FlowReceived { flow }),
            Event::ObjectDelivered { flow } | Event::StreamDelivered { flow } => Some(TraceEvent::FlowSent { flow }),
            _ => None,
        };
        if let Some(record) = record {
            self.trace.record(now, record);
        }
        self.events.push_back(event);
    }
}
