//! The counters of a path.

use super::report::{Report, bytes};
use super::sent_packets::SentPacket;

/// Packets and IP bytes of one path since it began. Only ack-eliciting packets, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Probes among the packets sent.
    pub probe_packets: u64,
    /// Sent packets that are not ack-eliciting.
    pub untracked_packets: u64,
    /// Bytes of these.
    pub untracked_bytes: u64,
    /// Packets that arrived in time.
    pub delivered_packets: u64,
    /// Bytes of these.
    pub delivered_bytes: u64,
    /// Packets declared lost, including those that arrived later.
    pub lost_packets: u64,
    /// Bytes of these.
    pub lost_bytes: u64,
    /// Packets declared lost that arrived later (spurious losses).
    pub spurious_packets: u64,
    /// Bytes of these.
    pub spurious_bytes: u64,
    /// Probe timeouts that expired.
    pub probe_timeouts: u64,
    /// Retransmission timeouts that expired, each with everything in flight declared lost.
    pub timeouts: u64,
    /// Timeouts with lt-tcp's counter at the window, which took it to zero
    /// ([`InFlightConfig::Counter`](super::InFlightConfig::Counter)).
    pub counter_resets: u64,
    /// Packets that the peer reported as marked CE.
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
