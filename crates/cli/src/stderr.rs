//! Stderr, where people read.

use std::io;

use crate::blocking;

/// Writes at once. Where stderr is gone there is nobody to tell.
pub(crate) fn write(bytes: &[u8]) {
    let _ = blocking::write_all(io::stderr().lock(), bytes);
}
