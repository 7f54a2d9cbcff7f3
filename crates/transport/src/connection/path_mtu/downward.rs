//! The search for the largest packet that still passes, after a black hole was found (RFC 8899 section 4.3).

use super::MAX_PROBES;
use crate::recovery::{Cause, Report};
use crate::time::Time;
use std::time::Duration;

/// A search that probes all sizes at once.
#[derive(Debug)]
pub(super) struct DownwardSearch {
    /// UDP payloads to probe, in rising order.
    sizes: Vec<usize>,
    /// Probes still to be sent, the next one last. Large ones go first, so that small ones reveal their loss.
    unsent: Vec<usize>,
    /// Probes in flight, by packet number.
    in_flight: Vec<(u64, usize)>,
    /// When the last probe was sent.
    last_sent: Option<Time>,
    /// Probes declared lost by a timeout alone: they may be late.
    late: Vec<(u64, usize)>,
    /// The largest that arrived; 0 if none has.
    largest: usize,
}

impl DownwardSearch {
    /// Creates a search among these UDP payloads.
    pub(super) fn new(sizes: Vec<usize>) -> Self {
        let unsent = probes(&sizes);
        Self { sizes, unsent, in_flight: Vec::new(), last_sent: None, late: Vec::new(), largest: 0 }
    }

    /// Returns until when to wait for news, `patience` after the last probe. Then the search is over if a probe is known
    /// to have arrived: not every detector declares the others lost. If none is, each size is probed once more: all may
    /// have been lost by chance, or the reports of those that arrived.
    pub(super) fn deadline(&self, patience: Duration) -> Option<Time> {
        self.last_sent.filter(|_| self.unsent.is_empty()).map(|last| last + patience)
    }

    /// Handles the passing of the deadline. Returns the largest payload that passes, if the search is over.
    pub(super) fn on_timer(&mut self, now: Time, patience: Duration) -> Option<usize> {
        self.deadline(patience).filter(|at| *at <= now)?;
        if self.largest == 0 {
            self.unsent.clone_from(&self.sizes);
        }
        (self.largest > 0).then_some(self.largest)
    }

    /// Returns the UDP payload of the next probe.
    pub(super) fn next_probe(&mut self, now: Time) -> Option<usize> {
        let payload = self.unsent.pop()?;
        self.last_sent = Some(now);
        Some(payload)
    }

    /// Notes that a probe of this size was sent as packet `number`.
    pub(super) fn on_sent(&mut self, number: u64, payload: usize) {
        self.in_flight.push((number, payload));
    }

    /// Handles a report of recovery. Returns the largest payload that passes, or 0 for none, when the outcome of all
    /// probes is known.
    pub(super) fn on_report(&mut self, report: &Report<'_>) -> Option<usize> {
        self.collect(report);
        if !self.unsent.is_empty() || !self.in_flight.is_empty() {
            return None;
        }
        // A retransmission timeout declares all of them lost, of whatever size, and may have been too short.
        if self.largest == 0 && report.cause == Cause::Timeout {
            self.unsent = probes(&self.sizes);
            return None;
        }
        Some(self.largest)
    }

    fn collect(&mut self, report: &Report<'_>) {
        let arrived = |number| report.delivered.iter().chain(report.spurious).any(|sent| sent.number == number);
        for (_, size) in self.in_flight.iter().chain(&self.late).filter(|(number, _)| arrived(*number)) {
            self.largest = self.largest.max(*size);
        }
        let lost = |number| report.lost.iter().any(|sent| sent.number == number);
        let open = self.in_flight.drain(..).filter(|(number, _)| !arrived(*number));
        let (lost, in_flight): (Vec<_>, Vec<_>) = open.partition(|(number, _)| lost(*number));
        self.in_flight = in_flight;
        if report.cause == Cause::Timeout {
            self.late.extend(lost);
        }
    }
}

fn probes(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().flat_map(|size| [*size; MAX_PROBES]).collect()
}
