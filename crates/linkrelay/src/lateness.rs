//! Whether the relay was on time.

use std::time::Duration;

/// One per microsecond; the last takes everything beyond.
const BUCKETS: usize = 20_000;

/// A relay whose 99th percentile is later than this did not emulate the requested network.
const ON_TIME: Duration = Duration::from_millis(1);

/// How late packets left: a count for every microsecond up to 20 ms, and the largest.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    packets: u64,
    largest: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], packets: 0, largest: Duration::ZERO }
    }
}

impl Lateness {
    /// Adds a packet.
    pub fn add(&mut self, late: Duration) {
        let bucket = usize::try_from(late.as_micros()).unwrap_or(usize::MAX).min(BUCKETS - 1);
        self.counts[bucket] += 1;
        self.packets += 1;
        self.largest = self.largest.max(late);
    }

    /// Adds the packets of another.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.packets += other.packets;
        self.largest = self.largest.max(other.largest);
    }

    /// The largest.
    pub fn largest(&self) -> Duration {
        self.largest
    }

    /// The lateness that `percent` packets of 100 do not exceed, in whole microseconds rounded up; the largest where it
    /// is beyond 20 ms.
    pub fn percentile(&self, percent: u64) -> Duration {
        let wanted = self.packets - self.packets * (100 - percent.min(100)) / 100;
        let mut seen = 0;
        for (micros, count) in (1..).zip(&self.counts[..BUCKETS - 1]) {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(micros).min(self.largest);
            }
        }
        self.largest
    }

    /// Whether the packets were on time, all but the odd one.
    pub fn is_on_time(&self) -> bool {
        self.percentile(99) <= ON_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_ignores_one_in_a_hundred() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile(99), Duration::ZERO);
        for micros in 0..99 {
            lateness.add(Duration::from_micros(micros));
        }
        lateness.add(Duration::from_secs(1));
        assert_eq!(lateness.percentile(99), Duration::from_micros(99));
        assert_eq!(lateness.largest(), Duration::from_secs(1));
        assert!(lateness.is_on_time());
        lateness.add(Duration::from_secs(2));
        lateness.add(Duration::from_secs(3));
        assert_eq!(lateness.percentile(99), Duration::from_secs(3));
        assert!(!lateness.is_on_time());
        let mut both = Lateness::default();
        (0..300).for_each(|_| both.add(Duration::from_micros(7)));
        both.merge(&lateness);
        assert_eq!((both.percentile(75), both.percentile(99)), (Duration::from_micros(8), Duration::from_micros(98)));
        assert_eq!(both.largest(), Duration::from_secs(3));
    }
}
