//! The streams among what comes in.

use super::{Broken, Event, Incoming, MAX_LINGERING, Piece, Violation};
use crate::flow::{BadDecode, DecodeJob, Request, StreamReceiver, SymbolOutcome};
use crate::wire::{FlowId, Refused, StreamAnnouncement, StreamSuccessor, SymbolId};
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
        let stream = StreamReceiver::new(*announcement, self.streams_allowed.window, self.limits, self.blocks_told());
        self.streams.insert(id, stream.ok_or(Violation("impossible stream announced"))?);
        self.stream_events.push(Event::StreamAnnounced { flow: id, tag: announcement.tag });
        self.replay_early(id);
        Ok(())
    }

    /// A stream goes on in another flow.
    pub(in super::super) fn on_stream_successor(&mut self, successor: &StreamSuccessor) -> Result<(), Violation> {
        let StreamSuccessor { flow: id, symbol_size, stream: first } = *successor;
        if self.closed.contains_key(&id) {
            return Ok(());
        }
        if let Some(known) = self.streams.get(&id) {
            let same = known.is_announced_by(&first) && known.symbol_size() == usize::from(symbol_size);
            return same.then_some(()).ok_or(Violation("flow announced twice"));
        }
        if self.flows.contains_key(&id) {
            return Err(Violation("flow announced twice"));
        }
        let carrier = match self.carrier(first.flow) {
            Some(carrier) => carrier,
            None if self.closed.contains_key(&first.flow) => {
                // All of the stream was read before it was cut anew, or it was given up: who sends symbols of it is told so.
                self.close_flow(id, true);
                return Ok(());
            }
            None => {
                self.on_stream_announcement(&first)?;
                first.flow
            }
        };
        let Some(stream) = self.streams.get_mut(&carrier) else { return Ok(()) };
        if !stream.is_announced_by(&first) {
            return Err(Violation("successor of another stream"));
        }
        if stream.symbol_size() <= usize::from(symbol_size) {
            // It was overtaken by its own successor.
            self.close_flow(id, false);
            return Ok(());
        }
        if stream.has_promised() {
            self.broken = Some(Broken::Undecodable);
        }
        stream.succeed(id, symbol_size, &mut self.pool).map_err(|_| Violation("impossible successor"))?;
        self.closed.insert(carrier, false);
        if let Some(stream) = self.streams.remove(&carrier) {
            self.streams.insert(id, stream);
        }
        self.replay_early(id);
        Ok(())
    }

    /// The flow that carries the stream which both programs know by this one.
    fn carrier(&self, name: FlowId) -> Option<FlowId> {
        self.streams.iter().find(|(_, stream)| stream.stream() == name).map(|(id, _)| *id)
    }

    pub(super) fn on_stream_symbol(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) -> Result<SymbolOutcome, Refused> {
        let Some(stream) = self.streams.get_mut(&id.flow) else { return Ok(SymbolOutcome::Surplus) };
        match stream.on_symbol(id, plan, symbol, &mut self.stream_store, &mut self.pool) {
            Ok(taken @ (SymbolOutcome::New | SymbolOutcome::CompletesBlock)) => {
                // Who sends the end of a stream waits to hear that it is all there; where blocks are small and far between, all
                // that waits for feedback is the probe.
                let (complete, lacks_nothing) = (stream.is_complete(), stream.lacks_nothing());
                if lacks_nothing {
                    self.clock.prompt();
                }
                self.on_gain(taken, complete);
                Ok(taken)
            }
            Ok(SymbolOutcome::Surplus) => {
                self.surplus += 1;
                Ok(SymbolOutcome::Surplus)
            }
            Ok(SymbolOutcome::UnknownPlan | SymbolOutcome::Refused) => Err(Refused::Unacceptable),
            Err(_) => {
                self.broken = Some(Broken::Violation(IMPOSSIBLE_BLOCK));
                Err(Refused::Unacceptable)
            }
        }
    }

    pub(super) fn on_stream_decoded(&mut self, job: DecodeJob, progress: Progress) {
        let Some(stream) = self.streams.get_mut(&job.flow) else { return };
        match stream.on_decoded(job, progress, &mut self.stream_store, &mut self.pool) {
            Ok(()) if stream.is_complete() => self.clock.hurry(),
            Ok(()) => {}
            Err(BadDecode::Block(_)) => self.broken = Some(Broken::Violation(IMPOSSIBLE_BLOCK)),
            Err(BadDecode::Lost(_)) => self.broken = Some(Broken::Undecodable),
        }
    }

    /// Why what comes in cannot go on.
    pub(in super::super) const fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// The sender gives a stream up.
    pub(in super::super) fn on_reset(&mut self, name: FlowId, code: u32) -> Result<(), Violation> {
        if self.flows.contains_key(&name) || self.object(name).is_some() {
            return Err(Violation("an object was reset"));
        }
        let carrier = self.carrier(name);
        if carrier.is_none() && self.streams.contains_key(&name) {
            return Err(Violation("a successor was reset"));
        }
        if carrier.is_none() && self.closed.contains_key(&name) {
            return Ok(());
        }
        if let Some(stream) = carrier.and_then(|carrier| self.streams.get(&carrier)) {
            // Who has read all of it, or asked for its end, is told nothing.
            if !stream.is_over() && !stream.is_stopped() {
                self.stream_events.push(Event::StreamReset { flow: name, code });
            }
        }
        // Its announcement may come yet, and its symbols.
        self.early.retain(|(early, _, _)| early.flow != name);
        self.forget_stream(carrier.unwrap_or(name), false);
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
        let Some(stream) = self.carrier(id).and_then(|carrier| self.streams.get_mut(&carrier)) else { return 0 };
        let read = stream.read(out, max, &mut self.stream_store, &mut self.pool);
        if stream.is_over() {
            self.clock.hurry();
        }
        read
    }

    /// The program wants no more of a stream; false when there is no more.
    pub(in super::super) fn stop_stream(&mut self, id: FlowId) -> bool {
        let carrier = self.carrier(id);
        carrier.and_then(|carrier| self.streams.get_mut(&carrier)).is_some_and(StreamReceiver::stop)
    }

    /// Moves out what the streams want done and what they led to.
    pub(super) fn collect_streams(&mut self, requests: &mut impl Extend<Request>) {
        for stream in self.streams.values_mut() {
            let flow = stream.stream();
            requests.extend(stream.take_requests());
            if stream.newly_readable() {
                self.stream_events.push(Event::StreamReadable { flow });
            }
            if stream.newly_finished() {
                self.stream_events.push(Event::StreamFinished { flow });
            }
            if let Some(symbols) = stream.newly_read() {
                self.stream_pieces.push(Piece::StreamRead(flow, symbols));
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
