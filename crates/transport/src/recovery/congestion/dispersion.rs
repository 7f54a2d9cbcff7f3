//! The rate of a path's slowest link, from the spread of packets sent together.

use super::LinkRate;
use crate::recovery::report::Report;
use crate::recovery::sent_packets::SentPacket;
use crate::time::{Rate, Time};
use std::time::Duration;

/// Packets that arrive later apart than they were sent by this factor have been spread by the path's slowest link. A
/// smaller one gives a first estimate: programs take a millisecond until they have sent their first packets.
const SPREAD: f64 = 2.0;
const HARDLY_SPREAD: f64 = 1.25;
/// A shorter time is no evidence, since hosts read and send in bursts.
const SHORTEST: f64 = 200e-6;
/// After a shorter time than this, a rate is only a first estimate.
const SOLID: f64 = 400e-6;
const FEWEST: u64 = 4;
/// Packets sent within this time were sent together.
const AT_ONCE: Duration = Duration::from_micros(50);
/// Packets go out in trains while the pace is at most this part of the link's estimated rate, so that each train finds
/// the link idle. More than so many reports of them are not needed.
const SPARSE: f64 = 0.5;
const MOST_PLACES: usize = 30;
/// The pairs of packets, of so many earlier ones, at least so many packets apart that make an estimate valid.
const BELIEVED_PAIRS: usize = 12;
const BELIEVED_PLACES: usize = 3;
const FAR_APART: f64 = 6.0;
/// The middle half of their rates lies within this factor: hosts that wait a while now and then make them differ.
const AGREEING_RATES: f64 = 1.3;

/// A packet: its number, when it was sent, and when it arrived, in seconds.
#[derive(Clone, Copy, Debug)]
struct PacketTiming {
    number: u64,
    sent: Time,
    at: f64,
}

impl PacketTiming {
    /// The arrival of a packet after `delay` seconds.
    fn after(sent: &SentPacket, delay: f64) -> Self {
        Self { number: sent.number, sent: sent.time, at: sent.time.since(Time::ZERO).as_secs_f64() + delay }
    }
}

/// A packet's position in its train: the bytes between the first packet and this one, and its delay in seconds.
#[derive(Clone, Copy, Debug)]
struct TrainOffset {
    bytes: f64,
    delay: f64,
}

/// The estimate of the slowest link. The peer reports how long it withheld its feedback, so that the arrival time of
/// the newest packet is known but for the delay of the reverse path.
#[derive(Debug, Default)]
pub(super) struct Dispersion {
    /// The first report of packets sent together.
    first: Option<PacketTiming>,
    /// The rate shown by trains, or the largest one between two reports far enough apart, in bytes per second.
    rate: Option<f64>,
    /// Trains have shown it.
    is_measured: bool,
    /// A first estimate of it: from one report, or from two hardly far enough apart.
    first_estimate: Option<f64>,
    /// The link is faster than measured: later reports are ignored.
    is_disproved: bool,
    /// The first packet of the last train.
    lead: Option<SentPacket>,
    /// The places of the packets that reports have named last.
    places: Vec<TrainOffset>,
    /// Packets sent from then on were no trains.
    crowded: Option<Time>,
}

impl Dispersion {
    /// Returns the rate, in bytes per second, if it is more than a first estimate.
    pub(super) const fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Returns a first estimate of it.
    pub(super) const fn first_estimate(&self) -> Option<f64> {
        self.first_estimate
    }

    /// Returns whether many trains agree on the rate.
    pub(super) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns the rate on which many trains agree, for people and programs.
    pub(super) fn link(&self) -> Option<LinkRate> {
        let rate = self.rate.filter(|_| self.is_measured)?;
        let rate = Rate::from_bits_per_second((8.0 * rate) as u64);
        Some(LinkRate { rate, reports: self.places.len() as u32 })
    }

    /// Returns whether hosts, and not the slowest link, have spread packets.
    pub(super) const fn is_disproved(&self) -> bool {
        self.is_disproved
    }

    /// Returns whether packets leave in trains.
    pub(super) const fn wants_trains(&self) -> bool {
        self.crowded.is_none()
    }

    /// Ends the trains once the pace, in bytes per second, is so high that they would meet each other in a queue, or once
    /// enough of them are known.
    pub(super) fn on_pace(&mut self, now: Time, pace: f64) {
        let is_sparse = self.rate.or(self.first_estimate).is_none_or(|rate| pace < SPARSE * rate);
        if self.crowded.is_none() && (!is_sparse || self.places.len() >= MOST_PLACES) {
            self.crowded = Some(now);
        }
    }

    /// Takes a report; `base` is the least delay of the path in seconds.
    pub(super) fn on_report(&mut self, report: &Report<'_>, base: f64) {
        let Some((newest, rtt)) = report.delivered.last().zip(report.path_rtt).filter(|_| !self.is_disproved) else {
            return;
        };
        let mean = report.delivered_bytes as f64 / report.delivered.len().max(1) as f64;
        let together = report.delivered.iter().rev().take_while(|sent| newest.time.since(sent.time) <= AT_ONCE);
        let lead = together.last().unwrap_or(newest);
        self.on_train(lead, newest, rtt, mean);
        if self.is_measured {
            return;
        }
        // One report may be the first to acknowledge all packets sent together, as a program takes a while between its
        // first message and its data. Behind an earlier queue, the link seems slower than it is; with a still too long
        // base, faster. So this is for a first estimate only.
        let lead = PacketTiming::after(lead, base);
        let newest = PacketTiming::after(newest, rtt.as_secs_f64());
        let first = self.first.filter(|first| newest.number > first.number);
        match first.and_then(|first| rate_between(first, newest, mean)) {
            Some((rate, true)) => self.rate = Some(self.rate.map_or(rate, |known| known.max(rate))),
            found => {
                self.first_estimate =
                    self.first_estimate.or(rate_between(lead, newest, mean).or(found).map(|(rate, _)| rate))
            }
        }
        if first.is_none_or(|first| !is_spread(first, newest, SPREAD)) {
            self.first = Some(newest);
        }
    }

    /// Takes the newest packet of a report, and the first of the same report that was sent together with it.
    fn on_train(&mut self, first: &SentPacket, newest: &SentPacket, rtt: Duration, packet: f64) {
        let is_late = self.crowded.is_some_and(|crowded| newest.time >= crowded);
        if is_late || self.places.len() >= MOST_PLACES {
            return;
        }
        // An earlier report may have named the first packet of the train.
        let known = self.lead.filter(|lead| newest.number >= lead.number && newest.time.since(lead.time) <= AT_ONCE);
        let lead = known.unwrap_or(*first);
        self.lead = Some(lead);
        let delay = newest.time.since(lead.time) + rtt;
        self.places
            .push(TrainOffset { bytes: (newest.number - lead.number) as f64 * packet, delay: delay.as_secs_f64() });
        if let Some(rate) = agreed_rate(&self.places, FAR_APART * packet) {
            (self.rate, self.is_measured) = (Some(rate), true);
        }
    }

    /// Forgets the rate, since the link is faster, and accepts no other: no better estimate will follow.
    pub(super) fn disprove(&mut self) {
        *self = Self { is_disproved: true, crowded: self.crowded, ..Self::default() };
    }
}

/// Returns the rate, in bytes per second, at which packets left the slowest link that were at least `far` bytes apart
/// in their trains, if enough of them agree: the median of all pairs (Theil 1950, Sen 1968). It needs no base, and
/// tolerates a few packets that have waited in hosts.
fn agreed_rate(places: &[TrainOffset], far: f64) -> Option<f64> {
    let after = |one: &TrainOffset| {
        let apart = places.iter().map(|other| (other.bytes - one.bytes, other.delay - one.delay));
        let far = apart.filter(|(bytes, _)| *bytes >= far);
        // Those that did not arrive later agree with nothing.
        far.map(|(bytes, seconds)| (if seconds > 0.0 { bytes / seconds } else { f64::INFINITY }, seconds)).collect()
    };
    let pairs: Vec<Vec<(f64, f64)>> = places.iter().map(after).filter(|pairs: &Vec<_>| !pairs.is_empty()).collect();
    let earlier = pairs.len();
    let mut pairs = pairs.concat();
    if earlier < BELIEVED_PLACES || pairs.len() < BELIEVED_PAIRS {
        return None;
    }
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let [low, median, high] = [1, 2, 3].map(|quarter| pairs[pairs.len() * quarter / 4]);
    (high.0 < AGREEING_RATES * low.0 && median.1 >= SHORTEST).then_some(median.0)
}

/// Returns whether packets have been spread by this factor on their way.
fn is_spread(first: PacketTiming, last: PacketTiming, factor: f64) -> bool {
    last.at - first.at > factor * last.sent.since(first.sent).as_secs_f64()
}

/// Returns the rate of the link that spread these packets of `mean` bytes, if one has, in bytes per second, and whether
/// it is more than a first estimate.
fn rate_between(first: PacketTiming, last: PacketTiming, mean: f64) -> Option<(f64, bool)> {
    let (apart, packets) = (last.at - first.at, last.number - first.number);
    let is_solid = apart >= SOLID && is_spread(first, last, SPREAD);
    let is_any = apart >= SHORTEST && packets >= FEWEST && is_spread(first, last, HARDLY_SPREAD);
    // Of all numbers in between, since lost packets took their time too.
    is_any.then(|| (packets as f64 * mean / apart, is_solid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packets::Content;

    const RTT: Duration = Duration::from_millis(600);

    /// Reports one train after the other whose packets at these positions were the last acknowledged. Each packet takes
    /// the link `gap`, and the one at position p also waits for `wait(p)`. Returns the estimate.
    fn trains(places: &[u64], gap: Duration, wait: impl Fn(u64) -> Duration) -> Dispersion {
        let mut found = Dispersion::default();
        for (train, place) in (0..).zip(places) {
            let sent = Time::ZERO + Duration::from_millis(20) * train;
            let packet = |place| SentPacket {
                number: u64::from(train) * 20 + place,
                time: sent,
                bytes: 1000,
                content: Content::Nothing,
            };
            let delivered: Vec<_> = (0..=*place).map(packet).collect();
            let rtt = RTT + gap * *place as u32 + wait(*place);
            let report = Report {
                delivered: &delivered,
                delivered_bytes: 1000 * (place + 1),
                path_rtt: Some(rtt),
                ..Report::empty(sent + rtt)
            };
            // The base is not known well.
            found.on_report(&report, RTT.as_secs_f64() + 0.001);
        }
        found
    }

    fn measured(found: &Dispersion) -> Option<f64> {
        let rate = found.rate().filter(|_| found.is_measured()).map(f64::round);
        let link = found.link().map(|link| (link.rate.bits_per_second() as f64 / 8.0).round());
        assert_eq!(rate, link, "as people and programs see it");
        rate
    }

    const GAP: Duration = Duration::from_micros(100);
    const PLACES: [u64; 9] = [19, 2, 18, 19, 0, 17, 19, 5, 19];

    #[test]
    fn trains_show_the_rate_whatever_the_base() {
        let none = |_| Duration::ZERO;
        assert_eq!(measured(&trains(&PLACES, GAP, none)), Some(10_000_000.0));
        assert_eq!(measured(&trains(&PLACES[..5], GAP, none)), None, "two earlier places");
        assert_eq!(measured(&trains(&[19; 30], GAP, none)), None, "no places to compare");
        assert_eq!(measured(&trains(&[0, 1, 2, 3, 4, 5].repeat(5), GAP, none)), None, "too close");
    }

    #[test]
    fn hosts_that_wait_are_not_believed() {
        let one = trains(&PLACES, GAP, |place| Duration::from_micros(if place == 17 { 900 } else { 0 }));
        assert_eq!(measured(&one), Some(10_000_000.0), "one of nine does no harm");
        // Hosts that hold back arriving packets until a batch is complete, as on a link of 10 Gbit/s.
        assert_eq!(measured(&trains(&PLACES, Duration::ZERO, |_| Duration::ZERO)), None, "all at once");
        assert_eq!(measured(&trains(&PLACES, Duration::from_micros(1), |_| Duration::ZERO)), None, "too short a time");
        let often = trains(&PLACES, GAP, |place| Duration::from_micros(800 * (place % 2)));
        assert_eq!(measured(&often), None);
    }

    #[test]
    fn trains_end_when_they_would_meet_and_later_packets_do_not_count() {
        let mut found = trains(&PLACES[..3], GAP, |_| Duration::ZERO);
        assert!(found.wants_trains() && found.places.len() == 3);
        let rate = found.first_estimate().or(found.rate()).expect("a first estimate");
        found.on_pace(Time::ZERO, 0.4 * rate);
        assert!(found.wants_trains());
        found.on_pace(Time::ZERO, 0.6 * rate);
        assert!(!found.wants_trains());
        let packet = SentPacket { number: 100, time: Time::ZERO, bytes: 1000, content: Content::Nothing };
        found.on_train(&packet, &packet, RTT, 1000.0);
        assert_eq!(found.places.len(), 3);
        let mut many = trains(&[19; 40], GAP, |_| Duration::ZERO);
        assert_eq!(many.places.len(), MOST_PLACES);
        many.on_pace(Time::ZERO, 0.0);
        assert!(!many.wants_trains(), "enough are known");
    }

    /// A packet reported late is not the end of a later train.
    #[test]
    fn an_older_packet_begins_a_train_of_its_own() {
        let mut found = Dispersion::default();
        for number in [30, 10] {
            let packet = SentPacket { number, time: Time::ZERO, bytes: 1000, content: Content::Nothing };
            found.on_train(&packet, &packet, RTT, 1000.0);
        }
        assert_eq!(found.places.iter().map(|place| place.bytes).collect::<Vec<_>>(), [0.0, 0.0]);
    }
}
