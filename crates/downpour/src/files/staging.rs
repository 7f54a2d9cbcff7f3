//! The staging folder: everything is written in it, and leaves it under its final name only when all is verified.
//!
//! Layout of `.downpour-XXXXXXXX` (mode 0700) inside the target folder, so on the same file system: `tree` holds the items
//! under their own names; `folders` is a list of the folders received with their modes and times, which are
//! applied last. The list is on disk because a transfer may have any number of folders, and memory must not grow with it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use data_encoding::BASE32_NOPAD;
use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, Timespec, Timestamps, fchmod, fstat, fsync, futimens, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::beneath::{Beneath, FOLDER};
use super::entry::Mtime;
use super::error::FilesError;
use super::names::display_name;

const TREE: &str = "tree";
const FOLDERS: &str = "folders";
const OWNER_WRITES: u32 = 0o200;
/// Bytes of the list of folders kept in memory before they are written.
const LIST_BUFFER: usize = 64 << 10;

/// A staging folder in use.
#[derive(Debug)]
pub(super) struct Staging {
    /// Path of the staging folder, for messages.
    path: PathBuf,
    /// Its name in the target folder.
    name: String,
    dir: OwnedFd,
    /// The items.
    pub(super) tree: Beneath,
    folders: Mutex<FolderList>,
}

impl Staging {
    /// Makes a new staging folder in `target`, whose path is `into`.
    pub(super) fn create(target: &OwnedFd, into: &Path) -> Result<Self, FilesError> {
        let mut random = [0; 5];
        getrandom::fill(&mut random).map_err(|e| FilesError::system(into, io::Error::other(e)))?;
        let name = format!(".downpour-{}", BASE32_NOPAD.encode(&random).to_ascii_lowercase());
        let path = into.join(&name);
        let make = || -> rustix::io::Result<_> {
            mkdirat(target, &name, Mode::RWXU)?;
            let dir = openat(target, &name, FOLDER, Mode::empty())?;
            mkdirat(&dir, TREE, Mode::RWXU)?;
            let tree = openat(&dir, TREE, FOLDER, Mode::empty())?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let list = openat(&dir, FOLDERS, flags, Mode::RUSR | Mode::WUSR)?;
            Ok((dir, tree, list))
        };
        let (dir, tree, list) = make().map_err(|error| {
            // A folder taken by someone else under the same random name is not ours to remove.
            if error != Errno::EXIST {
                let _ = std::fs::remove_dir_all(&path);
            }
            FilesError::system(&path, error)
        })?;
        let folders = FolderList { file: File::from(list), written: 0, buffer: Vec::new(), count: 0 };
        Ok(Self { path, name, dir, tree: Beneath::new(tree), folders: Mutex::new(folders) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether someone has removed it.
    pub(super) fn is_removed(&self) -> bool {
        fstat(self.tree.root()).is_ok_and(|found| found.st_nlink == 0)
    }

    /// A path to show for a received name.
    pub(super) fn shown(&self, entry: &[u8]) -> PathBuf {
        self.path.join(TREE).join(display_name(entry))
    }

    /// Makes a received folder and remembers its mode and time.
    pub(super) fn add_folder(&self, path: &[u8], mode: u32, mtime: Mtime) -> io::Result<()> {
        self.tree.create_folder(path)?;
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).push(path, mode, mtime)
    }

    /// Names of the items at the top.
    pub(super) fn items(&self) -> Result<Vec<Vec<u8>>, FilesError> {
        let failed = |error: Errno| FilesError::system(&self.path, error);
        let mut names = Vec::new();
        for item in Dir::read_from(self.tree.root()).map_err(failed)? {
            let item = item.map_err(failed)?;
            if !matches!(item.file_name().to_bytes(), b"." | b"..") {
                names.push(item.file_name().to_bytes().to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Applies modes and times to all folders, the deepest first, and makes them durable. Folders at the top that their
    /// owner may not write to are returned with their modes: the system lets nobody move such a folder, so they get
    /// them after the move.
    pub(super) fn seal_folders(&self) -> Result<Vec<(OwnedFd, u32)>, FilesError> {
        let failed = |error: io::Error| FilesError::system(&self.path, error);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let at_once = sync_at_once(folders.count);
        let mut late = Vec::new();
        folders.flush().map_err(failed)?;
        let mut end = folders.written;
        while let Some((start, folder)) = folders.before(end).map_err(failed)? {
            end = start;
            let open = self.tree.open_folder(&folder.path).map_err(failed)?;
            let at_top = !folder.path.contains(&b'/');
            let unmovable = at_top && folder.mode & OWNER_WRITES == 0;
            let mode = if unmovable { folder.mode | OWNER_WRITES } else { folder.mode };
            set_metadata(&open, mode, folder.mtime).map_err(failed)?;
            if !at_once {
                fsync(&open).map_err(|e| failed(e.into()))?;
            }
            if unmovable {
                late.push((open, folder.mode));
            }
        }
        if at_once {
            sync_file_system(self.tree.root()).map_err(failed)?;
        }
        fsync(self.tree.root()).map_err(|e| failed(e.into()))?;
        Ok(late)
    }

    /// Moves one item to its final name; fails with `EEXIST` if that is taken.
    pub(super) fn place(&self, item: &[u8], target: &OwnedFd) -> rustix::io::Result<()> {
        move_item(self.tree.root(), target, item)
    }

    /// Takes an item back.
    pub(super) fn take_back(&self, item: &[u8], target: &OwnedFd) -> rustix::io::Result<()> {
        move_item(target, self.tree.root(), item)
    }

    /// Removes the staging folder after everything left it.
    pub(super) fn remove_empty(&self, target: &OwnedFd) -> rustix::io::Result<()> {
        unlinkat(&self.dir, FOLDERS, AtFlags::empty())?;
        unlinkat(&self.dir, TREE, AtFlags::REMOVEDIR)?;
        unlinkat(target, &self.name, AtFlags::REMOVEDIR)
    }

    /// Removes the staging folder and everything in it.
    pub(super) fn remove(&self) -> Result<(), FilesError> {
        std::fs::remove_dir_all(&self.path).map_err(|error| FilesError::system(&self.path, error))
    }
}

/// Whether this many files or folders are made durable by one sync of the file system rather than one by one. One by one
/// costs a journal commit each, minutes for a full batch on a busy disk; a sync of the whole file system may wait for
/// other programs' data, too much for a few files. Only Linux (5.8) reports write errors from the latter.
pub(super) fn sync_at_once(count: u64) -> bool {
    cfg!(target_os = "linux") && count > 32
}

/// Makes everything on the file system durable.
#[cfg(target_os = "linux")]
pub(super) fn sync_file_system(on_it: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(on_it)?)
}

/// Never asked for: see [`sync_at_once`].
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_file_system(on_it: impl AsFd) -> io::Result<()> {
    Ok(fsync(on_it)?)
}

/// Sets mode and time. File systems without one or the other (FAT, some network ones) refuse; the content stands.
pub(super) fn set_metadata(file: impl AsFd, mode: u32, mtime: Mtime) -> io::Result<()> {
    let chmod = fchmod(&file, mode_of(mode));
    let time = futimens(&file, &timestamps(mtime));
    for result in [chmod, time] {
        match result {
            Err(error) if !is_unsupported(error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// What systems answer when a file system does not have what was asked for.
pub(super) fn is_unsupported(error: Errno) -> bool {
    [Errno::PERM, Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

/// Permission bits of `st_mode`; bits beyond are dropped.
pub(super) fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o7777) as rustix::fs::RawMode)
}

/// Both times of a file, the last access being the last modification too.
pub(super) fn timestamps(mtime: Mtime) -> Timestamps {
    let time = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// Renames `item` from one folder to another, never over something.
fn move_item(from: &OwnedFd, to: &OwnedFd, item: &[u8]) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(from, item, to, item, rustix::fs::RenameFlags::NOREPLACE) {
        // The file system does not know the flag.
        Err(error) if error != Errno::PERM && is_unsupported(error) => {}
        result => return result,
    }
    // Without the flag the check comes first. What appears between it and the rename is lost only if it is a file or
    // an empty folder: rename never replaces a folder with content.
    match statat(to, item, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from, item, to, item),
        Err(error) => Err(error),
    }
}

/// Folders in the order they were received, in a file that can be read from its end.
#[derive(Debug)]
struct FolderList {
    file: File,
    /// Bytes in the file.
    written: u64,
    /// Records that follow them.
    buffer: Vec<u8>,
    count: u64,
}

/// One record: path, mode 4, seconds 8, nanoseconds 4, and last the path's length 4.
struct FolderRecord {
    path: Vec<u8>,
    mode: u32,
    mtime: Mtime,
}

impl FolderList {
    /// Bytes of a record behind the path.
    const FIXED: usize = 4 + 8 + 4 + 4;

    fn push(&mut self, path: &[u8], mode: u32, mtime: Mtime) -> io::Result<()> {
        let length = u32::try_from(path.len()).map_err(|_| io::ErrorKind::InvalidFilename)?;
        self.buffer.extend_from_slice(path);
        self.buffer.extend(mode.to_be_bytes());
        self.buffer.extend(mtime.seconds.to_be_bytes());
        self.buffer.extend(mtime.nanoseconds.to_be_bytes());
        self.buffer.extend(length.to_be_bytes());
        self.count += 1;
        if self.buffer.len() >= LIST_BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The record that ends at `end`, and where it starts; `None` at the beginning of the list.
    fn before(&self, end: u64) -> io::Result<Option<(u64, FolderRecord)>> {
        let Some(fixed_at) = end.checked_sub(Self::FIXED as u64) else { return Ok(None) };
        let mut fixed = [0; Self::FIXED];
        self.file.read_exact_at(&mut fixed, fixed_at)?;
        let (mode, rest) = fixed.split_first_chunk().expect("20 bytes");
        let (seconds, rest) = rest.split_first_chunk().expect("16 bytes");
        let (nanoseconds, rest) = rest.split_first_chunk().expect("8 bytes");
        let length = rest.first_chunk().expect("4 bytes");
        let length = u32::from_be_bytes(*length);
        let start = fixed_at.checked_sub(u64::from(length)).ok_or(io::ErrorKind::InvalidData)?;
        let mut path = vec![0; length as usize];
        self.file.read_exact_at(&mut path, start)?;
        let mtime = Mtime { seconds: i64::from_be_bytes(*seconds), nanoseconds: u32::from_be_bytes(*nanoseconds) };
        Ok(Some((start, FolderRecord { path, mode: u32::from_be_bytes(*mode), mtime })))
    }
}
