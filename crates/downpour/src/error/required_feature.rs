//! Parts of a request that earlier releases ignore silently.

use serde::{Deserialize, Serialize};

/// A part of a request that the remote host must know, because a release that ignores it would do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequiredFeature {
    /// Nothing is deleted if the source is empty.
    EmptySource,
    /// [`ReceiveRequest::max_delete`](crate::files::ReceiveRequest::max_delete).
    MaxDelete,
    /// [`ReceiveRequest::safe_links`](crate::files::ReceiveRequest::safe_links).
    SafeLinks,
    /// [`ReceiveRequest::one_file_system`](crate::files::ReceiveRequest::one_file_system), and that of a sender's scan.
    OneFileSystem,
    /// [`ReceiveRequest::preserve`](crate::files::ReceiveRequest::preserve), and that of a sender's scan.
    Preserve,
    /// [`ReceiveRequest::permitted`](crate::files::ReceiveRequest::permitted) and
    /// [`RequestedItems::directory_if`](crate::files::RequestedItems::directory_if), of a receiver for a third host.
    Permitted,
    /// [`ReceiveRequest::report_stored`](crate::files::ReceiveRequest::report_stored), and that a sender removes confirmed
    /// sources.
    RemoveSources,
    /// [`ReceiveRequest::backup`](crate::files::ReceiveRequest::backup).
    Backup,
    /// A path in the home of a named user, as in `~user/x`.
    Homes,
    /// Any of the fields that were added later.
    #[serde(rename = "Later")]
    AllFields,
}

impl RequiredFeature {
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
        Self::AllFields,
    ];

    /// Returns its name in an answer.
    pub(crate) const fn name(self) -> &'static str {
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
            Self::AllFields => "all-fields",
        }
    }

    /// Returns the feature with this name in an answer.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }

    /// Returns the feature that a release without it lacks.
    pub(crate) const fn lack(self) -> &'static str {
        match self {
            Self::EmptySource => "it deletes everything if the source is empty",
            Self::MaxDelete => "it does not limit deletions",
            Self::SafeLinks => "it does not skip unsafe links",
            Self::OneFileSystem => "it does not stay on one file system",
            Self::Permitted => "it does not check the names from another host",
            Self::RemoveSources => "it does not remove sources",
            Self::Homes => "it does not support ~user",
            Self::AllFields => "it does not support all options of this copy",
            Self::Backup => "it does not keep backups",
            Self::Preserve => "it does not support owners, groups, ACLs, extended attributes and special files",
        }
    }
}
