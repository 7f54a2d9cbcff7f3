//! How long packets wait at a link.

use std::time::Duration;

/// Buckets per octave: a quantile is at most 9 % too large.
const PER_OCTAVE: f64 = 8.0;
/// Waits up to this are one bucket.
const LEAST: Duration = Duration::from_micros(1);

/// A histogram of the time from the arrival of packets at a link until their last bit has left. Dropped packets are not
/// counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueDelays {
    buckets: Vec<u64>,
}

impl QueueDelays {
    pub(crate) fn add(&mut self, wait: Duration) {
        let octaves = (wait.as_secs_f64() / LEAST.as_secs_f64()).max(1.0).log2();
        let bucket = (octaves * PER_OCTAVE).ceil() as usize;
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    /// Returns the packets that arrived after an earlier state of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket| earlier.buckets.get(bucket).copied().unwrap_or(0);
        Self { buckets: self.buckets.iter().enumerate().map(|(bucket, count)| count - before(bucket)).collect() }
    }

    /// Returns the wait that this share of the packets did not exceed, 0 to 1; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.buckets.iter().sum();
        let wanted = ((share * all as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|count| {
            sum += count;
            sum >= wanted
        })?;
        Some(LEAST.mul_f64((bucket as f64 / PER_OCTAVE).exp2()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close() {
        let mut waits = QueueDelays::default();
        assert_eq!(waits.quantile(0.5), None);
        (1..=1000).for_each(|micros| waits.add(Duration::from_micros(micros * 10)));
        for (share, micros) in [(0.5, 5000), (0.95, 9500), (1.0, 10_000), (0.0, 10)] {
            let (found, exact) = (waits.quantile(share).expect("packets"), Duration::from_micros(micros));
            assert!(found >= exact && found < exact.mul_f64(1.1), "{share}: {found:?}");
        }
        let earlier = waits.clone();
        (0..3).for_each(|_| waits.add(Duration::from_secs(1)));
        let median = waits.since(&earlier).quantile(0.5).expect("packets");
        assert!(median >= Duration::from_secs(1), "only later packets: {median:?}");
    }
}
