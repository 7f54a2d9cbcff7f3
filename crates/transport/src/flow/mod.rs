//! Flows: how objects and streams are cut into blocks, which symbol to send next, and what is still needed. This module
//! knows no packet numbers.

mod announcement;
mod control;
mod credit;
mod flow_map;
mod layout;
mod pool;
mod receive;
mod request;
pub mod schedule;
mod send;
mod sizing;
mod stream_layout;
mod tail;

pub(crate) use announcement::{FlowAnnouncement, FlowKind};
pub(crate) use control::{BeyondCredit, ControlReceiver, ControlSender};
pub(crate) use credit::{ReceiveCredit, SendCredit};
pub(crate) use flow_map::FlowMap;
pub(crate) use layout::BadPlan;
pub(crate) use pool::Pool;
pub use receive::FlowLimits;
pub(crate) use receive::{BadBlock, RecvCredit, RecvFlow, SymbolOutcome, largest_window};
pub use request::{DecodeJob, Direction, EncodeJob, FlowKey, Reply, Request};
pub use schedule::{
    BlockAtATimeConfig, ChunksConfig, InterleavedConfig, Next, PathEstimate, ProactiveConfig, Schedule, ScheduleConfig,
    WindowedConfig,
};
pub(crate) use send::{BlockSender, Pick, PickedSymbol, SendFlow, SymbolKind};
pub use send::{SendBlock, SendBlocks};
pub use sizing::{
    BlockCoding, BlockSizing, BytesBlocks, FixedBlocks, LtTcpBlocks, StreamCoding, SubFiles, TtpBlocks, WindowCoding,
};
pub use stream_layout::StreamLayout;
