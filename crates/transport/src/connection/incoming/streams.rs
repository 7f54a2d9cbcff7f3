//! The streams among what comes in.

use super::{Event, Incoming, MAX_LINGERING, Piece, Violation};
use crate::flow::{DecodeJob, Request, StreamReceiver, Taken};
use crate::wire::{FlowId, Refused, StreamAnnouncement, SymbolId};
use erasure::Progress;

const IMPOSSIBLE_BLOCK: Violation = Violation("impossible block of a stream");

impl Incoming {
    pub(in super::super) fn on_stream_announcement(
        &mut self,
        announcement: &StreamAnnouncement,
    ) -> Result<(), Violation> {
        let id = announcement.flow;
        if self.closed.contains_key(&id) {
            return Ok(());
        }
        if let Some(stream) = self.streams.get(&id) {
            return stream.is_announced_by(announcement).then_some(()).ok_or(Violation("flow announced twice"));
        }
        if self.flows.contains_key(&id) {
            return Err(Violation("flow announced twice"));
        }
        let over = self.streams.values().filter(|stream| stream.is_over()).count();
        if self.streams.len() - over >= usize::from(self.streams_allowed.count) || over >= MAX_LINGERING {
            return Err(Violation("too many streams announced"));
        }
        let stream = StreamReceiver::new(*announcement, self.streams_allowed.window, self.limits);
        self.streams.insert(id, stream.ok_or(Violation("impossible stream announced"))?);
        self.stream_events.push(Event::StreamAnnounced { flow: id, tag: announcement.tag });
        self.replay_early(id);
        Ok(())
    }

    pub(super) fn on_stream_symbol(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) -> Result<(), Refused> {
        let Some(stream) = self.streams.get_mut(&id.flow) else { return Ok(()) };
        match stream.on_symbol(id, plan, symbol, &mut self.stream_store, &mut self.pool) {
            Ok(Taken::New) => {
                // Who sends the end of a stream waits to hear that it is all there; where blocks are small and far between, all
                // that waits for feedback is the probe.
                if stream.is_complete() {
                    self.clock.hurry();
                } else if stream.lacks_nothing() {
                    self.clock.prompt();
                }
                Ok(())
            }
            Ok(Taken::Surplus) => {
                self.surplus += 1;
                Ok(())
            }
            Ok(Taken::UnknownPlan | Taken::Refused) => Err(Refused::Unacceptable),
            Err(_) => {
                self.broken = Some(IMPOSSIBLE_BLOCK);
                Err(Refused::Unacceptable)
            }
        }
    }

    pub(super) fn on_stream_decoded(&mut self, job: DecodeJob, progress: Progress) {
        let Some(stream) = self.streams.get_mut(&job.flow) else { return };
        if stream.on_decoded(job, progress, &mut self.stream_store, &mut self.pool).is_err() {
            self.broken = Some(IMPOSSIBLE_BLOCK);
        }
    }

    /// What the peer did wrong in data.
    pub(in super::super) const fn take_broken(&mut self) -> Option<Violation> {
        self.broken.take()
    }

    /// The sender gives a stream up.
    pub(in super::super) fn on_reset(&mut self, id: FlowId, code: u32) -> Result<(), Violation> {
        if self.flows.contains_key(&id) || self.object(id).is_some() {
            return Err(Violation("an object was reset"));
        }
        if self.closed.contains_key(&id) {
            return Ok(());
        }
        if let Some(stream) = self.streams.get(&id) {
            // Who has read all of it, or asked for its end, is told nothing.
            if !stream.is_over() && !stream.is_stopped() {
                self.stream_events.push(Event::StreamReset { flow: id, code });
            }
        }
        // Its announcement may come yet, and its symbols.
        self.early.retain(|(early, _, _)| early.flow != id);
        self.forget_stream(id, false);
        Ok(())
    }

    pub(super) fn forget_stream(&mut self, id: FlowId, complete: bool) {
        if let Some(stream) = self.streams.remove(&id) {
            self.stream_store += stream.shared();
        }
        self.closed.insert(id, complete);
    }

    /// Appends at most `max` bytes of a stream to `out`.
    pub(in super::super) fn read_stream(&mut self, id: FlowId, out: &mut Vec<u8>, max: usize) -> usize {
        let Some(stream) = self.streams.get_mut(&id) else { return 0 };
        let read = stream.read(out, max, &mut self.stream_store, &mut self.pool);
        if stream.is_over() {
            self.clock.hurry();
        }
        read
    }

    /// The program wants no more of a stream; false when there is no more.
    pub(in super::super) fn stop_stream(&mut self, id: FlowId) -> bool {
        self.streams.get_mut(&id).is_some_and(StreamReceiver::stop)
    }

    /// Moves out what the streams want done and what they led to.
    pub(super) fn collect_streams(&mut self, requests: &mut impl Extend<Request>) {
        for (id, stream) in &mut self.streams {
            requests.extend(stream.take_requests());
            if stream.newly_readable() {
                self.stream_events.push(Event::StreamReadable { flow: *id });
            }
            if stream.newly_finished() {
                self.stream_events.push(Event::StreamFinished { flow: *id });
            }
            if let Some(symbols) = stream.newly_read() {
                self.stream_pieces.push(Piece::StreamRead(*id, symbols));
            }
        }
    }

    /// What streams led to, for the program.
    pub(in super::super) fn take_stream_events(&mut self) -> impl Iterator<Item = Event> {
        self.stream_events.drain(..)
    }

    /// What streams led to, for the peer.
    pub(in super::super) fn take_stream_pieces(&mut self) -> impl Iterator<Item = Piece> {
        self.stream_pieces.drain(..)
    }
}
