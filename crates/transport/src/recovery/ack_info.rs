//! The acknowledgements in a feedback frame, in the forms that profiles request.

use crate::wire::PacketRanges;

/// The acknowledgements in a feedback frame. Counts are of ack-eliciting packets, since the connection began.
#[derive(Clone, Copy, Debug)]
pub enum AckInfo<'a> {
    /// No packet has arrived yet.
    Nothing,
    /// The packets that have arrived.
    Ranges(&'a PacketRanges),
    /// Cumulative acknowledgement: packets with symbols are acknowledged only once nothing before them in their flow is
    /// missing (arq §2.1).
    InOrder {
        /// The packets named.
        packets: Option<&'a PacketRanges>,
        /// The largest packet number received, whether named or not.
        largest: u64,
        /// Packets received, including those not named yet.
        arrived: u64,
    },
    /// The number of packets that have arrived, but not which (rc-udp §IV).
    Count {
        /// The largest packet number received.
        largest: u64,
        /// Microseconds between the arrival of `largest` and this feedback.
        delay_micros: u32,
        /// Packets received.
        arrived: u64,
    },
}

impl<'a> AckInfo<'a> {
    /// Returns the packets named.
    pub(super) const fn named(&self) -> Option<&'a PacketRanges> {
        match self {
            Self::Ranges(packets) => Some(packets),
            Self::InOrder { packets, .. } => *packets,
            Self::Nothing | Self::Count { .. } => None,
        }
    }

    /// Returns the largest packet number received, if feedback reports it in addition to the acknowledged ones.
    pub(super) const fn largest(&self) -> Option<u64> {
        match self {
            Self::InOrder { largest, .. } | Self::Count { largest, .. } => Some(*largest),
            Self::Nothing | Self::Ranges(_) => None,
        }
    }

    /// Returns the number of packets received, if feedback reports it.
    pub(super) const fn arrived(&self) -> Option<u64> {
        match self {
            Self::InOrder { arrived, .. } | Self::Count { arrived, .. } => Some(*arrived),
            Self::Nothing | Self::Ranges(_) => None,
        }
    }
}
