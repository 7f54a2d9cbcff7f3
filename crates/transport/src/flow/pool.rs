//! Reuse of block memory.

use std::sync::Arc;

/// A pool of buffers: a finished block's memory is reused for a later one.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
}

impl Pool {
    /// Largest number of buffers kept; others are freed.
    const KEPT: usize = 16;

    /// Takes a buffer of any length and content.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < Self::KEPT && buffer.capacity() > 0 {
            self.buffers.push(buffer);
        }
    }

    /// Returns a block's buffer to the pool, unless it is shared.
    pub(crate) fn put_shared(&mut self, block: Arc<erasure::Block>) {
        if let Ok(block) = Arc::try_unwrap(block) {
            self.put(block.into_buffer());
        }
    }
}
