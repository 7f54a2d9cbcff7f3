//! The directory of one transfer: the file to send, and room for the received one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::testbed::RunDirectory;

/// A file system in memory, if there is one: the network should be measured and not a disk. Killed runs leave their
/// directories in it.
pub const MEMORY: &str = "/dev/shm";
/// The name of the file at both ends.
const NAME: &str = "file";
const CHUNK: usize = 1 << 20;

/// A new directory, which is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct ScratchDirectory {
    directory: RunDirectory,
    /// The digest of the sent file; `None` for a file without comparison.
    digest: Option<blake3::Hash>,
}

/// The content of the file to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Bytes determined by a seed, which no program can compress.
    Random {
        /// The seed.
        seed: u64,
    },
    /// Zeros that take no space, for a file too large to arrive.
    Zeros,
}

impl ScratchDirectory {
    /// Creates the directory, and the file of `size` bytes.
    pub(super) fn new(size: u64, content: Content) -> io::Result<Self> {
        let needed = match content {
            // The file, its copy, and as much again for programs that first write to another name.
            Content::Random { .. } => size.saturating_mul(3),
            Content::Zeros => size,
        };
        let in_memory = room(Path::new(MEMORY)).is_some_and(|room| room > needed);
        let place = if in_memory { PathBuf::from(MEMORY) } else { std::env::temp_dir() };
        let directory = RunDirectory::within(&place)?;
        for name in ["sent", "received", "own"] {
            fs::create_dir(directory.path().join(name))?;
        }
        let file = directory.path().join("sent").join(NAME);
        let digest = match content {
            Content::Random { seed } => Some(generate(&file, size, seed)?),
            Content::Zeros => {
                File::create_new(&file)?.set_len(size)?;
                None
            }
        };
        Ok(Self { directory, digest })
    }

    /// Returns the file to send.
    pub(super) fn source(&self) -> PathBuf {
        self.directory.path().join("sent").join(NAME)
    }

    /// Returns the receiving directory, which contains nothing else.
    pub(super) fn target_directory(&self) -> PathBuf {
        self.directory.path().join("received")
    }

    /// Returns the final location of the received file.
    pub(super) fn target(&self) -> PathBuf {
        self.target_directory().join(NAME)
    }

    /// Returns a location for a file of the peer's own: keys, a configuration, a log.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.directory.path().join("own").join(name)
    }

    /// Returns whether the received file equals the sent one.
    pub(super) fn is_equal(&self) -> io::Result<bool> {
        let mut hasher = blake3::Hasher::new();
        match File::open(self.target()) {
            Ok(file) => hasher.update_reader(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(self.digest == Some(hasher.finalize()))
    }

    /// Returns the bytes of files in the receiving directory, whatever their names. Only written bytes count, not
    /// lengths set in advance.
    pub(super) fn arrived(&self) -> u64 {
        let mut directories = vec![self.target_directory()];
        let mut bytes = 0;
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                    // `st_blocks` counts units of 512 bytes on every file system.
                    Ok(metadata) => bytes += metadata.len().min(metadata.blocks() * 512),
                    // It was renamed meanwhile.
                    Err(_) => {}
                }
            }
        }
        bytes
    }
}

fn room(directory: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory).ok().map(|system| system.f_bavail * system.f_frsize)
}

/// Writes the file and returns its digest.
fn generate(path: &Path, size: u64, seed: u64) -> io::Result<blake3::Hash> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK];
    let mut file = File::create_new(path)?;
    let mut left = size;
    while left > 0 {
        let part = &mut chunk[..usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK)];
        random.fill(part);
        hasher.update(part);
        file.write_all(part)?;
        left -= part.len() as u64;
    }
    Ok(hasher.finalize())
}
