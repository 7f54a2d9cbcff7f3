//! Counters of a path.

use super::report::{Report, bytes};
use super::sent_packets::SentPacket;

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
    pub(super) fn on_sent(&mut self, sent: &SentPacket, probe: bool) {
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
