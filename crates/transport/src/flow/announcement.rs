//! The announcement of a flow, object or stream: at its start, and again when it is recut into smaller symbols.

use crate::wire::{Announcement, FlowId, Frame, StreamAnnouncement, StreamSuccessor, Successor};

/// The content of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    Object,
    Stream,
}

/// The properties of a flow that both ends know from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowAnnouncement {
    Object(Announcement),
    Stream(StreamAnnouncement),
}

impl FlowAnnouncement {
    /// Returns the flow's first id, by which the programs know it. Its successors have ids of their own.
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

    /// Returns the largest number of symbols in a packet.
    pub(crate) const fn symbols_per_packet(&self) -> u8 {
        match self {
            Self::Object(object) => object.symbols_per_packet,
            Self::Stream(_) => 1,
        }
    }

    /// Returns the frame that announces the flow as `flow`, in symbols of `symbol_size` bytes.
    pub(crate) fn frame(&self, flow: FlowId, symbol_size: u16) -> Frame<'static> {
        let succeeds = flow != self.first();
        match *self {
            Self::Object(object) if succeeds => Frame::Successor(Successor { flow, symbol_size, object }),
            Self::Object(object) => Frame::Announce(object),
            Self::Stream(stream) if succeeds => Frame::StreamSuccessor(StreamSuccessor { flow, symbol_size, stream }),
            Self::Stream(stream) => Frame::AnnounceStream(stream),
        }
    }
}
