//! What comes back, and what does not: feedback and timeouts made into reports.

use super::ack_info::AckInfo;
use super::detection::NewAcks;
use super::path::Recovery;
use super::report::Cause;
use super::sent_packets::{Arrival, Fate};
use super::timeout::Expiry;
use super::{NeverSent, Timeout};
use crate::time::Time;
use crate::wire::{EcnCounts, PacketRanges};
use std::time::Duration;

impl Recovery {
    /// Feedback came. Makes a [`Report`](super::Report) of it.
    ///
    /// # Errors
    /// [`NeverSent`] when it names a packet that was never sent: it is then refused whole, and nothing has changed.
    pub fn on_feedback(&mut self, now: Time, told: AckInfo<'_>, counts: Option<EcnCounts>) -> Result<(), NeverSent> {
        told.largest().map_or(Ok(()), |largest| self.flight.check_number(largest))?;
        told.named().map_or(Ok(()), |packets| self.flight.check(packets))?;
        let (before, oldest) = (self.flight.largest_acked(), self.flight.oldest());
        self.begin_report(now, Cause::Feedback);
        // No more can have arrived than were sent: whoever claims so would empty the flight.
        let all = told.arrived().unwrap_or(0).min(self.stats.sent_packets);
        let arrived = all.saturating_sub(self.arrived);
        self.arrived += arrived;
        if let Some(packets) = told.named() {
            self.acknowledge(now, packets, before);
        } else if let AckInfo::Count { largest, delay_micros, .. } = told {
            self.settle(now, largest, arrived, delay_micros);
        }
        // RFC 9000 section 13.4.2.1: only feedback that brings news is sure not to have been overtaken.
        let newest = self.flight.largest_acked() > before || arrived > 0;
        self.outcome.newly_marked = self.ecn.on_counts(counts, newest);
        self.detect_losses(now, told, arrived);
        self.timer.on_feedback(now, !self.outcome.delivered.is_empty(), self.flight.oldest() != oldest);
        self.finish_report();
        Ok(())
    }

    fn acknowledge(&mut self, now: Time, packets: &PacketRanges, largest_before: Option<u64>) {
        // The delay is that of the largest packet named, so no other gives a sample (RFC 9002 section 5.1).
        let largest = packets.ranges.first().map_or(0, |(_, high)| *high);
        let true_time = largest >= self.first_number && self.detector.times_truly(largest);
        let Self { flight, outcome, delivery_rate, detector, rtt, ecn, first_number, .. } = self;
        let largest_sent = flight.acknowledge(packets, |arrival| {
            let (Arrival::Delivered(entry) | Arrival::Late(entry)) = arrival;
            let sent = entry.sent;
            if sent.number < *first_number {
                // Given up with the path it took: it says nothing about this one.
                outcome.outlived.push(sent);
                return;
            }
            ecn.on_delivered(entry.marked);
            if let Arrival::Late(_) = arrival {
                let overtaken_by = largest_before.unwrap_or(0).saturating_sub(sent.number);
                detector.on_spurious(now, overtaken_by, now.since(sent.time), rtt);
                outcome.spurious.push(sent);
            } else {
                delivery_rate.on_delivered(now, sent.time, sent.bytes, entry.snapshot);
                outcome.delivered.push(sent);
            }
        });
        self.measure(now, largest_sent.filter(|_| true_time), packets.delay_micros);
    }

    /// Feedback that says how many packets arrived and not which. The order of losses is then a guess, and runs of them look longer
    /// than they were.
    fn settle(&mut self, now: Time, largest: u64, arrivals: u64, delay_micros: u32) {
        let persistent = self.detector.persistent_duration(&self.rtt);
        let Self { flight, outcome, delivery_rate, loss, ecn, first_number, .. } = self;
        let largest_sent = flight.settle_count(now, largest, arrivals, |fate| {
            let (Fate::Arrived(Arrival::Delivered(entry) | Arrival::Late(entry)) | Fate::Lost(entry)) = fate;
            let sent = entry.sent;
            match fate {
                Fate::Lost(_) => outcome.on_lost(entry, persistent, loss, ecn),
                Fate::Arrived(_) if sent.number < *first_number => outcome.outlived.push(sent),
                Fate::Arrived(Arrival::Late(_)) => {
                    ecn.on_delivered(entry.marked);
                    outcome.spurious.push(sent);
                }
                Fate::Arrived(Arrival::Delivered(_)) => {
                    ecn.on_delivered(entry.marked);
                    delivery_rate.on_delivered(now, sent.time, sent.bytes, entry.snapshot);
                    outcome.delivered.push(sent);
                }
            }
        });
        self.measure(now, largest_sent.filter(|_| largest >= self.first_number), delay_micros);
    }

    /// The samples that deliveries give: `sent` is when the packet left that the peer answered `delay_micros` after it came.
    fn measure(&mut self, now: Time, sent: Option<Time>, delay_micros: u32) {
        if let Some(sent) = sent {
            let sample = now.since(sent);
            self.rtt.sample(now, sample, Duration::from_micros(u64::from(delay_micros)));
            self.outcome.rtt = Some(sample);
        }
        self.outcome.rate_sample = self.delivery_rate.take_sample(self.rtt.min());
    }

    /// The time of [`Recovery::next_timeout`] has come.
    pub fn on_timeout(&mut self, now: Time) -> Timeout {
        if self.loss_time.is_some_and(|at| at <= now) {
            self.begin_report(now, Cause::LossTimer);
            self.detect_overdue(now);
            self.finish_report();
            return if self.outcome.lost.is_empty() { Timeout::None } else { Timeout::Lost };
        }
        if self.next_timeout().is_none_or(|at| at > now) {
            return Timeout::None;
        }
        self.ecn.on_silence();
        match self.timer.on_expiry(now) {
            Expiry::Probe => {
                self.detector.on_probe(self.flight.next_number());
                self.stats.probe_timeouts += 1;
                Timeout::Probe
            }
            Expiry::Empty => {
                self.empty(now);
                Timeout::Lost
            }
        }
    }

    /// Nothing came back for a whole timeout: the network is empty (lt-tcp §3.5).
    fn empty(&mut self, now: Time) {
        self.begin_report(now, Cause::Timeout);
        let Self { flight, outcome, loss, ecn, .. } = self;
        // The cause says it all: no run of losses adds to it.
        flight.give_up(now, u64::MAX, |entry| outcome.on_lost(entry, Duration::MAX, loss, ecn));
        self.loss.close_report();
        self.loss_time = None;
        self.detector.on_empty(self.flight.next_number());
        self.delivery_rate.on_lost(&self.outcome.lost, 0);
        self.stats.timeouts += 1;
        self.finish_report();
    }

    /// When to call [`Recovery::on_timeout`]: for a loss by age, else when the silence has lasted too long. None when nothing is in
    /// flight.
    ///
    /// Where packets are told in order, silence is that of the oldest one (RFC 6298 section 5.3): duplicates let new packets out, and
    /// none of them tells that the repair of the oldest was lost as well.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.flight.packets() == 0 {
            return None;
        }
        let since = || if self.detector.is_in_order() { self.timer.advanced() } else { self.flight.last_sent() };
        let due = || self.timer.due(since(), &self.rtt, self.detector.slack(&self.rtt));
        Some(self.loss_time.unwrap_or_else(due))
    }

    fn detect_losses(&mut self, now: Time, told: AckInfo<'_>, arrived: u64) {
        let outcome = &mut self.outcome;
        self.loss.on_delivered(outcome.delivered.len());
        self.loss.on_spurious(outcome.spurious.len());
        let named = || outcome.delivered.iter().chain(&outcome.spurious).chain(&outcome.outlived);
        let heard = NewAcks {
            told,
            arrived,
            named: named().count() as u64,
            symbols: named().any(|sent| sent.content.is_symbol()),
            newest: named().map(|sent| sent.number).max(),
        };
        let persistent = self.detector.persistent_duration(&self.rtt);
        let Self { flight, outcome, loss, ecn, detector, rtt, .. } = self;
        let before = outcome.lost.len();
        self.loss_time =
            detector.on_feedback(now, heard, flight, rtt, |entry| outcome.on_lost(entry, persistent, loss, ecn));
        self.resend_at_once = detector.resends_at_once() && outcome.lost.len() > before;
        self.loss.close_report();
        self.delivery_rate.on_lost(&self.outcome.lost, self.flight.bytes());
    }

    fn detect_overdue(&mut self, now: Time) {
        let persistent = self.detector.persistent_duration(&self.rtt);
        let oldest = self.flight.oldest();
        let Self { flight, outcome, loss, ecn, detector, rtt, .. } = self;
        self.loss_time =
            detector.on_loss_timer(now, flight, rtt, |entry| outcome.on_lost(entry, persistent, loss, ecn));
        self.loss.close_report();
        self.delivery_rate.on_lost(&self.outcome.lost, self.flight.bytes());
        self.timer.on_feedback(now, false, self.flight.oldest() != oldest);
    }
}
