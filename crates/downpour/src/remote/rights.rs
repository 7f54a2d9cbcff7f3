//! The actions of a task on the remote host, and the rights of a restricted key.

use super::request::RemoteTask;
use super::restricted_root::Access;
use crate::error::{Error, KeyRefusal};
use crate::files::{LinkPolicy, ReceiveRequest, SourceOptions};

/// An action of a task that needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Sends names and the contents of files.
    Read,
    /// Follows links in directories, which may leave the restricted directory.
    FollowLinks,
    /// Removes sent files.
    RemoveSources,
    /// Compares local files with those of the peer, and changes nothing.
    Compare,
    /// Creates and replaces names, and changes attributes.
    Write,
    /// Deletes names, or renames them to backups.
    Delete,
    /// Sets owners, attributes or special files.
    Preserve,
    /// Creates hard links to files in other trees, which may be anywhere.
    HardLink,
    /// Creates parent directories of the target.
    MakePath,
    /// Writes and removes a file to measure the disk.
    TryDisk,
    /// Runs a command.
    Run,
    /// Connects to other addresses, or listens.
    Connect,
}

impl Operation {
    #[cfg(test)]
    const ALL: [Self; 12] = [
        Self::Read,
        Self::FollowLinks,
        Self::RemoveSources,
        Self::Compare,
        Self::Write,
        Self::Delete,
        Self::Preserve,
        Self::HardLink,
        Self::MakePath,
        Self::TryDisk,
        Self::Run,
        Self::Connect,
    ];

    /// Returns all actions of a task. An added task or option does not compile until its author has classified it here.
    pub(super) fn of(task: &RemoteTask) -> Vec<Self> {
        match task {
            RemoteTask::Send { sources: _, scan, compared: _, dry_run } => Self::of_sender(scan, *dry_run),
            // A restricted key never uses `onward`: the data is relayed by the requesting host.
            RemoteTask::Forward { sources: _, scan, compared: _, dry_run, onward: _ } => {
                Self::of_sender(scan, *dry_run)
            }
            RemoteTask::Receive(spec) => Self::of_receiver(spec),
            RemoteTask::Pipe { command: _ } => vec![Self::Run],
            RemoteTask::Tunnel { listen: _ } => vec![Self::Connect],
            RemoteTask::Examine { directory: _ } => vec![Self::TryDisk],
        }
    }

    /// A dry run reports everything but contents; since digests identify contents, it reads.
    fn of_sender(scan: &SourceOptions, dry_run: bool) -> Vec<Self> {
        let SourceOptions {
            // The selected names: the sources themselves lie beneath the directory.
            recursive: _,
            follow_items: _,
            one_file_system: _,
            filter: _,
            files_from: _,
            refuse_empty: _,
            // The reported attributes.
            hard_links: _,
            preserve: _,
            hash: _,
            links,
            // No part of a request.
            follow_parent_links: _,
            outputs: _,
            remove_sources,
        } = scan;
        let does = [
            (Self::Read, true),
            (Self::FollowLinks, *links == LinkPolicy::Follow),
            (Self::RemoveSources, *remove_sources && !dry_run),
        ];
        chosen(does)
    }

    fn of_receiver(spec: &ReceiveRequest) -> Vec<Self> {
        let ReceiveRequest {
            // The location: beneath the directory, as `RestrictedRoot` finds it; `within` is no part of a request.
            target: _,
            within: _,
            outputs: _,
            requested: _,
            permitted: _,
            // The existing files that are written, and whether contents are compared before.
            existing: _,
            compare: _,
            modify_window: _,
            eligible: _,
            differences: _,
            trust_staging: _,
            modes: _,
            chmod: _,
            omit_directory_times: _,
            safe_links: _,
            make_path,
            link_dest,
            // The reports.
            compare_trees: _,
            report_stored: _,
            // Less is deleted.
            max_delete: _,
            one_file_system: _,
            // An empty source deletes, too; without `delete` it means nothing.
            force_empty: _,
            delete,
            backup,
            preserve,
            dry_run,
        } = spec;
        let does = [
            (Self::Compare, true),
            (Self::Write, !dry_run),
            (Self::Delete, !dry_run && (delete.is_some() || backup.is_some())),
            (Self::Preserve, !preserve.is_nothing()),
            (Self::HardLink, !link_dest.is_empty()),
            (Self::MakePath, *make_path),
        ];
        chosen(does)
    }
}

fn chosen<const N: usize>(does: [(Operation, bool); N]) -> Vec<Operation> {
    does.into_iter().filter_map(|(deed, does)| does.then_some(deed)).collect()
}

impl Access {
    /// Checks that a login with this access may run a task; root has fewer rights.
    ///
    /// # Errors
    /// [`Error::KeyRestricted`] if not.
    pub(super) fn permits(self, task: &RemoteTask, is_root: bool) -> Result<(), Error> {
        let refused = Operation::of(task).into_iter().find_map(|deed| self.refusal(deed, is_root));
        refused.map_or(Ok(()), |why| Err(Error::KeyRestricted(why)))
    }

    /// Returns why the login has no right to an action; `None` if it has. A right is granted by a match arm that names
    /// it.
    const fn refusal(self, deed: Operation, is_root: bool) -> Option<KeyRefusal> {
        match (deed, self) {
            (Operation::Run, Self::Full | Self::ReadOnly | Self::WriteOnly) => Some(KeyRefusal::NoCommands),
            (Operation::Connect, Self::Full | Self::ReadOnly | Self::WriteOnly) => Some(KeyRefusal::NoConnections),
            (Operation::FollowLinks, Self::Full | Self::ReadOnly | Self::WriteOnly) => Some(KeyRefusal::NoFollowing),
            (Operation::HardLink, Self::Full | Self::ReadOnly | Self::WriteOnly) => Some(KeyRefusal::NoLinking),
            (Operation::MakePath, Self::Full | Self::ReadOnly | Self::WriteOnly) => Some(KeyRefusal::NoPath),
            (Operation::Read | Operation::RemoveSources, Self::WriteOnly) => Some(KeyRefusal::OnlyReceives),
            (Operation::RemoveSources, Self::ReadOnly) => Some(KeyRefusal::NoRemoving),
            (Operation::Write | Operation::Delete, Self::ReadOnly) => Some(KeyRefusal::OnlySends),
            (Operation::TryDisk, Self::ReadOnly) => Some(KeyRefusal::NoTrial),
            // A set-user-ID program, a capability or a device would give access to the whole host.
            (Operation::Preserve, Self::Full | Self::ReadOnly | Self::WriteOnly) if is_root => {
                Some(KeyRefusal::NoAttributes)
            }
            (
                Operation::Read
                | Operation::RemoveSources
                | Operation::Compare
                | Operation::Write
                | Operation::Delete
                | Operation::Preserve
                | Operation::TryDisk,
                Self::Full,
            )
            | (Operation::Read | Operation::Compare | Operation::Preserve, Self::ReadOnly)
            | (
                Operation::Compare | Operation::Write | Operation::Delete | Operation::Preserve | Operation::TryDisk,
                Self::WriteOnly,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{
        AllowedNames, Backup, Compare, DirectoryIf, Existing, Filter, LinkPolicy, Modes, Preserve, RequestedItems,
        SourceOptions,
    };

    const ACCESSES: [Access; 3] = [Access::Full, Access::ReadOnly, Access::WriteOnly];

    /// Returns `plain` with each of the options, alone and with each other one.
    fn with_options<T>(plain: impl Fn() -> T, options: &[fn(&mut T)]) -> Vec<T> {
        let mut made = vec![plain()];
        for (index, first) in options.iter().enumerate() {
            for second in &options[index..] {
                let mut one = plain();
                first(&mut one);
                second(&mut one);
                made.push(one);
            }
        }
        made
    }

    fn scans() -> Vec<SourceOptions> {
        let options: [fn(&mut SourceOptions); 14] = [
            |scan| scan.recursive = true,
            |scan| scan.links = LinkPolicy::Follow,
            |scan| scan.links = LinkPolicy::Skip,
            |scan| scan.follow_items = true,
            |scan| scan.hard_links = true,
            |scan| scan.one_file_system = true,
            |scan| scan.preserve.owner = true,
            |scan| scan.preserve.xattrs = true,
            |scan| scan.hash = true,
            |scan| scan.filter = std::sync::Arc::new(Filter::parse(b"- x").unwrap()),
            |scan| scan.files_from = Some(vec![b"x".to_vec()]),
            |scan| scan.follow_parent_links = true,
            |scan| scan.refuse_empty = true,
            |scan| scan.remove_sources = true,
        ];
        let plain = || SourceOptions { recursive: false, follow_parent_links: false, ..SourceOptions::default() };
        with_options(plain, &options)
    }

    fn specs() -> Vec<ReceiveRequest> {
        let options: [fn(&mut ReceiveRequest); 28] = [
            |spec| spec.requested = RequestedItems { many: true, contents: true, ..RequestedItems::default() },
            |spec| spec.requested.directory_if = Some(DirectoryIf { is_directory: true, name_is_none_of: None }),
            |spec| spec.existing = Existing::Replace,
            |spec| spec.existing = Existing::Skip,
            |spec| spec.existing = Existing::KeepNewer,
            |spec| spec.existing = Existing::UpdateOnly,
            |spec| spec.compare = Compare::Checksum,
            |spec| spec.modes = Modes::Exact,
            |spec| spec.preserve = Preserve { acls: true, ..Preserve::default() },
            |spec| spec.preserve = Preserve { specials: true, ..Preserve::default() },
            |spec| spec.delete = Some(Filter::default()),
            |spec| spec.max_delete = Some(1),
            |spec| spec.force_empty = true,
            |spec| spec.safe_links = true,
            |spec| spec.one_file_system = true,
            |spec| spec.trust_staging = true,
            |spec| spec.differences = true,
            |spec| spec.backup = Some(Backup::new(None, None).unwrap()),
            |spec| spec.report_stored = true,
            |spec| spec.permitted = AllowedNames { max_entries: Some(1), ..AllowedNames::default() },
            |spec| spec.target = "other".into(),
            |spec| spec.compare = Compare::Never,
            |spec| spec.modify_window = 1,
            |spec| spec.eligible.max_size = Some(1),
            |spec| spec.chmod = Some("a+rwxs".parse().unwrap()),
            |spec| spec.omit_directory_times = true,
            |spec| spec.make_path = true,
            |spec| spec.link_dest = vec![crate::base64::Bytes(b"x".to_vec())],
        ];
        with_options(|| ReceiveRequest::to_target("x"), &options)
    }

    /// Returns every task with each of its options, alone and with each other one.
    fn tasks() -> Vec<RemoteTask> {
        let mut tasks = vec![
            RemoteTask::Pipe { command: "true".into() },
            RemoteTask::Tunnel { listen: Vec::new() },
            RemoteTask::Examine { directory: None },
        ];
        for (compared, dry_run) in [(false, false), (false, true), (true, false), (true, true)] {
            for scan in scans() {
                tasks.push(RemoteTask::Send { sources: Vec::new(), scan, compared, dry_run });
            }
            for scan in scans() {
                tasks.push(RemoteTask::Forward { sources: Vec::new(), scan, compared, dry_run, onward: None });
            }
            let specs = specs().into_iter().map(|spec| ReceiveRequest { compare_trees: compared, dry_run, ..spec });
            tasks.extend(specs.map(|spec| RemoteTask::Receive(Box::new(spec))));
        }
        tasks
    }

    #[test]
    fn task_permitted_only_with_all_rights() {
        let tasks = tasks();
        assert!(tasks.len() > 500, "{} tasks", tasks.len());
        for (task, access, is_root) in tasks.iter().flat_map(|task| {
            ACCESSES.into_iter().flat_map(move |access| [false, true].map(|is_root| (task, access, is_root)))
        }) {
            let does = Operation::of(task);
            assert!(!does.is_empty(), "{task:?} does something");
            let (reads, changes) = match task {
                RemoteTask::Send { scan, dry_run, .. } | RemoteTask::Forward { scan, dry_run, .. } => {
                    (true, scan.remove_sources && !dry_run)
                }
                RemoteTask::Receive(spec) => (false, !spec.dry_run),
                RemoteTask::Pipe { .. } | RemoteTask::Tunnel { .. } | RemoteTask::Examine { .. } => (true, true),
            };
            let is_permitted = access.permits(task, is_root).is_ok();
            let is_refused = match access {
                Access::ReadOnly => changes,
                Access::WriteOnly => reads && !matches!(task, RemoteTask::Examine { .. }),
                Access::Full => matches!(task, RemoteTask::Pipe { .. } | RemoteTask::Tunnel { .. }),
            };
            assert!(!is_refused || !is_permitted, "{access:?}, root: {is_root}: {task:?}");
            let asks_root = does.contains(&Operation::Preserve) && is_root;
            let never =
                [Operation::Run, Operation::Connect, Operation::FollowLinks, Operation::HardLink, Operation::MakePath]
                    .iter()
                    .any(|deed| does.contains(deed));
            assert_eq!(is_permitted, !is_refused && !asks_root && !never, "{access:?}, root: {is_root}: {task:?}");
        }
    }

    #[test]
    fn an_access_grants_less_than_full() {
        for deed in Operation::ALL {
            for is_root in [false, true] {
                let full = Access::Full.refusal(deed, is_root);
                for access in ACCESSES {
                    assert!(full.is_none() || access.refusal(deed, is_root).is_some(), "{access:?} {deed:?}");
                }
            }
        }
    }
}
