//! The start: a search for the path's rate from a few packets on.

use super::baseline::Baseline;
use super::delay::Delay;
use crate::recovery::congestion::LinkRate;
use crate::recovery::congestion::dispersion::Dispersion;
use crate::recovery::report::Report;
use crate::recovery::rtt::RttEstimator;
use crate::time::Time;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Packets that go out first, together, to be spread.
///
/// Departs: RFC 9002 section 7.2 begins with ten. The packets of a file transfer without data, with the repair for a
/// small file, would leave the last of ten for another round trip, and the spread of ten cannot be distinguished from
/// the jitter of hosts.
pub(super) const FIRST_PACKETS: f64 = 20.0;
/// The rate at which the first do, in bytes per second: faster than nearly all paths.
const TOGETHER: f64 = 1.25e9;
/// The pacing rate is this many times the window's average, but not beyond the rate of the slowest link, unless that is
/// less than a smaller multiple of that: the smallest if the rate is not a first estimate.
const FAST: f64 = 2.0;
const EVEN: f64 = 1.15;
const HARDLY_FAST: f64 = 1.05;
/// After the first packets the window is at most so many times theirs, and half of the path's content.
const FIRST_JUMP: f64 = 16.0;
/// A saved path is used if the base delay is between these multiples of the saved one, once so many packets have
/// arrived (RFC 9959).
const SAME_PATH: RangeInclusive<f64> = 0.5..=10.0;
const FIRST_DELIVERED: f64 = 8.0;
/// Up to this share of the path's content the window grows fast, then slowly.
const CLOSE: f64 = 0.9;
const SLOW_GROWTH: f64 = 0.25;
/// With a first estimate only, it doubles from the same share on.
const DOUBTFUL_GROWTH: f64 = 1.0;
/// It grows beyond the slowest link until a queue of this part of the base shows, and of so many seconds.
const BEYOND: f64 = 0.05;
const LEAST_BEYOND: f64 = 0.003;
/// The most added for losses.
const MOST_LOST: f64 = 0.3;
/// The least part of that rate which is delivered, without the path's loss, if the window is used.
const USED: f64 = 0.7;
/// Loss that a start takes for the path's own if nothing is known, and how much more ends it.
const UNKNOWN_LOSS: f64 = 0.1;
const MORE_LOSS: f64 = 0.15;
/// Packets whose outcomes decide that.
const JUDGED: f64 = 24.0;
/// Samples of the delay that have to agree on a queue.
const AGREEING: usize = 6;
/// A round that delivers less than this many times the most so far finds the path full.
const GROWING: f64 = 1.25;
/// Rounds in a row that do.
const FULL_ROUNDS: u32 = 3;

/// A report: its time, delivered and lost bytes.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    bytes: f64,
    delivered: f64,
    lost: f64,
}

/// The search for the path's rate.
#[derive(Debug, Default)]
pub(super) struct RateSearch {
    dispersion: Dispersion,
    /// The rate and the base delay of an earlier connection, in bytes per second and seconds.
    remembered: Option<(f64, f64)>,
    /// Packets delivered and lost.
    delivered: f64,
    lost: f64,
    /// Jumps of the window: after the first packets, and once trains have shown the rate.
    jumps: u32,
    /// The last third of a round trip.
    seen: VecDeque<Seen>,
    /// Queues of the last quarter of a round trip.
    queues: VecDeque<(Time, f64)>,
    /// The highest rate of a round, in bytes per second, and the rounds since that did not exceed it by a quarter.
    highest: f64,
    flat: u32,
    /// The highest rate of a third of a round trip, in bytes per second.
    peak: f64,
    /// The last round ended with a queue.
    queued: bool,
    /// Rounds in a row that ended with a little more than the slowest link holds.
    filled: u32,
}

/// How a start ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SearchEnd {
    /// The path carries this rate, in bytes per second, and it was exceeded: a queue has to drain.
    Exceeded(f64),
    /// The path carries this rate, in bytes per second, and hardly any queue has built up.
    Reached(f64),
}

impl RateSearch {
    /// Returns the window after a report. It becomes four times as large in a round without a contrary sign (SUSS
    /// 2024), doubles with a queue, and grows by a quarter close to the path's content. Once the spread of the first
    /// packets shows the rate of the slowest link, it jumps to half of that at most, and again once that of later ones
    /// does.
    pub(super) fn grown(&mut self, window: f64, delivered: f64, delay: &Delay) -> f64 {
        let remembered = self.remembered.filter(|(_, base)| SAME_PATH.contains(&(delay.base() / base)));
        let found = &self.dispersion;
        let (known, first_estimate, is_disproved) = (found.rate(), found.first_estimate(), found.is_disproved());
        let remembered = remembered.map(|(rate, _)| rate).filter(|_| !is_disproved);
        let holds = |rate: f64| rate * delay.base();
        let spread = known.or(first_estimate);
        if let Some(held) = spread.or(remembered).map(holds)
            && self.jumps <= u32::from(self.dispersion.is_measured())
            && (spread.is_some() || self.delivered >= FIRST_DELIVERED)
        {
            self.jumps += 1;
            let found = spread.map_or(0.0, |_| (held / 2.0).min(FIRST_JUMP * window));
            // Not more than the slowest link takes now.
            let resumed = remembered.map_or(0.0, |rate| holds(rate).min(held) / 2.0);
            return window.max(found).max(resumed);
        }
        let fast = if self.flat == 0 && !self.queued && !is_disproved { 3.0 } else { 1.0 };
        let (close, slow) = match known.or(remembered) {
            Some(rate) => (CLOSE * holds(rate), SLOW_GROWTH),
            // Perhaps the link takes more.
            None => (first_estimate.map_or(f64::INFINITY, |rate| CLOSE * holds(rate)), DOUBTFUL_GROWTH),
        };
        let slowly = window + slow * delivered;
        let grown = if window < close { (window + fast * delivered).min(close.max(slowly)) } else { slowly };
        // Until a queue shows that the slowest link takes no more.
        window.max(known.map_or(grown, |rate| grown.min(self.filling(rate, delay))))
    }

    /// Takes the window in bytes from now on.
    pub(super) fn on_window(&mut self, now: Time, window: f64, delay: &Delay) {
        self.dispersion.on_pace(now, FAST * window / delay.base());
    }

    /// Begins with the rate of an earlier connection over a path of this base delay, in bytes per second and seconds.
    pub(super) const fn recall(&mut self, rate: f64, base: f64) {
        self.remembered = Some((rate, base));
    }

    /// Returns the highest rate that the path has delivered for a part of a round trip, in bytes per second: a short
    /// transfer may be over before a whole round has had it.
    pub(super) const fn proven(&self) -> f64 {
        self.peak
    }

    /// Returns the highest rate found so far, in bytes per second: delivered in a round, or that of the slowest link.
    pub(super) fn rate(&self) -> Option<f64> {
        self.dispersion.rate().or_else(|| (self.highest > 0.0).then_some(self.highest))
    }

    /// Returns the rate of the slowest link, if trains have shown it.
    pub(super) fn link(&self) -> Option<LinkRate> {
        self.dispersion.link()
    }

    /// Returns the pacing rate for a window of so many bytes, in bytes per second. The first packets go out together:
    /// `packets` are those of the window without compensation for losses.
    pub(super) fn pacing(&self, window: f64, packets: f64, smoothed: Duration) -> f64 {
        let average = window / smoothed.as_secs_f64().max(1e-6);
        match (self.dispersion.rate(), self.dispersion.first_estimate()) {
            (None, None) if packets <= FIRST_PACKETS => TOGETHER,
            (None, None) => FAST * average,
            (None, Some(rate)) => (FAST * average).min(rate).max(EVEN * average),
            (Some(rate), _) => (FAST * average).min(rate).max(HARDLY_FAST * average),
        }
    }

    /// Returns the number of packets that leave together.
    pub(super) const fn train(&self) -> u32 {
        if self.dispersion.wants_trains() { FIRST_PACKETS as u32 } else { 1 }
    }

    /// Takes a report. Returns the rate of the path, in bytes per second, if the queue or the losses of the last part
    /// of a round trip show that it is exceeded.
    pub(super) fn on_report(
        &mut self,
        report: &Report<'_>,
        rtt: &RttEstimator,
        delay: &Delay,
        baseline: &Baseline,
    ) -> Option<f64> {
        let (now, smoothed) = (report.now, rtt.smoothed());
        // The handshake's packets were not spread, unlike those of the first report if the one before it was lost.
        let base = delay.base().min(rtt.min().as_secs_f64());
        self.dispersion.on_report(report, base);
        self.delivered += report.delivered.len() as f64;
        self.lost += report.lost.len() as f64;
        self.seen.push_back(Seen {
            at: now,
            bytes: report.delivered_bytes as f64,
            delivered: report.delivered.len() as f64,
            lost: report.lost.len() as f64,
        });
        // The first stays until the others cover the span alone: feedback may arrive in bunches, whose reports are no
        // time apart.
        while self.seen.len() > 2 && now.since(self.seen[1].at) > smoothed * 3 / 10 {
            self.seen.pop_front();
        }
        if report.path_rtt.is_some() {
            self.queues.push_back((now, delay.queue()));
        }
        while self.queues.len() > AGREEING + 2 && now.since(self.queues[0].0) > smoothed / 4 {
            self.queues.pop_front();
        }
        if self.seen.len() < 3 {
            return None;
        }
        // The first report began before the span.
        let sum = |of: fn(&Seen) -> f64| self.seen.iter().skip(1).map(of).sum::<f64>();
        let (delivered, lost) = (sum(|seen| seen.delivered), sum(|seen| seen.lost));
        let allowed = baseline.share_or(UNKNOWN_LOSS) + MORE_LOSS;
        let judged = delivered + lost;
        // Three standard deviations: this is tested again and again.
        let chance = 3.0 * (judged * allowed * (1.0 - allowed) * baseline.burst()).sqrt();
        let is_lossy = judged >= JUDGED && lost > allowed * judged + chance;
        let limit = delay.target().max(delay.base() / 8.0);
        let is_queued =
            self.queues.len() >= AGREEING && delivered >= 8.0 && self.queues.iter().all(|(_, queue)| *queue > limit);
        let span = now.since(self.seen[0].at);
        let rate = sum(|seen| seen.bytes) / span.as_secs_f64().max(1e-6);
        if span >= smoothed / 5 {
            self.peak = self.peak.max(rate);
        }
        (is_lossy || is_queued).then_some(rate)
    }

    /// Ends a round that delivered `rate` bytes per second and found a queue of at least `queue` seconds, with a window of
    /// so many bytes at its end. Returns the path's rate if it no longer grows, or if a whole round of a little more than the
    /// slowest link takes has built up a little queue.
    pub(super) fn end_round(&mut self, rate: f64, window: f64, queue: f64, delay: &Delay) -> Option<SearchEnd> {
        self.queued = queue > 0.5 * delay.target();
        if rate > GROWING * self.highest {
            (self.highest, self.flat) = (rate, 0);
        } else {
            self.flat += 1;
        }
        // An unused window fills nothing.
        let fills = |link: f64| window >= 0.99 * self.filling(link, delay) && rate > USED * link;
        let fills = self.dispersion.rate().is_some_and(fills);
        self.filled = if fills { self.filled + 1 } else { 0 };
        // Delays are those of packets sent a round before.
        if self.filled > 1 && queue <= delay.target() {
            let seen = self.queues.iter().map(|(_, queue)| queue).sum::<f64>() / self.queues.len().max(1) as f64;
            if seen > 0.5 * delay.target() {
                return Some(SearchEnd::Reached(self.peak.max(rate)));
            }
            if seen < 0.25 * delay.target() {
                // Not the slowest link has spread the first packets, but hosts.
                self.dispersion.disprove();
                (self.filled, self.flat) = (0, 0);
            }
        }
        let is_full = self.flat >= FULL_ROUNDS || (self.flat > 0 && queue > delay.target());
        is_full.then_some(SearchEnd::Exceeded(rate))
    }

    /// Returns the window, in bytes, that builds up a queue on a link of this rate in bytes per second: a small one,
    /// but above the noise. Lost packets fill none.
    fn filling(&self, rate: f64, delay: &Delay) -> f64 {
        let share = (self.lost / (self.lost + self.delivered).max(1.0)).min(MOST_LOST);
        rate * (delay.base() + (BEYOND * delay.base()).max(LEAST_BEYOND)) / (1.0 - share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::*;
    use crate::recovery::rtt::RttConfig;
    use crate::recovery::sent_packets::{Content, SentPacket};

    const RTT: Duration = Duration::from_millis(50);

    /// A path of 50 ms with a slowest link that takes `gap` for each packet.
    struct Path {
        start: RateSearch,
        delay: Delay,
        baseline: Baseline,
        gap: Duration,
        number: u64,
    }

    impl Path {
        fn new(gap_micros: u64) -> Self {
            let mut delay = Delay::new(Policy::Fair);
            delay.sample(Time::ZERO, RTT, true);
            let gap = Duration::from_micros(gap_micros);
            Self { start: RateSearch::default(), delay, baseline: Baseline::default(), gap, number: 0 }
        }

        /// Reports `count` packets sent at once, of which the last `lost` are lost and the newest delivered one has
        /// found `queue`.
        fn report(&mut self, sent: Time, count: u64, lost: u64, queue: Duration) -> Option<f64> {
            let packet = |number| SentPacket { number, time: sent, bytes: 1000, content: Content::Nothing };
            let numbers = self.number..self.number + count - lost;
            let delivered: Vec<_> = numbers.map(packet).collect();
            self.number += count;
            let lost: Vec<_> = (self.number - lost..self.number).map(packet).collect();
            self.delay.sample(sent + RTT + queue, RTT + queue, true);
            let report = Report {
                delivered: &delivered,
                lost: &lost,
                delivered_bytes: delivered.len() as u64 * 1000,
                path_rtt: Some(RTT + queue),
                ..Report::empty(sent + RTT + queue)
            };
            let mut rtt = RttEstimator::new(&RttConfig::default());
            rtt.sample(sent + RTT, RTT, Duration::ZERO);
            self.start.on_report(&report, &rtt, &self.delay, &self.baseline)
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn packets_sent_together_show_the_slowest_link() {
        let mut path = Path::new(100);
        assert_eq!(path.start.grown(10_000.0, 1000.0, &path.delay), 13_000.0, "four times as much in a round");
        assert_eq!(path.start.pacing(10_000.0, 10.0, RTT), TOGETHER);
        assert_eq!(path.start.pacing(21_000.0, 20.0, RTT), TOGETHER, "with compensation for losses");
        path.report(at(0), 1, 0, Duration::ZERO);
        path.report(at(0), 15, 0, path.gap * 15);
        // 10 MB/s: 500 kB in a round trip, of which the window takes half, or sixteen times its value.
        assert_eq!(path.start.grown(10_000.0, 1000.0, &path.delay), 160_000.0);
        assert_eq!(path.start.grown(160_000.0, 40_000.0, &path.delay), 280_000.0);
        assert_eq!(path.start.pacing(160_000.0, 160.0, RTT).round(), 6_400_000.0, "twice the window's average");
        assert_eq!(path.start.pacing(400_000.0, 400.0, RTT).round(), 10_000_000.0, "not beyond the link");
        // Close to the path's content.
        assert_eq!(path.start.grown(280_000.0, 280_000.0, &path.delay).round(), 450_000.0);
        assert_eq!(path.start.grown(460_000.0, 40_000.0, &path.delay).round(), 470_000.0);
    }

    #[test]
    fn the_window_jumps_again_once_trains_have_shown_the_rate() {
        let mut path = Path::new(100);
        path.start.jumps = 1;
        let mut grown = Vec::new();
        for (train, place) in (0..).zip([19, 2, 18, 19, 0, 17, 19, 5, 19]) {
            path.report(at(20 * train), place + 1, 0, path.gap * place as u32);
            grown.push(path.start.grown(20_000.0, 0.0, &path.delay).round());
        }
        // As before, 500 kB.
        assert_eq!(grown, [[20_000.0; 7].as_slice(), &[250_000.0, 20_000.0]].concat());
        assert_eq!(
            path.start.pacing(510_000.0, 510.0, RTT).round(),
            10_710_000.0,
            "a little faster than the window goes out evenly"
        );
    }

    #[test]
    fn packets_that_arrive_as_they_were_sent_show_nothing() {
        let mut path = Path::new(100);
        for millis in 0..10 {
            path.report(at(millis), 8, 0, Duration::ZERO);
        }
        assert_eq!(path.start.grown(80_000.0, 8000.0, &path.delay), 104_000.0);
    }

    #[test]
    fn one_report_of_packets_sent_together_is_a_first_estimate() {
        let mut path = Path::new(100);
        path.report(at(0), 1, 0, Duration::ZERO);
        // After the handshake a program takes a millisecond until its first data.
        path.report(at(1), 9, 0, path.gap * 8);
        // 10 MB/s, as above.
        assert_eq!(path.start.grown(10_000.0, 1000.0, &path.delay).round(), 160_000.0);
        assert_eq!(path.start.grown(430_000.0, 20_000.0, &path.delay).round(), 450_000.0);
        assert_eq!(path.start.grown(470_000.0, 40_000.0, &path.delay), 510_000.0, "hosts may have spread them");
        assert_eq!(path.start.grown(900_000.0, 40_000.0, &path.delay), 940_000.0);
        assert_eq!(path.start.pacing(400_000.0, 400.0, RTT).round(), 10_000_000.0);
    }

    #[test]
    fn a_memory_of_the_path_is_resumed_at_half_its_rate() {
        let resumed = |remembered: f64, base: f64, gap: u64, reports: u64| {
            let mut path = Path::new(gap);
            path.start.recall(remembered, base);
            path.report(at(0), 1, 0, Duration::ZERO);
            for nth in 0..reports {
                path.report(at(nth), 8, 0, Duration::ZERO);
            }
            path.start.grown(10_000.0, 0.0, &path.delay)
        };
        // 100 MB/s for 50 ms, and no limit of sixteen windows.
        assert_eq!(resumed(100e6, 0.05, 1, 1), 2_500_000.0);
        assert_eq!(resumed(100e6, 0.05, 1, 0), 10_000.0, "too few have arrived");
        assert_eq!(resumed(100e6, 0.11, 1, 1), 10_000.0, "this path is far shorter");
        assert_eq!(resumed(100e6, 0.0049, 1, 1), 10_000.0, "this path is far longer");
        let mut path = Path::new(100);
        path.start.recall(100e6, 0.05);
        path.report(at(0), 1, 0, Duration::ZERO);
        path.report(at(0), 15, 0, path.gap * 15);
        assert_eq!(
            path.start.grown(10_000.0, 0.0, &path.delay).round(),
            250_000.0,
            "no more than the slowest link takes"
        );
    }

    #[test]
    fn a_queue_on_which_all_samples_agree_ends_it_at_the_rate_delivered() {
        let mut path = Path::new(100);
        let queue = Duration::from_millis(9);
        let ends: Vec<_> =
            (0..20).map_while(|step| path.report(at(step), 10, 0, queue).is_none().then_some(())).collect();
        assert!((5..9).contains(&ends.len()), "{} reports", ends.len());
        let mut path = Path::new(100);
        let rate = (0..20).find_map(|step| path.report(at(step), 10, 0, queue));
        assert_eq!(rate.map(f64::round), Some(10_000_000.0), "ten packets each millisecond");
        let mut path = Path::new(100);
        let small = (0..40).find_map(|step| path.report(at(step), 10, 0, Duration::from_millis(step % 7)));
        assert_eq!(small, None, "some found none");
    }

    #[test]
    fn loss_of_a_bad_path_does_not_end_it_and_an_overflow_does() {
        let mut path = Path::new(100);
        assert_eq!((0..40).find_map(|step| path.report(at(step), 10, 2, Duration::ZERO)), None, "a fifth is lost");
        let overflow = (40..80).find_map(|step| path.report(at(step), 10, 5, Duration::ZERO));
        assert!(overflow.is_some_and(|rate| rate < 8_000_000.0), "{overflow:?}");
    }

    #[test]
    fn a_rate_that_no_longer_grows_ends_it() {
        let mut path = Path::new(100);
        let mut end = |rate| path.start.end_round(rate, 10_000.0, 0.0, &path.delay);
        assert_eq!([100.0, 200.0, 210.0, 220.0].map(&mut end), [None; 4]);
        assert_eq!(end(215.0), Some(SearchEnd::Exceeded(215.0)), "three rounds");
        let mut path = Path::new(100);
        assert_eq!(path.start.end_round(100.0, 10_000.0, 0.003, &path.delay), None);
        assert_eq!(path.start.grown(10_000.0, 1000.0, &path.delay), 11_000.0, "a queue: doubles");
        let full = path.start.end_round(110.0, 10_000.0, 0.005, &path.delay);
        assert_eq!(full, Some(SearchEnd::Exceeded(110.0)), "full, and a queue");
    }

    #[test]
    fn a_little_more_than_the_slowest_link_holds_ends_it_with_a_little_queue_and_disproves_its_rate_without() {
        let found = |window: f64, queue: f64| {
            let mut path = Path::new(100);
            path.report(at(0), 1, 0, Duration::ZERO);
            path.report(at(0), 15, 0, path.gap * 15);
            // 10 MB/s hold 500 kB in a round trip, and 530 kB with a queue of 3 ms.
            path.start.jumps = 1;
            assert_eq!(path.start.grown(529_000.0, 20_000.0, &path.delay).round(), 530_000.0);
            path.start.queues = [(at(60), queue); 4].into();
            let mut end = |rate| path.start.end_round(rate, window, queue, &path.delay);
            ([end(7.1e6), end(9.5e6)], path.start.rate().map(f64::round))
        };
        assert_eq!(found(529_000.0, 0.0021), ([None, Some(SearchEnd::Reached(9.5e6))], Some(10e6)));
        assert_eq!(found(520_000.0, 0.0021), ([None; 2], Some(10e6)), "not full yet");
        assert_eq!(found(529_000.0, 0.0019), ([None; 2], Some(10e6)), "perhaps one");
        assert_eq!(found(529_000.0, 0.0009), ([None; 2], Some(9.5e6)), "none");
    }
}
