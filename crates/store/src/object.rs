//! The bytes of a batch at its source, as the target's code sees them through the seam (`seam.rs`).

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use super::batch::InvalidatedFile;
use crate::messages::{Chunk, Entry, ListState};

/// A digest of the bytes at both ends of a file.
pub type EndsDigest = [u8; 32];

/// The object of a batch at its source. Shared by the threads that read it; state about its files is dropped with it.
pub trait TreeObject: fmt::Debug + Send + Sync {
    /// Returns the length of the object in bytes.
    fn length(&self) -> u64;

    /// Fills `out` with the object's bytes from `offset`. A file that differs from its entry, or cannot be read, is
    /// *voided*: it reads as zeros from then on, as do bytes beyond the end of the object.
    fn read(&self, offset: u64, out: &mut [u8]);

    /// Copies bytes from `offset` of the object to `at` in a local file, which has no data there, without taking them
    /// into this process: at most `most`, and no further than to the end of their file. `None` if that is impossible
    /// and the bytes have to be read instead. A file that changes meanwhile is voided.
    ///
    /// # Errors
    /// Errors of the system that concern `to`.
    fn copy(&self, offset: u64, most: u64, to: &File, at: u64) -> Option<io::Result<CopiedRange>> {
        // Its bytes are in no file.
        let _ = (offset, most, to, at);
        None
    }

    /// Returns the files voided since the last call. They must be announced before the digest of any block that was
    /// read before this call.
    fn take_voided(&self) -> Vec<InvalidatedFile>;

    /// Returns the name of the file being read, of the first one before any is; `None` for an empty object.
    fn current(&self) -> Option<&[u8]>;

    /// Returns how many non-empty files of the batch end within the first `bytes` of the object, or before them.
    fn files_within(&self, bytes: u64) -> u64;

    /// Returns the present entry of a file, and the digest of its ends; `None` if it does not exist, or is not a
    /// regular file.
    fn entry_again(&self, index: u32) -> Option<(Entry, EndsDigest)>;

    /// Lists the chunks of a file, some at a time; the last call of `report` has another state than
    /// [`ListState::Going`]. `report` breaks when the rest is not needed. `path_rate` is the rate of the path in bytes
    /// per second: a slower list may end early. A source that lists no chunks reports none, which is complete.
    fn list_chunks(
        &self,
        index: u32,
        path_rate: Option<u64>,
        report: &mut dyn FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>,
    );
}

/// The result of [`TreeObject::copy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedRange {
    /// The number of bytes, at least 1.
    pub bytes: u64,
    /// Whether it skipped holes, so that the file may be too short.
    pub has_holes: bool,
}

/// Bytes read at a time if they cannot be copied by the kernel.
pub(crate) const COPIED_AT_ONCE: usize = 256 << 10;
