//! The pace of a copy that has no engine to pace it.

use std::time::{Duration, Instant};

use transport::Rate;

/// How often a copy with a limit pauses.
const PAUSES_PER_SECOND: u64 = 20;

/// Spreads bytes evenly over time.
#[derive(Debug)]
pub(super) struct Pace {
    /// The rate that was chosen for good.
    fixed: Option<Rate>,
    limit: Option<Rate>,
    /// When the next bytes are due.
    next: Option<Instant>,
}

impl Pace {
    /// Creates the pace of a copy that is not to be faster than either of these.
    pub(super) fn new(limit: Option<Rate>, fixed: Option<Rate>) -> Self {
        let least = [limit, fixed].into_iter().flatten().min();
        Self { fixed: least, limit: None, next: None }
    }

    /// Sets the user's limit; `None` removes it.
    pub(super) const fn limit(&mut self, limit: Option<Rate>) {
        (self.limit, self.next) = (limit, None);
    }

    /// Whether there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.rate().is_some()
    }

    fn rate(&self) -> Option<Rate> {
        [self.fixed, self.limit].into_iter().flatten().min()
    }

    /// Returns how many bytes to copy at a time, at most `most`.
    pub(super) fn step(&self, most: u64) -> u64 {
        let bytes = |rate: Rate| rate.bits_per_second() / 8 / PAUSES_PER_SECOND;
        self.rate().map_or(most, |rate| bytes(rate).clamp(1, most))
    }

    /// Returns when to go on, so many bytes having been copied by now.
    pub(super) fn next(&mut self, now: Instant, bytes: u64) -> Instant {
        let Some(rate) = self.rate() else { return now };
        let time = Duration::from_secs_f64(bytes as f64 * 8.0 / rate.bits_per_second().max(1) as f64);
        // What a slow disk has cost is not made up for, but for one pause.
        let earliest = now.checked_sub(Duration::from_secs(1) / PAUSES_PER_SECOND as u32).unwrap_or(now);
        let begun = self.next.unwrap_or(now).max(earliest);
        *self.next.insert(begun + time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_the_time_of_its_limit() {
        let rate = |bits| Some(Rate::from_bits_per_second(bits));
        let mut pace = Pace::new(None, None);
        let start = Instant::now();
        assert_eq!((pace.step(1000), pace.next(start, 500)), (1000, start));
        pace.limit(rate(8_000_000));
        assert_eq!(pace.step(1 << 20), 50_000);
        let mut now = start;
        for _ in 0..20 {
            // The disk takes a part of the time.
            now = pace.next(now + Duration::from_millis(10), 50_000);
        }
        let took = (now - start).as_secs_f64();
        assert!((1.0..1.02).contains(&took), "{took} s for 1 MB at 8 Mbit/s");
        // After a pause of the disk it does not go faster.
        let late = now + Duration::from_secs(10);
        assert!(pace.next(late, 50_000) >= late);
        pace.limit(None);
        assert_eq!(pace.next(late, 1 << 30), late);
        let mut both = Pace::new(rate(1_000_000), rate(9_000_000));
        both.limit(rate(2_000_000));
        assert_eq!(both.step(u64::MAX), 6250);
    }
}
