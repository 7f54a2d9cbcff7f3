//! When to send feedback.

use super::arrivals::ReceivedRanges;
use crate::time::Time;
use crate::wire::{FeedbackTiming, Heartbeat, MILLION, PacketCountTiming, Spacing};
use std::time::Duration;

/// With feedback every so many packets, a pause of this length between packets ends the wait for more: the sender may
/// have nothing to send until feedback arrives, and the packet after the pause may be its probe. A quarter of a round
/// trip, but longer than the gap between paced batches.
const LEAST_PAUSE: Duration = Duration::from_millis(5);

/// Longest time without feedback while packets arrive. Departs: ttp II-B counts packets only. A sender slower than 34
/// packets a second would get no feedback for 30 s, and give up a peer that receives everything.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// Round trips shorter than this do not make heartbeats more frequent.
const LEAST_HEARTBEAT: Duration = Duration::from_millis(1);

/// Doublings of the time between two heartbeats without news. More would make a sender wait too long where a burst of
/// losses has taken the first ones.
const MAX_DOUBLINGS: u32 = 3;

/// Packet numbers are skipped on purpose about this far apart (PROTOCOL section 7): such gaps are no loss.
const SKIPPED_EVERY: u16 = 512;

/// When to send feedback: as the sender has chosen, but always the first one and the urgent ones. Spaced feedback is at
/// most 2 % of the bytes received, but always sixteen per round trip (docs/design/feedback.md).
///
/// Departs: the 2 % alone would block all but one per round trip. A window of five packets is then answered once, its
/// packets wait for half a round trip on average, and loss-based controllers get half of what their response functions
/// promise. Sixteen let each packet of a window of sixteen be answered; they cost 2 kB per round trip.
#[derive(Debug)]
pub(super) struct FeedbackClock {
    timing: FeedbackTiming,
    rtt: Duration,
    last: Option<Time>,
    pending: bool,
    urgent: bool,
    /// The pending feedback reports no gap.
    settled: bool,
    received: u64,
    sent: u64,
    /// Packets that ask for feedback since the last one, and when the first and the last of them arrived.
    unsaid: u32,
    first_unsaid: Time,
    /// Heartbeats since then.
    beats: u32,
    last_asked: Option<Time>,
}

impl FeedbackClock {
    /// Bytes received for each byte of spaced feedback (docs/design/feedback.md: at most 2 %).
    const SHARE: u64 = 50;
    /// Feedbacks per round trip that the share does not limit.
    const NEVER_BLOCKED: u32 = 16;
    /// Feedback allowed before the share applies: a few packets' worth.
    const ALLOWANCE: u64 = 2_000;

    pub(super) const fn new(timing: FeedbackTiming) -> Self {
        Self {
            timing,
            rtt: Duration::ZERO,
            last: None,
            pending: false,
            urgent: false,
            settled: false,
            received: 0,
            sent: 0,
            unsaid: 0,
            first_unsaid: Time::ZERO,
            beats: 0,
            last_asked: None,
        }
    }

    pub(super) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Returns the round-trip time reported by the peer; zero before its first report.
    pub(super) const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Handles the arrival of a packet, one of `arrivals`. `asks`: it asks for feedback.
    pub(super) fn on_packet(&mut self, now: Time, ip_bytes: u32, asks: bool, arrivals: &ReceivedRanges) {
        self.received += u64::from(ip_bytes);
        if !asks {
            return;
        }
        self.pending = true;
        if self.unsaid == 0 {
            self.first_unsaid = now;
        }
        self.unsaid += 1;
        self.beats = 0;
        if let FeedbackTiming::Every(counting) = self.timing {
            // Law 7: a packet after a pause may be a probe, which is answered at once.
            let paused = self.last_asked.is_some_and(|last| now >= last + self.pause());
            self.urgent |= paused || is_enough(counting, self.unsaid, arrivals);
        }
        self.last_asked = Some(now);
    }

    /// Makes feedback due at once.
    pub(super) const fn hurry(&mut self) {
        self.pending = true;
        self.urgent = true;
    }

    /// Handles the end of a decoding attempt. The sender waits for the result, done or more needed, unless it wants
    /// feedback after a number of packets and no sooner.
    pub(super) const fn on_tried(&mut self) {
        self.pending = true;
        self.urgent |= !matches!(self.timing, FeedbackTiming::Every(_));
    }

    /// Handles a done block.
    pub(super) const fn on_done(&mut self) {
        self.pending = true;
        self.urgent |= matches!(self.timing, FeedbackTiming::OnBlocks(_));
    }

    /// Makes feedback due when nothing is missing. If it exceeds its share it waits for packets that follow soon, as
    /// the repair of a small write does.
    pub(super) const fn settle(&mut self) {
        self.pending = true;
        self.settled = true;
    }

    /// Makes feedback due at the usual time.
    pub(super) const fn note(&mut self) {
        self.pending = true;
    }

    /// Returns when the next feedback is due. `unfinished`: a flow with received data is incomplete.
    pub(super) fn due(&self, unfinished: impl FnOnce() -> bool) -> Option<Time> {
        let last = match (self.pending, self.urgent, self.last) {
            (false, _, last) => {
                let beat = last.zip(self.heartbeat()).map(|(last, beat)| last + beat)?;
                return unfinished().then_some(beat);
            }
            (true, false, Some(last)) => last,
            _ => return Some(Time::ZERO),
        };
        Some(match self.timing {
            FeedbackTiming::EveryPacket => Time::ZERO,
            FeedbackTiming::Spaced(Spacing { per_rtt, at_least }) => {
                let interval = (self.rtt / u32::from(per_rtt.max(1))).max(at_least);
                let within_share = self.sent <= Self::ALLOWANCE + self.received / Self::SHARE;
                let rarest = interval.max(self.rtt / Self::NEVER_BLOCKED);
                match (within_share, self.settled) {
                    (true, _) => last + interval,
                    (false, false) => last + rarest,
                    (false, true) => (last + interval).max(self.first_unsaid + rarest),
                }
            }
            // Departs: at least once a round trip, which congestion control depends on (RFC 5348 section 6.2), where
            // the document leaves it to DCCP.
            FeedbackTiming::OnBlocks(timing) => last + self.beat(timing).min(self.rtt.max(LEAST_HEARTBEAT)),
            FeedbackTiming::Every(_) => (self.last_asked.unwrap_or(last) + self.pause()).min(last + LONGEST_SILENCE),
        })
    }

    /// Returns the time until the next heartbeat, if any.
    ///
    /// Departs: after a round trip of heartbeats with the same news they get rarer. The round-trip time is reported by
    /// the sender, and a sender that waits for feedback in a long queue sends nothing (docs/design/feedback.md).
    fn heartbeat(&self) -> Option<Duration> {
        let FeedbackTiming::OnBlocks(timing) = self.timing else { return None };
        let doublings = self.beats.saturating_sub(Self::NEVER_BLOCKED).min(MAX_DOUBLINGS);
        Some(self.beat(timing) * (1 << doublings))
    }

    /// Returns the time between two heartbeats.
    ///
    /// Departs: at most sixteen per round trip. On a return path slower than the heartbeats, feedback queues up and
    /// grows older until the connection dies. Now the longer round trips slow the heartbeats down
    /// (docs/design/feedback.md).
    fn beat(&self, Heartbeat { heartbeat }: Heartbeat) -> Duration {
        heartbeat.max(self.rtt / Self::NEVER_BLOCKED)
    }

    fn pause(&self) -> Duration {
        (self.rtt / 4).max(LEAST_PAUSE)
    }

    pub(super) const fn on_sent(&mut self, ip_bytes: u32, now: Time) {
        self.sent += ip_bytes as u64;
        self.last = Some(now);
        self.beats += !self.pending as u32;
        self.pending = false;
        self.urgent = false;
        self.settled = false;
        self.unsaid = 0;
    }
}

/// Returns whether `unsaid` packets are enough to report (ttp II-B): n of them; n / 2, when the loss over the last n
/// exceeds the threshold; more by the factor, without loss. Checked when the next half of n is full.
fn is_enough(counting: PacketCountTiming, unsaid: u32, arrivals: &ReceivedRanges) -> bool {
    let PacketCountTiming { packets, threshold, factor } = counting;
    if !unsaid.is_multiple_of(u32::from(packets / 2)) {
        return false;
    }
    let missing = arrivals.missing(packets);
    // Departs: some missing numbers were never sent. This many are expected, and seldom more than twice that and one.
    let skipped = packets / SKIPPED_EVERY;
    let lost = u64::from(missing.saturating_sub(skipped)) * u64::from(MILLION);
    let past = lost > u64::from(threshold) * u64::from(packets);
    let clean = missing <= 2 * skipped + 1;
    let whole = u32::from(packets / 2) * 2;
    past || (unsaid >= whole && !clean) || unsaid >= whole * u32::from(factor)
}
