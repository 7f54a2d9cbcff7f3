//! Flows: objects cut into blocks, what goes next, what is still needed. No packet number is known here.

mod control;
mod credit;
mod layout;
mod receiving;
mod request;
mod schedule;
mod send_block;
mod sending;
mod sizing;
mod tail;

pub use control::{BeyondCredit, ControlReceiver, ControlSender};
pub use credit::{ReceiveCredit, SendCredit};
pub use layout::{BadPlan, BlockShape, Layout};
pub use receiving::{FlowLimits, ObjectReceiver, Taken};
pub use request::{DecodeJob, Direction, EncodeJob, FlowKey, Reply, Request};
pub use schedule::{Next, PathEstimate, Schedule, ScheduleConfig, WindowedConfig};
pub use send_block::SendBlock;
pub use sending::{FlowView, ObjectSender, Picked, Pool, Step, SymbolKind};
pub use sizing::BlockSizing;
