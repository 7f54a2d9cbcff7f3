//! The counts of a link.

use crate::DropReason;

/// Packets, and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl PacketCount {
    pub(crate) fn add(&mut self, ip_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
    }
}

/// The counts of a link so far: `offered` is the sum of `delivered` and all drops, and with `fq-codel` of the waiting
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Everything offered.
    pub offered: PacketCount,
    /// Packets that arrive or will; the second copy of a duplicate is not counted.
    pub delivered: PacketCount,
    /// Packets for which the queue had no room, or which made room for others.
    pub dropped_queue_full: PacketCount,
    /// Packets that CoDel dropped.
    pub dropped_codel: PacketCount,
    /// Packets lost at random.
    pub dropped_random: PacketCount,
    /// Packets larger than the MTU.
    pub dropped_too_large: PacketCount,
    /// Packets dropped by the policer.
    pub dropped_policed: PacketCount,
    /// Packets offered during an outage.
    pub dropped_down: PacketCount,
    /// Delivered packets that this link marked CE.
    pub marked: PacketCount,
    /// Second copies.
    pub duplicated: PacketCount,
    /// Delivered packets with bits flipped.
    pub corrupted: PacketCount,
    /// Delivered packets that [`crate::LinkConfig::reorder`] held back.
    pub reordered: PacketCount,
}

impl LinkStats {
    /// Returns the number of packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        let dropped = [
            self.dropped_queue_full,
            self.dropped_codel,
            self.dropped_random,
            self.dropped_too_large,
            self.dropped_policed,
            self.dropped_down,
        ];
        dropped.iter().map(|count| count.packets).sum()
    }

    /// Counts a drop.
    pub(crate) fn drop(&mut self, reason: DropReason, ip_bytes: u32) {
        let count = match reason {
            DropReason::QueueFull => &mut self.dropped_queue_full,
            DropReason::Codel => &mut self.dropped_codel,
            DropReason::Random => &mut self.dropped_random,
            DropReason::TooLarge => &mut self.dropped_too_large,
            DropReason::Down => &mut self.dropped_down,
            DropReason::Policed => &mut self.dropped_policed,
        };
        count.add(ip_bytes);
    }
}
