//! The parts of a request that earlier releases ignore silently. A release that refuses unknown fields by name
//! ([`Request::read`](super::request::Request::read)) reports that it enforces [`RequiredFeature::AllFields`].

use std::sync::Arc;

use super::request::{Onward, RemoteTask};
use crate::base64::Bytes;
use crate::error::{Context, Error, RequiredFeature};
use crate::files::{AllowedNames, Preserve, ReceiveRequest, RequestedItems, SourceOptions};
use crate::home::names_user;

impl RequiredFeature {
    /// Returns the features that a task requires. Added fields need no line in this function: everything beyond `known` is
    /// [`Self::AllFields`].
    pub(super) fn of(task: &RemoteTask) -> Vec<Self> {
        match task {
            RemoteTask::Receive(spec) => Self::of_receiver(spec),
            RemoteTask::Send { sources, scan, compared: _, dry_run: _ } => Self::of_sender(sources, scan),
            RemoteTask::Forward { sources, scan, compared: _, dry_run: _, onward } => {
                let mut asked = Self::of_sender(sources, scan);
                // The sending host requests another one, and would omit fields that it does not know.
                for feature in onward.iter().flat_map(|onward| Self::of_onward(onward)) {
                    if !asked.contains(&feature) {
                        asked.push(feature);
                    }
                }
                asked
            }
            RemoteTask::Pipe { command: _ }
            | RemoteTask::Tunnel { listen: _ }
            | RemoteTask::Examine { directory: _ } => Vec::new(),
        }
    }

    fn of_onward(onward: &Onward) -> Vec<Self> {
        Self::of_receiver(&onward.receive)
    }

    fn of_sender(sources: &[Bytes], scan: &SourceOptions) -> Vec<Self> {
        #[allow(clippy::needless_update, reason = "a field that is added is not known")]
        let known = SourceOptions {
            recursive: scan.recursive,
            links: scan.links,
            hard_links: scan.hard_links,
            hash: scan.hash,
            filter: Arc::clone(&scan.filter),
            files_from: scan.files_from.clone(),
            // Without it, a link is sent.
            follow_items: scan.follow_items,
            // Known to the sender alone.
            follow_parent_links: scan.follow_parent_links,
            outputs: scan.outputs.clone(),
            // With restrictions of their own.
            one_file_system: scan.one_file_system,
            preserve: known(scan.preserve),
            refuse_empty: scan.refuse_empty,
            remove_sources: scan.remove_sources,
            ..SourceOptions::default()
        };
        chosen([
            (Self::EmptySource, scan.refuse_empty),
            (Self::OneFileSystem, scan.one_file_system),
            (Self::Preserve, !scan.preserve.is_nothing()),
            (Self::RemoveSources, scan.remove_sources),
            (Self::Homes, sources.iter().any(|source| names_user(&source.to_path()))),
            (Self::AllFields, known != *scan),
        ])
    }

    /// A dry run changes nothing: it needs only the means to read announcements and to report requests.
    #[allow(clippy::needless_update, reason = "a field that is added is not known")]
    fn of_receiver(spec: &ReceiveRequest) -> Vec<Self> {
        let ReceiveRequest { dry_run, delete, permitted, requested, .. } = spec;
        let known = ReceiveRequest {
            requested: RequestedItems {
                many: requested.many,
                contents: requested.contents,
                items: requested.items.clone(),
                directory_if: requested.directory_if.clone(),
                ..RequestedItems::default()
            },
            existing: spec.existing,
            compare: spec.compare,
            modes: spec.modes,
            compare_trees: spec.compare_trees,
            dry_run: *dry_run,
            // Known to the receiver alone.
            within: spec.within.clone(),
            outputs: spec.outputs.clone(),
            // They save work.
            trust_staging: spec.trust_staging,
            differences: spec.differences,
            // With restrictions of their own.
            preserve: known(spec.preserve),
            delete: delete.clone(),
            max_delete: spec.max_delete,
            force_empty: spec.force_empty,
            safe_links: spec.safe_links,
            one_file_system: spec.one_file_system,
            backup: spec.backup.clone(),
            report_stored: spec.report_stored,
            permitted: AllowedNames {
                items: permitted.items.clone(),
                filter: permitted.filter.clone(),
                files_from: permitted.files_from.clone(),
                max_entries: permitted.max_entries,
                max_bytes: permitted.max_bytes,
                ..AllowedNames::default()
            },
            ..ReceiveRequest::to_target(&spec.target)
        };
        chosen([
            (Self::EmptySource, !dry_run && delete.is_some() && !spec.force_empty),
            (Self::MaxDelete, !dry_run && spec.max_delete.is_some()),
            (Self::SafeLinks, !dry_run && spec.safe_links),
            (Self::OneFileSystem, !dry_run && spec.one_file_system && delete.is_some()),
            (Self::Preserve, !spec.preserve.is_nothing()),
            (Self::Permitted, !dry_run && (!permitted.is_everything() || requested.directory_if.is_some())),
            (Self::RemoveSources, spec.report_stored),
            (Self::Backup, !dry_run && spec.backup.is_some()),
            (Self::Homes, names_user(&spec.target)),
            (Self::AllFields, known != *spec),
        ])
    }

    /// Checks that a peer that names `enforced` in its answer enforces all restrictions of `task`.
    ///
    /// # Errors
    /// [`Error::Older`] if one is missing: the remote downpour is older than the feature.
    pub(super) fn check(task: &RemoteTask, enforced: &[Self]) -> Result<(), Error> {
        let Some(missing) = Self::of(task).into_iter().find(|asked| !enforced.contains(asked)) else { return Ok(()) };
        Err(Error::Older(missing).within(Context::Host(None)))
    }
}

/// Returns the preserved attributes that every release knows.
#[allow(clippy::needless_update, reason = "a field that is added is not known")]
fn known(preserve: Preserve) -> Preserve {
    let Preserve { owner, group, numeric_ids, acls, xattrs, specials, .. } = preserve;
    Preserve { owner, group, numeric_ids, acls, xattrs, specials, ..Preserve::default() }
}

fn chosen<const N: usize>(asked: [(RequiredFeature, bool); N]) -> Vec<RequiredFeature> {
    asked.into_iter().filter_map(|(feature, asked)| asked.then_some(feature)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Backup, Compare, Existing, Filter, Modes};

    fn features(option: fn(&mut ReceiveRequest)) -> Vec<RequiredFeature> {
        let mut spec = ReceiveRequest::to_target("x");
        option(&mut spec);
        RequiredFeature::of_receiver(&spec)
    }

    #[test]
    fn restriction_later_covers_new_fields() {
        let later: [fn(&mut ReceiveRequest); 6] = [
            |spec| spec.modify_window = 1,
            |spec| spec.eligible.max_size = Some(1),
            |spec| spec.chmod = Some("a+r".parse().unwrap()),
            |spec| spec.omit_directory_times = true,
            |spec| spec.make_path = true,
            |spec| spec.link_dest = vec![Bytes(b"x".to_vec())],
        ];
        assert!(later.iter().all(|option| features(*option) == [RequiredFeature::AllFields]));
        let known: [fn(&mut ReceiveRequest); 12] = [
            |_| {},
            |spec| spec.existing = Existing::Replace,
            |spec| spec.compare = Compare::Never,
            |spec| spec.modes = Modes::Exact,
            |spec| (spec.delete, spec.force_empty) = (Some(Filter::default()), true),
            |spec| spec.max_delete = Some(1),
            |spec| spec.safe_links = true,
            |spec| spec.backup = Some(Backup::new(None, None).unwrap()),
            |spec| spec.preserve = Preserve { xattrs: true, numeric_ids: true, ..Preserve::default() },
            |spec| spec.permitted = AllowedNames { max_entries: Some(1), ..AllowedNames::default() },
            |spec| (spec.trust_staging, spec.differences, spec.report_stored) = (true, true, true),
            |spec| (spec.requested.many, spec.dry_run) = (true, true),
        ];
        assert!(known.iter().all(|option| !features(*option).contains(&RequiredFeature::AllFields)));
    }
}
