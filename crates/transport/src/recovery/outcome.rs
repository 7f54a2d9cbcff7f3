//! Where a report is put together, in buffers that are used again, and what all reports add up to.

use super::ecn::Ecn;
use super::flight::Entry;
use super::loss_estimate::LossEstimate;
use super::sent::{Cause, RateSample, Report, Sent};
use crate::time::Time;
use std::time::Duration;

/// A [`Report`] in the making, and the last one made.
#[derive(Debug)]
pub(super) struct Outcome {
    now: Time,
    cause: Cause,
    pub(super) delivered: Vec<Sent>,
    pub(super) lost: Vec<Sent>,
    pub(super) spurious: Vec<Sent>,
    pub(super) outlived: Vec<Sent>,
    delivered_bytes: u64,
    lost_bytes: u64,
    pub(super) newly_marked: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) rate_sample: Option<RateSample>,
    in_flight_before: u64,
    pub(super) app_limited: bool,
    pub(super) persistent_congestion: bool,
}

impl Outcome {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            now,
            cause: Cause::Feedback,
            delivered: Vec::new(),
            lost: Vec::new(),
            spurious: Vec::new(),
            outlived: Vec::new(),
            delivered_bytes: 0,
            lost_bytes: 0,
            newly_marked: 0,
            rtt: None,
            rate_sample: None,
            in_flight_before: 0,
            app_limited: false,
            persistent_congestion: false,
        }
    }

    /// Forgets the last report.
    pub(super) fn begin(&mut self, now: Time, cause: Cause, in_flight_before: u64) {
        self.delivered.clear();
        self.lost.clear();
        self.spurious.clear();
        self.outlived.clear();
        self.now = now;
        self.cause = cause;
        self.newly_marked = 0;
        self.rtt = None;
        self.rate_sample = None;
        self.in_flight_before = in_flight_before;
        self.app_limited = false;
        self.persistent_congestion = false;
    }

    /// A packet is called lost: the estimate, ECN validation and the report hear of it. A run of losses that was sent over
    /// `persistent` is persistent congestion.
    pub(super) fn on_lost(&mut self, entry: &Entry, persistent: Duration, loss: &mut LossEstimate, ecn: &mut Ecn) {
        self.persistent_congestion |= loss.on_lost(entry.ordinal, entry.sent.time) >= persistent;
        if entry.marked {
            ecn.on_marked_lost();
        }
        self.lost.push(entry.sent);
    }

    /// Adds up the bytes once the packets are known.
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
            delivered_bytes: self.delivered_bytes,
            lost_bytes: self.lost_bytes,
            newly_marked: self.newly_marked,
            rtt: self.rtt,
            rate_sample: self.rate_sample,
            in_flight_before: self.in_flight_before,
            app_limited: self.app_limited,
        }
    }
}

fn bytes(packets: &[Sent]) -> u64 {
    packets.iter().map(|sent| u64::from(sent.bytes)).sum()
}

/// Packets and IP bytes of one path since it began. Only packets that ask for feedback, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Of the packets sent, probes.
    pub probe_packets: u64,
    /// Packets sent that ask for no feedback.
    pub untracked_packets: u64,
    /// Bytes of these.
    pub untracked_bytes: u64,
    /// Packets that arrived in time.
    pub delivered_packets: u64,
    /// Bytes of these.
    pub delivered_bytes: u64,
    /// Packets called lost, those that later arrived included.
    pub lost_packets: u64,
    /// Bytes of these.
    pub lost_bytes: u64,
    /// Packets called lost that arrived after all.
    pub spurious_packets: u64,
    /// Bytes of these.
    pub spurious_bytes: u64,
    /// Times that silence called for a probe.
    pub probe_timeouts: u64,
    /// Times that silence emptied the flight.
    pub timeouts: u64,
    /// Packets reported as marked CE.
    pub marked_packets: u64,
}

impl RecoveryStats {
    pub(super) fn on_sent(&mut self, sent: &Sent, probe: bool) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(sent.bytes);
        self.probe_packets += u64::from(probe);
    }

    pub(super) fn on_untracked(&mut self, bytes: u32) {
        self.untracked_packets += 1;
        self.untracked_bytes += u64::from(bytes);
    }

    pub(super) fn on_report(&mut self, report: &Report<'_>) {
        self.delivered_packets += report.delivered.len() as u64;
        self.delivered_bytes += report.delivered_bytes;
        self.lost_packets += report.lost.len() as u64;
        self.lost_bytes += report.lost_bytes;
        self.spurious_packets += report.spurious.len() as u64;
        self.spurious_bytes += bytes(report.spurious);
        self.marked_packets += report.newly_marked;
    }
}
