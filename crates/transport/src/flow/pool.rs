//! Memory of blocks, used again.

use std::sync::Arc;

/// Buffers that go round: a block's memory is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
}

impl Pool {
    /// Buffers kept at most; more go back to the allocator.
    const KEPT: usize = 16;

    /// A buffer of any length and content.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < Self::KEPT && buffer.capacity() > 0 {
            self.buffers.push(buffer);
        }
    }

    /// Takes a block's buffer back when nobody else holds it.
    pub(crate) fn put_shared(&mut self, block: Arc<erasure::Block>) {
        if let Ok(block) = Arc::try_unwrap(block) {
            self.put(block.into_buffer());
        }
    }
}
