//! Objects: bytes of known length, read and written in blocks and in any order.

use std::io;
use std::ops::Range;

/// The source of an object's bytes. Called from several worker threads at once; blocks are read roughly in order, each
/// of them once.
pub trait Source: Send + Sync {
    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Any error: it is reported as [`NetError::Storage`](crate::NetError::Storage) in an
    /// [`Event::ObjectFailed`](crate::Event::ObjectFailed), and the object makes no progress beyond the block.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

/// The destination of an object's bytes. Called from several worker threads at once; blocks are written in the order in
/// which they become complete.
pub trait Sink: Send + Sync {
    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// Any error: it is reported as [`NetError::Storage`](crate::NetError::Storage) in an
    /// [`Event::ObjectFailed`](crate::Event::ObjectFailed), and the peer gets no more credit for the block.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The digest of a block read by the sender or written by the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDigest {
    /// The object's tag.
    pub tag: u64,
    /// The block's number in the object.
    pub block: u32,
    /// The block's range of bytes in the object.
    pub range: Range<u64>,
    /// BLAKE3 of those bytes.
    pub digest: [u8; 32],
}
