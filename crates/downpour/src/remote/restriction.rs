//! What a request asks for and earlier releases ignore without a word. A release that refuses what it does not know by its
//! name ([`Request::read`](super::request::Request::read)) says that it enforces [`Restriction::Later`].

use super::request::{Onward, RemoteTask};
use crate::base64::Bytes;
use crate::error::{Error, ErrorKind};
use crate::files::{ReceiveSpec, ScanOptions};
use crate::home::names_user;

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

    /// Returns the restrictions of a task. Each of its fields is looked at: one that is added does not compile here until its
    /// author has made it one of those that came later.
    pub(super) fn of(task: &RemoteTask) -> Vec<Self> {
        match task {
            RemoteTask::Receive(spec) => Self::of_receiver(spec),
            RemoteTask::Send { sources, scan, compared: _, dry_run: _ } => Self::of_sender(sources, scan),
            RemoteTask::Forward { sources, scan, compared: _, dry_run: _, onward } => {
                let mut asked = Self::of_sender(sources, scan);
                // The machine that is asked asks another, and would leave out what it does not know.
                for restriction in onward.iter().flat_map(|onward| Self::of_onward(onward)) {
                    if !asked.contains(&restriction) {
                        asked.push(restriction);
                    }
                }
                asked
            }
            RemoteTask::Pipe { command: _ } | RemoteTask::Tunnel { listen: _ } | RemoteTask::Examine { folder: _ } => {
                Vec::new()
            }
        }
    }

    fn of_onward(onward: &Onward) -> Vec<Self> {
        Self::of_receiver(&onward.receive)
    }

    fn of_sender(sources: &[Bytes], scan: &ScanOptions) -> Vec<Self> {
        let ScanOptions {
            // In the first release.
            recursive: _,
            links: _,
            hard_links: _,
            hash: _,
            filter: _,
            files_from: _,
            // Without it, a link is sent.
            follow_items: _,
            // Known to the sender alone.
            follow_ways: _,
            outputs: _,
            one_file_system,
            preserve,
            refuse_empty,
            remove_sources,
        } = scan;
        let asked = [
            (Self::EmptySource, *refuse_empty),
            (Self::OneFileSystem, *one_file_system),
            (Self::Preserve, !preserve.is_nothing()),
            (Self::RemoveSources, *remove_sources),
            (Self::Homes, sources.iter().any(|source| names_user(&source.to_path()))),
        ];
        asked.into_iter().filter_map(|(restriction, asked)| asked.then_some(restriction)).collect()
    }

    /// A dry run changes nothing, so it needs none but the means to read what is announced and to tell what is asked.
    fn of_receiver(spec: &ReceiveSpec) -> Vec<Self> {
        let ReceiveSpec {
            target,
            // In the first release.
            existing: _,
            compare: _,
            modes: _,
            compared: _,
            dry_run,
            // Known to the receiver alone.
            within: _,
            outputs: _,
            // They save work.
            trust_staging: _,
            differences: _,
            modify_window,
            eligible,
            chmod,
            omit_directory_times,
            make_path,
            link_dest,
            requested,
            preserve,
            delete,
            max_delete,
            force_empty,
            safe_links,
            one_file_system,
            backup,
            confirms,
            permitted,
        } = spec;
        let directory_if = &requested.directory_if;
        let is_later = *modify_window > 0
            || !eligible.is_everything()
            || chmod.is_some()
            || *omit_directory_times
            || *make_path
            || !link_dest.is_empty();
        let asked = [
            (Self::EmptySource, !dry_run && delete.is_some() && !force_empty),
            (Self::MaxDelete, !dry_run && max_delete.is_some()),
            (Self::SafeLinks, !dry_run && *safe_links),
            (Self::OneFileSystem, !dry_run && *one_file_system && delete.is_some()),
            (Self::Preserve, !preserve.is_nothing()),
            (Self::Permitted, !dry_run && (!permitted.is_everything() || directory_if.is_some())),
            (Self::RemoveSources, *confirms),
            (Self::Backup, !dry_run && backup.is_some()),
            (Self::Homes, names_user(target)),
            (Self::Later, is_later),
        ];
        asked.into_iter().filter_map(|(restriction, asked)| asked.then_some(restriction)).collect()
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
            Self::Homes => "its older downpour does not know ~user: update it, or write the whole path",
            Self::Later => {
                "its older downpour does not know all options of this copy: update it, or leave those out that it lacks"
            }
            Self::Backup => "its older downpour makes no backups: update it, or leave -b and --backup-dir out",
            Self::Preserve => {
                "its older downpour knows nothing of owners, groups, ACLs, extended attributes and special files: update it, or leave those options and -a out"
            }
        };
        Err(Error::Remote { kind: ErrorKind::Other, message: message.into() })
    }
}
