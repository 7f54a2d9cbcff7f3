//! The treatment of symbolic links at a source.

use serde::{Deserialize, Serialize};

/// How symbolic links are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum LinkPolicy {
    /// As links, never resolved.
    #[default]
    Copy,
    /// The target of a link is sent under the link's name. A dangling link, or one to a directory that contains it, is
    /// skipped and reported.
    Follow,
    /// Not at all. The receiver only gets their names (`SkipReason::Link`), so that it deletes nothing under
    /// their names. A link named by the user as an item is refused.
    Skip,
}
