//! Flows that go on in smaller symbols.

use super::{Outgoing, Piece};
use crate::wire::FlowId;

impl Outgoing {
    /// Whether everything can go on in symbols of this size, in flows numbered from `next` on.
    pub(in super::super) fn can_shrink(&self, symbol_size: u16, next: u16) -> bool {
        let objects = || self.flows.iter().chain(&self.waiting);
        let streams = || self.streams.iter().chain(&self.waiting_streams).filter(|stream| stream.may_send());
        let numbered = usize::from(next) + objects().count() + streams().count() <= usize::from(u16::MAX);
        let cut = objects().all(|object| object.can_shrink(symbol_size));
        numbered && cut && streams().all(|stream| stream.can_shrink(symbol_size))
    }

    /// Every object, and every stream that may still send, goes on in a flow of smaller symbols, numbered from `next` on; the
    /// number after the last.
    pub(in super::super) fn shrink(&mut self, symbol_size: u16, next: u16) -> u16 {
        // What nobody answered was too large.
        self.unanswered = None;
        let mut next = next;
        for object in self.flows.iter_mut().chain(&mut self.waiting) {
            if object.succeed(FlowId(next), symbol_size).is_ok() {
                next += 1;
            }
        }
        let streams = self.streams.iter_mut().chain(&mut self.waiting_streams);
        for stream in streams.filter(|stream| stream.may_send()) {
            if stream.succeed(FlowId(next), symbol_size).is_ok() {
                next += 1;
            }
        }
        self.waiting_source = self.waiting.iter().map(|object| object.flow().source_left()).sum();
        (0..self.flows.len()).for_each(|at| self.announce(at));
        for stream in self.streams.iter().filter(|stream| stream.may_send()) {
            self.outbox.push_thrice(Piece::Announce(stream.id()));
        }
        next
    }
}
