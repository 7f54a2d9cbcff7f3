//! The pace of a copy without an engine.

use std::time::{Duration, Instant};

use transport::Rate;

/// Delay of a copy that is made up for.
const MADE_UP: Duration = Duration::from_millis(500);

/// Spreads bytes evenly over time.
#[derive(Debug)]
pub(super) struct Pace {
    /// The fixed rate, which does not change.
    fixed: Option<Rate>,
    limit: Option<Rate>,
    /// When the next bytes are due.
    next: Option<Instant>,
}

impl Pace {
    /// Creates the pace of a copy with a rate limit, which the user may change, and a fixed rate.
    pub(super) fn new(limit: Option<Rate>, fixed: Option<Rate>) -> Self {
        Self { fixed, limit, next: None }
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

    /// Returns how many bytes to copy at a time: those of a second, within these bounds.
    pub(super) fn step(&self, least: u64, most: u64) -> u64 {
        self.rate().map_or(most, |rate| (rate.bits_per_second() / 8).clamp(least, most))
    }

    /// Returns when to continue after `bytes` were copied by now.
    pub(super) fn next(&mut self, now: Instant, bytes: u64) -> Instant {
        let Some(rate) = self.rate() else { return now };
        let time = Duration::from_secs_f64(bytes as f64 * 8.0 / rate.bits_per_second().max(1) as f64);
        // Longer delays of a slow disk are not made up for.
        let earliest = now.checked_sub(MADE_UP).unwrap_or(now);
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
        assert_eq!((pace.step(10, 1000), pace.next(start, 500)), (1000, start));
        pace.limit(rate(8_000_000));
        assert_eq!((pace.step(10, 1 << 30), pace.step(2 << 20, 4 << 20)), (1_000_000, 2 << 20));
        let mut now = start;
        for _ in 0..20 {
            // The disk takes a part of the time.
            now = pace.next(now + Duration::from_millis(10), 50_000);
        }
        let took = (now - start).as_secs_f64();
        assert!((1.0..1.02).contains(&took), "{took} s for 1 MB at 8 Mbit/s");
        // After a pause of the disk it is half a second ahead at most.
        let late = now + Duration::from_secs(10);
        assert_eq!(pace.next(late, 1_000_000), late + Duration::from_millis(500));
    }

    #[test]
    fn pace_limit_changes_fixed_rate_stays() {
        let rate = |bits| Some(Rate::from_bits_per_second(bits));
        let mut limited = Pace::new(rate(1_000_000), None);
        assert_eq!(limited.step(1, u64::MAX), 125_000);
        limited.limit(rate(2_000_000));
        assert_eq!(limited.step(1, u64::MAX), 250_000);
        limited.limit(None);
        assert!(!limited.is_limited());
        let mut fixed = Pace::new(rate(1_000_000), rate(9_000_000));
        fixed.limit(None);
        assert_eq!(fixed.step(1, u64::MAX), 1_125_000);
    }
}
