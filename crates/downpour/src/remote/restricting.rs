//! What a request asks for and earlier releases ignore without a word. A release that refuses what it does not know by its
//! name ([`Request::read`](super::request::Request::read)) says that it enforces [`Restriction::Later`].

use super::request::{Onward, RemoteTask};
use super::restriction::Restriction;
use crate::base64::Bytes;
use crate::error::{Context, Error};
use crate::files::{ReceiveSpec, ScanOptions};
use crate::home::names_user;

impl Restriction {
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
    /// [`Error::Older`] if one is missing: the other side is older than the restriction.
    pub(super) fn check(task: &RemoteTask, enforced: &[Self]) -> Result<(), Error> {
        let Some(missing) = Self::of(task).into_iter().find(|asked| !enforced.contains(asked)) else { return Ok(()) };
        Err(Error::Older(missing).within(Context::Host(None)))
    }
}
