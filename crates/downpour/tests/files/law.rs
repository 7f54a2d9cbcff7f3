//! The law of a receiver: on any target tree and for any messages of a sender, nothing outside the receive request is
//! created, replaced, followed, chmodded or deleted.
//!
//! Random hostile manifests are applied to random trees and requests. The oracle is a second, slow definition of what
//! the request permits, applied to snapshots of the target before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use downpour::files::{
    Attributes, Entry, Existing, FileSink, Filter, ItemName, Kind, ManifestState, Modes, Mtime, Permitted, ReceiveSpec,
    Requested, SkipReason, Skipped, VoidReason, Wanted,
};
use downpour::messages::{Digest, End, ManifestPart, Message, RootHasher, Void};
use fastrand::Rng;

use crate::common::SOURCE;

/// Number of cases in the test suite. [`CASES`] runs more, [`SEED`] a single one.
const QUICK: u64 = 1_500;
const CASES: &str = "DOWNPOUR_LAW_CASES";
const SEED: &str = "DOWNPOUR_LAW_SEED";

/// Few names, so that they collide.
const NAMES: [&str; 6] = ["a", "b", "c", ".ssh", "A", "x.sh"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Object {
    File(Vec<u8>),
    Directory,
    Link(PathBuf),
}

/// An object and its permission bits, which are meaningless for links.
type Found = (Object, u32);

/// Returns everything beneath `dir` by path, without the staging folders.
fn snapshot(dir: &Path) -> BTreeMap<Vec<u8>, Found> {
    let mut found = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().as_os_str().as_bytes().to_vec();
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".downpour-")) {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let object = if metadata.is_dir() {
                directories.push(path.clone());
                Object::Directory
            } else if metadata.is_symlink() {
                Object::Link(path.read_link().unwrap())
            } else {
                Object::File(fs::read(&path).unwrap())
            };
            let mode = if metadata.is_symlink() { 0 } else { metadata.mode() & 0o7777 };
            found.insert(name, (object, mode));
        }
    }
    found
}

/// Returns a random path of up to `depth` components.
fn path(rng: &mut Rng, depth: usize) -> String {
    (0..rng.usize(1..=depth)).map(|_| NAMES[rng.usize(..NAMES.len())]).collect::<Vec<_>>().join("/")
}

/// Populates a target.
fn populate(rng: &mut Rng, into: &Path) {
    fs::create_dir(into).unwrap();
    for _ in 0..rng.usize(0..8) {
        let path = into.join(path(rng, 3));
        // Another object may be in the way.
        if fs::create_dir_all(path.parent().unwrap()).is_err() || path.symlink_metadata().is_ok() {
            continue;
        }
        let made = match rng.u8(0..5) {
            0 | 1 => fs::write(&path, [b'o'; 3]),
            2 => fs::create_dir(&path),
            3 => symlink("../outside", &path),
            _ => symlink(NAMES[rng.usize(..NAMES.len())], &path),
        };
        // The parent may be a dangling link.
        if made.is_ok() && !path.is_symlink() && rng.bool() {
            let mode = if path.is_dir() { 0o750 } else { 0o640 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn filter(rng: &mut Rng) -> Filter {
    let rules: [&[u8]; 4] = [b"", b"- .ssh\n", b"- *.sh\n", b"+ /a\n- A\n"];
    Filter::parse(rules[rng.usize(..rules.len())]).unwrap()
}

fn spec(rng: &mut Rng, into: &Path) -> ReceiveSpec {
    let contents = rng.bool();
    let target = if contents || rng.bool() { into.to_owned() } else { into.join(NAMES[rng.usize(..NAMES.len())]) };
    // A link named by the user as the target is followed.
    let target = if target.is_symlink() { into.to_owned() } else { target };
    let item = |rng: &mut Rng| match rng.u8(0..6) {
        0 => ItemName::Wildcard("*".into()),
        1 => ItemName::NewDirectory,
        _ => ItemName::Exact(NAMES[rng.usize(..NAMES.len())].into()),
    };
    let items = (!contents && rng.bool()).then(|| (0..rng.usize(1..3)).map(|_| item(rng)).collect());
    let files_from = (rng.u8(0..6) == 0).then(|| (0..3).map(|_| path(rng, 2).into()).collect());
    ReceiveSpec {
        requested: Requested { many: contents || rng.bool(), contents, ..Requested::default() },
        existing: [Existing::Refuse, Existing::Replace, Existing::Skip][rng.usize(..3)],
        modes: [Modes::Masked, Modes::Exact][rng.usize(..2)],
        delete: (rng.u8(0..3) == 0).then(|| filter(rng)),
        max_delete: (rng.u8(0..4) == 0).then(|| rng.u64(0..3)),
        force_empty: rng.u8(0..3) == 0,
        safe_links: rng.bool(),
        dry_run: rng.u8(0..8) == 0,
        permitted: Permitted { items, filter: filter(rng), files_from, ..Permitted::default() },
        ..ReceiveSpec::to_target(target)
    }
}

fn entry(rng: &mut Rng) -> Entry {
    let bad = ["../outside/new", "a/../../outside/new", "/etc/new", "a//b", "a/", ".", "outside/../a", "a\0b"];
    let path = if rng.u8(0..40) == 0 { bad[rng.usize(..bad.len())].to_owned() } else { path(rng, 3) };
    let to = ["../outside", "/etc", "b", "a/b", "../../outside/victim"];
    let kind = match rng.u8(0..10) {
        0..=3 => Kind::Directory,
        4..=6 => Kind::File { size: rng.u64(0..4), version: rng.u64(0..2), hash: None },
        7 | 8 => Kind::Symlink { target: to[rng.usize(..to.len())].into() },
        _ => Kind::HardLink { target: self::path(rng, 2).into() },
    };
    let mode = [0o644, 0o755, 0o4755, 0o000, 0o777][rng.usize(..5)];
    Entry { path: path.into(), kind, mode, mtime: Mtime { seconds: rng.i64(0..3), nanoseconds: 0 } }
}

/// The announcements of a hostile sender, in order.
#[derive(Debug, Default)]
struct Said {
    entries: Vec<Entry>,
    skipped: bool,
}

/// Sends anything that a sender may send, in any order, until it is refused or ends. Returns whether it ended
/// successfully.
fn attack(rng: &mut Rng, sink: &FileSink, said: &mut Said) -> bool {
    let (mut root, mut bytes, mut end) = (RootHasher::new(), Vec::new(), (0, 0, 0, 0));
    let mut hash = |message: &Message| {
        bytes.clear();
        message.encode(&mut bytes).map(|()| root.add(&bytes)).is_ok()
    };
    if sink.begin(SOURCE).is_err() || !hash(&Message::Begin(SOURCE)) {
        return false;
    }
    for batch in 0..rng.u32(1..4) {
        let mut entries: Vec<_> = (0..rng.usize(1..7)).map(|_| entry(rng)).collect();
        if rng.u8(0..4) > 0 {
            // An honest order gets further.
            entries.sort_by_key(|entry| entry.path.iter().filter(|byte| **byte == b'/').count());
        }
        let length = entries.iter().map(Entry::size).sum();
        if rng.u8(0..9) == 0 {
            let top = Attributes { mode: 0o700, mtime: Mtime::default() };
            if sink.top(top).is_err() || !hash(&Message::Top(top)) {
                return false;
            }
        }
        let part = ManifestPart { batch, last: true, length, entries };
        if part.entries.first().is_some_and(|first| sink.decide(Some(first)).is_err()) {
            return false;
        }
        said.entries.extend(part.entries.iter().cloned());
        let Ok(ManifestState::Complete(wanted)) = sink.add_manifest_part(&part) else { return false };
        hash(&Message::Manifest(part.clone()));
        end = (end.0 + 1, end.1 + part.entries.len() as u64, end.2 + length, end.3);
        if rng.u8(0..9) == 0 {
            let skipped = Skipped { path: path(rng, 2).into(), reason: SkipReason::Unreadable };
            if sink.skipped(&skipped).is_err() {
                return false;
            }
            hash(&Message::Skipped(skipped));
            end.3 += 1;
            said.skipped = true;
        }
        if !sink.spec().dry_run && !send(rng, sink, &part, &wanted, &mut hash) {
            return false;
        }
        if sink.settle(|_, _| {}).is_err() {
            return false;
        }
    }
    let (batches, entries, bytes, skipped) = end;
    sink.finish(&End { batches, entries, bytes, skipped, root: root.root() }).is_ok()
}

/// Sends the wanted bytes, sometimes with a void or a wrong digest.
fn send(
    rng: &mut Rng,
    sink: &FileSink,
    part: &ManifestPart,
    wanted: &Wanted,
    hash: &mut impl FnMut(&Message) -> bool,
) -> bool {
    let length = wanted.length(part.length);
    if rng.u8(0..12) == 0 {
        let void =
            Void { batch: part.batch, entry: rng.u32(..part.entries.len() as u32 + 1), reason: VoidReason::Changed };
        if sink.void(&void).is_err() {
            return false;
        }
        hash(&Message::Void(void));
    }
    if length == 0 {
        return true;
    }
    let bytes = vec![b'n'; length as usize];
    let digest = *blake3::hash(&bytes).as_bytes();
    let message = Digest { batch: part.batch, block: 0, digest };
    hash(&Message::Digest(message));
    let told = sink.expect_digest(&message).is_ok() && sink.write(part.batch, 0, &bytes).is_ok();
    let found = if rng.u8(0..30) == 0 { [7; 32] } else { digest };
    told && sink.found_digest(part.batch, 0, 0..length, found).is_ok()
}

/// A second definition of what a request permits.
struct Oracle<'a> {
    spec: &'a ReceiveSpec,
    said: &'a Said,
    rename: Option<Vec<u8>>,
}

impl Oracle<'_> {
    /// Returns the announced paths that may be touched, relative to the target, with their entries.
    fn permitted(&self) -> BTreeMap<Vec<u8>, Vec<&Entry>> {
        let mut permitted: BTreeMap<Vec<u8>, Vec<&Entry>> = BTreeMap::new();
        let mut directories = BTreeSet::new();
        let mut chosen = None;
        for entry in &self.said.entries {
            let text = String::from_utf8_lossy(&entry.path).into_owned();
            let components: Vec<_> = text.split('/').collect();
            if text.contains('\0') || components.iter().any(|c| matches!(*c, "" | "." | "..")) {
                break;
            }
            let is_directory = entry.kind == Kind::Directory;
            let rules = &self.spec.permitted;
            let named = rules.items.as_ref().is_none_or(|items| {
                items.iter().any(|item| match item {
                    ItemName::Exact(name) => name == components[0].as_bytes(),
                    ItemName::Wildcard(_) => !components[0].starts_with('.'),
                    ItemName::NewDirectory => {
                        let new = chosen.is_none() || chosen == Some(components[0].to_owned());
                        (components.len() > 1 || is_directory) && new
                    }
                })
            });
            let has_parent =
                components.len() == 1 || directories.contains(&components[..components.len() - 1].join("/"));
            let beneath = if rules.items.is_some() { &components[1..] } else { &components[..] }.join("/");
            let is_in = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
            let (listed, way) = rules.files_from.as_ref().map_or((true, false), |names| {
                let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                let way = |name: &str| beneath.is_empty() || (name != beneath && is_in(name, &beneath));
                (names.iter().any(|name| is_in(&beneath, name)), is_directory && names.iter().any(|name| way(name)))
            });
            let selected = (listed && rules.filter.allows(&entry.path, is_directory)) || (!listed && way);
            if !named || !has_parent || !selected {
                // The transfer ends here.
                break;
            }
            if rules.items.as_ref().is_some_and(|items| items.contains(&ItemName::NewDirectory)) && chosen.is_none() {
                let exact = rules.items.iter().flatten().any(|item| match item {
                    ItemName::Exact(name) => name == components[0].as_bytes(),
                    ItemName::Wildcard(_) => !components[0].starts_with('.'),
                    ItemName::NewDirectory => false,
                });
                chosen = (!exact).then(|| components[0].to_owned());
            }
            if is_directory {
                directories.insert(text.clone());
            }
            let path = match &self.rename {
                Some(name) => [name.as_slice(), &entry.path[components[0].len()..]].concat(),
                None => entry.path.clone(),
            };
            permitted.entry(path).or_default().push(entry);
        }
        permitted
    }

    /// Panics if a change from `before` to `after` was not permitted.
    fn judge(&self, before: &BTreeMap<Vec<u8>, Found>, after: &BTreeMap<Vec<u8>, Found>) {
        let permitted = self.permitted();
        let mut deleted = 0;
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for path in paths {
            let (old, new) = (before.get(path), after.get(path));
            if old == new {
                continue;
            }
            let what = format!("{}: {old:?} became {new:?}", path.escape_ascii());
            assert!(!self.spec.dry_run, "a dry run changed {what}");
            let refuses = self.spec.existing == Existing::Refuse;
            // Permitted deletion is a separate case.
            assert!(!refuses || old.is_none() || new.is_none(), "existing names are refused: {what}");
            let entries = permitted.get(path);
            match (old, new) {
                (Some(_), None) => {
                    deleted += u64::from(!self.is_cleared(path, &permitted, after));
                    self.judge_deletion(path, &permitted, after, &what);
                }
                (_, Some((object, mode))) => {
                    let entries = entries.unwrap_or_else(|| panic!("not announced, or not requested: {what}"));
                    assert!(entries.iter().any(|entry| fits(entry, object)), "not as announced: {what}");
                    assert!(mode & 0o6000 == 0 || old.is_some_and(|(_, old)| old & 0o6000 != 0), "set-id bits: {what}");
                    if self.spec.existing == Existing::Skip && old.is_some() {
                        panic!("existing names are kept: {what}");
                    }
                    if self.spec.safe_links && matches!(object, Object::Link(to) if to.is_absolute()) {
                        panic!("an unsafe link: {what}");
                    }
                }
                (None, None) => unreachable!(),
            }
        }
        assert!(self.spec.max_delete.is_none_or(|most| deleted <= most), "{deleted} names were deleted");
    }

    /// Returns whether `path` was beneath a directory that an announced name has replaced.
    fn is_cleared(
        &self,
        path: &[u8],
        permitted: &BTreeMap<Vec<u8>, Vec<&Entry>>,
        after: &BTreeMap<Vec<u8>, Found>,
    ) -> bool {
        let parents = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        parents.into_iter().any(|parent| {
            let replaced = after.get(parent).is_some_and(|(object, _)| *object != Object::Directory);
            replaced && permitted.contains_key(parent)
        })
    }

    fn judge_deletion(
        &self,
        path: &[u8],
        permitted: &BTreeMap<Vec<u8>, Vec<&Entry>>,
        after: &BTreeMap<Vec<u8>, Found>,
        what: &str,
    ) {
        // An empty directory may be replaced by a hard link whose file then turned out to be missing.
        if permitted.contains_key(path) {
            return;
        }
        let filter = self.spec.delete.as_ref().unwrap_or_else(|| panic!("nothing may be deleted: {what}"));
        let cleared = self.is_cleared(path, permitted, after);
        assert!(cleared || !self.said.skipped, "the sender could not read everything: {what}");
        if self.rename.is_none() {
            let parts = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| (&path[..at], true));
            let all_allowed = parts.chain([(path, false)]).all(|(part, is_directory)| {
                permitted.contains_key(part) || filter.allows(part, is_directory) || filter.allows(part, true)
            });
            assert!(all_allowed, "excluded from deletion: {what}");
        }
        let item: Vec<u8> = path.split(|byte| *byte == b'/').next().unwrap().to_vec();
        let is_item_announced = permitted.get(&item).is_some();
        assert!(self.spec.requested.contents || is_item_announced, "beside what was sent: {what}");
        let fills = |entry: &&Entry| entry.kind != Kind::Directory;
        let filled = permitted.iter().any(|(path, entries)| {
            let same = self.spec.requested.contents || path.split(|byte| *byte == b'/').next().unwrap() == item;
            same && entries.iter().any(fills)
        });
        assert!(filled || self.spec.force_empty || cleared, "the source is empty: {what}");
    }
}

/// Returns whether an object matches this entry. Modes are only checked where they matter.
fn fits(entry: &Entry, object: &Object) -> bool {
    match (&entry.kind, object) {
        (Kind::Directory, Object::Directory) | (Kind::HardLink { .. }, Object::File(_)) => true,
        (Kind::File { size, .. }, Object::File(bytes)) => bytes.len() as u64 == *size,
        (Kind::Symlink { target }, Object::Link(to)) => to.as_os_str().as_bytes() == target,
        _ => false,
    }
}

fn case(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let dir = crate::common::quick_dir();
    let (into, outside) = (dir.path().join("into"), dir.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "victim").unwrap();
    populate(&mut rng, &into);
    let spec = spec(&mut rng, &into);
    let before = (snapshot(&into), snapshot(&outside));
    let mut said = Said::default();
    let Ok(sink) = FileSink::new(spec.clone()) else { return };
    if !attack(&mut rng, &sink, &mut said) {
        let _ = sink.flush();
        let _ = sink.abandon(rng.bool());
    }
    let after = (snapshot(&into), snapshot(&outside));
    assert_eq!(before.1, after.1, "outside of the target");
    let destination = sink.destination().clone();
    let oracle = Oracle { spec: &spec, said: &said, rename: destination.rename.clone() };
    // The location of the items determines their paths; nothing else changed.
    let prefix = destination.directory.strip_prefix(&into).map(|prefix| prefix.as_os_str().as_bytes().to_vec());
    match prefix.as_deref() {
        Ok(b"") => oracle.judge(&before.0, &after.0),
        Ok(prefix) => {
            let inside = |tree: &BTreeMap<Vec<u8>, Found>| {
                let beneath = tree.iter().filter_map(|(path, found)| {
                    let rest = path.strip_prefix(prefix)?.strip_prefix(b"/")?;
                    Some((rest.to_vec(), found.clone()))
                });
                beneath.collect::<BTreeMap<_, _>>()
            };
            let beside = |tree: &BTreeMap<Vec<u8>, Found>| {
                let is_beside = |path: &[u8]| path != prefix && !path.starts_with(&[prefix, b"/"].concat());
                tree.iter()
                    .filter(|(path, _)| is_beside(path))
                    .map(|(path, found)| (path.clone(), found.clone()))
                    .collect::<BTreeMap<_, _>>()
            };
            assert_eq!(beside(&before.0), beside(&after.0), "beside the target");
            oracle.judge(&inside(&before.0), &inside(&after.0));
        }
        Err(_) => panic!("{destination:?} is not in the target"),
    }
}

#[test]
fn nothing_outside_the_request_changes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(CASES).unwrap_or(QUICK),
    };
    for seed in seeds {
        let result = std::panic::catch_unwind(|| case(seed));
        assert!(result.is_ok(), "seed {seed}; again: {SEED}={seed} cargo test -p downpour --test files law");
    }
}
