//! COMPETE: a CUBIC among others that fill the queue. It gives way when they do.

use super::super::cubic::Growth;
use super::delay::{Delay, RoundDelay};
use crate::time::Time;
use std::time::Duration;

/// Rounds above the target after which the queue is held to be others'.
const ROUNDS_ABOVE: u32 = 6;
/// A queue that has never been larger than so many targets may be noise.
const LARGE: f64 = 1.25;
/// Rounds after a reduction before a fall of the queue is a neighbour's.
const ROUNDS_AFTER: u32 = 3;
/// Rounds in which a queue is full all the time.
const ROUNDS_FULL: u32 = 6;
/// The share of the queue's top above which losses are its overflow.
const OVERFLOW: f64 = 0.7;
/// On a clean path, where losses are the signal to reduce: after others have so many times without one. Once is enough
/// if the reduced flow was small: a flow with half of the link takes this part of a round trip from the queue (1 - beta
/// of RFC 9438).
const FALLS: u32 = 2;
const OF_HALF: f64 = 0.3 / 2.0;
/// With less loss of its own than this, and fewer packets lost in a round, a loss at a full queue is an overflow.
const CLEAN: f64 = 0.002;
const SELDOM: f64 = 0.1;

/// DEFAULT's watch for a queue that does not yield.
#[derive(Debug, Default)]
pub(super) struct Standing {
    rounds: u32,
    /// The window at the first of them.
    window: f64,
}

impl Standing {
    /// Notes a round with a queue above the target, and its window. Returns the window to return to if the queue has
    /// not yielded to six reductions.
    pub(super) fn on_round(&mut self, window: f64, round: &RoundDelay, delay: &Delay) -> Option<f64> {
        if self.rounds == 0 {
            self.window = window;
        }
        self.rounds += 1;
        let is_large =
            delay.top() > LARGE * delay.target() && (round.min > 3.0 * delay.target() || round.min > 0.4 * delay.top());
        let yielded = window < 0.8 * self.window;
        (self.rounds >= ROUNDS_ABOVE && is_large && yielded).then_some(self.window)
    }

    pub(super) const fn clear(&mut self) {
        self.rounds = 0;
    }
}

/// The state of COMPETE.
#[derive(Debug)]
pub(super) struct Compete {
    /// Largest mean queue since the last reduction.
    highest: f64,
    full: u32,
    /// Times that others have reduced since the last reduction.
    falls: u32,
    /// A packet sent after the last reduction was lost at a full queue.
    pub(super) overflowed: bool,
    /// Lowest queue since the last drain, and when it was.
    lowest: f64,
    lowest_at: Time,
    probation: Option<Probation>,
}

/// A return to DEFAULT, on trial.
#[derive(Debug)]
struct Probation {
    until: Time,
    /// Largest of the rounds' least queues.
    queue: f64,
    /// The growth to restore if it fails.
    saved: Growth,
}

/// The end of a probation.
pub(super) enum ProbationEnd {
    /// The queue has stayed empty: back to DEFAULT.
    Default,
    /// Others have filled it.
    Compete(Growth),
}

/// Returns whether a path that loses this share of the packets is clean for a window of so many: whether a loss is more
/// likely an overflow than the path's own.
pub(super) fn is_clean(loss: f64, packets: f64) -> bool {
    loss <= CLEAN && loss * packets <= SELDOM
}

impl Compete {
    pub(super) const fn new(now: Time, queue: f64) -> Self {
        Self {
            highest: queue,
            full: 0,
            falls: 0,
            overflowed: false,
            lowest: f64::INFINITY,
            lowest_at: now,
            probation: None,
        }
    }

    /// Notes losses while the queue was this long, of packets sent after the last reduction.
    pub(super) fn on_lost(&mut self, delay: &Delay) {
        self.overflowed |= delay.queue() > OVERFLOW * delay.top();
    }

    /// Ends a round, `since` rounds after the last reduction. Returns whether to reduce: on a clean path at a loss at a
    /// full queue, or when others have reduced meanwhile, twice or with a smaller window than ours, since their bursts
    /// meet a full queue more often than paced packets; where loss is no signal, when another flow has reduced, or none
    /// does.
    pub(super) fn end_round(&mut self, since: u32, is_clean: bool, round: &RoundDelay, delay: &Delay) -> bool {
        let overflowed = std::mem::take(&mut self.overflowed) && is_clean;
        self.watch_others(since, round, delay);
        let is_pinned = self.full >= ROUNDS_FULL && !is_clean;
        let follows = self.falls >= if is_clean { FALLS } else { 1 };
        let reduces = overflowed || (since >= ROUNDS_AFTER && (is_pinned || follows));
        if reduces {
            (self.highest, self.full, self.falls) = (0.0, 0, 0);
        }
        reduces
    }

    /// Notes whether the queue is full, and whether it has fallen without a reduction of one's own.
    fn watch_others(&mut self, since: u32, round: &RoundDelay, delay: &Delay) {
        let is_full = round.min > 0.93 * delay.top() && round.max > 0.98 * delay.top();
        self.full = if is_full { self.full + 1 } else { 0 };
        if since < ROUNDS_AFTER {
            self.highest = round.mean;
            return;
        }
        self.highest = self.highest.max(round.mean);
        let fall = self.highest - round.mean;
        if self.highest > 0.4 * delay.top() && fall > 0.15 * delay.top() {
            // A fall that continues in the next round seems small, too: one yield too many harms no other flow.
            let is_small = fall < OF_HALF * (delay.base() + self.highest);
            self.falls += if is_small { FALLS } else { 1 };
            self.highest = round.mean;
        }
    }

    /// Notes a round's least queue. A draining flow makes the lowest point for all, so that flows which wait for the
    /// same time after it drain together.
    pub(super) fn watch_lowest(&mut self, now: Time, round: &RoundDelay, delay: &Delay) {
        if round.min <= self.lowest + 0.02 * delay.top() {
            self.lowest = self.lowest.min(round.min);
            self.lowest_at = now;
        }
    }

    /// Returns when the queue was lowest.
    pub(super) const fn lowest_at(&self) -> Time {
        self.lowest_at
    }

    /// Begins a drain. No other flow makes the queue fall then.
    pub(super) const fn on_drain(&mut self, now: Time) {
        self.highest = 0.0;
        (self.lowest, self.lowest_at) = (f64::INFINITY, now);
    }

    /// The drain has emptied the queue: tries DEFAULT, with `saved` to return to.
    pub(super) fn try_default(&mut self, now: Time, saved: Growth, delay: &Delay) {
        let span = Duration::from_secs_f64((4.0 * delay.base()).clamp(0.5, 60.0));
        self.probation = Some(Probation { until: now + span, queue: 0.0, saved });
    }

    /// Returns whether DEFAULT is on trial.
    pub(super) const fn is_on_trial(&self) -> bool {
        self.probation.is_some()
    }

    /// Ends a round of the trial; returns the verdict when it is over.
    pub(super) fn end_trial(&mut self, now: Time, round: &RoundDelay, delay: &Delay) -> Option<ProbationEnd> {
        let trial = self.probation.as_mut()?;
        trial.queue = trial.queue.max(round.min);
        if now <= trial.until {
            return None;
        }
        let (queue, saved) = (trial.queue, trial.saved);
        self.probation = None;
        let is_empty = queue < (0.1 * delay.top()).max(delay.target());
        Some(if is_empty { ProbationEnd::Default } else { ProbationEnd::Compete(saved) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::*;

    /// A delay with a base of 50 ms and a queue of up to 100 ms, and a round of this queue, in milliseconds.
    fn seen(min: f64, mean: f64, max: f64) -> (Delay, RoundDelay) {
        let mut delay = Delay::new(Policy::Fair);
        delay.sample(Time::ZERO, Duration::from_millis(50), true);
        delay.sample(Time::ZERO, Duration::from_millis(150), true);
        delay.end_round(false);
        for millis in [min, max, mean * 3.0 - min - max] {
            delay.sample(Time::ZERO, Duration::from_secs_f64((50.0 + millis) / 1e3), true);
        }
        let round = delay.end_round(false).expect("samples");
        assert!((round.mean * 1e3 - mean).abs() < 1e-3);
        (delay, round)
    }

    #[test]
    fn a_queue_that_does_not_yield_to_six_reductions_is_others() {
        let mut standing = Standing::default();
        let (delay, round) = seen(50.0, 60.0, 70.0);
        let windows = [100.0, 95.0, 90.0, 85.0, 80.0, 75.0];
        let found: Vec<_> = windows.iter().map(|window| standing.on_round(*window, &round, &delay)).collect();
        assert_eq!(found, [None, None, None, None, None, Some(100.0)]);
        standing.clear();
        assert_eq!(standing.on_round(60.0, &round, &delay), None);
        // A queue hardly above the target is the path's.
        let (delay, small) = seen(6.0, 7.0, 8.0);
        let mut standing = Standing::default();
        assert!(windows.iter().all(|window| standing.on_round(*window, &small, &delay).is_none()));
        // So is a queue to which the window has not yielded.
        let mut standing = Standing::default();
        assert!([100.0; 9].iter().all(|window| standing.on_round(*window, &round, &delay).is_none()));
    }

    #[test]
    fn auto_compete_reduces_with_others() {
        let (delay, high) = seen(80.0, 85.0, 90.0);
        let (_, lower) = seen(60.0, 65.0, 70.0);
        let (_, full) = seen(99.0, 99.5, 100.0);
        let mut compete = Compete::new(Time::ZERO, 0.0);
        assert!(!compete.end_round(3, false, &high, &delay));
        assert!(compete.end_round(4, false, &lower, &delay), "another flow has reduced");
        assert!(!compete.end_round(1, false, &high, &delay));
        assert!(!compete.end_round(2, false, &lower, &delay), "own reduction");
        let rounds: Vec<bool> = (3..9).map(|since| compete.end_round(since, false, &full, &delay)).collect();
        assert_eq!(rounds, [false, false, false, false, false, true]);
    }

    #[test]
    fn a_path_is_clean_for_windows_that_it_seldom_hits() {
        assert!(is_clean(0.0, 1e6) && is_clean(0.002, 50.0) && is_clean(0.0001, 1000.0));
        assert!(!is_clean(0.0021, 10.0) && !is_clean(0.001, 101.0));
    }

    #[test]
    fn without_loss_of_its_own_an_overflow_counts() {
        let (delay, round) = seen(60.0, 80.0, 80.0);
        let mut compete = Compete::new(Time::ZERO, 0.0);
        compete.on_lost(&delay);
        assert!(compete.end_round(1, true, &round, &delay), "80 of 100 ms");
        assert!(!compete.end_round(2, true, &round, &delay), "once");
        let (short, round) = seen(10.0, 20.0, 30.0);
        compete.on_lost(&short);
        assert!(!compete.end_round(3, true, &round, &short), "not a full queue");
    }

    #[test]
    fn on_a_clean_path_two_reductions_of_others_without_a_loss_count_or_one_of_a_smaller_flow() {
        let (delay, high) = seen(80.0, 85.0, 90.0);
        // A flow with half of the link takes 0.15 of 135 ms from the queue.
        let (_, lower) = seen(60.0, 64.0, 70.0);
        let (_, little_lower) = seen(60.0, 66.0, 70.0);
        let mut compete = Compete::new(Time::ZERO, 0.0);
        let mut reduces = |since, round| compete.end_round(since, true, round, &delay);
        assert_eq!([reduces(3, &high), reduces(4, &lower), reduces(5, &high)], [false; 3], "once is chance");
        assert!(reduces(6, &lower), "twice");
        assert_eq!([reduces(1, &high), reduces(2, &lower), reduces(3, &high), reduces(4, &lower)], [false; 4]);
        assert_eq!([reduces(5, &high), reduces(6, &little_lower)], [false, true], "a smaller flow");
        assert_eq!([reduces(1, &high), reduces(2, &lower), reduces(3, &high), reduces(4, &lower)], [false; 4]);
        compete.on_drain(Time::ZERO);
        assert!(!compete.end_round(5, true, &lower, &delay), "own drain");
    }

    #[test]
    fn an_empty_queue_is_tried_before_it_is_believed() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let (delay, empty) = seen(1.0, 2.0, 3.0);
        let (_, filled) = seen(40.0, 50.0, 60.0);
        for (others, returns) in [(empty, false), (filled, true)] {
            let mut compete = Compete::new(at(0), 0.1);
            compete.try_default(at(0), Growth::new(7000.0), &delay);
            assert!(compete.is_on_trial());
            assert!(compete.end_trial(at(100), &others, &delay).is_none());
            let verdict = compete.end_trial(at(501), &empty, &delay).expect("over after half a second");
            assert_eq!(matches!(verdict, ProbationEnd::Compete(Growth { window: 7000.0, .. })), returns);
            assert!(!compete.is_on_trial());
        }
    }
}
