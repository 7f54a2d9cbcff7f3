//! Items of a tree in memory, as a source.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use request::{Filter, LinkPolicy, Outputs, SourceOptions};

use super::disk::{Content, Disk, NodeStatus, ReadError};
use super::items::{Items, entry};
use super::object::MemoryObject;
use super::{join, key, unsupported};
use crate::batch::Batch;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::{Attributes, Entry, EntryKind, Extra, IdName, NoticeKind, SkipReason, Skipped, SourceId, Wanted};
use crate::object::{EndsDigest, TreeObject};
use crate::removal::{SourceOutcome, Versions};
use crate::root::SourceItem;
use crate::seam::TreeSource;

/// A batch ends with this many entries, few enough that even the tree of a test has several...
const BATCH_ENTRIES: usize = 100;
/// ... or with this many bytes.
const BATCH_BYTES: u64 = 4 << 20;

/// Items of a tree in memory.
#[derive(Debug)]
pub struct MemorySource {
    disk: Arc<Mutex<Disk>>,
    items: Arc<Items>,
    id: SourceId,
    top: Mutex<Option<Attributes>>,
    options: Options,
    walk: Mutex<Walk>,
    dry_run: bool,
    stopped: AtomicBool,
}

/// The options that determine which entries are sent.
#[derive(Debug)]
struct Options {
    recursive: bool,
    skips_links: bool,
    hashes: bool,
    keeps_versions: bool,
    filter: Arc<Filter>,
}

/// Names still to be inspected, as they are sent, the next at the end.
#[derive(Debug)]
struct Walk {
    left: Vec<Vec<u8>>,
    number: u32,
}

impl MemorySource {
    pub(super) fn new(
        disk: Arc<Mutex<Disk>>,
        roots: Vec<SourceItem>,
        options: &SourceOptions,
        dry_run: bool,
    ) -> Result<Self, FilesError> {
        let options = Options::new(options)?;
        let (items, top, mut left) = match &roots[..] {
            [only] if only.is_contents() => contents(&mut lock(&disk), &only.path, &options)?,
            _ => named(&mut lock(&disk), roots, &options)?,
        };
        let id = source_id(lock(&disk).name(), &items, &left, &options.filter);
        left.reverse();
        Ok(Self {
            disk,
            items: Arc::new(items),
            id,
            top: Mutex::new(top),
            options,
            walk: Mutex::new(Walk { left, number: 0 }),
            dry_run,
            stopped: AtomicBool::new(false),
        })
    }

    /// Inspects a name, and adds the results to the batch and to the remaining names.
    fn visit(&self, sent: Vec<u8>, left: &mut Vec<Vec<u8>>, batch: &mut Batch) {
        let place = self.items.place(&sent);
        let mut skip = |sent: &[u8], reason| batch.skipped.push(Skipped::new(sent.to_vec(), reason));
        let seen = match lock(&self.disk).look(&place) {
            Ok(Some(seen)) => seen,
            Ok(None) => return skip(&sent, SkipReason::Vanished),
            Err(_) => return skip(&sent, SkipReason::Unreadable),
        };
        if !self.options.filter.allows(&sent, seen.node.is_directory()) {
            return;
        }
        let kind = match &seen.node.content {
            Content::Directory => EntryKind::Directory,
            Content::Symlink(_) if self.options.skips_links => return skip(&sent, SkipReason::Link),
            Content::Symlink(target) => EntryKind::Symlink { target: target.clone() },
            Content::File(bytes) => match self.hash(&place, &seen) {
                Ok(hash) => EntryKind::File { size: bytes.len() as u64, version: seen.version, hash },
                Err(_) => return skip(&sent, SkipReason::Unreadable),
            },
        };
        if kind == EntryKind::Directory && self.options.recursive {
            match lock(&self.disk).list(&place) {
                Ok(names) => left.extend(names.iter().rev().map(|name| join(&sent, name))),
                Err(_) => skip(&sent, SkipReason::Unreadable),
            }
        }
        let entry = entry(sent, kind, &seen);
        batch.length += entry.size();
        if self.options.keeps_versions {
            batch.versions.push(seen.version);
        }
        batch.entries.push(entry);
    }

    /// Returns the hash of a file, if requested.
    fn hash(&self, place: &[u8], seen: &NodeStatus) -> Result<Option<[u8; 32]>, ReadError> {
        if !self.options.hashes {
            return Ok(None);
        }
        let (mut hasher, mut at, mut window) = (blake3::Hasher::new(), 0, vec![0; 64 << 10]);
        loop {
            let read = lock(&self.disk).read(place, seen.version, at, &mut window)?;
            if read == 0 {
                return Ok(Some(*hasher.finalize().as_bytes()));
            }
            hasher.update(&window[..read]);
            at += read as u64;
        }
    }
}

impl TreeSource for MemorySource {
    fn id(&self) -> SourceId {
        self.id
    }

    fn top(&self) -> (Option<Attributes>, Vec<IdName>) {
        (lock(&self.top).take(), Vec::new())
    }

    fn followed(&self) -> u64 {
        0
    }

    fn next_batch(&self) -> Result<Option<Batch>, FilesError> {
        let Walk { left, number } = &mut *lock(&self.walk);
        let (entries, versions, skipped, id_names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut batch = Batch { number: *number, entries, length: 0, versions, skipped, id_names, is_last: false };
        while batch.entries.len().max(batch.skipped.len()) < BATCH_ENTRIES && batch.length < BATCH_BYTES {
            if self.stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let Some(next) = left.pop() else { break };
            self.visit(next, left, &mut batch);
        }
        if batch.entries.is_empty() && batch.skipped.is_empty() {
            return Ok(None);
        }
        *number += 1;
        batch.is_last = left.is_empty();
        Ok(Some(batch))
    }

    /// A file in memory is sent again in its present state, so that the ends do not matter.
    fn object(&self, batch: Arc<Batch>, wanted: Wanted, _: HashMap<u32, EndsDigest>) -> Arc<dyn TreeObject> {
        Arc::new(MemoryObject::new(Arc::clone(&self.disk), Arc::clone(&self.items), batch, wanted))
    }

    fn remove(&self, entry: &Entry, Versions { sent, stored }: Versions, _: bool) -> SourceOutcome {
        let place = self.items.place(&entry.path);
        let mut disk = lock(&self.disk);
        let seen = match disk.look(&place) {
            Ok(Some(seen)) => seen,
            Ok(None) => return SourceOutcome::Gone,
            Err(_) => return SourceOutcome::Kept(NoticeKind::SourceRefused),
        };
        if seen.version == stored {
            return SourceOutcome::Kept(NoticeKind::SourceIsTarget);
        }
        if seen.version != sent || seen.node.is_directory() {
            return SourceOutcome::Kept(NoticeKind::SourceChanged);
        }
        match if self.dry_run { Ok(()) } else { disk.remove(&place, sent) } {
            Ok(()) => SourceOutcome::Removed,
            Err(_) => SourceOutcome::Kept(NoticeKind::SourceRefused),
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl Options {
    /// Takes the options that are supported in memory, and refuses all others.
    fn new(options: &SourceOptions) -> Result<Self, FilesError> {
        let known = SourceOptions {
            recursive: options.recursive,
            hash: options.hash,
            filter: Arc::clone(&options.filter),
            remove_sources: options.remove_sources,
            // They make no difference in memory.
            hard_links: options.hard_links,
            one_file_system: options.one_file_system,
            follow_parent_links: options.follow_parent_links,
            links: options.links,
            preserve: options.preserve,
            ..SourceOptions::default()
        };
        let refused = [
            (
                !matches!(options.links, LinkPolicy::Copy | LinkPolicy::Skip) || options.follow_items,
                "following symbolic links",
            ),
            (!options.preserve.is_nothing(), "preserving owners and further attributes"),
            (options.files_from.is_some(), "a list of names"),
            (options.outputs != Outputs::default(), "output files"),
            (*options != known, "one of these options"),
        ];
        if let Some((_, feature)) = refused.into_iter().find(|(is_asked, _)| *is_asked) {
            return Err(unsupported(feature));
        }
        Ok(Self {
            recursive: options.recursive,
            skips_links: options.links == LinkPolicy::Skip,
            hashes: options.hash,
            keeps_versions: options.remove_sources,
            filter: Arc::clone(&options.filter),
        })
    }
}

/// The result of finding the items before the walk: their positions, the attributes of the top, and the first names.
type FirstItems = (Items, Option<Attributes>, Vec<Vec<u8>>);

/// Begins with everything in a directory.
fn contents(disk: &mut Disk, path: &std::path::Path, options: &Options) -> Result<FirstItems, FilesError> {
    let directory = key(path)?;
    let seen = disk.look(&directory)?.ok_or_else(|| FilesError::SourceAbsent { path: path.to_owned() })?;
    if !seen.node.is_directory() {
        return Err(unusable(path.to_owned(), "not a directory"));
    }
    if !options.recursive {
        return Err(FilesError::NotRecursive { path: path.to_owned() });
    }
    let top = Attributes { mode: seen.node.mode, mtime: seen.node.mtime, extra: Extra::default() };
    let names = disk.list(&directory)?;
    Ok((Items::Contents(directory), Some(top), names))
}

/// Begins with items by their names.
fn named(disk: &mut Disk, roots: Vec<SourceItem>, options: &Options) -> Result<FirstItems, FilesError> {
    let (mut items, mut names) = (HashMap::new(), Vec::new());
    for root in roots {
        if root.is_contents() {
            return Err(unsupported("contents of a directory beside other items"));
        }
        let path = root.path;
        let own = || path.file_name().map(|name| name.as_bytes().to_vec());
        let Some(name) = root.name.or_else(own) else { return Err(unusable(path, "has no name")) };
        let place = key(&path)?;
        let Some(seen) = disk.look(&place)? else { return Err(FilesError::SourceAbsent { path }) };
        if seen.node.is_directory() && !options.recursive {
            return Err(FilesError::NotRecursive { path });
        }
        if options.skips_links && matches!(seen.node.content, Content::Symlink(_)) {
            return Err(unusable(path, "symbolic link, and links are skipped"));
        }
        names.push(name.clone());
        if let Some(first) = items.insert(name.clone(), place) {
            return Err(FilesError::SameName { name, first: disk.shown(&first), second: path });
        }
    }
    Ok((Items::Named(items), None, names))
}

fn unusable(path: PathBuf, reason: &str) -> FilesError {
    FilesError::SourceUnusable { path, reason: reason.to_owned() }
}

/// Returns the identity of items under these names.
fn source_id(store: &str, items: &Items, names: &[Vec<u8>], filter: &Filter) -> SourceId {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
    };
    add(store.as_bytes());
    add(filter.to_string().as_bytes());
    match items {
        Items::Contents(directory) => add(directory),
        Items::Named(items) => names.iter().for_each(|name| {
            add(name);
            add(&items[name]);
        }),
    }
    SourceId(*hasher.finalize().as_bytes().first_chunk().expect("32 bytes"))
}
