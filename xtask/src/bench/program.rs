//! The program itself: one process sends, one receives.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::failure::Failure;

/// A file system in memory, where there is one: what is measured is not a disk.
const MEMORY: &str = "/dev/shm";
const CHUNK: usize = 1 << 20;
/// For a listener to be ready, and for the sender to end after the receiver.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder for a measurement, with room for so many bytes.
pub(super) struct Stage {
    folder: TempDir,
    /// What kind of place it is.
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
        let folder = tempfile::Builder::new().prefix("downpour-bench-").tempdir_in(place);
        Ok(Self { folder: folder.map_err(Failure::at(place.display()))?, place: place.display().to_string() })
    }

    /// One on a disk: what is measured is what a user waits for.
    pub(super) fn on_disk(bytes: u64) -> Result<Self, Failure> {
        let place = std::env::temp_dir();
        let kind = file_system(&place)?;
        if kind == "tmpfs" {
            return Err(Failure::new(format_args!(
                "{} is in memory: set TMPDIR to a folder on a disk",
                place.display()
            )));
        }
        if room(&place).is_some_and(|room| room <= bytes) {
            return Err(Failure::new(format_args!("{} has no room for {} MB", place.display(), bytes / 1_000_000)));
        }
        let folder = tempfile::Builder::new().prefix("downpour-bench-").tempdir_in(&place);
        Ok(Self {
            folder: folder.map_err(Failure::at(place.display()))?,
            place: format!("{} ({kind})", place.display()),
        })
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn room(folder: &Path) -> Option<u64> {
    rustix::fs::statvfs(folder).ok().map(|system| system.f_bavail * system.f_frsize)
}

/// What the file system of a folder is called.
fn file_system(folder: &Path) -> Result<&'static str, Failure> {
    // statfs(2).
    Ok(match rustix::fs::statfs(folder).map_err(Failure::at(folder.display()))?.f_type {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        _ => "unknown file system",
    })
}

/// Everything written so far is on the disk: the next measurement does not wait for it.
pub(super) fn sync(folder: &Path) -> Result<(), Failure> {
    let on_it = File::open(folder).map_err(Failure::at(folder.display()))?;
    rustix::fs::syncfs(on_it).map_err(Failure::at(folder.display()))
}

/// One transfer that went well.
pub(super) struct Crossing {
    /// From the start of the receiver, with the sender waiting, to its end.
    pub(super) took: Duration,
    /// Peak resident memory of sender and receiver in bytes, where it was asked for.
    pub(super) peaks: [u64; 2],
}

/// Sends a file to an empty folder over 127.0.0.1; sizes must agree, bytes are the caller's to compare.
pub(super) fn cross(
    program: &Path,
    stage: &Stage,
    source: &Path,
    into: &Path,
    watch: bool,
) -> Result<Crossing, Failure> {
    let ticket = stage.path("ticket");
    remove(&ticket)?;
    let mut send = Command::new(program);
    send.args(["send", "--quiet", "--listen", "127.0.0.1:0", "--ticket-file"]).arg(&ticket).arg(source);
    let mut sender = Guard(start(&mut send)?);
    let listening = Instant::now();
    while !ticket.exists() {
        if sender.0.try_wait().map_err(Failure::at("send"))?.is_some() || listening.elapsed() > PATIENCE {
            return Err(Failure::new("downpour send did not begin to listen"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut receive = Command::new(program);
    receive.args(["recv", "--quiet", "--yes", "--ticket-file"]).arg(&ticket).arg("--into").arg(into);
    let started = Instant::now();
    let mut receiver = Guard(start(&mut receive)?);
    let peaks = if watch { watch_peaks([sender.0.id(), receiver.0.id()]) } else { [0, 0] };
    let status = receiver.0.wait().map_err(Failure::at("recv"))?;
    let took = started.elapsed();
    if !status.success() {
        return Err(Failure::new(format_args!("downpour recv: {status}")));
    }
    let status = wait(&mut sender.0)?;
    if !status.success() {
        return Err(Failure::new(format_args!("downpour send: {status}")));
    }
    Ok(Crossing { took, peaks })
}

/// A process that does not outlive the measurement.
pub(super) struct Guard(pub(super) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program that says nothing but errors.
pub(super) fn start(command: &mut Command) -> Result<Child, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(Failure::at(name))
}

fn wait(child: &mut Child) -> Result<std::process::ExitStatus, Failure> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::at("downpour send"))? {
            return Ok(status);
        }
        if started.elapsed() > PATIENCE {
            return Err(Failure::new("downpour send did not end after the receiver had"));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The kernel's own high-water marks, read until the second process has ended.
fn watch_peaks(processes: [u32; 2]) -> [u64; 2] {
    let mut peaks = [0, 0];
    while let Some(receiver) = peak(processes[1]) {
        peaks = [peaks[0].max(peak(processes[0]).unwrap_or_default()), receiver];
        thread::sleep(Duration::from_millis(10));
    }
    peaks
}

/// `VmHWM` in bytes; nothing for a process that is no more.
pub(super) fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Files staged below a folder: a staging folder holds them in folders of one character, each under a name of 26; others are the
/// receiver's books.
pub(super) fn staged(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let length = |path: &Path| path.file_name().map_or(0, |name| name.len());
    let digits = entries(folder.to_owned()).flat_map(entries).filter(move |path| length(path) == 1);
    digits.flat_map(entries).filter(move |path| length(path) == 26)
}

/// Removes a file that may be there.
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
