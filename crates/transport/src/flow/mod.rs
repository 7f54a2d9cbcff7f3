//! Flows: objects and streams cut into blocks, what goes next, what is still needed. No packet number is known here.

mod assembly;
mod control;
mod credit;
mod layout;
mod pool;
mod receiving;
mod request;
pub mod schedule;
mod send_block;
mod sender;
mod sending;
mod sizing;
mod stream_layout;
mod stream_receiving;
mod stream_sending;
mod tail;
mod window_receiving;
mod window_sending;

pub use assembly::Undecodable;
pub use control::{BeyondCredit, ControlReceiver, ControlSender};
pub use credit::{ReceiveCredit, SendCredit, StreamUse};
pub use layout::{BadPlan, BlockShape, Layout};
pub use pool::Pool;
pub use receiving::{FlowLimits, ObjectReceiver, Taken};
pub use request::{DecodeJob, Direction, EncodeJob, FlowKey, Reply, Request};
pub use schedule::{
    BlockAtATimeConfig, ChunksConfig, InterleavedConfig, Next, PathEstimate, ProactiveConfig, Schedule, ScheduleConfig,
    WindowedConfig,
};
pub use send_block::SendBlock;
pub use sender::{FlowSender, FlowView, Picked, Step, SymbolKind};
pub use sending::ObjectSender;
pub use sizing::{
    BlockSizer, BlockSizing, BytesBlocks, FixedBlocks, LtTcpBlocks, StreamCoding, SubFiles, TtpBlocks, WindowCoding,
};
pub use stream_layout::StreamLayout;
pub use stream_receiving::{BadBlock, BadDecode, StreamReceiver};
pub use stream_sending::StreamSender;
pub use window_receiving::largest_window;
