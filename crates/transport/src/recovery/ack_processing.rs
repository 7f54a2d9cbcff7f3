//! Ack processing: feedback and timeouts become reports.

use super::ack_info::AckInfo;
use super::detection::NewAcks;
use super::path::Recovery;
use super::report::Cause;
use super::sent_packets::{AckedPacket, PacketOutcome};
use super::timeout::Expiry;
use super::{Timeout, UnsentAcknowledged};
use crate::time::Time;
use crate::wire::{EcnCounts, PacketRanges};
use std::time::Duration;

impl Recovery {
    /// Turns arrived feedback into a [`Report`](super::Report). `counts` are its ECN counts.
    ///
    /// # Errors
    /// [`UnsentAcknowledged`] if it acknowledges an unsent packet. It is then rejected as a whole, and changes nothing.
    pub fn on_feedback(
        &mut self,
        now: Time,
        info: AckInfo<'_>,
        counts: Option<EcnCounts>,
    ) -> Result<(), UnsentAcknowledged> {
        info.largest().map_or(Ok(()), |largest| self.sent_packets.check_number(largest))?;
        info.named().map_or(Ok(()), |packets| self.sent_packets.check(packets))?;
        let (before, oldest) = (self.sent_packets.largest_acked(), self.sent_packets.oldest());
        self.begin_report(now, Cause::Feedback);
        // A peer that claims more arrivals than packets sent could otherwise settle everything in flight.
        let all = info.arrived().unwrap_or(0).min(self.stats.sent_packets);
        let arrived = all.saturating_sub(self.arrived);
        self.arrived += arrived;
        if let Some(packets) = info.named() {
            self.acknowledge(now, packets, before);
        } else if let AckInfo::Count { largest, delay_micros, .. } = info {
            self.settle(now, largest, arrived, delay_micros);
        }
        // RFC 9000 section 13.4.2.1: feedback that acknowledges nothing new may have been reordered.
        let newest = self.sent_packets.largest_acked() > before || arrived > 0;
        self.report.newly_marked = self.ecn.on_counts(counts, newest);
        self.detect_losses(now, info, arrived);
        self.timer.on_feedback(now, !self.report.delivered.is_empty(), self.sent_packets.oldest() != oldest);
        self.finish_report();
        Ok(())
    }

    fn acknowledge(&mut self, now: Time, packets: &PacketRanges, largest_before: Option<u64>) {
        // The delay is that of the largest packet named, so no other gives a sample (RFC 9002 section 5.1).
        let largest = packets.ranges.first().map_or(0, |(_, high)| *high);
        let has_sample = largest >= self.first_number && self.detector.gives_rtt_sample(largest);
        let Self { sent_packets, report, delivery_rate, detector, rtt, ecn, first_number, .. } = self;
        let largest_sent = sent_packets.acknowledge(packets, |arrival| {
            let (AckedPacket::Delivered(entry) | AckedPacket::Late(entry)) = arrival;
            let sent = entry.sent;
            if sent.number < *first_number {
                // Abandoned with an earlier path, so not a sample of this one.
                report.outlived.push(sent);
                return;
            }
            ecn.on_delivered(entry.marked);
            if let AckedPacket::Late(_) = arrival {
                let overtaken_by = largest_before.unwrap_or(0).saturating_sub(sent.number);
                detector.on_spurious(now, overtaken_by, now.since(sent.time), rtt);
                report.spurious.push(sent);
            } else {
                delivery_rate.on_delivered(now, sent.time, sent.bytes, entry.snapshot);
                report.delivered.push(sent);
            }
        });
        self.measure(now, largest_sent.filter(|_| has_sample), packets.delay_micros);
    }

    /// Handles feedback that only counts arrivals. The lost packets are then a guess, and bursts of losses look longer
    /// than they were.
    fn settle(&mut self, now: Time, largest: u64, arrivals: u64, delay_micros: u32) {
        let persistent = self.detector.persistent_duration(&self.rtt);
        let Self { sent_packets, report, delivery_rate, loss, ecn, first_number, .. } = self;
        let largest_sent = sent_packets.settle_count(now, largest, arrivals, |fate| {
            let (PacketOutcome::Arrived(AckedPacket::Delivered(entry) | AckedPacket::Late(entry))
            | PacketOutcome::Lost(entry)) = fate;
            let sent = entry.sent;
            match fate {
                PacketOutcome::Lost(_) => report.on_lost(entry, persistent, loss, ecn),
                PacketOutcome::Arrived(_) if sent.number < *first_number => report.outlived.push(sent),
                PacketOutcome::Arrived(AckedPacket::Late(_)) => {
                    ecn.on_delivered(entry.marked);
                    report.spurious.push(sent);
                }
                PacketOutcome::Arrived(AckedPacket::Delivered(_)) => {
                    ecn.on_delivered(entry.marked);
                    delivery_rate.on_delivered(now, sent.time, sent.bytes, entry.snapshot);
                    report.delivered.push(sent);
                }
            }
        });
        self.measure(now, largest_sent.filter(|_| largest >= self.first_number), delay_micros);
    }

    /// Takes the samples of round-trip time and delivery rate. The packet sent at `sent` was answered `delay_micros`
    /// after its arrival.
    fn measure(&mut self, now: Time, sent: Option<Time>, delay_micros: u32) {
        if let Some(sent) = sent {
            let sample = now.since(sent);
            let delay = Duration::from_micros(u64::from(delay_micros));
            self.rtt.sample(now, sample, delay);
            self.report.rtt = Some(sample);
            // A delay longer than the sample is false.
            self.report.path_rtt = Some(sample.checked_sub(delay).unwrap_or(sample));
        }
        self.report.rate_sample = self.delivery_rate.take_sample(self.rtt.min());
    }

    /// Handles the expiry of [`Recovery::next_timeout`].
    pub fn on_timeout(&mut self, now: Time) -> Timeout {
        if self.loss_time.is_some_and(|at| at <= now) {
            self.begin_report(now, Cause::LossTimer);
            self.detect_overdue(now);
            self.finish_report();
            return if self.report.lost.is_empty() { Timeout::None } else { Timeout::Lost };
        }
        if self.next_timeout().is_none_or(|at| at > now) {
            return Timeout::None;
        }
        self.ecn.on_silence();
        self.empty_full_counter();
        match self.timer.on_expiry(now) {
            Expiry::Probe => {
                self.detector.on_probe(self.sent_packets.next_number());
                self.stats.probe_timeouts += 1;
                self.notify_repeated_pto(now);
                Timeout::Probe
            }
            Expiry::AllLost => {
                self.lose_all(now);
                Timeout::Lost
            }
        }
    }

    /// Handles the expiry of the retransmission timer: the network is assumed to be empty (lt-tcp §3.5).
    fn lose_all(&mut self, now: Time) {
        self.begin_report(now, Cause::Timeout);
        let Self { sent_packets, report, loss, ecn, .. } = self;
        // The report has the cause of a timeout anyway: it needs no persistent congestion.
        sent_packets.lose_all_below(now, u64::MAX, |entry| report.on_lost(entry, Duration::MAX, loss, ecn));
        self.loss.close_report(&self.report.delivered, &self.report.lost);
        self.loss_time = None;
        self.detector.on_all_lost(self.sent_packets.next_number());
        self.delivery_rate.on_lost(&self.report.lost, 0);
        self.stats.timeouts += 1;
        self.finish_report();
    }

    /// Returns when to call [`Recovery::on_timeout`]: the loss time if a packet has one, else the probe or
    /// retransmission timeout. `None` if nothing is in flight, unless lt-tcp's counter fills the window (§3.5).
    ///
    /// With feedback in order the probe timeout runs from the oldest packet (as in RFC 6298 section 5.3): duplicate
    /// acknowledgements send new packets, but none of them reveals that the retransmission of the oldest was lost too.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.sent_packets.packets() == 0 && !self.counter_is_full() {
            return None;
        }
        let since = || if self.detector.is_in_order() { self.timer.advanced() } else { self.sent_packets.last_sent() };
        let due = || self.timer.due(since(), &self.rtt, self.detector.slack(&self.rtt));
        Some(self.loss_time.unwrap_or_else(due))
    }

    fn detect_losses(&mut self, now: Time, info: AckInfo<'_>, arrived: u64) {
        let report = &mut self.report;
        self.loss.on_delivered(report.delivered.len());
        self.loss.on_spurious(report.spurious.len());
        let named = || report.delivered.iter().chain(&report.spurious).chain(&report.outlived);
        let acks = NewAcks {
            info,
            arrived,
            named: named().count() as u64,
            symbols: named().any(|sent| sent.content.is_symbol()),
            newest: named().map(|sent| sent.number).max(),
        };
        // In order, packets without symbols are acknowledged as soon as they arrive. Counted, one without symbols is
        // taken for lost unless it must have arrived.
        let withheld = arrived.saturating_sub(acks.named);
        let persistent = self.detector.persistent_duration(&self.rtt);
        let Self { sent_packets, report, loss, ecn, detector, rtt, .. } = self;
        report.withheld = withheld;
        let before = report.lost.len();
        self.loss_time =
            detector.on_feedback(now, acks, sent_packets, rtt, |entry| report.on_lost(entry, persistent, loss, ecn));
        self.fast_retransmit = detector.allows_fast_retransmit() && report.lost.len() > before;
        self.loss.close_report(&self.report.delivered, &self.report.lost);
        self.delivery_rate.on_lost(&self.report.lost, self.sent_packets.bytes());
    }

    fn detect_overdue(&mut self, now: Time) {
        let persistent = self.detector.persistent_duration(&self.rtt);
        let oldest = self.sent_packets.oldest();
        let Self { sent_packets, report, loss, ecn, detector, rtt, .. } = self;
        self.loss_time =
            detector.on_loss_timer(now, sent_packets, rtt, |entry| report.on_lost(entry, persistent, loss, ecn));
        self.loss.close_report(&self.report.delivered, &self.report.lost);
        self.delivery_rate.on_lost(&self.report.lost, self.sent_packets.bytes());
        self.timer.on_feedback(now, false, self.sent_packets.oldest() != oldest);
    }
}
