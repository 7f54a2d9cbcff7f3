//! Measures the speed of the disk of a directory. All files written for this are removed.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, CWD, Mode, fadvise, openat, statvfs};
use serde::{Deserialize, Serialize};

use crate::files::directory::{NAMED_WAY, is_append_only};

/// Maximum number of bytes written.
const MAX_BYTES: usize = 256 << 20;

/// Bytes per system call.
const PIECE: usize = 1 << 20;

/// Bytes between two syncs: few at first, so that a slow disk gets no more than it can write in time.
const FIRST_STRETCH: usize = 4 << 20;
const LONGEST_STRETCH: usize = 64 << 20;

/// Time limits for writing, reading and creating files.
const WRITE_TIME: Duration = Duration::from_millis(1000);
const READ_TIME: Duration = Duration::from_millis(500);
const FILES_TIME: Duration = Duration::from_millis(500);

/// Maximum number of small files created, and bytes in each.
const MAX_FILES: usize = 500;
const SMALL_FILE: usize = 4_000;

/// Nothing is written unless the free space is at least this many times the bytes to write.
const RESERVE: u64 = 4;

/// The measurements of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// The measured directory: the requested one, or its nearest existing parent.
    #[serde(rename = "folder")]
    pub directory: String,
    /// The requested directory, if it does not exist.
    #[serde(default)]
    pub absent: Option<String>,
    /// Bytes that an unprivileged program may still write.
    pub free: Option<u64>,
    /// Bytes per second, written sequentially and synced.
    pub write: Option<u64>,
    /// Bytes per second, read sequentially, bypassing the kernel's cache if the file system supports that.
    pub read: Option<u64>,
    /// Files of 4 kB per second, created, written and renamed as a receiver does it.
    pub small_files: Option<u64>,
    /// Failed measurements and their reasons.
    pub trouble: Option<String>,
}

/// Measures the disk below `directory`.
pub(super) fn measure(directory: &Path, stopped: &dyn Fn() -> bool) -> Disk {
    let name = |directory: &Path| directory.display().to_string();
    let absent = (!directory.is_dir()).then(|| name(directory));
    let directory = existing(directory);
    let shown = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    let mut disk = Disk { directory: name(&shown), absent, ..Disk::default() };
    let result = statvfs(&directory).map_err(io::Error::from).and_then(|found| {
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        disk.free = Some(free);
        if free < RESERVE * MAX_BYTES as u64 {
            return Err(io::Error::other("not enough free space for a test file"));
        }
        if is_append_only(openat(CWD, &directory, NAMED_WAY, Mode::empty())?) {
            return Err(io::Error::other("append-only directory: a test file could not be deleted"));
        }
        sequential(&directory, &mut disk, stopped)?;
        disk.small_files = Some(small_files(&directory, stopped)?);
        Ok(())
    });
    disk.trouble = result.err().map(|error| error.to_string());
    disk
}

/// Returns `directory`, or its nearest existing parent.
fn existing(directory: &Path) -> PathBuf {
    let found = directory.ancestors().find(|path| path.is_dir());
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

fn per_second(count: usize, since: Instant) -> u64 {
    (count as f64 / runtime::since(since).as_secs_f64().max(1e-6)) as u64
}

/// Writes and reads an unnamed file, which cannot be left behind.
fn sequential(directory: &Path, disk: &mut Disk, stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(directory)?;
    // Incompressible bytes.
    let mut piece = vec![0; PIECE];
    runtime::fill(&mut piece)?;
    let started = runtime::now();
    let (mut written, mut stretch) = (0, FIRST_STRETCH);
    while written < MAX_BYTES && !stopped() {
        let before = runtime::since(started);
        for _ in 0..stretch / PIECE {
            file.write_all(&piece)?;
        }
        file.sync_data()?;
        written += stretch;
        let took = runtime::since(started) - before;
        stretch = (2 * stretch).min(LONGEST_STRETCH).min(MAX_BYTES - written);
        // The next stretch is twice as long.
        if runtime::since(started) + 2 * took > WRITE_TIME {
            break;
        }
    }
    disk.write = Some(per_second(written, started));
    disk.read = Some(read(&mut file, piece, stopped)?);
    Ok(())
}

fn read(file: &mut File, mut piece: Vec<u8>, stopped: &dyn Fn() -> bool) -> io::Result<u64> {
    // Synced data can be dropped from the cache; if it stays there, the figure is that of RAM.
    fadvise(&*file, 0, None, Advice::DontNeed)?;
    file.seek(SeekFrom::Start(0))?;
    let started = runtime::now();
    let mut total = 0;
    while runtime::since(started) < READ_TIME && !stopped() {
        match file.read(&mut piece)? {
            0 => break,
            count => total += count,
        }
    }
    Ok(per_second(total, started))
}

/// Measures small files per second, in a directory of their own, which is removed with them.
fn small_files(directory: &Path, stopped: &dyn Fn() -> bool) -> io::Result<u64> {
    let directory = tempfile::Builder::new().prefix(".downpour-doctor-").tempdir_in(directory)?;
    let bytes = [0x5a; SMALL_FILE];
    let started = runtime::now();
    let mut made = 0;
    while made < MAX_FILES && runtime::since(started) < FILES_TIME && !stopped() {
        let staged = directory.path().join(format!("{made}.new"));
        File::create_new(&staged)?.write_all(&bytes)?;
        fs::rename(&staged, directory.path().join(made.to_string()))?;
        made += 1;
    }
    let rate = per_second(made, started);
    directory.close()?;
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_disk_measured_and_cleaned() {
        let dir = tempfile::tempdir().unwrap();
        let disk = measure(&dir.path().join("not/there"), &|| false);
        assert_eq!((disk.directory.as_str(), &disk.trouble), (dir.path().to_str().unwrap(), &None), "{disk:?}");
        assert!([disk.write, disk.read].iter().all(|rate| rate.is_some_and(|rate| rate > 1_000_000)), "{disk:?}");
        assert!(disk.small_files.is_some_and(|rate| rate > 10), "{disk:?}");
        assert!(disk.free > Some(1 << 20), "{disk:?}");
        let absent = dir.path().join("not/there").display().to_string();
        assert_eq!(disk.absent.as_deref(), Some(absent.as_str()));
        let words = disk.to_string();
        assert!(words.contains(&format!(" ({absent} does not exist): writes ")), "{words}");
        assert_eq!(measure(dir.path(), &|| true).absent, None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn doctor_disk_unwritable_is_trouble() {
        let disk = measure(Path::new("/proc"), &|| false);
        assert!(disk.trouble.is_some() && disk.write.is_none(), "{disk:?}");
        assert_eq!(disk.directory, "/proc");
    }

    #[test]
    fn doctor_disk_stop_ends_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let disk = measure(dir.path(), &|| true);
        assert_eq!(disk.small_files, Some(0));
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}
