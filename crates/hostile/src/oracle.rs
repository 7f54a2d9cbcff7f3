//! The permissions of a request, formulated again and slowly, and applied to the changes of a transfer.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::process::geteuid;
use store::{AllowedNames, Entry, EntryKind, Existing, ItemName, Modes, Preserve, ReceiveRequest, Special};

use crate::sender::{Announcements, SENT};
use crate::tree::{ModedObject, Object, Tree};

/// The announced paths that may be changed, relative to the destination, with their entries.
type Allowed<'a> = BTreeMap<Vec<u8>, Vec<&'a Entry>>;

pub(crate) struct Oracle<'a> {
    pub(crate) spec: &'a ReceiveRequest,
    pub(crate) announcements: &'a Announcements,
    /// The name of the single item at the destination, if it is not the sender's.
    pub(crate) rename: Option<&'a [u8]>,
    /// The destination before the first transfer. Its names existed then; an item created since then belongs to the
    /// same transfer, which may continue it.
    pub(crate) original: &'a Tree,
}

impl Oracle<'_> {
    /// Panics if the change from `before` to `after` was not permitted.
    pub(crate) fn judge(&self, before: &Tree, after: &Tree) {
        let allowed = self.allowed();
        let mut deleted = 0;
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for path in paths {
            let (old, new) = (before.get(path), after.get(path));
            if old == new {
                continue;
            }
            let change = format!("{}: {old:?} became {new:?}", path.escape_ascii());
            assert!(!self.spec.dry_run, "a dry run changed {change}");
            let refuses = self.spec.existing == Existing::Refuse && self.original.contains_key(first_component(path));
            // Deletion is requested separately.
            assert!(!refuses || old.is_none() || new.is_none(), "existing names are refused: {change}");
            match new {
                None => {
                    deleted += u64::from(!is_cleared(path, &allowed, after));
                    self.judge_deletion(path, &allowed, after, &change);
                }
                Some(new) => self.judge_object(path, allowed.get(path), (old, new), &change),
            }
        }
        assert!(self.spec.max_delete.is_none_or(|most| deleted <= most), "{deleted} names were deleted");
    }

    /// Judges a new or changed object.
    fn judge_object(
        &self,
        path: &[u8],
        entries: Option<&Vec<&Entry>>,
        (old, new): (Option<&ModedObject>, &ModedObject),
        change: &str,
    ) {
        let (object, mode) = new;
        let entries = entries.unwrap_or_else(|| panic!("not announced, or not requested: {change}"));
        assert!(entries.iter().any(|entry| fits(entry, object)), "not as announced: {change}");
        if let Object::File(bytes) = object {
            let is_kept = old.is_some_and(|(old, _)| old == object);
            // A hard link may name an existing file.
            let may_be_old = is_kept || entries.iter().any(|entry| matches!(entry.kind, EntryKind::HardLink { .. }));
            assert!(may_be_old || bytes.iter().all(|byte| *byte == SENT), "not the content that was sent: {change}");
            let takes_part = self.spec.eligible.takes(bytes.len() as u64, i64::MAX);
            assert!(may_be_old || takes_part, "a file that takes no part: {change}");
        }
        let Preserve { owner, group, .. } = self.spec.preserve;
        let may_have_rights = owner && group && geteuid().is_root() && self.spec.modes == Modes::Exact;
        assert!(
            mode & 0o6000 == 0 || may_have_rights || old.is_some_and(|(_, old)| old & 0o6000 != 0),
            "set-id bits: {change}"
        );
        let keeps = self.spec.existing == Existing::Skip && self.original.contains_key(path);
        assert!(!keeps || old.is_none(), "existing names are kept: {change}");
        assert!(
            self.spec.existing != Existing::UpdateOnly || self.original.contains_key(path),
            "nothing is created: {change}"
        );
        let is_unsafe = matches!(object, Object::Link(to) if leads_out(path, to));
        assert!(!self.spec.safe_links || !is_unsafe, "an unsafe link: {change}");
    }

    fn judge_deletion(&self, path: &[u8], allowed: &Allowed<'_>, after: &Tree, change: &str) {
        // A directory may be replaced by a hard link that then had no file; it was empty.
        if allowed.contains_key(path) {
            return;
        }
        let filter = self.spec.delete.as_ref().unwrap_or_else(|| panic!("nothing may be deleted: {change}"));
        let cleared = is_cleared(path, allowed, after);
        assert!(cleared || !self.announcements.skipped, "the sender could not read everything: {change}");
        let all = parents(path).map(|parent| (parent, true)).chain([(path, false)]);
        let may_go = |(part, is_directory): (&[u8], bool)| {
            let sent = self.sent_as(part);
            allowed.contains_key(part) || filter.allows(&sent, is_directory) || filter.allows(&sent, true)
        };
        assert!(all.into_iter().all(may_go), "excluded from deletion: {change}");
        let item = first_component(path);
        assert!(self.spec.requested.contents || allowed.contains_key(item), "outside of the sent names: {change}");
        let is_filled = allowed.iter().any(|(path, entries)| {
            let same = self.spec.requested.contents || first_component(path) == item;
            same && entries.iter().any(|entry| entry.kind != EntryKind::Directory)
        });
        assert!(is_filled || self.spec.force_empty || cleared, "the source is empty: {change}");
    }

    /// Returns the name at the sender, to which filters apply, of a path beneath the destination.
    fn sent_as(&self, path: &[u8]) -> Vec<u8> {
        let item = first_component(path);
        match (self.rename, self.announcements.entries.first()) {
            (Some(name), Some(first)) if name == item => [first_component(&first.path), &path[item.len()..]].concat(),
            _ => path.to_vec(),
        }
    }

    fn allowed(&self) -> Allowed<'_> {
        let mut allowed = Allowed::new();
        let (mut directories, mut chosen) = (BTreeSet::new(), None);
        for entry in &self.announcements.entries {
            let text = String::from_utf8_lossy(&entry.path).into_owned();
            let components: Vec<_> = text.split('/').collect();
            if text.contains('\0') || components.iter().any(|name| matches!(*name, "" | "." | "..")) {
                break;
            }
            let rules = &self.spec.permitted;
            let is_directory = entry.kind == EntryKind::Directory;
            let parent = components[..components.len() - 1].join("/");
            let has_parent = parent.is_empty() || directories.contains(&parent);
            let is_named = is_named(rules, &components, is_directory, &mut chosen);
            let is_unasked = matches!(entry.kind, EntryKind::Special(_)) && !self.spec.preserve.specials;
            if is_unasked || !is_named || !has_parent || !is_selected(rules, entry, &components) {
                // The transfer ends here.
                break;
            }
            if is_directory {
                directories.insert(text.clone());
            }
            let path = match self.rename {
                Some(name) => [name, &entry.path[components[0].len()..]].concat(),
                None => entry.path.clone(),
            };
            allowed.entry(path).or_default().push(entry);
        }
        allowed
    }
}

/// Returns whether the request names the item of an entry. `chosen` is the new directory whose name the sender chooses,
/// once it is known.
fn is_named(rules: &AllowedNames, components: &[&str], is_directory: bool, chosen: &mut Option<String>) -> bool {
    let Some(items) = &rules.items else { return true };
    let item = components[0];
    let is_told = items.iter().any(|name| match name {
        ItemName::Exact(name) => name == item.as_bytes(),
        ItemName::Wildcard(_) => !item.starts_with('.'),
        ItemName::NewDirectory => false,
    });
    if is_told || !items.contains(&ItemName::NewDirectory) {
        return is_told;
    }
    let is_free = chosen.as_ref().is_none_or(|chosen| chosen == item);
    (components.len() > 1 || is_directory) && is_free && {
        *chosen = Some(item.to_owned());
        true
    }
}

/// Returns whether filters and `files_from` select an entry.
fn is_selected(rules: &AllowedNames, entry: &Entry, components: &[&str]) -> bool {
    let is_directory = entry.kind == EntryKind::Directory;
    let is_filtered = || rules.filter.allows(&entry.path, is_directory);
    let Some(names) = &rules.files_from else { return is_filtered() };
    let beneath = if rules.items.is_some() { &components[1..] } else { components }.join("/");
    let is_in = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    if names.iter().any(|name| is_in(&beneath, name)) {
        return is_filtered();
    }
    // A parent directory of a name.
    is_directory && names.iter().any(|name| beneath.is_empty() || (**name != *beneath && is_in(name, &beneath)))
}

/// Returns whether a link at `path` may leave the tree: it climbs above the tree, or climbs after a name, which may be
/// that of another link.
fn leads_out(path: &[u8], to: &Path) -> bool {
    let (mut above, mut has_name) = (parents(path).count(), false);
    to.components().any(|component| match component {
        Component::ParentDir if has_name || above == 0 => true,
        Component::ParentDir => {
            above -= 1;
            false
        }
        Component::Normal(_) => {
            has_name = true;
            false
        }
        Component::CurDir => false,
        Component::RootDir | Component::Prefix(_) => true,
    })
}

/// Returns whether `path` was beneath a directory that an announced name has replaced.
fn is_cleared(path: &[u8], allowed: &Allowed<'_>, after: &Tree) -> bool {
    parents(path).any(|parent| {
        let (Some(entries), Some((object, _))) = (allowed.get(parent), after.get(parent)) else { return false };
        let is_announced =
            |as_directory| entries.iter().any(|entry| (entry.kind == EntryKind::Directory) == as_directory);
        // A name announced twice may be a directory again.
        is_announced(false) && (*object != Object::Directory || is_announced(true))
    })
}

/// Returns the directories above a path, the outermost first.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

fn first_component(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Returns whether an object matches this entry.
fn fits(entry: &Entry, object: &Object) -> bool {
    match (&entry.kind, object) {
        (EntryKind::Directory, Object::Directory) | (EntryKind::HardLink { .. }, Object::File(_)) => true,
        (EntryKind::File { size, .. }, Object::File(bytes)) => bytes.len() as u64 == *size,
        (EntryKind::Special(special), Object::Pipe) => *special == Special::Pipe,
        (EntryKind::Symlink { target }, Object::Link(to)) => to.as_os_str().as_bytes() == target,
        _ => false,
    }
}
