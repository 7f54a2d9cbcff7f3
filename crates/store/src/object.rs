//! The bytes of a batch at its source, the part of the seam (`seam.rs`) that the target's own code sees.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use super::batch::InvalidatedFile;
use crate::messages::{Chunk, Entry, ListState};

/// A digest of what a file has at both ends.
pub type EndsDigest = [u8; 32];

/// The object of a batch at its source. Shared by the threads that read it; what is kept of its files goes with it.
pub trait TreeObject: fmt::Debug + Send + Sync {
    /// Returns the length of the object in bytes.
    fn length(&self) -> u64;

    /// Fills `out` with the object's bytes from `offset`. A file that is not what was listed, or cannot be read, is
    /// *voided*: it reads as zeros from then on, as do bytes beyond the end of the object.
    fn read(&self, offset: u64, out: &mut [u8]);

    /// Copies bytes from `offset` of the object to `at` in a file of this machine, which has nothing there, without taking
    /// them into this process: at most `most`, and no further than to the end of the file that they are in. `None` where
    /// that cannot be done, and the bytes are to be read instead. A file that changes meanwhile is voided.
    ///
    /// # Errors
    /// Those of the system that are about `to`.
    fn copy(&self, offset: u64, most: u64, to: &File, at: u64) -> Option<io::Result<CopiedRange>> {
        // Its bytes are in no file.
        let _ = (offset, most, to, at);
        None
    }

    /// Returns the files voided since the last call. To be announced before the digest of any block that was read before
    /// this call.
    fn take_voided(&self) -> Vec<InvalidatedFile>;

    /// Returns the name of the file that is being read, of the first one before any is; `None` for an empty object.
    fn current(&self) -> Option<&[u8]>;

    /// Returns how many files of the batch that are not empty end within the first `bytes` of the object, or before those.
    fn files_within(&self, bytes: u64) -> u64;

    /// Returns the entry of a file as it is now, and what it has at its ends; `None` if it is no longer there, or no
    /// regular file.
    fn entry_again(&self, index: u32) -> Option<(Entry, EndsDigest)>;

    /// Lists the chunks of a file, some at a time; the last call of `tell` has another state than [`ListState::Going`].
    /// `tell` breaks when nobody wants the rest. `line` is what the line carries, in bytes per second: a list that is
    /// slower may end early. A source that lists no chunks tells none, which is complete.
    fn list_chunks(
        &self,
        index: u32,
        line: Option<u64>,
        tell: &mut dyn FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>,
    );
}

/// What [`TreeObject::copy`] has copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedRange {
    /// The number of bytes, at least 1.
    pub bytes: u64,
    /// Whether holes among them were left out, so that the file may be too short.
    pub has_holes: bool,
}

/// Bytes that are read at a time where they are not copied otherwise.
pub(crate) const COPIED_AT_ONCE: usize = 256 << 10;
