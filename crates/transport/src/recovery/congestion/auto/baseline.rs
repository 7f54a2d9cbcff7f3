//! The path's own loss, and the test for more than that.

use crate::recovery::congestion::PathLoss;
use crate::recovery::sent_packets::SentPacket;
use crate::time::Time;

/// The largest compensated loss.
const MOST: f64 = 0.3;
/// Packets after which the baseline counts.
const FEW: f64 = 50.0;
/// Packets for which an earlier connection's baseline counts.
const RECALLED: f64 = 200.0;
/// Packets and seconds in which the baseline forgets half.
const HALF_PACKETS: f64 = 3000.0;
const HALF_SECONDS: f64 = 60.0;
/// The share of the quick baseline that remains after a quiet round.
const QUICK: f64 = 0.8;
/// Log likelihood ratio at which excess counts as proved.
const BELIEVED: f64 = 6.0;

/// Packets, and how many of them were lost.
#[derive(Clone, Copy, Debug, Default)]
struct LossCount {
    sent: f64,
    lost: f64,
}

impl LossCount {
    fn add(&mut self, kept: f64, sent: f64, lost: f64) {
        (self.sent, self.lost) = (self.sent * kept + sent, self.lost * kept + lost);
    }
}

/// The share of packets lost without congestion, learned from quiet rounds: those sent more slowly than the path
/// delivers, without a queue.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    slow: LossCount,
    quick: LossCount,
    /// When the slow count was last added to.
    taught: Time,
    /// Lost packets, and runs of them, with a memory of fifty runs, and the number of the last one.
    losses: f64,
    runs: f64,
    last: Option<u64>,
    /// Rounds of the start that do not count yet.
    early: [LossCount; 2],
    /// Page's cumulative sum.
    excess: f64,
}

impl Baseline {
    /// Returns the share of packets lost without congestion, up to 0.3.
    pub(super) fn share(&self) -> f64 {
        if self.slow.sent < FEW { 0.0 } else { (self.slow.lost / self.slow.sent).min(MOST) }
    }

    /// Returns the path's own loss, once it is known. This estimate does not lean to little loss, as the test's does:
    /// missing repair costs a round trip.
    pub(super) fn path_loss(&self) -> Option<PathLoss> {
        let most = (self.upper() / self.slow.sent).min(1.0);
        (self.slow.sent >= FEW).then(|| PathLoss { share: self.share().min(most), most })
    }

    /// Returns the share that a start assumes.
    pub(super) fn share_or(&self, unknown: f64) -> f64 {
        if self.slow.sent < FEW { unknown } else { self.share() }
    }

    /// Returns the mean length of bursts of losses, at least 1.
    pub(super) fn burst(&self) -> f64 {
        if self.runs > 0.0 { (self.losses / self.runs).max(1.0) } else { 1.0 }
    }

    /// Begins with the loss measured by an earlier connection. It weighs little, so that rounds of this one soon
    /// replace it.
    pub(super) fn recall(&mut self, share: f64, burst: f64) {
        self.slow = LossCount { sent: RECALLED, lost: RECALLED * share.clamp(0.0, MOST) };
        (self.losses, self.runs) = (burst.max(1.0), 1.0);
    }

    /// Learns the length of bursts.
    pub(super) fn on_lost(&mut self, lost: &[SentPacket]) {
        for sent in lost {
            // A run is often spread over several reports.
            if self.last.is_none_or(|last| sent.number != last + 1) {
                self.losses *= 0.98;
                self.runs = self.runs * 0.98 + 1.0;
            }
            self.losses += 1.0;
            self.last = Some(sent.number);
        }
    }

    /// Learns from a round of the start once two later ones are over: the last ones may have overflowed the queue.
    pub(super) fn on_start(&mut self, sent: f64, lost: f64) {
        let [oldest, newer] = self.early;
        self.slow.add(1.0, oldest.sent, oldest.lost);
        self.early = [newer, LossCount { sent, lost }];
    }

    /// Learns from a quiet round.
    pub(super) fn on_quiet(&mut self, now: Time, sent: f64, lost: f64) {
        self.quick.add(QUICK, sent, lost);
        let (recent, known) = (self.quick.lost / self.quick.sent.max(1.0), self.share());
        let deviation = (known * (1.0 - known) * self.burst() / self.quick.sent.max(1.0)).sqrt();
        if self.quick.sent >= 16.0 && known > recent + 3.0 * deviation {
            self.slow = self.quick;
        } else {
            let age = now.since(self.taught).as_secs_f64().min(HALF_SECONDS);
            let kept = 0.5_f64.powf(sent / HALF_PACKETS + age / HALF_SECONDS);
            self.slow.add(kept, sent, lost);
        }
        self.taught = now;
    }

    /// Returns the loss that may be the path's own: the baseline with its uncertainty.
    pub(super) fn credible(&self) -> f64 {
        (self.upper() / (self.slow.sent + 60.0)).clamp(0.0005, 0.5)
    }

    /// Returns the lost packets with two standard deviations.
    fn upper(&self) -> f64 {
        let lost = self.slow.lost + 1.0;
        lost + 2.0 * (lost * self.burst()).sqrt()
    }

    /// Tests a round for more loss than that (Page 1954); true once more is proved.
    pub(super) fn is_exceeded(&mut self, sent: f64, lost: f64) -> bool {
        let usual = self.credible();
        let more = usual + (0.5 * usual).max(0.01);
        let likelihood = lost * (more / usual).ln() + (sent - lost).max(0.0) * ((1.0 - more) / (1.0 - usual)).ln();
        self.excess = (self.excess + likelihood / self.burst()).max(0.0);
        let believed = self.excess > BELIEVED;
        if believed {
            self.excess = 0.0;
        }
        believed
    }

    /// Restarts the test, after a reduction.
    pub(super) const fn restart_test(&mut self) {
        self.excess = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ROUND: Duration = Duration::from_millis(100);

    /// Teaches rounds of a thousand packets with this share lost.
    fn taught(baseline: &mut Baseline, now: &mut Time, rounds: u32, share: f64) {
        for _ in 0..rounds {
            *now += ROUND;
            baseline.on_quiet(*now, 1000.0, 1000.0 * share);
        }
    }

    #[test]
    fn quiet_rounds_teach_the_share_and_a_better_path_is_believed_at_once() {
        let (mut baseline, mut now) = (Baseline::default(), Time::ZERO);
        assert_eq!((baseline.share(), baseline.share_or(0.1)), (0.0, 0.1));
        taught(&mut baseline, &mut now, 1, 0.05);
        assert!((baseline.share() - 0.05).abs() < 1e-9 && (baseline.share_or(0.1) - 0.05).abs() < 1e-9);
        // A worse path is learned slowly: half of the memory is 3,000 packets long.
        taught(&mut baseline, &mut now, 20, 0.05);
        taught(&mut baseline, &mut now, 3, 0.15);
        assert!((0.08..0.12).contains(&baseline.share()), "{}", baseline.share());
        taught(&mut baseline, &mut now, 15, 0.0);
        assert!(baseline.share() < 0.004, "{}", baseline.share());
        taught(&mut baseline, &mut now, 100, 0.9);
        assert_eq!(baseline.share(), MOST, "more is never compensated");
    }

    #[test]
    fn the_last_rounds_of_a_start_do_not_teach() {
        let mut baseline = Baseline::default();
        for (sent, lost) in [(100.0, 1.0), (400.0, 4.0), (1600.0, 800.0), (1000.0, 500.0)] {
            baseline.on_start(sent, lost);
        }
        assert!((baseline.share() - 0.01).abs() < 1e-9, "{}", baseline.share());
    }

    /// Rounds until more loss than usual counts, at this share of a hundred packets a round.
    fn until_believed(baseline: &mut Baseline, share: f64, most: u32) -> Option<u32> {
        (1..=most).find(|_| baseline.is_exceeded(100.0, 100.0 * share))
    }

    #[test]
    fn a_large_excess_is_believed_soon_and_none_never() {
        for usual in [0.0, 0.01, 0.05, 0.1, 0.2] {
            let (mut baseline, mut now) = (Baseline::default(), Time::ZERO);
            taught(&mut baseline, &mut now, 20, usual);
            assert_eq!(until_believed(&mut baseline, usual, 10_000), None, "{usual}");
            let [small, large] = [(0.6 * usual).max(0.05), 0.2].map(|more| {
                baseline.restart_test();
                until_believed(&mut baseline, usual + more, 100)
            });
            assert!(small.is_some_and(|rounds| rounds <= 15), "{usual}: {small:?}");
            assert!(large.is_some_and(|rounds| rounds <= 2), "{usual}: {large:?}");
        }
    }

    #[test]
    fn a_recalled_baseline_counts_at_once_and_yields_to_measurements() {
        let (mut baseline, mut now) = (Baseline::default(), Time::ZERO);
        baseline.recall(0.05, 2.0);
        assert_eq!((baseline.share(), baseline.burst()), (0.05, 2.0));
        taught(&mut baseline, &mut now, 1, 0.0);
        assert!(baseline.share() < 0.01, "{}", baseline.share());
        baseline.recall(0.9, 0.0);
        assert_eq!((baseline.share(), baseline.burst()), (MOST, 1.0));
    }

    #[test]
    fn losses_in_bursts_are_less_evidence() {
        let packet = |number| SentPacket {
            number,
            time: Time::ZERO,
            bytes: 1000,
            content: crate::recovery::sent_packets::Content::Nothing,
        };
        let lost = |numbers: &[u64]| numbers.iter().map(|number| packet(*number)).collect::<Vec<_>>();
        let mut baseline = Baseline::default();
        assert_eq!(baseline.burst(), 1.0);
        (0..100).for_each(|_| baseline.on_lost(&lost(&[1, 2, 3, 4, 8])));
        assert!((baseline.burst() - 2.5).abs() < 0.05, "{}", baseline.burst());
        let mut long = Baseline::default();
        (0..100).for_each(|nth| (0..8).for_each(|of| long.on_lost(&lost(&[20 * nth + of]))));
        assert!((long.burst() - 8.0).abs() < 1e-9, "spread over reports: {}", long.burst());
        let mut apart = Baseline::default();
        (0..100).for_each(|_| apart.on_lost(&lost(&[1, 3, 5])));
        let [bursty, apart] = [&mut baseline, &mut apart].map(|baseline| {
            let mut now = Time::ZERO;
            taught(baseline, &mut now, 20, 0.02);
            until_believed(baseline, 0.06, 100).expect("believed")
        });
        assert!(bursty > apart, "{bursty} and {apart} rounds");
    }
}
