//! Feedback: arrived packets, and the time of their report.

mod arrivals;
mod clock;
mod deferred_acks;

pub use arrivals::ReceivedEcn;

use super::recv_flows::RecvProgress;
use crate::time::Time;
use crate::wire::{self, FeedbackConfig, FlowId, PacketFeedback, SymbolId, expand};
use arrivals::ReceivedRanges;
use clock::FeedbackClock;
use deferred_acks::DeferredAcks;
use std::time::Duration;

/// A packet with accepted content.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcceptedPacket {
    pub(super) number: u64,
    pub(super) ecn: ReceivedEcn,
    pub(super) ip_bytes: u32,
    /// It asks for feedback.
    pub(super) asks: bool,
    /// Its last symbol, if symbols before it in its flow are missing.
    pub(super) behind_gap: Option<SymbolId>,
}

/// This side's feedback on packets that arrive.
#[derive(Debug)]
pub(super) struct Feedback {
    /// The peer's choice.
    choice: FeedbackConfig,
    arrivals: ReceivedRanges,
    /// Packets not yet acknowledged, if the sender wants them in order.
    withheld: Option<DeferredAcks>,
    clock: FeedbackClock,
    /// Number of the last feedback. The wire carries its lower 32 bits.
    last: u64,
    /// The highest number that the peer understands.
    highest: u64,
}

impl Feedback {
    /// `counts_on`: the peer, as the sender of data, understands feedback numbers beyond 32 bits.
    pub(super) fn new(choice: FeedbackConfig, counts_on: bool) -> Self {
        Self {
            choice,
            arrivals: ReceivedRanges::new(&choice),
            withheld: (choice.packets == PacketFeedback::InOrder).then(DeferredAcks::default),
            clock: FeedbackClock::new(choice.timing),
            last: 0,
            highest: if counts_on { u64::MAX } else { u32::MAX.into() },
        }
    }

    /// Returns whether packets are acknowledged in order: one with a symbol behind a gap of its flow is withheld.
    pub(super) const fn is_in_order(&self) -> bool {
        self.withheld.is_some()
    }

    /// Handles an accepted packet that must be acknowledged.
    pub(super) fn on_packet(&mut self, now: Time, packet: AcceptedPacket) {
        let AcceptedPacket { number, ecn, ip_bytes, asks, behind_gap } = packet;
        self.arrivals.count(number, ecn, asks, now);
        match behind_gap.zip(self.withheld.as_mut()) {
            Some((id, withheld)) => withheld.keep(id, number, now),
            None => self.arrivals.record_received(number, now),
        }
        self.clock.on_packet(now, ip_bytes, asks, &self.arrivals);
    }

    /// Handles the flows' progress with the received packets.
    pub(super) const fn on_progress(&mut self, progress: RecvProgress) {
        let RecvProgress { written, caught_up, block_done, decoded, complete } = progress;
        if written {
            self.clock.note();
        }
        if caught_up {
            self.clock.settle();
        }
        if block_done {
            self.clock.on_done();
        }
        if decoded {
            self.clock.on_tried();
        }
        if complete {
            self.clock.hurry();
        }
    }

    /// Makes feedback due at the usual time.
    pub(super) const fn note(&mut self) {
        self.clock.note();
    }

    /// Makes feedback due at once.
    pub(super) const fn hurry(&mut self) {
        self.clock.hurry();
    }

    /// Continues with the feedback after number `last`.
    #[cfg(test)]
    pub(super) const fn begin_after(&mut self, last: u64) {
        self.last = last;
    }

    /// Returns the number of the last feedback.
    #[cfg(test)]
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Returns when feedback is due. `awaited`: a flow with received data is incomplete.
    pub(super) fn deadline(&self, awaited: impl FnOnce() -> bool) -> Option<Time> {
        self.clock.due(awaited)
    }

    /// Returns whether the peer would mistake the next feedback for an old one.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.last >= self.highest
    }

    /// Returns the feedback to send now, without the sections on flows and credit, and its full number. `gap` returns a
    /// flow's first missing source symbol as block number and ESI.
    pub(super) fn frame(&mut self, now: Time, gap: impl FnMut(FlowId) -> Option<(u32, u32)>) -> (u64, wire::Feedback) {
        self.last += 1;
        let number = self.last;
        if let Some(withheld) = &mut self.withheld {
            withheld.release(gap, |number, at| self.arrivals.record_received(number, at));
        }
        let feedback = wire::Feedback {
            number: number as u32,
            packets: self.arrivals.report_ranges(number, now),
            ecn: self.choice.ecn.then(|| self.arrivals.marks()),
            count: self.arrivals.report_count(now),
            ..wire::Feedback::default()
        };
        (number, feedback)
    }

    /// Notes that feedback was sent, in a packet of `ip_bytes` IP bytes.
    pub(super) const fn on_sent(&mut self, now: Time, ip_bytes: u32) {
        self.clock.on_sent(ip_bytes, now);
    }

    /// Handles the peer's confirmation that it has processed the feedback with this truncated number, and its smoothed
    /// round-trip time. Returns the full number.
    pub(super) fn on_seen(&mut self, number: u32, rtt: Duration) -> u64 {
        let number = expand(number, self.last);
        self.clock.set_rtt(rtt);
        self.arrivals.on_seen(number);
        number
    }

    /// Returns the round-trip time reported by the peer; zero before its first report.
    pub(super) const fn peer_rtt(&self) -> Duration {
        self.clock.rtt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{FeedbackTiming, LastPackets, PacketCountTiming, Spacing};

    const RTT: Duration = Duration::from_millis(40);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn everything() -> FeedbackConfig {
        FeedbackConfig::everything(FeedbackTiming::EveryPacket)
    }

    fn packet(number: u64) -> AcceptedPacket {
        AcceptedPacket { number, ecn: ReceivedEcn::Ect0, ip_bytes: 1_500, asks: true, behind_gap: None }
    }

    /// With packets in order, a packet behind a gap is acknowledged once the gap is closed.
    #[test]
    fn a_packet_behind_a_gap_waits_for_it() {
        let choice = FeedbackConfig { packets: PacketFeedback::InOrder, ..everything() };
        let mut feedback = Feedback::new(choice, true);
        assert!(feedback.is_in_order());
        let id = SymbolId { flow: FlowId(1), block: 0, esi: 2 };
        feedback.on_packet(at(1), packet(1));
        feedback.on_packet(at(2), AcceptedPacket { behind_gap: Some(id), ..packet(3) });
        let ranges = |(_, frame): (u64, wire::Feedback)| frame.packets.map(|packets| packets.ranges);
        assert_eq!(ranges(feedback.frame(at(3), |_| Some((0, 1)))), Some(vec![(1, 1)]));
        assert_eq!(ranges(feedback.frame(at(4), |_| Some((0, 3)))), Some(vec![(3, 3), (1, 1)]));
    }

    #[test]
    fn progress_decides_how_soon_feedback_goes_out() {
        let spaced = FeedbackTiming::Spaced(Spacing { per_rtt: 4, at_least: Duration::from_millis(1) });
        let choice = FeedbackConfig { timing: spaced, ..everything() };
        let due = |progress| {
            let mut feedback = Feedback::new(choice, true);
            feedback.on_seen(0, RTT);
            feedback.on_sent(at(1), 100);
            feedback.on_progress(progress);
            feedback.deadline(|| false)
        };
        let none = RecvProgress::default();
        assert_eq!(due(none), None);
        assert_eq!(due(RecvProgress { written: true, ..none }), Some(at(11)), "a quarter of a round trip");
        assert_eq!(due(RecvProgress { caught_up: true, ..none }), Some(at(11)));
        assert_eq!(due(RecvProgress { block_done: true, ..none }), Some(at(11)));
        assert_eq!(due(RecvProgress { decoded: true, ..none }), Some(Time::ZERO), "at once");
        assert_eq!(due(RecvProgress { complete: true, ..none }), Some(Time::ZERO));
    }

    /// The packets of a keystroke, its repair half a thirty-second of a round trip later among them, get one answer.
    #[test]
    fn where_little_is_sent_feedback_collects_for_a_sixteenth_of_a_round_trip() {
        let timing = FeedbackTiming::Spaced(Spacing::default());
        let mut feedback = Feedback::new(FeedbackConfig { timing, ..everything() }, true);
        feedback.on_seen(0, RTT * 16);
        let key = |feedback: &mut Feedback, number, millis| {
            feedback.on_packet(at(millis), AcceptedPacket { ip_bytes: 80, ..packet(number) });
            feedback.on_progress(RecvProgress { caught_up: true, block_done: true, ..RecvProgress::default() });
            feedback.deadline(|| false)
        };
        assert_eq!(key(&mut feedback, 1, 1), Some(Time::ZERO), "the first at once");
        feedback.on_sent(at(1), 2_000);
        assert_eq!(key(&mut feedback, 2, 500), Some(at(21)), "within the share: the usual time, long past");
        feedback.on_sent(at(500), 2_000);
        assert_eq!(key(&mut feedback, 3, 1_000), Some(at(1_040)));
        assert_eq!(key(&mut feedback, 4, 1_020), Some(at(1_040)), "from the first unreported one");
        feedback.on_sent(at(1_040), 100);
        assert_eq!(key(&mut feedback, 5, 1_041), Some(at(1_081)));
        feedback.on_progress(RecvProgress { decoded: true, ..RecvProgress::default() });
        assert_eq!(feedback.deadline(|| false), Some(Time::ZERO), "a decoder has tried");
    }

    /// A sender of 25 packets a second would wait 41 s for the 1024th, and takes a silence of 30 s for a dead path.
    #[test]
    fn a_slow_sender_is_answered_every_three_seconds() {
        let timing = FeedbackTiming::Every(PacketCountTiming { packets: 1_024, threshold: 10_000, factor: 2 });
        let mut feedback = Feedback::new(FeedbackConfig { timing, ..everything() }, true);
        feedback.on_seen(0, RTT * 10);
        let mut sent = Vec::new();
        for number in 0..500 {
            let now = at(number * 40);
            feedback.on_packet(now, packet(number));
            if feedback.deadline(|| true).is_some_and(|due| due <= now) {
                feedback.on_sent(now, 100);
                sent.push(number * 40);
            }
        }
        assert_eq!(sent, [0, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000]);
    }

    #[test]
    fn marks_are_counted_where_they_are_wanted() {
        for ecn in [false, true] {
            let packets = PacketFeedback::Last(LastPackets { packets: 64 });
            let mut feedback = Feedback::new(FeedbackConfig { ecn, packets, ..everything() }, true);
            feedback.on_packet(at(1), packet(1));
            feedback.on_packet(at(1), AcceptedPacket { ecn: ReceivedEcn::Ce, ..packet(2) });
            let counts = feedback.frame(at(2), |_| None).1.ecn.map(|ecn| (ecn.ect0, ecn.ce));
            assert_eq!(counts, ecn.then_some((1, 1)));
        }
    }
}
