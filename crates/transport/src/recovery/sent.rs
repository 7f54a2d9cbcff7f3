//! Where the two middle rooms meet: [`Sent`] says what a packet carried, [`Report`] what became of it. Recovery never
//! looks into [`Content`]; flows never see a packet number they could act upon.

use crate::time::Time;
use crate::wire::SymbolRun;
use std::time::Duration;

/// What a packet carried, kept for the one who has to act on its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that needs to arrive: a probe or feedback.
    Nothing,
    /// Symbols of a flow: they arrive or are lost together.
    Symbols(SymbolRun),
    /// Control frames, kept by the connection under this key.
    Control(u32),
}

impl Content {
    /// Whether it is symbols: feedback in order names them only when nothing before them is missing, and everything else at once.
    pub(super) const fn is_symbol(&self) -> bool {
        matches!(self, Self::Symbols(_))
    }
}

/// A packet on its way that asks for feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Packet number.
    pub number: u64,
    /// When it left.
    pub time: Time,
    /// IP bytes: UDP payload plus headers.
    pub bytes: u32,
    /// What it carried.
    pub content: Content,
}

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

/// A sample of the rate at which packets were delivered (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// The sender had nothing to send during the sample: it is a lower bound.
    pub app_limited: bool,
    /// Bytes that were in flight when the newest packet of the sample had left, that one included.
    pub in_flight: u64,
    /// Bytes called lost since then, up to the last report.
    pub lost: u64,
}

/// The one normalised form of feedback and timeouts: nothing downstream knows which profile or wire form produced it.
#[derive(Debug)]
pub struct Report<'a> {
    /// When it was made.
    pub now: Time,
    /// Why.
    pub cause: Cause,
    /// Packets newly known to have arrived, in order of number.
    pub delivered: &'a [Sent],
    /// Packets newly called lost, in order of number.
    pub lost: &'a [Sent],
    /// Packets called lost earlier that arrived after all.
    pub spurious: &'a [Sent],
    /// Packets given up with an earlier path that arrived after all: they say nothing about this one.
    pub outlived: &'a [Sent],
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
