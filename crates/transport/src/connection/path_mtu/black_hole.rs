//! Detects that the path has begun to drop large packets: its MTU has shrunk without notice (RFC 8899 section 4.3).

use crate::recovery::{Report, SentPacket};
use crate::time::Time;
use std::time::Duration;

/// Conditions before large packets are assumed to vanish: large packets lost in a row, small ones that arrived
/// meanwhile, and the probe timeouts over which the large ones were sent. If a tenth gets through, one in two million
/// such runs is chance.
const LOST: u32 = 6;
const ARRIVED: u32 = 2;
const SPAN: u32 = 2;

/// Doublings of the time between two unanswered probes.
const MAX_BACKOFF: u32 = 5;

/// Longest time that counts as some probe timeouts. Behind a queue of seconds, probe timeouts would outlast the
/// connection.
const LONG_SILENCE: Duration = Duration::from_secs(5);

/// Large packets lost in a row.
#[derive(Clone, Copy, Debug)]
struct LossRun {
    first: Time,
    last: Time,
    lost: u32,
    /// IP bytes of the smallest of them.
    least: u32,
    /// Smaller packets that arrived although sent after the first of them.
    arrived: u32,
}

/// Watches the outcome of packets by their size.
#[derive(Debug, Default)]
pub(super) struct BlackHole {
    /// IP bytes that any path carries.
    small: u32,
    /// When the first large packet was sent since one arrived.
    unanswered: Option<Time>,
    last_probe: Option<Time>,
    /// Probes sent since a small packet arrived.
    unanswered_probes: u32,
    run: Option<LossRun>,
}

impl BlackHole {
    /// Restarts detection; packets of up to `small` IP bytes are small from now on.
    pub(super) fn restart(&mut self, small: u32) {
        *self = Self { small, ..Self::default() };
    }

    const fn is_large(&self, sent: &SentPacket) -> bool {
        sent.bytes > self.small
    }

    /// Notes that a packet was sent that counts in flight.
    pub(super) fn on_sent(&mut self, sent: &SentPacket) {
        if self.is_large(sent) {
            self.unanswered.get_or_insert(sent.time);
        }
    }

    /// Handles a report on the outcome of packets.
    pub(super) fn on_report(&mut self, report: &Report<'_>) {
        for lost in report.lost.iter().filter(|sent| sent.bytes > self.small) {
            let (first, least) = (lost.time, lost.bytes);
            let run = self.run.get_or_insert(LossRun { first, last: first, lost: 0, least, arrived: 0 });
            run.last = run.last.max(lost.time);
            run.least = run.least.min(least);
            run.lost += 1;
        }
        // A packet declared lost by a timeout that arrives late has passed as well: a retransmission timeout may be
        // shorter than the travel time of the small packet whose arrival would reveal the loss of the large ones.
        for sent in report.delivered.iter().chain(report.spurious) {
            let began = self.run.map(|run| run.first);
            // Packets differ in size where they carry several symbols: those that pass prove nothing about larger ones.
            let is_smaller = self.run.is_some_and(|run| sent.bytes < run.least);
            if !self.is_large(sent) || is_smaller {
                self.unanswered_probes = 0;
                if let Some(run) = self.run.as_mut().filter(|run| sent.time >= run.first) {
                    run.arrived += 1;
                }
            } else if began.is_none_or(|began| sent.time >= began) {
                self.run = None;
                self.unanswered = None;
            }
        }
    }

    /// Returns whether large packets vanish and small ones do not.
    pub(super) fn is_found(&self, pto: Duration) -> bool {
        let vanish = |run: LossRun| {
            let span = run.last.since(run.first);
            run.lost >= LOST && run.arrived >= ARRIVED && span >= span_needed(pto)
        };
        self.run.is_some_and(vanish)
    }

    /// Returns when to send a small packet to find out whether the silence is about size. All other packets sent may be
    /// large.
    pub(super) fn probe_at(&self, pto: Duration, max_spacing: Duration) -> Option<Time> {
        let unanswered = self.unanswered?;
        let first = unanswered + span_needed(pto);
        Some(self.last_probe.map_or(first, |last| {
            let is_long = last.since(unanswered) >= LONG_SILENCE;
            let most = if is_long { max_spacing } else { max_spacing.max(pto) };
            first.max(last + pto.saturating_mul(1 << self.unanswered_probes.min(MAX_BACKOFF)).min(most))
        }))
    }

    /// Notes that this packet is sent now.
    pub(super) fn on_probe_sent(&mut self, now: Time) {
        self.last_probe = Some(now);
        self.unanswered_probes += 1;
    }
}

/// Returns for how long large packets must have been lost.
fn span_needed(pto: Duration) -> Duration {
    (pto * SPAN).min(LONG_SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Content;

    const PTO: Duration = Duration::from_millis(100);

    fn sent(at: u64, bytes: u32) -> SentPacket {
        SentPacket { number: at, time: Time::ZERO + Duration::from_millis(at), bytes, content: Content::Nothing }
    }

    fn report(hole: &mut BlackHole, delivered: &[SentPacket], lost: &[SentPacket]) {
        hole.on_report(&Report { delivered, lost, ..Report::empty(Time::ZERO) });
    }

    fn report_late(hole: &mut BlackHole, spurious: &[SentPacket]) {
        hole.on_report(&Report { spurious, ..Report::empty(Time::ZERO) });
    }

    fn watch() -> BlackHole {
        let mut hole = BlackHole::default();
        hole.restart(1_223);
        hole
    }

    #[test]
    fn large_packets_lost_for_long_while_small_ones_pass_are_a_black_hole() {
        let lost: Vec<SentPacket> = (0..6).map(|nth| sent(nth * 50, 1_479)).collect();
        let mut hole = watch();
        report(&mut hole, &[], &lost);
        assert!(!hole.is_found(PTO), "nothing passes: the path may be dead");
        report(&mut hole, &[sent(260, 61)], &[]);
        assert!(!hole.is_found(PTO), "one may be chance");
        report(&mut hole, &[sent(270, 61)], &[]);
        assert!(hole.is_found(PTO));
        assert!(!hole.is_found(PTO * 2), "too soon on a longer path");
        report(&mut hole, &[sent(280, 1_479)], &[]);
        assert!(!hole.is_found(PTO), "a large one passed");
    }

    #[test]
    fn earlier_and_small_packets_do_not_count() {
        let mut hole = watch();
        let lost: Vec<SentPacket> = (1..8).map(|nth| sent(nth * 50, 1_479)).collect();
        report(&mut hole, &[sent(10, 61), sent(20, 61)], &lost);
        assert!(!hole.is_found(PTO), "those passed before the path changed");
        report(&mut hole, &[sent(30, 1_479), sent(400, 61), sent(410, 61)], &[]);
        assert!(hole.is_found(PTO), "an old large one that arrives late refutes nothing");
        let mut hole = watch();
        let small: Vec<SentPacket> = (1..8).map(|nth| sent(nth * 50, 1_223)).collect();
        report(&mut hole, &[sent(400, 61), sent(410, 61)], &small);
        assert!(!hole.is_found(PTO), "small ones are lost too");
    }

    #[test]
    fn a_late_small_packet_declared_lost_has_passed() {
        let mut hole = watch();
        let lost: Vec<SentPacket> = (0..6).map(|nth| sent(nth * 50, 1_479)).collect();
        let late = [sent(60, 61), sent(260, 61)];
        report(&mut hole, &[], &[&lost[..], &late[..]].concat());
        report_late(&mut hole, &late);
        assert!(hole.is_found(PTO));
        report_late(&mut hole, &[sent(250, 1_479)]);
        assert!(!hole.is_found(PTO), "a large one passed");
    }

    #[test]
    fn middle_sized_packets_prove_nothing_about_larger_ones() {
        let lost: Vec<SentPacket> = (0..6).map(|nth| sent(nth * 50, 8_519)).collect();
        let mut hole = watch();
        report(&mut hole, &[], &lost);
        report(&mut hole, &[sent(260, 1_479), sent(270, 2_887)], &[]);
        assert!(hole.is_found(PTO));
        let mut hole = watch();
        report(&mut hole, &[], &[&lost[..], &[sent(250, 1_479)]].concat());
        report(&mut hole, &[sent(260, 1_479), sent(270, 1_479)], &[]);
        assert!(!hole.is_found(PTO), "some of that size are lost by chance");
    }

    #[test]
    fn silence_is_probed_and_answers_set_the_pace() {
        let mut hole = watch();
        let longest = Duration::from_secs(1);
        let at = |millis| Some(Time::ZERO + Duration::from_millis(millis));
        assert_eq!(hole.probe_at(PTO, longest), None);
        hole.on_sent(&sent(5, 1_223));
        assert_eq!(hole.probe_at(PTO, longest), None, "small");
        hole.on_sent(&sent(10, 1_479));
        hole.on_sent(&sent(90, 1_479));
        assert_eq!(hole.probe_at(PTO, longest), at(210));
        hole.on_probe_sent(sent(210, 0).time);
        assert_eq!(hole.probe_at(PTO, longest), at(410), "unanswered: half as often");
        report(&mut hole, &[sent(210, 61)], &[]);
        assert_eq!(hole.probe_at(PTO, longest), at(310));
        for _ in 0..20 {
            hole.on_probe_sent(sent(1_000, 0).time);
        }
        assert_eq!(hole.probe_at(PTO, longest), at(2_000), "once a second at least");
        report(&mut hole, &[sent(90, 1_479)], &[]);
        assert_eq!(hole.probe_at(PTO, longest), None, "a large one passed");
        let behind_a_queue = Duration::from_secs(9);
        let mut hole = watch();
        hole.on_sent(&sent(10, 1_479));
        assert_eq!(hole.probe_at(behind_a_queue, longest), at(5_010), "after a long silence, not two timeouts");
        hole.on_probe_sent(sent(5_010, 0).time);
        assert_eq!(hole.probe_at(behind_a_queue, longest), at(6_010), "once a second all the same");
    }
}
