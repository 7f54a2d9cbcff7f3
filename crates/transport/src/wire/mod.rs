//! Encoding and decoding of packets and frames: fixed layouts, limits, versions. `docs/PROTOCOL.md` describes the same
//! in words.

mod bytes;
mod codec;
mod datagram;
mod error;
mod feedback;
mod feedback_config;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod ids;
pub mod limits;
mod packet;
mod parameters;
mod ranges;
mod refused;
#[cfg(test)]
mod tests;
mod truncated;

pub use codec::{CONTROL_FRAME_HEADER, Frames};
pub use datagram::{Datagram, Message1, Message2, VERSION, VersionAnswer, grease_version};
pub use error::WireError;
pub use feedback::MIN_FEEDBACK;
pub use feedback_config::{
    BlockFeedback, DoneConfig, FeedbackConfig, FeedbackTiming, Heartbeat, LastPackets, MILLION, PacketCountTiming,
    PacketFeedback, ReceivedConfig, Spacing,
};
pub use frame::{
    Announcement, BlockMask, BlockStatus, Credit, EcnCounts, Feedback, FlowStatus, Frame, PacketCount, PacketRanges,
    Plan, StreamAnnouncement, StreamSuccessor, Successor,
};
pub use ids::{BlockId, ConnectionId, FlowId, KeyId, SymbolId, SymbolRun};
pub use limits::{MAX_STREAM_WINDOW, SHORT_K, STREAM_HEADER, WINDOW_REPAIR};
pub use packet::{HEADER, PacketHeader, PacketKind, SYMBOL_HEADER, SYMBOL_OVERHEAD, SymbolHeader, TAG};
pub use parameters::{Parameters, StreamLimits};
pub use refused::{RejectCounts, RejectReason};
pub use truncated::expand;
