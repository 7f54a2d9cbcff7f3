//! Loss events and the intervals between them (RFC 5348 section 5).

use std::collections::VecDeque;
use std::time::Duration;
use transport::recovery::Report;
use transport::recovery::SentPacket;
use transport::time::Time;

/// The last loss intervals, in packets.
#[derive(Debug)]
pub(super) struct LossHistory {
    /// n.
    remembered: usize,
    /// I_1, I_2, ...: the newest closed interval first.
    closed: VecDeque<f64>,
    /// I_0: packets since the first loss of the newest event, that one included.
    open: f64,
    /// When the first packet lost in the newest event was sent.
    event: Option<Time>,
}

/// w_i: 1 for the newer half, then falling evenly (section 5.4): 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2 for eight.
fn weight(at: usize, of: usize) -> f64 {
    if 2 * at < of { 1.0 } else { 1.0 - (at as f64 - (of as f64 / 2.0 - 1.0)) / (of as f64 / 2.0 + 1.0) }
}

impl LossHistory {
    pub(super) const fn new(remembered: usize) -> Self {
        Self { remembered, closed: VecDeque::new(), open: 0.0, event: None }
    }

    /// Records a report's packets in the order in which they were sent; returns how many loss events began. A packet
    /// sent up to a round trip after the first lost packet of an event belongs to that event (section 5.2).
    pub(super) fn on_report(&mut self, report: &Report<'_>, rtt: Duration) -> usize {
        let mut delivered = report.delivered.iter().peekable();
        let mut events = 0;
        for lost in report.lost {
            let before = |sent: &&SentPacket| sent.number < lost.number;
            while delivered.next_if(before).is_some() {
                self.open += 1.0;
            }
            if self.event.is_none_or(|began| lost.time > began + rtt) {
                self.begin_event(lost.time);
                events += 1;
            }
            self.open += 1.0;
        }
        self.open += delivered.count() as f64;
        if report.newly_marked > 0 && report.lost.is_empty() {
            // A mark is a loss event like a loss (section 5.1); which packet bears it is unknown: take the newest that
            // arrived.
            let time = report.delivered.last().map_or(report.now - rtt, |sent| sent.time);
            if self.event.is_none_or(|began| time > began + rtt) {
                self.begin_event(time);
                self.open += 1.0;
                events += 1;
            }
        }
        events
    }

    fn begin_event(&mut self, time: Time) {
        self.event = Some(time);
        self.closed.push_front(self.open.max(1.0));
        self.closed.truncate(self.remembered);
        self.open = 0.0;
    }

    /// Sets the interval before the first event.
    pub(super) fn seed(&mut self, interval: f64) {
        if let Some(first) = self.closed.back_mut() {
            *first = interval.max(1.0);
        }
    }

    #[cfg(test)]
    pub(super) fn closed_intervals(&self) -> usize {
        self.closed.len()
    }

    /// Returns p (section 5.4); `None` before the first event.
    pub(super) fn event_rate(&self) -> Option<f64> {
        if self.closed.is_empty() {
            return None;
        }
        let known = self.closed.len();
        let weights = || (0..known).map(|at| weight(at, self.remembered));
        let total: f64 = weights().sum();
        let with_open = std::iter::once(&self.open).chain(&self.closed);
        // The open interval counts only when it raises the mean.
        let open: f64 = with_open.zip(weights()).map(|(interval, weight)| interval * weight).sum();
        let closed: f64 = self.closed.iter().zip(weights()).map(|(interval, weight)| interval * weight).sum();
        Some((total / open.max(closed)).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_rfc() {
        let weights: Vec<f64> = (0..8).map(|at| weight(at, 8)).collect();
        for (got, expected) in weights.iter().zip([1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]) {
            assert!((got - expected).abs() < 1e-12, "{weights:?}");
        }
    }

    #[test]
    fn the_mean_interval_weighs_eight_and_the_open_one_only_if_it_helps() {
        let mut history = LossHistory::new(8);
        assert_eq!(history.event_rate(), None);
        history.closed = [100.0, 100.0, 100.0, 100.0, 50.0, 50.0, 50.0, 50.0].into();
        // (400 + 50 * 2) / 6 packets between events.
        let rate = history.event_rate().unwrap();
        assert!((rate - 6.0 / 500.0).abs() < 1e-12, "{rate}");
        history.open = 10.0;
        assert_eq!(history.event_rate(), Some(rate), "10 + 300 + 80 + 60 is less than 500");
        history.open = 90.0;
        assert!((history.event_rate().unwrap() - 6.0 / 530.0).abs() < 1e-12, "90 + 300 + 80 + 60");
    }
}
