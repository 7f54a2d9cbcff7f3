//! Detects a peer that keeps its connection alive without making progress, and so occupies a listener.

use std::time::{Duration, Instant};

use crate::messages::{ListState, Message};

/// How long a peer may make no progress while this side waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// If another peer wants to take its place.
    pub(crate) contested: Duration,
    /// If no other peer waits. The receiver's user may be asked during that time.
    pub(crate) alone: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { contested: Duration::from_secs(120), alone: Duration::from_secs(3600) }
    }
}

/// Time of the peer's last progress. Time in which this side works or waits for its user does not count.
#[derive(Debug)]
pub(super) struct Headway {
    last: Instant,
    bytes: u64,
    /// Whether this side works or waits for its user.
    ours: bool,
}

impl Headway {
    /// Creates the state of a session that begins now.
    pub(super) const fn new(now: Instant) -> Self {
        Self { last: now, bytes: 0, ours: false }
    }

    /// Handles a message of the peer. Messages that a peer may repeat without limit do not count as progress.
    pub(super) fn on_message(&mut self, now: Instant, message: &Message) {
        let advances = match message {
            Message::Manifest(part) => part.last || !part.entries.is_empty(),
            Message::Wants(wants) => wants.last,
            Message::Chunks(chunks) => chunks.state != ListState::Going || !chunks.chunks.is_empty(),
            Message::Stored(stored) => stored.last,
            Message::ListChunks(_)
            | Message::Digest(_)
            | Message::End(_)
            | Message::Removed(_)
            | Message::Complete(_) => true,
            Message::Begin(_)
            | Message::Top(_)
            | Message::IdName(_)
            | Message::Void(_)
            | Message::Skipped(_)
            | Message::Scanned
            | Message::Accepted
            | Message::Notice(_)
            | Message::Untouched(_)
            | Message::Limit(_)
            | Message::AllStored
            | Message::Strain(_) => false,
        };
        if advances {
            self.last = now;
        }
    }

    /// Handles the total number of object bytes transferred.
    pub(super) fn on_bytes(&mut self, now: Instant, bytes: u64) {
        if bytes > self.bytes {
            (self.last, self.bytes) = (now, bytes);
        }
    }

    /// Sets whether this side works or waits for its user, so that the peer cannot make progress.
    pub(super) fn set_ours(&mut self, now: Instant, ours: bool) {
        if self.ours || ours {
            self.last = now;
        }
        self.ours = ours;
    }

    /// Discounts a period in which this side did not process input.
    pub(super) fn excuse(&mut self, time: Duration) {
        self.last += time;
    }

    /// Returns whether the peer has made no progress for `limit`.
    pub(super) fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        !self.ours && now.saturating_duration_since(self.last) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ManifestPart, SkipReason, Skipped, Wants};

    const LIMIT: Duration = Duration::from_secs(120);

    #[test]
    fn bytes_and_messages_of_which_there_is_an_end_are_progress() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut headway = Headway::new(start);
        assert!(!headway.is_stalled(at(119), LIMIT) && headway.is_stalled(at(120), LIMIT));
        headway.on_bytes(at(100), 1);
        headway.on_bytes(at(200), 1);
        assert!(!headway.is_stalled(at(219), LIMIT) && headway.is_stalled(at(220), LIMIT));
        let empty = ManifestPart { batch: 0, last: false, whole: false, again: false, length: 0, entries: Vec::new() };
        let endless = [
            Message::Limit(None),
            Message::Accepted,
            Message::Scanned,
            Message::Skipped(Skipped { path: b"name".to_vec(), reason: SkipReason::Vanished }),
            Message::Manifest(empty.clone()),
            Message::Wants(Wants { batch: 0, last: false, ranges: Vec::new() }),
        ];
        endless.iter().for_each(|message| headway.on_message(at(210), message));
        assert!(headway.is_stalled(at(220), LIMIT), "it could go on with these for ever");
        headway.on_message(at(220), &Message::Manifest(ManifestPart { last: true, ..empty }));
        assert!(!headway.is_stalled(at(339), LIMIT) && headway.is_stalled(at(340), LIMIT));
    }

    #[test]
    fn a_peer_is_not_to_blame_for_what_this_side_does() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut headway = Headway::new(start);
        headway.set_ours(at(10), true);
        assert!(!headway.is_stalled(at(10_000), LIMIT), "the user is asked");
        headway.set_ours(at(10_000), false);
        assert!(!headway.is_stalled(at(10_119), LIMIT) && headway.is_stalled(at(10_120), LIMIT));
        headway.excuse(Duration::from_secs(60));
        assert!(!headway.is_stalled(at(10_179), LIMIT) && headway.is_stalled(at(10_180), LIMIT));
    }
}
