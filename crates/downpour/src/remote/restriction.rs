//! Restrictions of a request that releases before them ignore without a word.

use crate::error::{Error, ErrorKind};
use crate::files::ReceiveSpec;

/// A restriction of what a receiver changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restriction {
    /// Nothing is deleted where the source is empty.
    EmptySource,
    /// [`ReceiveSpec::max_delete`].
    MaxDelete,
    /// [`ReceiveSpec::safe_links`].
    SafeLinks,
    /// [`ReceiveSpec::one_file_system`].
    OneFileSystem,
}

impl Restriction {
    const ALL: [Self; 4] = [Self::EmptySource, Self::MaxDelete, Self::SafeLinks, Self::OneFileSystem];

    /// Returns its name in an answer.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::EmptySource => "empty-source",
            Self::MaxDelete => "max-delete",
            Self::SafeLinks => "safe-links",
            Self::OneFileSystem => "one-file-system",
        }
    }

    /// Returns the restriction with this name in an answer.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|restriction| restriction.name() == name)
    }

    /// Returns the restrictions of a request. A dry run changes nothing, so it needs none.
    pub(super) fn of(spec: &ReceiveSpec) -> Vec<Self> {
        let is_asked = |restriction: &Self| match restriction {
            Self::EmptySource => spec.delete.is_some() && !spec.force_empty,
            Self::MaxDelete => spec.max_delete.is_some(),
            Self::SafeLinks => spec.safe_links,
            Self::OneFileSystem => spec.one_file_system && spec.delete.is_some(),
        };
        Self::ALL.into_iter().filter(|restriction| !spec.dry_run && is_asked(restriction)).collect()
    }

    /// Checks that a receiver that names `enforced` in its answer enforces all restrictions of `spec`.
    ///
    /// # Errors
    /// [`Error::Remote`] if one is missing: the other side is older than the restriction.
    pub(super) fn check(spec: &ReceiveSpec, enforced: &[Self]) -> Result<(), Error> {
        let Some(missing) = Self::of(spec).into_iter().find(|asked| !enforced.contains(asked)) else { return Ok(()) };
        let message = match missing {
            Self::EmptySource => {
                "its older downpour deletes everything if the source is empty: update it, or accept that with --force-empty"
            }
            Self::MaxDelete => "its older downpour does not know --max-delete: update it, or leave the option out",
            Self::SafeLinks => "its older downpour does not know --safe-links: update it, or leave the option out",
            Self::OneFileSystem => {
                "its older downpour deletes on other file systems too: update it, or leave -x or --delete out"
            }
        };
        Err(Error::Remote { kind: ErrorKind::Other, message: message.into() })
    }
}
