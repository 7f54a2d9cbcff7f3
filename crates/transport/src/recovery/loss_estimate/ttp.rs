//! The two losses of ttp (II-B) and their average (II-C).

use super::{CONFIDENT, Settings};
use crate::settings::{Count, Number, Setting, Share, field};
use std::collections::VecDeque;

/// Numbers of ttp's estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct TtpConfig {
    /// What the perceived loss weighs against the link's: 0.5 (open in the document).
    pub weight: f64,
    /// The loss before 64 packets are known: 50 % (ttp III-A; 20 % for figure 21).
    pub initial: f64,
    /// The perceived loss is that of so many packets: 1024 (ttp III-A).
    pub packets: u32,
}

impl Default for TtpConfig {
    fn default() -> Self {
        Self { weight: 0.5, initial: 0.5, packets: 1024 }
    }
}

impl Settings for TtpConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("weight", weight, Number(0.0, 1.0)),
        field!("initial", initial, Share(0.0, 0.99)),
        field!("packets", packets, Count(1, 65_536)),
    ];
}

/// Counts at work.
#[derive(Clone, Debug)]
pub(super) struct Ttp {
    config: TtpConfig,
    initial: f64,
    known: u64,
    lost: u64,
    /// The fates that became known last, whether they are losses.
    last: VecDeque<bool>,
    missing: u32,
}

impl Ttp {
    pub(super) fn new(config: &TtpConfig, initial: f64) -> Self {
        Self { config: config.clone(), initial, known: 0, lost: 0, last: VecDeque::new(), missing: 0 }
    }

    pub(super) fn on_delivered(&mut self, count: usize) {
        (0..count.min(self.config.packets as usize)).for_each(|_| self.push(false));
        self.known += count as u64;
    }

    pub(super) fn on_lost(&mut self) {
        self.push(true);
        self.known += 1;
        self.lost += 1;
    }

    fn push(&mut self, lost: bool) {
        if self.last.len() == self.config.packets as usize {
            self.missing -= u32::from(self.last.pop_front() == Some(true));
        }
        self.last.push_back(lost);
        self.missing += u32::from(lost);
    }

    /// Losses are taken back from the newest on.
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(count as u64);
        let losses = self.last.iter_mut().rev().filter(|lost| **lost).take(count);
        self.missing -= losses.map(|lost| *lost = false).count() as u32;
    }

    /// Missing over received, of the last packets (ttp II-B). Where nothing was received it is 1 for each missing packet.
    fn perceived(&self) -> f64 {
        let received = (self.last.len() as u32 - self.missing).max(1);
        f64::from(self.missing) / f64::from(received)
    }

    /// Lost over sent, of all packets (ttp II-B).
    fn link(&self) -> f64 {
        self.lost as f64 / self.known.max(1) as f64
    }

    pub(super) fn loss(&self) -> f64 {
        if self.known < u64::from(CONFIDENT) {
            return self.initial;
        }
        (self.config.weight * self.perceived() + (1.0 - self.config.weight) * self.link()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_what_was_lost_in_all_and_lately() {
        let mut ttp = Ttp::new(&TtpConfig { packets: 100, weight: 0.25, ..TtpConfig::default() }, 0.5);
        assert_eq!(ttp.loss(), 0.5);
        (0..20).for_each(|_| ttp.on_lost());
        ttp.on_delivered(80);
        assert_eq!((ttp.perceived(), ttp.link()), (0.25, 0.2));
        assert!((ttp.loss() - 0.2125).abs() < 1e-12, "{}", ttp.loss());
        ttp.on_delivered(100);
        assert_eq!((ttp.perceived(), ttp.link()), (0.0, 0.1));
        (0..5).for_each(|_| ttp.on_lost());
        ttp.on_spurious(4);
        assert_eq!(ttp.perceived(), 1.0 / 99.0);
        (0..200).for_each(|_| ttp.on_lost());
        assert_eq!((ttp.perceived(), ttp.loss()), (100.0, 1.0), "a share all the same");
    }
}
