//! Flows: how objects and streams are cut into blocks, which symbol to send next, and which are still needed. This
//! module knows no packet numbers.

mod announcement;
mod control;
mod credit;
mod flow_map;
mod layout;
mod pool;
mod receive;
pub mod schedule;
mod send;
mod sizing;
mod stream_layout;
mod tail;
mod work;

pub(crate) use announcement::{FlowAnnouncement, FlowKind};
pub(crate) use control::{BeyondCredit, ControlReceiver, ControlSender};
pub(crate) use credit::{ReceiveCredit, SendCredit};
pub(crate) use flow_map::FlowMap;
pub(crate) use layout::BadPlan;
pub(crate) use pool::Pool;
pub(crate) use receive::{BadBlock, RecvCredit, RecvFlow, SymbolOutcome, largest_window};
pub use receive::{FlowLimits, PartialBlock};
pub use schedule::{PathEstimate, Schedule, ScheduleAction, ScheduleConfig, WindowedConfig};
pub(crate) use send::{BlockSender, Pick, PickedSymbol, SendFlow, SymbolKind};
pub use send::{SendBlock, SendBlocks};
pub use sizing::{
    BlockCoding, BlockSizer, BlockSizing, CODES, CustomSizing, DynSizing, FixedBlocks, SizingFactory, StreamCoding,
    WindowCoding,
};
pub use stream_layout::StreamLayout;
pub use tail::{Odds, Outstanding};
pub use work::{DecodeJob, Direction, EncodeJob, FlowKey, WorkReply, WorkRequest};

use std::collections::VecDeque;
use std::ops::Range;

/// Appends a range of a queue of bytes to `out`.
fn append_range(queue: &VecDeque<u8>, range: Range<usize>, out: &mut Vec<u8>) {
    let (front, back) = queue.as_slices();
    let of_front = |at: usize| at.min(front.len());
    let of_back = |at: usize| at.saturating_sub(front.len());
    out.extend_from_slice(&front[of_front(range.start)..of_front(range.end)]);
    out.extend_from_slice(&back[of_back(range.start)..of_back(range.end)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_queue_is_appended_wherever_the_queue_wraps() {
        for turned in 0..8 {
            let mut queue = VecDeque::with_capacity(8);
            queue.extend(vec![0; turned]);
            queue.drain(..turned);
            queue.extend(0..8_u8);
            for (start, end) in (0..=8).flat_map(|end| (0..=end).map(move |start| (start, end))) {
                let mut out = vec![9];
                append_range(&queue, start..end, &mut out);
                assert_eq!(out[1..], (start as u8..end as u8).collect::<Vec<_>>(), "{turned}");
            }
        }
    }
}
