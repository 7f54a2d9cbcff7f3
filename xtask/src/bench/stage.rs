//! A directory for a measurement, and the files in it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use xtask::failure::Failure;

/// A file system in memory, if any: a transfer is measured, not a disk.
const MEMORY: &str = "/dev/shm";
const CHUNK: usize = 1 << 20;

/// A directory for a measurement, with room for so many bytes.
pub(super) struct Stage {
    directory: TempDir,
    /// The kind of file system.
    pub(super) place: String,
}

impl Stage {
    pub(super) fn new(bytes: u64) -> Result<Self, Failure> {
        let in_memory = Path::new(MEMORY).is_dir() && room(Path::new(MEMORY)).is_some_and(|room| room > bytes);
        let temporary = std::env::temp_dir();
        let place = if in_memory { Path::new(MEMORY) } else { &temporary };
        if room(place).is_some_and(|room| room <= bytes) {
            return Err(Failure::new(format_args!("{} has no room for {} MB", place.display(), bytes / 1_000_000)));
        }
        let directory = tempfile::Builder::new().prefix("downpour-bench-").tempdir_in(place);
        Ok(Self { directory: directory.map_err(Failure::at(place.display()))?, place: place.display().to_string() })
    }

    /// One on a disk: the measured time is that of a user.
    pub(super) fn on_disk(bytes: u64) -> Result<Self, Failure> {
        let place = std::env::temp_dir();
        let kind = file_system(&place)?;
        if kind == "tmpfs" {
            return Err(Failure::new(format_args!(
                "{} is in memory: set TMPDIR to a directory on a disk",
                place.display()
            )));
        }
        if room(&place).is_some_and(|room| room <= bytes) {
            return Err(Failure::new(format_args!("{} has no room for {} MB", place.display(), bytes / 1_000_000)));
        }
        let directory = tempfile::Builder::new().prefix("downpour-bench-").tempdir_in(&place);
        Ok(Self {
            directory: directory.map_err(Failure::at(place.display()))?,
            place: format!("{} ({kind})", place.display()),
        })
    }

    /// The directory itself.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Bytes that may be written to the file system of a directory.
pub(super) fn room(directory: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory).ok().map(|system| system.f_bavail * system.f_frsize)
}

/// The name of the file system of a directory.
fn file_system(directory: &Path) -> Result<&'static str, Failure> {
    // statfs(2).
    Ok(match rustix::fs::statfs(directory).map_err(Failure::at(directory.display()))?.f_type {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        _ => "unknown file system",
    })
}

/// Everything written so far is on the disk: the next measurement does not wait for it.
pub(super) fn sync(directory: &Path) -> Result<(), Failure> {
    let on_it = File::open(directory).map_err(Failure::at(directory.display()))?;
    rustix::fs::syncfs(on_it).map_err(Failure::at(directory.display()))
}

/// Files staged below a directory: a staging directory holds them in directories of one character, each under a name of
/// 26; others are the receiver's books.
pub(super) fn staged(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries =
        |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let length = |path: &Path| path.file_name().map_or(0, |name| name.len());
    let digits = entries(directory.to_owned()).flat_map(entries).filter(move |path| length(path) == 1);
    digits.flat_map(entries).filter(move |path| length(path) == 26)
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::at(path.display())(error)),
        _ => Ok(()),
    }
}

/// Writes a file that no program on the way can compress.
pub(super) fn generate(path: &Path, bytes: u64) -> Result<(), Failure> {
    let mut random = fastrand::Rng::with_seed(bytes);
    let mut chunk = vec![0; CHUNK];
    let mut file = File::create_new(path).map_err(Failure::at(path.display()))?;
    let mut left = bytes;
    while left > 0 {
        let length = left.min(CHUNK as u64) as usize;
        random.fill(&mut chunk[..length]);
        file.write_all(&chunk[..length]).map_err(Failure::at(path.display()))?;
        left -= length as u64;
    }
    Ok(())
}

/// An error unless both files hold the same bytes.
pub(super) fn compare(a: &Path, b: &Path) -> Result<(), Failure> {
    let differs = || Failure::new(format_args!("{} differs from {}", b.display(), a.display()));
    let mut left = File::open(a).map_err(Failure::at(a.display()))?;
    let mut right = File::open(b).map_err(Failure::at(b.display()))?;
    let length = |file: &File| file.metadata().map(|metadata| metadata.len()).map_err(Failure::at("size"));
    let mut rest = length(&left)?;
    if length(&right)? != rest {
        return Err(differs());
    }
    let (mut one, mut two) = (vec![0; CHUNK], vec![0; CHUNK]);
    while rest > 0 {
        let part = rest.min(CHUNK as u64) as usize;
        left.read_exact(&mut one[..part]).map_err(Failure::at(a.display()))?;
        right.read_exact(&mut two[..part]).map_err(Failure::at(b.display()))?;
        if one[..part] != two[..part] {
            return Err(differs());
        }
        rest -= part as u64;
    }
    Ok(())
}
