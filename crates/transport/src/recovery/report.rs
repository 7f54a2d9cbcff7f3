//! [`Report`]: what feedback or a timeout says about the packets in flight, and the buffers in which it is assembled.

use super::delivery_rate::RateSample;
use super::ecn::Ecn;
use super::loss_estimate::LossEstimate;
use super::sent_packets::Entry;
use super::sent_packets::SentPacket;
use crate::time::Time;
use std::time::Duration;

/// Why there is a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Feedback came.
    Feedback,
    /// The loss timer ran out: packets overtaken by others are now called lost.
    LossTimer,
    /// The retransmission timer ran out: everything in flight is called lost (RFC 6298 section 5.4; lt-tcp §3.5).
    Timeout,
    /// The path was given up: everything in flight is lost.
    Closed,
}

/// The one normalised form of feedback and timeouts: nothing downstream knows which profile or wire form produced it.
#[derive(Debug)]
pub struct Report<'a> {
    /// When it was made.
    pub now: Time,
    /// Why.
    pub cause: Cause,
    /// Packets newly known to have arrived, in order of number.
    pub delivered: &'a [SentPacket],
    /// Packets newly called lost, in order of number.
    pub lost: &'a [SentPacket],
    /// Packets called lost earlier that arrived after all.
    pub spurious: &'a [SentPacket],
    /// Packets given up with an earlier path that arrived after all: they say nothing about this one.
    pub outlived: &'a [SentPacket],
    /// IP bytes in `delivered`.
    pub delivered_bytes: u64,
    /// IP bytes in `lost`.
    pub lost_bytes: u64,
    /// Packets newly reported as marked CE.
    pub newly_marked: u64,
    /// Round-trip time measured by this feedback.
    pub rtt: Option<Duration>,
    /// Rate measured by this feedback.
    pub rate_sample: Option<RateSample>,
    /// Bytes that were in flight before this report.
    pub in_flight_before: u64,
    /// The sender had nothing to send lately: the window was not the limit.
    pub app_limited: bool,
}

/// A [`Report`] in the making, and the last one made.
#[derive(Debug)]
pub(super) struct ReportBuilder {
    now: Time,
    cause: Cause,
    pub(super) delivered: Vec<SentPacket>,
    pub(super) lost: Vec<SentPacket>,
    pub(super) spurious: Vec<SentPacket>,
    pub(super) outlived: Vec<SentPacket>,
    delivered_bytes: u64,
    lost_bytes: u64,
    pub(super) newly_marked: u64,
    pub(super) rtt: Option<Duration>,
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

pub(super) fn bytes(packets: &[SentPacket]) -> u64 {
    packets.iter().map(|sent| u64::from(sent.bytes)).sum()
}

#[cfg(test)]
impl Report<'static> {
    /// Something was heard, and nothing of any packet: for tests to say what.
    pub(crate) const fn empty(now: Time) -> Self {
        Self {
            now,
            cause: Cause::Feedback,
            delivered: &[],
            lost: &[],
            spurious: &[],
            outlived: &[],
            delivered_bytes: 0,
            lost_bytes: 0,
            newly_marked: 0,
            rtt: None,
            rate_sample: None,
            in_flight_before: 0,
            app_limited: false,
        }
    }
}
