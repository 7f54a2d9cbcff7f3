//! The budget of streams for proactive repair: a share of the written bytes, and up to a low rate whatever their delay
//! needs.

use crate::time::Time;
use std::time::Duration;

/// Up to so many bytes of streams per second repair is free. Those are keystrokes, of which delay counts and not bytes.
const FREE: f64 = 16_000.0;
/// Its unused rest can be used for this long, in seconds.
const FREE_FOR: f64 = 1.0;
/// At most so many written bytes count at once: a full block at a time may be repaired.
const MOST_WRITTEN: f64 = 256.0 * 1_500.0;
/// Bytes allowed to the repair of a stream: those of the largest packet.
pub(super) const LARGEST_REPAIR: usize = 1_500;

/// The bytes of repair that may be sent.
#[derive(Debug)]
pub(super) struct Budget {
    /// Repair for each byte of source; `None`: without a bound.
    share: Option<f64>,
    free: f64,
    earned: f64,
    at: Time,
}

impl Default for Budget {
    fn default() -> Self {
        Self { share: None, free: FREE * FREE_FOR, earned: 0.0, at: Time::ZERO }
    }
}

impl Budget {
    /// Sets the repair for each byte of source; `None`: without a bound.
    pub(super) const fn set_share(&mut self, share: Option<f64>) {
        self.share = share;
    }

    /// Counts a packet with new bytes of a stream.
    pub(super) fn on_source(&mut self, now: Time, bytes: usize) {
        self.refill(now);
        let share = self.share.unwrap_or_default();
        self.free = (self.free - bytes as f64).max(0.0);
        // A packet has to fit, however small the share.
        let most = (share * MOST_WRITTEN).max(if share > 0.0 { LARGEST_REPAIR as f64 } else { 0.0 });
        self.earned = (self.earned + share * bytes as f64).min(most);
    }

    /// Counts a packet with repair of a stream, proactive or requested by the receiver.
    pub(super) fn on_repair(&mut self, now: Time, bytes: usize) {
        self.refill(now);
        let bytes = bytes as f64;
        if self.free >= bytes {
            self.free -= bytes;
        } else {
            self.earned = (self.earned - bytes).max(-MOST_WRITTEN);
        }
    }

    /// Returns whether a packet of repair of so many bytes may be sent.
    pub(super) fn allows(&mut self, now: Time, bytes: usize) -> bool {
        self.refill(now);
        self.share.is_none() || self.free.max(self.earned) >= bytes as f64
    }

    /// Returns the time of that if no more source is sent.
    pub(super) fn allows_at(&self, bytes: usize) -> Time {
        // A little later, so that it is so in spite of rounding.
        self.at + Duration::from_secs_f64((bytes as f64 - self.free).max(0.0) / FREE) + Duration::from_millis(1)
    }

    fn refill(&mut self, now: Time) {
        let passed = now.since(self.at).as_secs_f64();
        self.free = (self.free + FREE * passed).min(FREE * FREE_FOR);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `bytes` each `every`, and sends repair of the same size, at most two for one, as far as it is allowed. Returns
    /// the bytes of repair for each byte written in the last nine of ten seconds.
    fn repair(share: Option<f64>, bytes: usize, every: Duration) -> f64 {
        let mut budget = Budget::default();
        budget.set_share(share);
        let (mut now, mut sent) = (Time::ZERO, [0, 0]);
        while now < Time::ZERO + Duration::from_secs(10) {
            let counts = usize::from(now >= Time::ZERO + Duration::from_secs(1));
            budget.on_source(now, bytes);
            sent[0] += counts * bytes;
            for _ in 0..2 {
                if budget.allows(now, 1_500) {
                    budget.on_repair(now, bytes);
                    sent[1] += counts * bytes;
                }
            }
            now += every;
        }
        sent[1] as f64 / sent[0] as f64
    }

    #[test]
    fn repair_is_free_for_little_and_a_share_of_much() {
        assert_eq!(repair(Some(0.5), 77, Duration::from_millis(200)), 2.0, "keys");
        assert_eq!(repair(Some(0.0), 77, Duration::from_millis(200)), 2.0, "keys");
        for share in [0.0, 0.1, 0.5, 1.0] {
            let spent = repair(Some(share), 1_080, Duration::from_millis(20));
            assert!((share - 0.02..=share + 0.02).contains(&spent), "{spent} of {share}");
        }
        assert_eq!(repair(None, 1_080, Duration::from_millis(20)), 2.0, "no bound");
        // 8 kB/s leave half of the free rate.
        let spent = repair(Some(0.0), 800, Duration::from_millis(100));
        assert!((0.9..=1.1).contains(&spent), "{spent}");
    }

    #[test]
    fn repair_budget_empty_gives_refill_time() {
        let mut budget = Budget::default();
        budget.set_share(Some(0.5));
        assert!(budget.allows(Time::ZERO, 1_500));
        budget.on_source(Time::ZERO, 100_000);
        budget.on_repair(Time::ZERO, 49_000);
        assert!(!budget.allows(Time::ZERO, 1_600));
        let at = budget.allows_at(1_600);
        assert_eq!(at, Time::ZERO + Duration::from_millis(101));
        assert!(budget.allows(at, 1_600) && !budget.allows(at, 1_700));
    }
}
