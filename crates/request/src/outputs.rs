//! Files that this host writes about a transfer; the transfer neither sends nor replaces them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The output files of a transfer. A source that is one of them is refused, one found in a directory is skipped
/// (`SkipReason::Output`), and none is replaced or deleted at the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(Vec<(OutputKind, PathBuf)>);

impl Outputs {
    /// Names the list of checksums and the trace, if they are written.
    #[must_use]
    pub fn new(checksums: Option<&Path>, trace: Option<&Path>) -> Self {
        let named = [(OutputKind::Checksums, checksums), (OutputKind::Trace, trace)];
        Self(named.into_iter().filter_map(|(kind, path)| Some((kind, path?.to_owned()))).collect())
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their kinds and their paths as given by the user.
    pub fn iter(&self) -> impl Iterator<Item = (OutputKind, &Path)> {
        self.0.iter().map(|(kind, path)| (*kind, path.as_path()))
    }
}

/// The kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
