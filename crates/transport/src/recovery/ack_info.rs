//! What a feedback says of packets, in the forms that there are.

use crate::wire::PacketRanges;

/// What a feedback says of packets. Counts are of packets that ask for feedback, since the connection began.
#[derive(Clone, Copy, Debug)]
pub enum AckInfo<'a> {
    /// Nothing has arrived yet.
    Nothing,
    /// Which packets arrived.
    Ranges(&'a PacketRanges),
    /// Which packets arrived, symbols named only once nothing before them in their flow is missing (arq §2.1).
    InOrder {
        /// Those named.
        packets: Option<&'a PacketRanges>,
        /// The highest number that arrived, named or not.
        largest: u64,
        /// How many arrived, those not named yet included.
        arrived: u64,
    },
    /// How many packets arrived, and nothing of which (rc-udp §IV).
    Count {
        /// The highest number among them.
        largest: u64,
        /// Microseconds that the peer held this back since `largest` arrived.
        delay_micros: u32,
        /// How many.
        arrived: u64,
    },
}

impl<'a> AckInfo<'a> {
    /// The packets named.
    pub(super) const fn named(&self) -> Option<&'a PacketRanges> {
        match self {
            Self::Ranges(packets) => Some(packets),
            Self::InOrder { packets, .. } => *packets,
            Self::Nothing | Self::Count { .. } => None,
        }
    }

    /// The highest number that arrived, where that is said beside the names.
    pub(super) const fn largest(&self) -> Option<u64> {
        match self {
            Self::InOrder { largest, .. } | Self::Count { largest, .. } => Some(*largest),
            Self::Nothing | Self::Ranges(_) => None,
        }
    }

    /// How many packets arrived, where that is said.
    pub(super) const fn arrived(&self) -> Option<u64> {
        match self {
            Self::InOrder { arrived, .. } | Self::Count { arrived, .. } => Some(*arrived),
            Self::Nothing | Self::Ranges(_) => None,
        }
    }
}
