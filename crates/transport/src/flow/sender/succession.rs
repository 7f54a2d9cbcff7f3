//! A flow whose path carries smaller packets from now on: another one, of smaller symbols, sends what the receiver lacks.

use super::{BlockShape, FlowSender, SendBlock};
use crate::wire::FlowId;
use std::sync::Arc;

impl FlowSender {
    /// Goes on as another flow. Blocks keep their numbers, bytes and cost, and have `k` symbols now; those that the receiver does
    /// not have begin anew. What was sent before means nothing any more. `unopened`: source symbols of blocks that are not open.
    pub(in super::super) fn succeed(
        &mut self,
        flow: FlowId,
        symbol_size: usize,
        unopened: u64,
        k: impl Fn(&BlockShape) -> u32,
    ) {
        self.symbol_size = symbol_size;
        self.held = None;
        let coded = !self.schedule.sends_source();
        let view = &mut self.view;
        view.id = flow;
        view.announced = false;
        view.with_lost.clear();
        view.source_left = unopened;
        view.lacking = view.unfinished;
        for block in view.blocks.iter_mut().filter(|block| !block.is_done()) {
            let shape = BlockShape { k: k(block.shape()), ..*block.shape() };
            let before = std::mem::replace(block, SendBlock::new(shape, symbol_size, coded));
            if let Some(data) = before.into_data() {
                let bytes =
                    Arc::try_unwrap(data).map_or_else(|shared| shared.bytes().to_vec(), erasure::Block::into_buffer);
                block.fill(bytes);
            }
            view.source_left += u64::from(shape.k);
        }
        view.cursor = view.base;
        view.advance_cursor();
    }
}
