//! The receiving half of a flow: symbols into blocks, and where the blocks go.

mod block_receiver;
mod object;
mod stream;
mod window;

pub(in crate::flow) use block_receiver::MOST_AHEAD;
pub(crate) use block_receiver::SymbolOutcome;
pub(crate) use object::ObjectReceiver;
pub(crate) use stream::{BadDecode, StreamReceiver};
pub(crate) use window::largest_window;

/// What this side accepts of a peer's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Largest number of source symbols in a block.
    pub largest_k: u32,
    /// Largest symbol in bytes.
    pub largest_symbol: u16,
    /// Most symbols in a packet.
    pub most_per_packet: u8,
}
