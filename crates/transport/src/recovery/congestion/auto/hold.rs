//! The hold: at a policer, or a buffer too small to show a queue, loss occurs at the same rate again and again.

use crate::time::Time;
use std::time::Duration;

/// Equal rates: within an eighth, as in Linux's detection of policers for BBR.
const SAME: f64 = 1.0 / 8.0;
/// Below the rate at which loss begins.
const BELOW: f64 = 0.97;
/// Most doublings of a hold.
const MOST_DOUBLINGS: u32 = 4;
/// After a hold the window grows slowly for so long.
const CAREFUL: Duration = Duration::from_secs(20);

/// The rates at which losses without a queue began.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Rate of the last such loss, in bytes per second.
    last: Option<f64>,
    /// Rate of the last hold.
    held: Option<f64>,
    /// The last hold had no such losses: no other flow fills the queue.
    is_steady: bool,
    /// Holds in a row at the same rate.
    doublings: u32,
    until: Option<Time>,
}

impl Hold {
    /// Notes a first rate at which packets were lost without a queue.
    pub(super) const fn note(&mut self, rate: f64) {
        self.last = Some(rate);
    }

    /// Notes losses without a queue at a delivered rate. Returns the rate to hold, if it is the same as before.
    pub(super) fn on_loss(&mut self, now: Time, rate: f64, smoothed: Duration) -> Option<f64> {
        let last = self.last.replace(rate)?;
        let lower = rate.min(last);
        if (rate - last).abs() > lower * SAME {
            return None;
        }
        let again = self.held.is_some_and(|held| (lower - held).abs() < lower * SAME);
        self.doublings = if again { (self.doublings + 1).min(MOST_DOUBLINGS) } else { 0 };
        self.held = Some(lower);
        self.is_steady = again && self.is_over(now);
        let span = (smoothed * 48).clamp(Duration::from_secs(3), Duration::from_secs(10));
        self.until = Some(now + span * (1 << self.doublings) / 2);
        Some(BELOW * lower)
    }

    /// Returns the rate to keep, while it is held.
    pub(super) fn rate(&self, now: Time) -> Option<f64> {
        self.held.filter(|_| self.is_steady && !self.is_over(now)).map(|held| BELOW * held)
    }

    /// Returns whether the window may grow.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now > until)
    }

    /// Returns whether it may grow fast.
    pub(super) fn is_forgotten(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now > until + CAREFUL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_rate_twice_is_held_longer_each_time() {
        let mut hold = Hold::default();
        let (mut now, rtt) = (Time::ZERO + Duration::from_secs(1), Duration::from_millis(100));
        assert!(hold.is_over(now) && hold.is_forgotten(now));
        assert_eq!(hold.on_loss(now, 1000.0, rtt), None, "once is not enough");
        assert_eq!(hold.on_loss(now, 1200.0, rtt), None, "more than an eighth away");
        for millis in [2400, 4800, 9600, 19_200, 38_400, 38_400] {
            let held = hold.on_loss(now, 1190.0, rtt).expect("the same rate");
            assert!((held - 0.97 * 1190.0).abs() < 1e-9, "{held}");
            let end = now + Duration::from_millis(millis);
            assert!(!hold.is_over(end) && hold.is_over(end + Duration::from_millis(1)), "{millis}");
            now = end + CAREFUL;
            assert!(!hold.is_forgotten(now));
            now += Duration::from_millis(1);
            assert!(hold.is_forgotten(now));
        }
    }

    #[test]
    fn the_rate_of_holds_that_nothing_disturbs_is_kept() {
        let mut hold = Hold::default();
        let (rtt, second) = (Duration::from_millis(100), Duration::from_secs(1));
        let at = |seconds: u32| Time::ZERO + second * seconds;
        hold.note(1000.0);
        assert!(hold.on_loss(at(1), 1000.0, rtt).is_some() && hold.rate(at(1)).is_none(), "nothing is known of it yet");
        assert!(hold.on_loss(at(5), 1010.0, rtt).is_some() && hold.rate(at(6)) == Some(0.97 * 1000.0));
        assert!(hold.on_loss(at(6), 1010.0, rtt).is_some() && hold.rate(at(6)).is_none(), "others fill the queue");
        assert!(hold.on_loss(at(30), 1010.0, rtt).is_some() && hold.rate(at(30)).is_some());
        assert_eq!(hold.rate(at(90)), None, "it is over");
    }

    #[test]
    fn a_rate_found_before_counts_as_the_first() {
        let mut hold = Hold::default();
        hold.note(1000.0);
        assert_eq!(hold.on_loss(Time::ZERO, 1050.0, Duration::from_secs(2)), Some(0.97 * 1000.0));
        assert!(!hold.is_over(Time::ZERO + Duration::from_secs(5)), "10 s at most, and half of that the first time");
        assert!(hold.is_over(Time::ZERO + Duration::from_millis(5001)));
    }
}
