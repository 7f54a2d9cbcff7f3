//! Down and Drain: rounds with less than the window, in order to measure; their times and windows.

use super::AutoPhase;
use crate::time::Time;
use std::time::Duration;

/// The window of Down and Drain, as a part of the window.
pub(super) const DOWN: f64 = 0.85;
const DRAIN: f64 = 0.5;
/// Rounds of Down and Drain.
const ROUNDS: u32 = 2;
/// A drain lasts at least so long; one round is enough on long paths.
const DRAIN_SPAN: Duration = Duration::from_millis(300);
const LONG_PATH: f64 = 0.1;
/// Downs are so many base delays apart, and at least so many seconds, spread by up to this part more.
const DOWN_ROUNDS: f64 = 20.0;
const DOWN_SECONDS: f64 = 3.0;
const SPREAD: f64 = 0.2;

/// The times of Downs and Drains.
#[derive(Debug)]
pub(super) struct Dips {
    /// When the last one began, the rounds since, and the window to return to.
    began: Time,
    rounds: u32,
    resume: f64,
    /// When the next Down is due, and when the last drain was.
    next_down: Time,
    last_drain: Time,
    random: u64,
}

impl Default for Dips {
    fn default() -> Self {
        let zero = Time::ZERO;
        Self { began: zero, rounds: 0, resume: 0.0, next_down: zero, last_drain: zero, random: 1 }
    }
}

impl Dips {
    /// Spreads Downs by this number, which differs from connection to connection.
    pub(super) fn seed(&mut self, salt: u64) {
        self.random = salt | 1;
    }

    /// Begins a Down and returns its window.
    pub(super) fn begin_down(&mut self, now: Time, window: f64) -> f64 {
        (self.began, self.rounds, self.resume) = (now, 0, window);
        DOWN * window
    }

    /// Begins a drain and returns its window.
    pub(super) fn begin_drain(&mut self, now: Time, window: f64) -> f64 {
        (self.began, self.rounds, self.resume) = (now, 0, window);
        self.last_drain = now;
        DRAIN * window
    }

    /// Counts a round.
    pub(super) fn end_round(&mut self) {
        self.rounds += 1;
    }

    /// Returns the next window if a Down is over, and sets the time of the next. `base` is in seconds.
    pub(super) fn end_down(&mut self, now: Time, base: f64) -> Option<f64> {
        if self.rounds < ROUNDS {
            return None;
        }
        let spread = 1.0 + SPREAD * self.draw();
        self.next_down = now + down_period(base).mul_f64(spread);
        Some(self.resume)
    }

    /// Returns the next window if a drain is over. `base` is in seconds.
    pub(super) fn end_drain(&self, now: Time, base: f64) -> Option<f64> {
        let rounds = if base > LONG_PATH { 1 } else { ROUNDS };
        (self.rounds >= rounds && now.since(self.began) >= DRAIN_SPAN).then_some(self.resume)
    }

    /// Sets the time of the next Down.
    pub(super) fn put_off_down(&mut self, now: Time, base: f64) {
        self.next_down = now + down_period(base);
    }

    /// Counts the time to the next drain from now on.
    pub(super) fn put_off_drain(&mut self, now: Time) {
        self.last_drain = now;
    }

    /// Returns which one is due, if the queue was last at its shortest at `lowest`. COMPETE has no Downs.
    pub(super) fn due(&self, now: Time, lowest: Time, is_default: bool, base: f64) -> Option<AutoPhase> {
        let period = drain_period(base);
        if now.since(lowest) > period || now.since(self.last_drain) > period * 3 {
            Some(AutoPhase::Drain)
        } else if is_default && now > self.next_down {
            Some(AutoPhase::Down)
        } else {
            None
        }
    }

    /// Returns a number from 0 to 1 (xorshift64*).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Time between two Downs.
fn down_period(base: f64) -> Duration {
    Duration::from_secs_f64((DOWN_ROUNDS * base).max(DOWN_SECONDS))
}

/// Time without an empty queue after which one is made.
fn drain_period(base: f64) -> Duration {
    Duration::from_secs(if base < 0.25 { 10 } else { 40 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_differ_in_the_times_of_down() {
        let next = |salt| {
            let mut dips = Dips { rounds: ROUNDS, ..Dips::default() };
            dips.seed(salt);
            dips.end_down(Time::ZERO, 0.05);
            dips.next_down.since(Time::ZERO).as_secs_f64()
        };
        let times: Vec<f64> = (1..100).map(|salt: u64| next(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let (least, most) = times.iter().fold((f64::MAX, 0.0), |(a, b): (f64, f64), time| (a.min(*time), b.max(*time)));
        assert!((3.0..3.05).contains(&least) && (3.55..3.6).contains(&most), "{least} to {most}");
    }

    #[test]
    fn a_drain_lasts_two_rounds_and_a_while_and_on_long_paths_one_round() {
        let mut dips = Dips::default();
        let after = |millis| Time::ZERO + Duration::from_millis(millis);
        assert_eq!(dips.begin_drain(Time::ZERO, 100.0), 50.0);
        dips.end_round();
        assert_eq!((dips.end_drain(after(400), 0.05), dips.end_drain(after(400), 0.2)), (None, Some(100.0)));
        dips.end_round();
        assert_eq!((dips.end_drain(after(299), 0.05), dips.end_drain(after(300), 0.05)), (None, Some(100.0)));
    }

    #[test]
    fn a_drain_is_due_when_the_queue_was_never_empty_for_ten_seconds_and_after_thirty_at_the_latest() {
        let mut dips = Dips::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        dips.put_off_down(Time::ZERO, 1.0);
        assert_eq!(dips.due(at(10), Time::ZERO, true, 0.05), None);
        assert_eq!(dips.due(at(11), Time::ZERO, true, 0.05), Some(AutoPhase::Drain));
        assert_eq!(dips.due(at(11), Time::ZERO, true, 0.3), None, "40 s on long paths");
        assert_eq!(dips.due(at(21), at(20), true, 0.05), Some(AutoPhase::Down));
        assert_eq!(dips.due(at(21), at(20), false, 0.05), None, "in COMPETE");
        assert_eq!(dips.due(at(31), at(30), true, 0.05), Some(AutoPhase::Drain));
        dips.put_off_drain(at(20));
        assert_eq!(dips.due(at(31), at(30), false, 0.05), None);
    }
}
