//! What earlier releases ignore in a request without a word.

use serde::{Deserialize, Serialize};

/// A restriction of what a receiver changes, or something else that either side has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Restriction {
    /// Nothing is deleted where the source is empty.
    EmptySource,
    /// [`ReceiveRequest::max_delete`](crate::files::ReceiveRequest::max_delete).
    MaxDelete,
    /// [`ReceiveRequest::safe_links`](crate::files::ReceiveRequest::safe_links).
    SafeLinks,
    /// [`ReceiveRequest::one_file_system`](crate::files::ReceiveRequest::one_file_system), and that of a sender's scan.
    OneFileSystem,
    /// [`ReceiveRequest::preserve`](crate::files::ReceiveRequest::preserve), and that of a sender's scan.
    Preserve,
    /// [`ReceiveRequest::permitted`](crate::files::ReceiveRequest::permitted) and [`RequestedItems::directory_if`](crate::files::RequestedItems::directory_if), of a receiver to
    /// which a third machine sends.
    Permitted,
    /// [`ReceiveRequest::confirms`](crate::files::ReceiveRequest::report_stored), and that a sender removes what is confirmed.
    RemoveSources,
    /// [`ReceiveRequest::backup`](crate::files::ReceiveRequest::backup).
    Backup,
    /// A path in the home of a user who is named, as in `~user/x`.
    Homes,
    /// Any of the fields that came later.
    Later,
}

impl Restriction {
    const ALL: [Self; 10] = [
        Self::EmptySource,
        Self::MaxDelete,
        Self::SafeLinks,
        Self::OneFileSystem,
        Self::Preserve,
        Self::Permitted,
        Self::RemoveSources,
        Self::Backup,
        Self::Homes,
        Self::Later,
    ];

    /// Returns its name in an answer.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::EmptySource => "empty-source",
            Self::MaxDelete => "max-delete",
            Self::SafeLinks => "safe-links",
            Self::OneFileSystem => "one-file-system",
            Self::Preserve => "preserve",
            Self::Permitted => "permitted",
            Self::RemoveSources => "remove-sources",
            Self::Backup => "backup",
            Self::Homes => "homes",
            Self::Later => "all-fields",
        }
    }

    /// Returns the restriction with this name in an answer.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|restriction| restriction.name() == name)
    }

    /// Returns what a release without it does not do, or know.
    pub(crate) const fn lack(self) -> &'static str {
        match self {
            Self::EmptySource => "deletes everything if the source is empty",
            Self::MaxDelete => "does not know the limit of deletions",
            Self::SafeLinks => "does not leave out links that lead out of the tree",
            Self::OneFileSystem => "does not stop at other file systems",
            Self::Permitted => "does not check what another host sends it",
            Self::RemoveSources => "does not remove sources",
            Self::Homes => "does not know ~user",
            Self::Later => "does not know all options of this copy",
            Self::Backup => "makes no backups",
            Self::Preserve => "knows nothing of owners, groups, ACLs, extended attributes and special files",
        }
    }
}
