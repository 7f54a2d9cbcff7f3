//! The sending half of a flow: where its blocks come from, and which of their symbols goes out next.

mod block;
mod block_sender;
mod blocks;
mod object;
mod stream;
mod window;

pub use block::SendBlock;
pub(crate) use block_sender::{BlockSender, Pick, PickedSymbol, SymbolKind};
pub use blocks::SendBlocks;
pub(crate) use object::ObjectSender;
pub(crate) use stream::StreamSender;
