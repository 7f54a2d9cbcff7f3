//! Loss over the last packets and over all packets: the two loss rates that ttp §II-B defines, and that its rate and
//! padding follow.

use std::collections::VecDeque;
use transport::recovery::SentPacket;

/// Counts delivered and lost packets, and remembers the last of them.
#[derive(Clone, Debug)]
pub(super) struct LossWindow {
    /// Number of packets remembered.
    kept: usize,
    /// The last packets; true for a lost one.
    last: VecDeque<bool>,
    /// Lost packets among `last`.
    missing: u64,
    known: u64,
    lost: u64,
}

impl LossWindow {
    /// Creates an empty window over the last `kept` packets.
    pub(super) const fn new(kept: u32) -> Self {
        Self { kept: kept as usize, last: VecDeque::new(), missing: 0, known: 0, lost: 0 }
    }

    /// Counts the packets of a report in the order of their numbers, in which both slices are. Calls `on_lost` with the
    /// number of each lost one.
    ///
    /// A report may cover more packets than are remembered, so that the order decides which losses are among the last.
    pub(super) fn on_report(
        &mut self,
        mut delivered: &[SentPacket],
        lost: &[SentPacket],
        mut on_lost: impl FnMut(u64),
    ) {
        for sent in lost {
            let earlier = delivered.partition_point(|other| other.number < sent.number);
            self.on_delivered(earlier);
            delivered = &delivered[earlier..];
            self.on_lost();
            on_lost(sent.number);
        }
        self.on_delivered(delivered.len());
    }

    /// Counts `count` packets that arrived.
    pub(super) fn on_delivered(&mut self, count: usize) {
        (0..count.min(self.kept)).for_each(|_| self.push(false));
        self.known += count as u64;
    }

    /// Counts a lost packet.
    pub(super) fn on_lost(&mut self) {
        self.push(true);
        self.known += 1;
        self.lost += 1;
    }

    fn push(&mut self, lost: bool) {
        if self.last.len() >= self.kept {
            self.missing -= u64::from(self.last.pop_front() == Some(true));
        }
        self.last.push_back(lost);
        self.missing += u64::from(lost);
    }

    /// Takes back `count` spurious losses, the newest first.
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(count as u64);
        let losses = self.last.iter_mut().rev().filter(|lost| **lost).take(count);
        self.missing -= losses.map(|lost| *lost = false).count() as u64;
    }

    /// Returns the packets delivered or lost in total.
    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    /// Returns the short-term loss: the ratio of lost to received packets in the window; the number of lost ones if
    /// none was received.
    pub(super) fn perceived(&self) -> f64 {
        self.missing as f64 / (self.last.len() as u64 - self.missing).max(1) as f64
    }

    /// Returns the long-term loss: the share of lost packets.
    pub(super) fn link(&self) -> f64 {
        self.lost as f64 / self.known.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::recovery::Content;
    use transport::time::Time;

    #[test]
    fn only_losses_among_the_last_packets_of_a_long_report_are_remembered() {
        let sent = |number| SentPacket { number, time: Time::ZERO, bytes: 1000, content: Content::Nothing };
        let is_lost = |number: &u64| number.is_multiple_of(50);
        let (lost, delivered): (Vec<u64>, Vec<u64>) = (1..=500).partition(is_lost);
        let [delivered, lost] = [delivered, lost].map(|numbers| numbers.into_iter().map(sent).collect::<Vec<_>>());
        let mut window = LossWindow::new(100);
        let mut reported = Vec::new();
        window.on_report(&delivered, &lost, |number| reported.push(number));
        assert_eq!(reported, lost.iter().map(|sent| sent.number).collect::<Vec<_>>());
        assert_eq!((window.perceived(), window.link()), (2.0 / 98.0, 0.02), "2 of the last 100, 10 of all 500");
    }
}
