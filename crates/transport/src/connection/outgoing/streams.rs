//! The streams among what goes out.

use super::{Outgoing, Piece};
use crate::flow::{PathEstimate, StreamSender};
use crate::time::Time;
use crate::wire::{FlowId, StreamsAllowed};

/// A stream may always hold this share of what all of them may hold: one that waits for lost symbols does not keep another
/// from its first.
const LEAST_SHARE: u64 = 64;

/// What a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum StreamNews {
    Writable(FlowId),
    Sent(FlowId),
}

impl Outgoing {
    /// The peer takes so many streams.
    pub(in super::super) const fn allow_streams(&mut self, allowed: StreamsAllowed) {
        self.streams_allowed = allowed;
    }

    pub(in super::super) fn open_stream(&mut self, stream: StreamSender) {
        self.waiting_streams.push_back(stream);
        self.announce_streams();
    }

    fn announce_streams(&mut self) {
        while self.streams.len() < usize::from(self.streams_allowed.count)
            && let Some(stream) = self.waiting_streams.pop_front()
        {
            self.outbox.push_thrice(Piece::Announce(stream.id()));
            self.streams.push(stream);
        }
    }

    /// The stream that both programs know by this flow, once it is announced.
    pub(in super::super) fn stream(&mut self, name: FlowId) -> Option<&mut StreamSender> {
        self.streams.iter_mut().find(|stream| stream.stream() == name)
    }

    /// The stream that both programs know by this flow, announced or not.
    pub(in super::super) fn any_stream(&mut self, name: FlowId) -> Option<&mut StreamSender> {
        self.streams.iter_mut().chain(&mut self.waiting_streams).find(|stream| stream.stream() == name)
    }

    /// Gives a stream up; false when there is none, or it was given up before.
    pub(in super::super) fn reset_stream(&mut self, id: FlowId, code: u32) -> bool {
        if let Some(at) = self.waiting_streams.iter().position(|stream| stream.stream() == id) {
            self.waiting_streams.remove(at);
            return true;
        }
        let reset = self.stream(id).is_some_and(|stream| stream.reset(code));
        if reset {
            // Its symbols are needed no more.
            self.unanswered = None;
            self.outbox.push(Piece::Reset(id));
        }
        reset
    }

    /// Opens the blocks that streams can have now. `most`: source symbols that all of them may have open.
    pub(in super::super) fn open_stream_blocks(&mut self, now: Time, path: &PathEstimate, most: u64) {
        let mut open: u64 = self.streams.iter().map(|stream| stream.flow().open_symbols()).sum();
        let mut borrowed: u64 = self.streams.iter().map(StreamSender::shared).sum();
        let store = u64::from(self.streams_allowed.shared);
        for stream in &mut self.streams {
            loop {
                let own = stream.flow().open_symbols();
                let room = most.saturating_sub(open).max((most / LEAST_SHARE).saturating_sub(own));
                // As much as stays in the store (Choudhury and Hahne 1998): one stream takes half of it, two a third each, and
                // for whoever comes next there is some left.
                let before = stream.shared();
                let shared = store.saturating_sub(borrowed - before) / 2;
                if !stream.open_block(now, path, room, shared, &mut self.pool) {
                    break;
                }
                open += stream.flow().open_symbols() - own;
                borrowed += stream.shared() - before;
            }
        }
    }

    /// Something a program is to hear; streams that are over are dropped.
    pub(in super::super) fn take_stream_news(&mut self) -> Option<StreamNews> {
        let news = self.streams.iter_mut().find_map(|stream| {
            let id = stream.stream();
            if stream.newly_writable() {
                return Some(StreamNews::Writable(id));
            }
            stream.newly_sent().then_some(StreamNews::Sent(id))
        });
        if news.is_none() {
            self.streams.retain(|stream| !stream.is_over());
            self.announce_streams();
        }
        news
    }
}
