//! Kinds of files that are written about a transfer.

use std::fmt;

/// What is written about a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The list of BLAKE3 checksums, which replaces a file.
    Checksums,
    /// The engine's trace, which is appended to a file.
    Trace,
}

impl fmt::Display for OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checksums => "the list of checksums",
            Self::Trace => "the trace",
        })
    }
}
