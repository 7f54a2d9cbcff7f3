//! How a connection ends: whoever closes says so until the other side answers; who is told answers each time.

use crate::time::Time;
use crate::wire::{Frame, limits::MAX_REASON};
use std::time::Duration;

/// A peer that may be gone is waited for at least this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// The shortest time between two repetitions.
const MIN_SPACING: Duration = Duration::from_millis(10);

/// A connection that is over for its program.
#[derive(Debug)]
pub(super) struct Closing {
    code: u32,
    reason: String,
    until: Time,
    /// When to say it again, and how long to wait after that; `None` where we only answer.
    again: Option<(Time, Duration)>,
    /// Something came that wants the close as its answer.
    asked: bool,
    /// It went out at least once.
    said: bool,
    rtt: Duration,
}

impl Closing {
    /// We close: the frame goes out now and again, until the peer's own close answers it.
    pub(super) fn ours(now: Time, rtt: Duration, code: u32, reason: &str) -> Self {
        // At first twice in a round trip, so that a lost one costs half of one.
        let spacing = (rtt / 2).max(MIN_SPACING);
        Self {
            code,
            reason: limited(reason).to_owned(),
            until: now + patience(rtt),
            again: Some((now, spacing)),
            asked: false,
            said: false,
            rtt,
        }
    }

    /// The peer closed: one answer now, and one for each packet that shows that it was not heard.
    pub(super) fn answering(now: Time, rtt: Duration) -> Self {
        Self {
            code: 0,
            reason: String::new(),
            until: after_answer(now, rtt),
            again: None,
            asked: true,
            said: false,
            rtt,
        }
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Time {
        self.again.map_or(self.until, |(at, _)| at.min(self.until))
    }

    /// A packet of the peer came, with a close in it or not; true when nothing is left to be said.
    pub(super) fn on_packet(&mut self, now: Time, closes: bool) -> bool {
        self.asked = true;
        if !closes || self.again.is_none() {
            return false;
        }
        if !self.said {
            // The peer's crosses ours, of which it would never hear: as if it had been first.
            self.again = None;
            self.until = after_answer(now, self.rtt);
        }
        self.said
    }

    /// The peer speaks from another address, which has proved nothing: each of its packets gets one answer, hardly larger.
    pub(super) fn follow(&mut self) {
        self.again = None;
        self.reason.clear();
    }

    /// The frame, when it is due.
    pub(super) fn poll(&mut self, now: Time) -> Option<Frame<'_>> {
        let mut due = std::mem::take(&mut self.asked);
        if let Some((at, spacing)) = &mut self.again
            && *at <= now
        {
            due = true;
            *at = now + *spacing;
            *spacing *= 2;
        }
        self.said |= due;
        due.then_some(Frame::Close { code: self.code, reason: self.reason.as_bytes() })
    }
}

/// How long a peer that may be gone is waited for: so long a close is repeated, and so long nobody believes a hint that it is gone.
pub(super) fn patience(rtt: Duration) -> Duration {
    PATIENCE.max(rtt * 6)
}

/// Until when the peer may show that it has not heard an answer.
fn after_answer(now: Time, rtt: Duration) -> Time {
    now + rtt * 4 + MIN_SPACING * 5
}

/// A reason cut to what the wire carries, at a character's edge.
fn limited(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(reason.len().min(MAX_REASON))]
}
