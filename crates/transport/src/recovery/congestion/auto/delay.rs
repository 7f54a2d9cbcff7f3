//! Round-trip times: the base of the path, the queue above it, and the noise in it.

use super::Policy;
use crate::time::Time;
use std::time::Duration;

/// Samples this close to the base have found the queue empty.
const EMPTY: f64 = 1.008;
/// How long a maximum of the queue is remembered, at least; at most twice as long.
const TOP_LIFE: Duration = Duration::from_secs(10);
/// Weight of a round in the noise floor.
const NOISE_WEIGHT: f64 = 1.0 / 16.0;
/// A round with fewer samples does not count for the noise.
const MIN_SAMPLES: u32 = 4;

/// The queueing delays of a round, in seconds above the base.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundDelay {
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
    samples: u32,
}

/// The delay of a path, in seconds.
#[derive(Debug)]
pub(super) struct Delay {
    policy: Policy,
    /// The least round-trip time; infinite before the first sample.
    base: f64,
    /// It is that of a full packet: on a slow path a small one is milliseconds faster without any queue.
    is_of_full: bool,
    /// When the queue was last found empty.
    emptied: Time,
    queue: f64,
    min: f64,
    max: f64,
    sum: f64,
    samples: u32,
    /// The largest queues of this span and of the one before.
    top: [f64; 2],
    top_since: Time,
    noise: f64,
    /// The least queue since [`Delay::watch_least`].
    least: f64,
}

impl Delay {
    pub(super) const fn new(policy: Policy) -> Self {
        Self {
            policy,
            base: f64::INFINITY,
            is_of_full: false,
            emptied: Time::ZERO,
            queue: 0.0,
            min: f64::INFINITY,
            max: 0.0,
            sum: 0.0,
            samples: 0,
            top: [0.0; 2],
            top_since: Time::ZERO,
            noise: 0.0,
            least: f64::INFINITY,
        }
    }

    /// Takes the round-trip time of a packet, full or smaller, without the peer's delay.
    pub(super) fn sample(&mut self, now: Time, rtt: Duration, is_full: bool) {
        let mut rtt = rtt.as_secs_f64();
        if is_full && !self.is_of_full {
            self.base = rtt;
            self.top = [0.0; 2];
        } else if self.is_of_full && !is_full {
            rtt = rtt.max(self.base);
        }
        self.is_of_full |= is_full;
        self.base = self.base.min(rtt);
        if rtt <= self.base * EMPTY {
            self.emptied = now;
        }
        self.queue = rtt - self.base;
        if now.since(self.top_since) > TOP_LIFE {
            self.top = [0.0, self.top[0]];
            self.top_since = now;
        }
        self.top[0] = self.top[0].max(self.queue);
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum += rtt;
        self.samples += 1;
        self.least = self.least.min(self.queue);
    }

    /// Returns whether the base is known.
    pub(super) const fn is_known(&self) -> bool {
        self.base.is_finite()
    }

    /// Returns the least round-trip time.
    pub(super) const fn base(&self) -> f64 {
        self.base
    }

    /// Returns the queue of the last sample.
    pub(super) const fn queue(&self) -> f64 {
        self.queue
    }

    /// Returns the largest queue of the last 10 to 20 s.
    pub(super) const fn top(&self) -> f64 {
        self.top[0].max(self.top[1])
    }

    /// Returns the part of a queue taken for noise, at most `least` or `share` of the base.
    pub(super) fn noise_up_to(&self, least: f64, share: f64) -> f64 {
        self.noise.min(least.max(share * self.base))
    }

    /// Returns the queue above which DEFAULT yields: small, but above the path's noise.
    pub(super) fn target(&self) -> f64 {
        let least = (0.06 * self.base).max(0.004);
        match self.policy {
            Policy::Fair => least.max((2.0 * self.noise).min((0.25 * self.base).max(0.010))),
            // Apparent noise may be other flows, which have priority.
            Policy::Low => 0.5 * least,
        }
    }

    /// Returns the queue below which the path is held to be unused.
    pub(super) fn unused(&self) -> f64 {
        let least = (0.03 * self.base).max(0.002);
        match self.policy {
            Policy::Fair => least + self.noise,
            Policy::Low => 0.5 * least,
        }
    }

    /// Returns the share of the window that removes a queue of this many seconds.
    pub(super) fn without(&self, queue: f64) -> f64 {
        self.base / (self.base + queue)
    }

    /// Returns when the queue was last found empty.
    pub(super) const fn emptied(&self) -> Time {
        self.emptied
    }

    /// Takes the queue for empty at `now`.
    pub(super) const fn set_emptied(&mut self, now: Time) {
        self.emptied = now;
    }

    /// Begins to watch for the least queue.
    pub(super) const fn watch_least(&mut self) {
        self.least = f64::INFINITY;
    }

    /// Returns the least queue since [`Delay::watch_least`].
    pub(super) const fn least(&self) -> f64 {
        self.least
    }

    /// Takes the round's least round-trip time for the base: the route has changed.
    pub(super) fn rebase(&mut self, round: &RoundDelay) {
        self.base += round.min;
        self.queue = 0.0;
        self.top = [0.0; 2];
    }

    /// Ends a round; `None` without samples. `steady` rounds teach the noise floor.
    pub(super) fn end_round(&mut self, steady: bool) -> Option<RoundDelay> {
        if self.samples == 0 {
            return None;
        }
        let above = |rtt: f64| (rtt - self.base).max(0.0);
        let mean = above(self.sum / f64::from(self.samples));
        let round = RoundDelay { min: above(self.min), mean, max: above(self.max), samples: self.samples };
        if steady && round.samples >= MIN_SAMPLES {
            self.noise += NOISE_WEIGHT * (round.mean - round.min - self.noise);
        }
        (self.min, self.max, self.sum, self.samples) = (f64::INFINITY, 0.0, 0.0, 0);
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn round(delay: &mut Delay, now: Time, millis: &[u64]) -> RoundDelay {
        millis.iter().for_each(|millis| delay.sample(now, Duration::from_millis(*millis), true));
        delay.end_round(true).expect("samples")
    }

    fn millis(seconds: f64) -> f64 {
        (seconds * 1e6).round() / 1e3
    }

    #[test]
    fn a_queue_is_the_delay_above_the_base() {
        let mut delay = Delay::new(Policy::Fair);
        assert!(!delay.is_known() && delay.end_round(true).is_none());
        let first = round(&mut delay, at(0), &[50, 70, 60]);
        assert_eq!([first.min, first.mean, first.max].map(millis), [0.0, 10.0, 20.0]);
        assert_eq!([delay.base(), delay.queue(), delay.top()].map(millis), [50.0, 10.0, 20.0]);
        assert_eq!(delay.emptied(), at(0));
        round(&mut delay, at(11_000), &[51, 52]);
        assert_eq!((millis(delay.top()), delay.emptied()), (20.0, at(0)), "1 ms is a queue");
        round(&mut delay, at(23_000), &[55]);
        assert_eq!(millis(delay.top()), 5.0, "after 20 s");
    }

    #[test]
    fn noise_raises_the_target_up_to_a_quarter_of_the_base() {
        let mut delay = Delay::new(Policy::Fair);
        (0..100).for_each(|_| _ = round(&mut delay, at(0), &[100, 100, 100, 100]));
        assert_eq!([delay.target(), delay.unused()].map(millis), [6.0, 3.0]);
        (0..200).for_each(|_| _ = round(&mut delay, at(0), &[100, 105, 105, 110]));
        assert_eq!([delay.target(), delay.unused()].map(millis), [10.0, 8.0], "5 ms of noise");
        assert_eq!(millis(delay.noise_up_to(0.001, 0.02)), 2.0);
        (0..200).for_each(|_| _ = round(&mut delay, at(0), &[100, 300, 300, 300]));
        assert_eq!(millis(delay.target()), 25.0);
        let before = millis(delay.target());
        (0..200).for_each(|_| _ = round(&mut delay, at(0), &[100, 300, 300]));
        assert_eq!(millis(delay.target()), before, "three samples are too few");
    }

    #[test]
    fn small_packets_are_faster_and_say_nothing_of_the_base() {
        let (mut delay, ms) = (Delay::new(Policy::Fair), Duration::from_millis);
        delay.sample(at(0), ms(40), false);
        assert_eq!([delay.base(), delay.queue()].map(millis), [40.0, 0.0]);
        delay.sample(at(1), ms(52), false);
        delay.sample(at(2), ms(50), true);
        assert_eq!([delay.base(), delay.queue(), delay.top()].map(millis), [50.0, 0.0, 0.0], "the first full one");
        delay.sample(at(3), ms(40), false);
        assert_eq!([delay.base(), delay.queue()].map(millis), [50.0, 0.0]);
        delay.sample(at(4), ms(57), false);
        assert_eq!([delay.base(), delay.queue()].map(millis), [50.0, 7.0]);
        delay.sample(at(5), ms(48), true);
        assert_eq!(millis(delay.base()), 48.0);
    }

    #[test]
    fn a_longer_route_is_a_new_base() {
        let mut delay = Delay::new(Policy::Fair);
        round(&mut delay, at(0), &[50]);
        delay.watch_least();
        let longer = round(&mut delay, at(1), &[82, 80, 90]);
        assert_eq!(millis(delay.least()), 30.0);
        delay.rebase(&longer);
        assert_eq!([delay.base(), delay.top()].map(millis), [80.0, 0.0]);
    }
}
