//! Control frames that have to arrive: what is pending, and what each packet on its way carries.

use crate::wire::FlowId;
use std::collections::VecDeque;
use std::ops::Range;

/// A piece of reliable control information. Its bytes are made anew each time it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Nothing but the wish for feedback.
    Ping,
    /// A flow begins.
    Announce(FlowId),
    /// A further plan.
    Plan(FlowId, u8),
    /// A stream is given up.
    Reset(FlowId),
    /// A stream of the peer is wanted no more, for this reason.
    Stop(FlowId, u32),
    /// How much of a stream of the peer has been read.
    StreamRead(FlowId, u64),
    /// A range of the control stream.
    Control(Range<u64>),
}

/// Frames that one probe repeats at most: about a packet of them.
const REPEATED_AT_MOST: usize = 32;

/// Pieces to send, and those on their way under the key of their packet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pending: VecDeque<Piece>,
    /// Extra copies of announcements: one with each of the next batches, so that a single loss does not leave symbols
    /// without their flow (design section 10).
    echoes: VecDeque<Piece>,
    flying: Vec<Vec<Piece>>,
    free: Vec<u32>,
}

impl Outbox {
    pub(super) fn push(&mut self, piece: Piece) {
        self.pending.push_back(piece);
    }

    /// Sends a piece now and twice more with the data that follows.
    pub(super) fn push_thrice(&mut self, piece: Piece) {
        self.echoes.extend([piece.clone(), piece.clone()]);
        self.pending.push_back(piece);
    }

    /// A batch of data went out: the next echo may follow it.
    pub(super) fn on_batch(&mut self) {
        self.pending.extend(self.echoes.pop_front());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn front(&self) -> Option<&Piece> {
        self.pending.front()
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.pending.pop_front()
    }

    /// Keeps what a packet carries until its fate is known.
    pub(super) fn dispatch(&mut self, pieces: Vec<Piece>) -> u32 {
        if let Some(key) = self.free.pop() {
            self.flying[key as usize] = pieces;
            return key;
        }
        self.flying.push(pieces);
        (self.flying.len() - 1) as u32
    }

    /// Queues frames that are on their way once more, if none waits: what a probe is for. A receiver that lacks an
    /// announcement or a plan can do nothing with symbols, and refuses, unacknowledged, more of them than it keeps.
    pub(super) fn repeat(&mut self) {
        for piece in self.flying.iter().flatten() {
            if self.pending.len() >= REPEATED_AT_MOST {
                break;
            }
            if !matches!(piece, Piece::Ping | Piece::Control(_)) && !self.pending.contains(piece) {
                self.pending.push_back(piece.clone());
            }
        }
    }

    /// The fate of a packet is known; what it carried.
    pub(super) fn settle(&mut self, key: u32) -> Vec<Piece> {
        let pieces = self.flying.get_mut(key as usize).map(std::mem::take).unwrap_or_default();
        if !pieces.is_empty() {
            self.free.push(key);
        }
        pieces
    }
}
