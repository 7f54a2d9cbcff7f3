//! What announces a flow: of an object or of a stream, for the first time or cut into smaller symbols.

use crate::wire::{Announcement, FlowId, StreamAnnouncement};

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    Object,
    Stream,
}

/// What both ends know of a flow from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowAnnouncement {
    Object(Announcement),
    Stream(StreamAnnouncement),
}

impl FlowAnnouncement {
    /// The first id of the flow, by which the programs know it. Its successors have ids of their own.
    pub(crate) const fn first(&self) -> FlowId {
        match self {
            Self::Object(object) => object.flow,
            Self::Stream(stream) => stream.flow,
        }
    }

    pub(crate) const fn kind(&self) -> FlowKind {
        match self {
            Self::Object(_) => FlowKind::Object,
            Self::Stream(_) => FlowKind::Stream,
        }
    }

    /// The most symbols in a packet.
    pub(crate) const fn symbols_per_packet(&self) -> u8 {
        match self {
            Self::Object(object) => object.symbols_per_packet,
            Self::Stream(_) => 1,
        }
    }
}
