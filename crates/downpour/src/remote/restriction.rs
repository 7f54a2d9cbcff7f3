//! What a request asks for and earlier releases ignore without a word.

use super::request::RemoteTask;
use crate::error::{Error, ErrorKind};
use crate::files::ReceiveSpec;

/// A restriction of what a receiver changes, or something else that either side has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restriction {
    /// Nothing is deleted where the source is empty.
    EmptySource,
    /// [`ReceiveSpec::max_delete`].
    MaxDelete,
    /// [`ReceiveSpec::safe_links`].
    SafeLinks,
    /// [`ReceiveSpec::one_file_system`], and that of a sender's scan.
    OneFileSystem,
    /// [`ReceiveSpec::preserve`], and that of a sender's scan.
    Preserve,
    /// [`ReceiveSpec::permitted`] and [`Requested::directory_if`](crate::files::Requested::directory_if), of a receiver to
    /// which a third machine sends.
    Permitted,
    /// [`ReceiveSpec::confirms`], and that a sender removes what is confirmed.
    RemoveSources,
    /// [`ReceiveSpec::backup`].
    Backup,
}

impl Restriction {
    const ALL: [Self; 8] = [
        Self::EmptySource,
        Self::MaxDelete,
        Self::SafeLinks,
        Self::OneFileSystem,
        Self::Preserve,
        Self::Permitted,
        Self::RemoveSources,
        Self::Backup,
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
        }
    }

    /// Returns the restriction with this name in an answer.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|restriction| restriction.name() == name)
    }

    /// Returns the restrictions of a task.
    pub(super) fn of(task: &RemoteTask) -> Vec<Self> {
        match task {
            RemoteTask::Receive(spec) => Self::of_receiver(spec),
            RemoteTask::Send { scan, .. } | RemoteTask::Forward { scan, .. } => {
                let asked = [
                    (Self::OneFileSystem, scan.one_file_system),
                    (Self::Preserve, !scan.preserve.is_nothing()),
                    (Self::RemoveSources, scan.remove_sources),
                ];
                asked.into_iter().filter_map(|(restriction, asked)| asked.then_some(restriction)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A dry run changes nothing, so it needs none but the means to read what is announced and to tell what is asked.
    fn of_receiver(spec: &ReceiveSpec) -> Vec<Self> {
        let is_asked = |restriction: &Self| match restriction {
            Self::EmptySource => spec.delete.is_some() && !spec.force_empty,
            Self::MaxDelete => spec.max_delete.is_some(),
            Self::SafeLinks => spec.safe_links,
            Self::OneFileSystem => spec.one_file_system && spec.delete.is_some(),
            Self::Preserve => !spec.preserve.is_nothing(),
            Self::Permitted => !spec.permitted.is_everything() || spec.requested.directory_if.is_some(),
            Self::RemoveSources => spec.confirms,
            Self::Backup => spec.backup.is_some(),
        };
        let by_dry_run = |restriction: &Self| matches!(restriction, Self::Preserve | Self::RemoveSources);
        Self::ALL
            .into_iter()
            .filter(|restriction| (!spec.dry_run || by_dry_run(restriction)) && is_asked(restriction))
            .collect()
    }

    /// Checks that a side that names `enforced` in its answer enforces all restrictions of `task`.
    ///
    /// # Errors
    /// [`Error::Remote`] if one is missing: the other side is older than the restriction.
    pub(super) fn check(task: &RemoteTask, enforced: &[Self]) -> Result<(), Error> {
        let Some(missing) = Self::of(task).into_iter().find(|asked| !enforced.contains(asked)) else { return Ok(()) };
        let message = match missing {
            Self::EmptySource => {
                "its older downpour deletes everything if the source is empty: update it, or accept that with --force-empty"
            }
            Self::MaxDelete => "its older downpour does not know --max-delete: update it, or leave the option out",
            Self::SafeLinks => "its older downpour does not know --safe-links: update it, or leave the option out",
            Self::OneFileSystem => "its older downpour does not stop at other file systems: update it, or leave -x out",
            Self::Permitted => "its older downpour does not check what another host sends it: update it",
            Self::RemoveSources => {
                "its older downpour does not know --remove-source-files: update it, or leave the option out"
            }
            Self::Backup => "its older downpour makes no backups: update it, or leave -b and --backup-dir out",
            Self::Preserve => {
                "its older downpour knows nothing of owners, groups, ACLs, extended attributes and special files: update it, or leave those options and -a out"
            }
        };
        Err(Error::Remote { kind: ErrorKind::Other, message: message.into() })
    }
}
