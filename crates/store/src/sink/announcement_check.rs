//! The names that the sender has announced, and the check of the next one.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use request::names::tidy;
use request::{AllowedNames, NameError};

use super::super::error::{FilesError, NotAllowed};
use crate::messages::{Entry, EntryKind};

/// Checks every entry against the request and against the entries before it.
///
/// The parent of an entry must have been announced as a directory, so that nothing arrives beneath a directory that the
/// user was not shown. Directories are kept as hashes with a random key, 8 bytes each, for which no sender can make
/// collisions.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedNames {
    keys: RandomState,
    directories: HashSet<u64>,
    listed: Option<NameList>,
    /// The name that the sender has chosen for [`ItemName::NewDirectory`](crate::ItemName::NewDirectory).
    chosen: Option<Vec<u8>>,
    entries: u64,
    bytes: u64,
}

impl AnnouncedNames {
    pub(crate) fn new(permitted: &AllowedNames) -> Self {
        Self {
            keys: RandomState::new(),
            directories: HashSet::new(),
            listed: permitted.files_from.as_deref().map(NameList::new),
            chosen: None,
            entries: 0,
            bytes: 0,
        }
    }

    /// Adds an entry whose path is well formed.
    ///
    /// # Errors
    /// [`FilesError::BadName`] if its directory was not announced, [`FilesError::NotPermitted`] if it was not
    /// requested.
    pub(crate) fn add(&mut self, entry: &Entry, permitted: &AllowedNames) -> Result<(), FilesError> {
        let path = entry.path.as_slice();
        let denied = |reason| FilesError::not_permitted(path, reason);
        let is_directory = matches!(entry.kind, EntryKind::Directory);
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) if !self.directories.contains(&self.keys.hash_one(&path[..slash])) => {
                return Err(FilesError::bad_name(path, NameError::Orphan));
            }
            Some(_) => {}
            None if self.is_requested(path, is_directory, permitted) => {}
            None => return Err(denied(NotAllowed::Item)),
        }
        let part = self.listed.as_ref().map_or(Part::Named, |list| list.part(relative(path, permitted), is_directory));
        match part {
            Part::Unlisted => return Err(denied(NotAllowed::Unlisted)),
            Part::Named if !permitted.filter.allows(path, is_directory) => return Err(denied(NotAllowed::Filtered)),
            // The parent directories of a listed name are sent whatever the filter excludes.
            Part::Named | Part::Way => {}
        }
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(entry.size());
        if permitted.max_entries.is_some_and(|most| self.entries > most) {
            return Err(denied(NotAllowed::Entries));
        }
        if permitted.max_bytes.is_some_and(|most| self.bytes > most) {
            return Err(denied(NotAllowed::Bytes));
        }
        if is_directory {
            self.directories.insert(self.keys.hash_one(path));
        }
        Ok(())
    }

    /// Removes a file of `size` bytes that is added again.
    pub(super) fn withdraw(&mut self, size: u64) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size);
    }

    fn is_requested(&mut self, item: &[u8], is_directory: bool, permitted: &AllowedNames) -> bool {
        if permitted.names(item) {
            return true;
        }
        let may_choose = permitted.lets_host_choose() && is_directory;
        may_choose && self.chosen.get_or_insert_with(|| item.to_vec()) == item
    }
}

/// A list of names, and their parent directories.
#[derive(Debug)]
struct NameList {
    names: HashSet<Vec<u8>>,
    ways: HashSet<Vec<u8>>,
}

/// The position of a path relative to a list of names.
enum Part {
    /// A listed name, or beneath one.
    Named,
    /// A parent directory of a listed name.
    Way,
    /// None of these.
    Unlisted,
}

impl NameList {
    fn new(listed: &[Vec<u8>]) -> Self {
        let (mut names, mut ways) = (HashSet::new(), HashSet::new());
        for name in listed {
            let mut name = name.clone();
            tidy(&mut name);
            ways.extend(parents(&name).map(<[u8]>::to_vec));
            // The item that contains the names.
            ways.insert(Vec::new());
            names.insert(name);
        }
        Self { names, ways }
    }

    fn part(&self, path: &[u8], is_directory: bool) -> Part {
        if self.names.contains(&b""[..]) || parents(path).chain([path]).any(|part| self.names.contains(part)) {
            Part::Named
        } else if is_directory && self.ways.contains(path) {
            Part::Way
        } else {
            Part::Unlisted
        }
    }
}

/// Returns the directories that contain `path`, the topmost first.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

/// Returns the path within the single item of a list; for the contents of a directory, the path itself.
fn relative<'a>(path: &'a [u8], permitted: &AllowedNames) -> &'a [u8] {
    if permitted.items.is_none() {
        return path;
    }
    path.iter().position(|byte| *byte == b'/').map_or(&[], |slash| &path[slash + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Extra;
    use crate::{Filter, ItemName, Mtime};

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.into(), kind, mode: 0o755, mtime: Mtime::default(), extra: Extra::default() }
    }

    fn file(path: &str) -> Entry {
        entry(path, EntryKind::File { size: 10, version: 0, hash: None })
    }

    fn directory(path: &str) -> Entry {
        entry(path, EntryKind::Directory)
    }

    /// Adds the entries one after another; returns the first rejected one, and the reason.
    fn refused(permitted: &AllowedNames, entries: &[Entry]) -> Option<(String, String)> {
        let mut announced = AnnouncedNames::new(permitted);
        entries.iter().find_map(|entry| {
            let error = announced.add(entry, permitted).err()?;
            let why = match error {
                FilesError::BadName { reason, .. } => format!("{reason:?}"),
                FilesError::NotPermitted { reason, .. } => format!("{reason:?}"),
                other => panic!("{other}"),
            };
            Some((String::from_utf8_lossy(&entry.path).into_owned(), why))
        })
    }

    fn was(path: &str, why: &str) -> Option<(String, String)> {
        Some((path.to_owned(), why.to_owned()))
    }

    fn items(names: &[ItemName]) -> AllowedNames {
        AllowedNames { items: Some(names.to_vec()), ..AllowedNames::default() }
    }

    #[test]
    fn parent_must_be_announced_as_directory_first() {
        let any = AllowedNames::default();
        assert_eq!(
            refused(&any, &[file("photo.jpg"), file(".ssh/authorized_keys")]),
            was(".ssh/authorized_keys", "Orphan")
        );
        assert_eq!(refused(&any, &[file("a"), file("a/b")]), was("a/b", "Orphan"), "a file is no parent");
        let link = entry("a", EntryKind::Symlink { target: b".ssh".to_vec() });
        assert_eq!(refused(&any, &[link, file("a/b")]), was("a/b", "Orphan"), "nor is a link");
        assert_eq!(refused(&any, &[directory("a"), file("a/b/c")]), was("a/b/c", "Orphan"));
        assert_eq!(refused(&any, &[file("a/b"), directory("a")]), was("a/b", "Orphan"), "too late");
        assert_eq!(refused(&any, &[directory("a"), directory("a/b"), file("a/b/c"), file("a/d")]), None);
    }

    #[test]
    fn only_requested_items_are_accepted() {
        let report = items(&[ItemName::Exact(b"report.pdf".to_vec())]);
        assert_eq!(refused(&report, &[file("report.pdf"), directory(".ssh")]), was(".ssh", "Item"));
        let tables = items(&[ItemName::Wildcard("*.csv".into()), ItemName::Exact(b"b".to_vec())]);
        assert_eq!(refused(&tables, &[file("a.csv"), file("b"), file("c.csv"), file(".x.csv")]), was(".x.csv", "Item"));
        let home = items(&[ItemName::NewDirectory]);
        assert_eq!(refused(&home, &[directory("me"), file("me/a"), directory("me2")]), was("me2", "Item"));
        assert_eq!(refused(&home, &[file(".bashrc")]), was(".bashrc", "Item"));
    }

    #[test]
    fn receiver_applies_filters_and_lists() {
        let filter = Filter::parse(b"- *.sh\n- /t/tmp/\n").unwrap();
        let filtered = AllowedNames { filter, ..items(&[ItemName::Exact(b"t".to_vec())]) };
        assert_eq!(refused(&filtered, &[directory("t"), file("t/a"), file("t/b.sh")]), was("t/b.sh", "Filtered"));
        assert_eq!(refused(&filtered, &[directory("t"), directory("t/tmp")]), was("t/tmp", "Filtered"));
        let list = |items| AllowedNames {
            items,
            files_from: Some(vec![b"./a//b".to_vec(), b"c/".to_vec()]),
            ..AllowedNames::default()
        };
        let contents = list(None);
        let way = [directory("a"), file("a/b"), directory("c"), file("c/d")];
        assert_eq!(refused(&contents, &way), None);
        assert_eq!(refused(&contents, &[directory("a"), file("a/x")]), was("a/x", "Unlisted"));
        assert_eq!(refused(&contents, &[file("a")]), was("a", "Unlisted"), "a parent directory of a listed name");
        let item = list(Some(vec![ItemName::Exact(b"t".to_vec())]));
        assert_eq!(
            refused(&item, &[directory("t"), directory("t/a"), file("t/a/b"), file("t/e")]),
            was("t/e", "Unlisted")
        );
        assert_eq!(refused(&item, &[directory("a")]), was("a", "Item"));
    }

    #[test]
    fn max_files_and_bytes_cover_whole_transfer() {
        let limited = AllowedNames { max_bytes: Some(25), max_entries: Some(4), ..AllowedNames::default() };
        assert_eq!(refused(&limited, &[file("a"), file("b"), file("c")]), was("c", "Bytes"));
        let many: Vec<_> = ["a", "b", "c", "d", "e"].map(directory).into();
        assert_eq!(refused(&limited, &many), was("e", "Entries"));
    }
}
