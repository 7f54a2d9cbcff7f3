//! Detects a peer that keeps its connection alive without making progress, and so occupies a listener.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::messages::{ListState, Message};

/// How long a peer may make no progress while this side waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressTimeouts {
    /// If another peer requests its place.
    pub(crate) contested: Duration,
    /// If no other peer waits. The receiver's user may be asked during that time.
    pub(crate) alone: Duration,
}

impl Default for ProgressTimeouts {
    fn default() -> Self {
        Self { contested: Duration::from_secs(120), alone: Duration::from_secs(3600) }
    }
}

/// Time of the peer's last progress. Time in which this side works or waits for its user does not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerProgress {
    /// The timeouts of the peer; `None` if it may take any time.
    patience: Option<ProgressTimeouts>,
    last: Instant,
    bytes: u64,
    /// Whether this side has work to do before the peer can continue.
    is_busy: bool,
    /// Whether it had at the last check, or waited for its user.
    ours: bool,
    /// When this side began to handle a step: until that is done, no input of the peer is processed.
    handling: Option<Instant>,
    /// Whether the peer has lost its place because it made no progress.
    has_stalled: bool,
}

impl PeerProgress {
    /// Creates the state of a session that begins now.
    pub(super) const fn new(now: Instant, patience: Option<ProgressTimeouts>) -> Self {
        Self { patience, last: now, bytes: 0, is_busy: false, ours: false, handling: None, has_stalled: false }
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

    /// Sets whether this side has work to do before the peer can continue.
    pub(super) const fn set_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Handles the beginning of a step of this side.
    pub(super) const fn on_step(&mut self, now: Instant) {
        self.handling = Some(now);
    }

    /// Handles the end of the step, in which this side did not process input.
    pub(super) fn on_handled(&mut self, now: Instant) {
        self.last += self.handling.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    }

    /// Checks that the peer makes progress; this side `waits` for its user or its disk, or not.
    ///
    /// # Errors
    /// [`Error::Stalled`] if it has made none for too long. The limit is shorter if another peer requests its place.
    pub(super) fn check(&mut self, now: Instant, waits: bool, is_contested: bool) -> Result<(), Error> {
        let ours = self.is_busy || waits;
        if self.ours || ours {
            self.last = now;
        }
        self.ours = ours;
        let Some(patience) = self.patience else { return Ok(()) };
        let limit = if is_contested { patience.contested } else { patience.alone };
        self.has_stalled |= !self.ours && now.saturating_duration_since(self.last) >= limit;
        if self.has_stalled { Err(Error::Stalled(limit)) } else { Ok(()) }
    }

    /// Returns whether the peer has lost its place because it made no progress.
    pub(super) const fn has_stalled(&self) -> bool {
        self.has_stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ManifestPart, SkipReason, Skipped, WantedPart};

    const PATIENCE: ProgressTimeouts =
        ProgressTimeouts { contested: Duration::from_secs(120), alone: Duration::from_secs(3600) };

    /// Returns whether a contested peer has stalled by then, if nothing changes before.
    fn is_stalled(headway: &PeerProgress, now: Instant) -> bool {
        let mut copy = *headway;
        copy.check(now, headway.ours, true).is_err()
    }

    #[test]
    fn stall_check_bounded_messages_are_progress() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut headway = PeerProgress::new(start, Some(PATIENCE));
        assert!(!is_stalled(&headway, at(119)) && is_stalled(&headway, at(120)));
        headway.on_bytes(at(100), 1);
        headway.on_bytes(at(200), 1);
        assert!(!is_stalled(&headway, at(219)) && is_stalled(&headway, at(220)));
        let empty = ManifestPart { batch: 0, last: false, whole: false, again: false, length: 0, entries: Vec::new() };
        let endless = [
            Message::Limit(None),
            Message::Accepted,
            Message::Scanned,
            Message::Skipped(Skipped { path: b"name".to_vec(), reason: SkipReason::Vanished }),
            Message::Manifest(empty.clone()),
            Message::Wants(WantedPart { batch: 0, last: false, ranges: Vec::new() }),
        ];
        endless.iter().for_each(|message| headway.on_message(at(210), message));
        assert!(is_stalled(&headway, at(220)), "these could continue for ever");
        headway.on_message(at(220), &Message::Manifest(ManifestPart { last: true, ..empty }));
        assert!(!is_stalled(&headway, at(339)) && is_stalled(&headway, at(340)));
    }

    #[test]
    fn stall_check_ignores_local_delays() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut headway = PeerProgress::new(start, Some(PATIENCE));
        headway.check(at(10), true, true).unwrap();
        assert!(!is_stalled(&headway, at(10_000)), "the user is asked");
        headway.check(at(10_000), false, true).unwrap();
        assert!(!is_stalled(&headway, at(10_119)) && is_stalled(&headway, at(10_120)));
        headway.on_step(at(10_000));
        headway.on_handled(at(10_060));
        headway.on_handled(at(10_070));
        assert!(!is_stalled(&headway, at(10_179)) && is_stalled(&headway, at(10_180)));
        headway.set_busy(true);
        headway.check(at(20_000), false, true).unwrap();
    }

    #[test]
    fn stall_check_stalled_stays_stalled() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut headway = PeerProgress::new(start, Some(PATIENCE));
        headway.check(at(3_599), false, false).unwrap();
        assert!(
            matches!(headway.check(at(3_600), false, false), Err(Error::Stalled(limit)) if limit == PATIENCE.alone)
        );
        headway.on_bytes(at(3_600), 1);
        assert!(headway.check(at(3_600), false, false).is_err() && headway.has_stalled());
        let mut chosen = PeerProgress::new(start, None);
        chosen.check(at(1_000_000), false, true).unwrap();
    }
}
