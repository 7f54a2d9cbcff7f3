//! CoDel (RFC 8289): drops or marks packets that have waited too long for too long.

use std::time::Duration;

use crate::Time;
use crate::time::picos;

/// A queue of one full packet is never too long (RFC 8289 section 5).
const FULL_PACKET: u64 = 1_500;
/// The rate of an episode of dropping is reused for this many intervals (RFC 8289 section 5).
const MEMORY: u64 = 16;

/// The numbers of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// The wait that a queue may have all the time (RFC 8289: 5 ms).
    pub target: Duration,
    /// A longer wait is accepted for this long, about the round-trip time of the slowest flows (RFC 8289: 100 ms).
    pub interval: Duration,
}

/// The state of CoDel between two packets (RFC 8289 section 5).
///
/// Packets are put to it in the order in which they leave the queue, those that it drops included, and at the time at
/// which they do. The packet after a dropped one leaves at the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodelState {
    /// When packets will have waited longer than the target for an interval; `None` while they do not.
    first_above: Option<Time>,
    dropping: bool,
    /// When the next packet is dropped.
    next: Time,
    /// Packets dropped in this episode, and at the beginning of the last one.
    count: u64,
    last_count: u64,
}

impl CodelState {
    /// Returns whether to drop or mark the packet that leaves the queue at `now`. It has waited for `wait`, and is
    /// spared if the rest of the queue is at most a full packet: `others` is its bytes without this one.
    pub(crate) fn acts(&mut self, codel: Codel, now: Time, wait: Duration, others: u64) -> bool {
        let is_too_long = self.is_too_long(codel, now, wait, others);
        if !self.dropping {
            if is_too_long {
                self.begin(codel, now);
            }
            return is_too_long;
        }
        self.dropping = is_too_long;
        if !is_too_long || now < self.next {
            return false;
        }
        self.count += 1;
        self.next = self.law(codel, self.next);
        true
    }

    /// Returns whether packets have waited too long for an interval.
    fn is_too_long(&mut self, codel: Codel, now: Time, wait: Duration, others: u64) -> bool {
        if wait < codel.target || others <= FULL_PACKET {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + codel.interval)
    }

    /// Begins an episode of dropping, at the rate of the last one if that was not long ago.
    fn begin(&mut self, codel: Codel, now: Time) {
        self.dropping = true;
        let before = self.count - self.last_count;
        let is_recent =
            now.as_picos().saturating_sub(self.next.as_picos()) < MEMORY.saturating_mul(picos(codel.interval));
        self.count = if before > 1 && is_recent { before } else { 1 };
        self.next = self.law(codel, now);
        self.last_count = self.count;
    }

    /// The control law: intervals that shrink with the square root of the drops (RFC 8289 section 5).
    fn law(&self, codel: Codel, time: Time) -> Time {
        time.plus_picos((picos(codel.interval) as f64 / (self.count as f64).sqrt()) as u64)
    }
}
