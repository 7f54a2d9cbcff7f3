//! Walks what the user named and yields it batch by batch.
//!
//! The walk is depth first and sorted by name within each folder, so the same tree gives the same batches. A folder's
//! list of names is held while the walk is inside it, and nothing of the rest of the tree: memory grows with the depth
//! and with the longest folder, not with the number of files.
//!
//! Symlinks are sent as links, also one that the user names, unless its name ends in `/` (as `rsync -a` does, unlike
//! `scp`).

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::entry::{
    Batch, Entry, Kind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, MAX_COMPONENT, MAX_PATH, Mtime, SkipReason, Skipped,
};
use super::error::FilesError;
use super::names::display_name;

/// The first batch closes at this many entries...
const FIRST_ENTRIES: usize = 256;
/// ... or at this many bytes; each next one may be [`GROWTH`] times larger (design section 7).
const FIRST_BYTES: u64 = 64 << 20;
const GROWTH: usize = 4;
/// Bytes at which a batch closes at the latest. One file is never cut: a larger one ends its batch.
const MAX_BATCH_BYTES: u64 = 64 << 30;

/// Where each item of a transfer stands on this machine, by the name it is sent under.
#[derive(Debug)]
pub struct Roots(HashMap<Vec<u8>, PathBuf>);

impl Roots {
    /// The file behind an entry's path; `None` if the path does not begin with the name of a root.
    #[must_use]
    pub fn locate(&self, path: &[u8]) -> Option<PathBuf> {
        let top_length = path.iter().position(|b| *b == b'/').unwrap_or(path.len());
        let (top, rest) = path.split_at(top_length);
        let root = self.0.get(top)?;
        match rest.strip_prefix(b"/") {
            Some(inside) => Some(root.join(std::ffi::OsStr::from_bytes(inside))),
            None => Some(root.clone()),
        }
    }
}

/// An iterator over the batches of a transfer.
#[derive(Debug)]
pub struct Scanner {
    roots: Arc<Roots>,
    /// Names to visit, the next one last.
    tops: Vec<Vec<u8>>,
    /// The folders the walk is in.
    stack: Vec<Folder>,
    number: u32,
    entry_limit: usize,
    byte_limit: u64,
}

#[derive(Debug)]
struct Folder {
    /// Path of the entry.
    sent: Vec<u8>,
    /// Path on this machine.
    local: PathBuf,
    /// Names to visit, the next one last.
    names: Vec<OsString>,
}

/// The names in a folder in reverse order, so that the first one is popped first.
type Listing = io::Result<Vec<OsString>>;

impl Scanner {
    /// Looks at every named path; walks nothing yet.
    ///
    /// An item is sent under the last component of its path; a path that ends in `.` or `..` is resolved first.
    ///
    /// # Errors
    /// [`FilesError::SourceAbsent`], [`FilesError::SourceUnusable`] for one that is no file, folder or link or has no
    /// name (`/`), [`FilesError::SameName`].
    pub fn new(paths: Vec<super::Root>, _options: super::ScanOptions) -> Result<Self, FilesError> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|root| root.path).collect();
        let mut roots = HashMap::new();
        let mut tops = Vec::new();
        for path in paths {
            let name = check_source(&path)?;
            if let Some(first) = roots.get(&name) {
                return Err(FilesError::SameName {
                    name: display_name(&name),
                    first: PathBuf::clone(first),
                    second: path,
                });
            }
            tops.push(name.clone());
            roots.insert(name, path);
        }
        tops.reverse();
        let roots = Arc::new(Roots(roots));
        Ok(Self { roots, tops, stack: Vec::new(), number: 0, entry_limit: FIRST_ENTRIES, byte_limit: FIRST_BYTES })
    }

    /// stub
    pub fn source_id(&self) -> super::SourceId {
        super::SourceId([1; 16])
    }

    /// Where the items stand, for [`super::BatchSource::new`].
    #[must_use]
    pub fn roots(&self) -> Arc<Roots> {
        Arc::clone(&self.roots)
    }

    /// The next name of the walk: its path as sent and on this machine.
    fn next_name(&mut self) -> Option<(Vec<u8>, PathBuf)> {
        while let Some(folder) = self.stack.last_mut() {
            if let Some(name) = folder.names.pop() {
                let mut sent = Vec::with_capacity(folder.sent.len() + 1 + name.len());
                sent.extend_from_slice(&folder.sent);
                sent.push(b'/');
                sent.extend_from_slice(name.as_bytes());
                return Some((sent, folder.local.join(name)));
            }
            self.stack.pop();
        }
        let sent = self.tops.pop()?;
        let local = self.roots.0.get(&sent)?.clone();
        Some((sent, local))
    }

    /// Adds what stands at `local` to `batch`; a folder also becomes the walk's next place.
    fn visit(&mut self, sent: Vec<u8>, local: PathBuf, batch: &mut Batch) {
        match self.look(&sent, &local) {
            Ok((entry, names)) => {
                batch.length = batch.length.saturating_add(entry.size());
                batch.entries.push(entry);
                match names {
                    Some(Ok(names)) => self.stack.push(Folder { sent, local, names }),
                    Some(Err(error)) => batch.skipped.push(Skipped { path: sent, reason: skip_reason(&error) }),
                    None => {}
                }
            }
            Err(reason) => batch.skipped.push(Skipped { path: sent, reason }),
        }
    }

    /// The entry for a name, with the names inside if it is a folder.
    fn look(&self, sent: &[u8], local: &Path) -> Result<(Entry, Option<Listing>), SkipReason> {
        let last = sent.rsplit(|b| *b == b'/').next().unwrap_or(sent);
        if sent.len() > MAX_PATH || last.len() > MAX_COMPONENT {
            return Err(SkipReason::NameTooLong);
        }
        let failed = |error: io::Error| skip_reason(&error);
        let metadata = local.symlink_metadata().map_err(failed)?;
        let file_type = metadata.file_type();
        let mut names = None;
        let kind = if file_type.is_file() {
            // Asked now, so that an unreadable file of 10 GB does not cross the network as 10 GB of zeros.
            accessat(CWD, local, Access::READ_OK, AtFlags::EACCESS).map_err(|e| failed(e.into()))?;
            Kind::File { size: metadata.len(), version: version(&metadata), hash: None }
        } else if file_type.is_dir() {
            names = Some(list(local));
            Kind::Directory
        } else if file_type.is_symlink() {
            Kind::Symlink { target: std::fs::read_link(local).map_err(failed)?.into_os_string().into_vec() }
        } else {
            return Err(SkipReason::SpecialFile);
        };
        let entry = Entry { path: sent.to_vec(), kind, mode: metadata.mode() & 0o7777, mtime: mtime(&metadata) };
        Ok((entry, names))
    }
}

impl Iterator for Scanner {
    type Item = Batch;

    /// The next batch; it may have no entries when all that was left was skipped.
    fn next(&mut self) -> Option<Batch> {
        let mut batch =
            Batch { number: self.number, entries: Vec::new(), length: 0, skipped: Vec::new(), is_last: false };
        let mut name_bytes = 0;
        while batch.entries.len() < self.entry_limit
            && batch.skipped.len() < self.entry_limit
            && batch.length < self.byte_limit
            // Leaves room for one more entry of any length.
            && name_bytes + 2 * MAX_PATH <= MAX_BATCH_NAMES
        {
            let Some((sent, local)) = self.next_name() else { break };
            let known = batch.entries.len();
            self.visit(sent, local, &mut batch);
            name_bytes += batch.entries[known..].iter().map(Entry::name_bytes).sum::<usize>();
        }
        if batch.entries.is_empty() && batch.skipped.is_empty() {
            return None;
        }
        batch.is_last = self.tops.is_empty() && self.stack.iter().all(|folder| folder.names.is_empty());
        self.number = self.number.checked_add(1)?;
        self.entry_limit = (self.entry_limit * GROWTH).min(MAX_BATCH_ENTRIES);
        self.byte_limit = (self.byte_limit * GROWTH as u64).min(MAX_BATCH_BYTES);
        Some(batch)
    }
}

/// What tells one content of a file from another, see [`Kind::File`]: FNV-1a over inode number and change time.
pub(super) fn version(metadata: &Metadata) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let fields = [metadata.ino(), metadata.ctime().cast_unsigned(), metadata.ctime_nsec().cast_unsigned()];
    let bytes = fields.into_iter().flat_map(u64::to_be_bytes);
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The time of last modification in a file's metadata.
pub(super) fn mtime(metadata: &Metadata) -> Mtime {
    Mtime { seconds: metadata.mtime(), nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or(0) }
}

/// Checks a path the user named and gives the name it is sent under.
fn check_source(path: &Path) -> Result<Vec<u8>, FilesError> {
    let unusable = |reason: String| FilesError::SourceUnusable { path: path.to_owned(), reason };
    let metadata = path.symlink_metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FilesError::SourceAbsent { path: path.to_owned() },
        _ => FilesError::system(path, error),
    })?;
    let file_type = metadata.file_type();
    if !(file_type.is_file() || file_type.is_dir() || file_type.is_symlink()) {
        return Err(unusable("it is neither a file, a folder nor a link".into()));
    }
    // The component after the last `/` decides: `Path` would take `link/.` for `link`.
    let last = trim_slashes(path.as_os_str().as_bytes()).rsplit(|b| *b == b'/').next().unwrap_or_default();
    if !matches!(last, b"" | b"." | b"..") {
        return Ok(last.to_vec());
    }
    let canonical = path.canonicalize().map_err(|error| FilesError::system(path, error))?;
    let name = canonical.file_name().ok_or_else(|| unusable("it has no name; name what is in it".into()))?;
    Ok(name.as_bytes().to_vec())
}

/// The path without the slashes it ends in.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let kept = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    &path[..kept]
}

fn list(folder: &Path) -> Listing {
    let mut names = folder.read_dir()?.map(|item| item.map(|i| i.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

fn skip_reason(error: &io::Error) -> SkipReason {
    match error.kind() {
        io::ErrorKind::NotFound => SkipReason::Vanished,
        io::ErrorKind::InvalidFilename => SkipReason::NameTooLong,
        _ => SkipReason::Unreadable,
    }
}
