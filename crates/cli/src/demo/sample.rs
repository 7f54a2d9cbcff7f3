//! The file that the demo sends, and the comparison with its copy.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

/// Fixed, so that the file is the same in every run.
const SEED: u64 = 0x646f_776e_706f_7572;
const CHUNK: usize = 1 << 20;
/// Total size up to which the demo keeps its files in memory if possible: it demonstrates a network, not a disk.
const IN_MEMORY: u64 = 512 << 20;
const MEMORY: &str = "/dev/shm";

/// Creates a directory for the demo with space for this many bytes. It is removed when the value is dropped.
///
/// # Errors
/// There is too little space, or the directory cannot be created.
pub(super) fn directory(bytes: u64) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("downpour-demo-");
    if bytes <= IN_MEMORY
        && room(Path::new(MEMORY)).is_ok_and(|room| bytes <= room)
        && let Ok(directory) = builder.tempdir_in(MEMORY)
    {
        return Ok(directory);
    }
    let directory = builder.tempdir()?;
    let room = room(directory.path())?;
    if bytes <= room {
        return Ok(directory);
    }
    let place = directory.path().parent().unwrap_or(directory.path()).display();
    let (bytes, room) = (units::bytes(bytes), units::bytes(room));
    Err(io::Error::new(io::ErrorKind::StorageFull, format!("{place} has {room} free, but {bytes} are needed")))
}

/// Returns the bytes that an unprivileged user may still write.
fn room(directory: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(directory)?;
    // A tmpfs without a limit reports no blocks.
    let is_counted = system.f_blocks > 0;
    Ok(if is_counted { system.f_bavail.saturating_mul(system.f_frsize) } else { u64::MAX })
}

/// Writes a file of `bytes` pseudo-random, and hence incompressible, bytes, unless it is stopped.
pub(super) fn generate(path: &Path, bytes: u64, is_stopped: &AtomicBool) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut chunk = vec![0; CHUNK];
    let mut file = File::create_new(path)?;
    let mut left = bytes;
    while left > 0 {
        check_stopped(is_stopped)?;
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        random.fill(&mut chunk[..length]);
        file.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    Ok(())
}

/// Fails if the work was stopped.
fn check_stopped(is_stopped: &AtomicBool) -> io::Result<()> {
    if is_stopped.load(Ordering::Relaxed) { Err(io::Error::other("stopped")) } else { Ok(()) }
}

/// Returns the bytes of the files at and below a path, unless it is stopped.
///
/// # Errors
/// A path that cannot be read, or is not a file, directory or symbolic link; the error names it.
pub(super) fn size(path: &Path, is_stopped: &AtomicBool) -> io::Result<u64> {
    check_stopped(is_stopped)?;
    let metadata = fs::symlink_metadata(path).map_err(|error| at(path, &error))?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return names(path, is_stopped)?.iter().try_fold(0, |sum, name| Ok(sum + size(&path.join(name), is_stopped)?));
    }
    if kind.is_file() {
        File::open(path).map_err(|error| at(path, &error))?;
    } else if !kind.is_symlink() {
        return Err(at(path, &"special file: the demo sends only files, directories and symbolic links"));
    }
    Ok(metadata.len())
}

/// Returns an error that names its path.
fn at(path: &Path, error: &impl Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

/// Returns the first name below `a`, or `a` itself, in which two files or directories differ. This check is independent of the
/// verification during the transfer.
pub(super) fn difference(a: &Path, b: &Path, is_stopped: &AtomicBool) -> io::Result<Option<PathBuf>> {
    check_stopped(is_stopped)?;
    let differs = || Ok(Some(a.to_owned()));
    let (Some(kind), Some(other)) = (status(a)?, status(b)?) else { return differs() };
    if kind.file_type() != other.file_type() {
        return differs();
    }
    if kind.is_dir() {
        let (names, others) = (names(a, is_stopped)?, names(b, is_stopped)?);
        if names != others {
            let one = names.symmetric_difference(&others).next();
            return Ok(one.map(|name| a.join(name)));
        }
        for name in names {
            if let Some(path) = difference(&a.join(&name), &b.join(&name), is_stopped)? {
                return Ok(Some(path));
            }
        }
        return Ok(None);
    }
    let is_same = match kind.is_symlink() {
        true => fs::read_link(a)? == fs::read_link(b)?,
        false => kind.len() == other.len() && has_same_bytes(a, b, is_stopped)?,
    };
    if is_same { Ok(None) } else { differs() }
}

/// Returns the status of a path, if it exists.
fn status(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        status => status.map(Some).map_err(|error| at(path, &error)),
    }
}

fn names(directory: &Path, is_stopped: &AtomicBool) -> io::Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(directory).map_err(|error| at(directory, &error))?;
    entries
        .map(|entry| {
            check_stopped(is_stopped)?;
            Ok(entry.map_err(|error| at(directory, &error))?.file_name())
        })
        .collect()
}

fn has_same_bytes(a: &Path, b: &Path, is_stopped: &AtomicBool) -> io::Result<bool> {
    let open = |path: &Path| File::open(path).map(BufReader::new).map_err(|error| at(path, &error));
    let (mut a, mut b) = (open(a)?, open(b)?);
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        check_stopped(is_stopped)?;
        let length = a.read(&mut left)?;
        if length == 0 {
            return Ok(b.read(&mut right)? == 0);
        }
        match b.read_exact(&mut right[..length]) {
            Ok(()) if left[..length] == right[..length] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static NOT_STOPPED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn demo_directory_without_space_is_refused() {
        let room = room(&std::env::temp_dir()).expect("a directory");
        let error = directory(room.saturating_add(10 << 30)).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains(" free, but "), "{error}");
    }

    #[test]
    fn difference_finds_one_wrong_byte() {
        let directory = directory(0).expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["a", "b", "c", "d"] {
            generate(&path(name), 2_500_000, &NOT_STOPPED).expect(name);
        }
        assert_eq!(size(&path("a"), &NOT_STOPPED).expect("a size"), 2_500_000);
        let differs = |other: &str| difference(&path("a"), &path(other), &NOT_STOPPED).expect("two files");
        assert_eq!(differs("b"), None);
        let mut bytes = fs::read(path("c")).expect("a file");
        bytes[2_400_000] ^= 1;
        fs::write(path("c"), &bytes).expect("a file");
        assert_eq!(differs("c"), Some(path("a")));
        fs::write(path("d"), &bytes[..100]).expect("a file");
        assert_eq!(differs("d"), Some(path("a")));
    }

    #[test]
    fn stopped_work_fails() {
        let directory = directory(0).expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let stopped = AtomicBool::new(true);
        let error = generate(&path("large"), u64::MAX, &stopped).expect_err("stopped");
        assert_eq!((error.to_string().as_str(), size(&path("large"), &NOT_STOPPED).ok()), ("stopped", Some(0)));
        assert!(size(directory.path(), &stopped).is_err());
        assert!(difference(&path("large"), &path("large"), &stopped).is_err());
        assert!(names(directory.path(), &stopped).is_err());
    }

    #[test]
    fn difference_compares_directories() {
        let directory = directory(0).expect("a directory");
        for side in ["a", "b"] {
            let side = directory.path().join(side);
            fs::create_dir_all(side.join("x/y")).expect("directories");
            fs::write(side.join("x/file"), "1").expect("a file");
            std::os::unix::fs::symlink("file", side.join("x/link")).expect("a link");
        }
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        assert_eq!(difference(&a, &b, &NOT_STOPPED).expect("two directories"), None);
        assert_eq!(size(&a, &NOT_STOPPED).expect("a size"), 5);
        fs::write(b.join("x/y/more"), "").expect("a file");
        assert_eq!(difference(&a, &b, &NOT_STOPPED).expect("two directories"), Some(a.join("x/y/more")));
    }
}
