//! [`Report`]: the result of feedback or a timeout for the packets in flight, and the buffers in which it is assembled.

use super::delivery_rate::RateSample;
use super::ecn::Ecn;
use super::loss_estimate::LossEstimate;
use super::sent_packets::SentPacket;
use super::sent_packets::TrackedPacket;
use crate::time::Time;
use std::time::Duration;

/// The cause of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Feedback arrived.
    Feedback,
    /// The loss timer expired: packets overtaken by others have been declared lost by their age.
    LossTimer,
    /// The retransmission timer expired: everything in flight has been declared lost (RFC 6298 section 5.4, lt-tcp
    /// §3.5).
    Timeout,
    /// The path was abandoned: everything in flight counts as lost.
    Closed,
}

/// Feedback and timeouts in one form: no controller, schedule or flow depends on the wire format.
#[derive(Debug)]
pub struct Report<'a> {
    /// When the report was made.
    pub now: Time,
    /// Its cause.
    pub cause: Cause,
    /// Packets newly acknowledged, in order of their numbers.
    pub delivered: &'a [SentPacket],
    /// Packets newly declared lost, in order of their numbers.
    pub lost: &'a [SentPacket],
    /// Packets acknowledged after they had been declared lost.
    pub spurious: &'a [SentPacket],
    /// Acknowledged packets of an earlier path that were abandoned with it: they are no sample of this path.
    pub outlived: &'a [SentPacket],
    /// Newly arrived packets without a known number: their symbols are behind a gap of their flow (feedback in order),
    /// or arrivals are only counted.
    pub withheld: u64,
    /// IP bytes in `delivered`.
    pub delivered_bytes: u64,
    /// IP bytes in `lost`.
    pub lost_bytes: u64,
    /// Packets newly reported as marked CE.
    pub newly_marked: u64,
    /// The round-trip time sample of this feedback.
    pub rtt: Option<Duration>,
    /// The same without the time for which the peer withheld its feedback.
    pub path_rtt: Option<Duration>,
    /// The delivery rate sample of this feedback.
    pub rate_sample: Option<RateSample>,
    /// IP bytes in flight before this report.
    pub in_flight_before: u64,
    /// The sender has been application-limited: the window did not limit it (RFC 9002 section 7.8).
    pub app_limited: bool,
}

/// Assembles a [`Report`], and holds the last one. Its buffers are reused.
#[derive(Debug)]
pub(super) struct ReportBuilder {
    now: Time,
    cause: Cause,
    pub(super) delivered: Vec<SentPacket>,
    pub(super) lost: Vec<SentPacket>,
    pub(super) spurious: Vec<SentPacket>,
    pub(super) outlived: Vec<SentPacket>,
    pub(super) withheld: u64,
    delivered_bytes: u64,
    lost_bytes: u64,
    pub(super) newly_marked: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) path_rtt: Option<Duration>,
    pub(super) rate_sample: Option<RateSample>,
    in_flight_before: u64,
    pub(super) app_limited: bool,
    pub(super) persistent_congestion: bool,
}

impl ReportBuilder {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            now,
            cause: Cause::Feedback,
            delivered: Vec::new(),
            lost: Vec::new(),
            spurious: Vec::new(),
            outlived: Vec::new(),
            withheld: 0,
            delivered_bytes: 0,
            lost_bytes: 0,
            newly_marked: 0,
            rtt: None,
            path_rtt: None,
            rate_sample: None,
            in_flight_before: 0,
            app_limited: false,
            persistent_congestion: false,
        }
    }

    /// Starts a new report.
    pub(super) fn begin(&mut self, now: Time, cause: Cause, in_flight_before: u64) {
        self.delivered.clear();
        self.lost.clear();
        self.spurious.clear();
        self.outlived.clear();
        self.withheld = 0;
        self.now = now;
        self.cause = cause;
        self.newly_marked = 0;
        self.rtt = None;
        self.path_rtt = None;
        self.rate_sample = None;
        self.in_flight_before = in_flight_before;
        self.app_limited = false;
        self.persistent_congestion = false;
    }

    /// Records a packet declared lost. Losses in a row, sent over at least `persistent`, are persistent congestion.
    pub(super) fn on_lost(
        &mut self,
        entry: &TrackedPacket,
        persistent: Duration,
        loss: &mut LossEstimate,
        ecn: &mut Ecn,
    ) {
        self.persistent_congestion |= loss.on_lost(entry.ordinal, entry.sent.time) >= persistent;
        if entry.marked {
            ecn.on_marked_lost();
        }
        self.lost.push(entry.sent);
    }

    /// Adds up the bytes, once all packets are known.
    pub(super) fn total(&mut self) {
        self.delivered_bytes = bytes(&self.delivered);
        self.lost_bytes = bytes(&self.lost);
    }

    pub(super) fn report(&self) -> Report<'_> {
        Report {
            now: self.now,
            cause: self.cause,
            delivered: &self.delivered,
            lost: &self.lost,
            spurious: &self.spurious,
            outlived: &self.outlived,
            withheld: self.withheld,
            delivered_bytes: self.delivered_bytes,
            lost_bytes: self.lost_bytes,
            newly_marked: self.newly_marked,
            rtt: self.rtt,
            path_rtt: self.path_rtt,
            rate_sample: self.rate_sample,
            in_flight_before: self.in_flight_before,
            app_limited: self.app_limited,
        }
    }
}

pub(super) fn bytes(packets: &[SentPacket]) -> u64 {
    packets.iter().map(|sent| u64::from(sent.bytes)).sum()
}

#[cfg(any(test, feature = "testing"))]
impl Report<'static> {
    /// Returns a report about no packet, for tests to fill in.
    pub const fn empty(now: Time) -> Self {
        Self {
            now,
            cause: Cause::Feedback,
            delivered: &[],
            lost: &[],
            spurious: &[],
            outlived: &[],
            withheld: 0,
            delivered_bytes: 0,
            lost_bytes: 0,
            newly_marked: 0,
            rtt: None,
            path_rtt: None,
            rate_sample: None,
            in_flight_before: 0,
            app_limited: false,
        }
    }
}
