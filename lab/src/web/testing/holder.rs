//! The process that runs a plan: it holds the lock of the file of records.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::web::refusal::Refusal;

/// The time limit for waiting for another lab that starts a run.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The current locks of processes.
pub(super) struct Locks(String);

impl Locks {
    pub(super) fn now() -> Self {
        Self(fs::read_to_string("/proc/locks").unwrap_or_default())
    }

    /// Returns the process that holds the lock of a file of records, as it does while it runs a plan. Trying the lock
    /// could deny it to a starting run. Locks of other programs and symbolic links do not count.
    pub(super) fn holder(&self, records: &Path) -> Option<Holder> {
        let file = fs::symlink_metadata(records).ok()?;
        self.0.lines().find_map(|line| {
            let (pid, device, inode) = parsed(line)?;
            let holder = Holder(pid);
            // Some file systems have another device in this table than in the metadata of their files.
            let is_it =
                || device == [major(file.dev()), minor(file.dev())] || holder.has_locked(&file).unwrap_or(false);
            (inode == file.ino() && is_it() && holder.is_a_lab()).then_some(holder)
        })
    }
}

/// Returns the holder of a lock of a whole file, and the file: `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`.
fn parsed(line: &str) -> Option<(Pid, [u32; 2], u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", pid, file, ..] = words[..] else { return None };
    let mut parts = file.split(':');
    let mut device = || u32::from_str_radix(parts.next()?, 16).ok();
    let device = [device()?, device()?];
    let pid = pid.parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    Some((pid, device, parts.next()?.parse().ok()?))
}

/// A process that runs a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder(Pid);

impl Holder {
    pub(super) fn number(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Interrupts it, as Ctrl-C in its terminal would.
    ///
    /// # Errors
    /// It is another user's, or has ended.
    pub(super) fn interrupt(self, records: &Path) -> Result<(), Refusal> {
        let number = self.number();
        let ended = || Refusal::conflict(format_args!("process {number} has ended"));
        let process = pidfd_open(self.0, PidfdFlags::empty()).map_err(|_| ended())?;
        // Its number may have been reused. The descriptor opened now is checked below, and safe afterwards.
        let file = fs::symlink_metadata(records)
            .map_err(|error| Refusal::failed(format_args!("{}: {error}", records.display())))?;
        let not_ours = || {
            Refusal::conflict(format_args!(
                "cannot stop process {number}: it is another user's, who can run kill -INT {number}"
            ))
        };
        match self.has_locked(&file) {
            Ok(true) if self.is_a_lab() => {}
            Ok(_) => return Err(ended()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(not_ours()),
            Err(_) => return Err(ended()),
        }
        for signal in [Signal::INT, Signal::CONT] {
            // A process suspended with Ctrl-Z has to be woken to stop.
            pidfd_send_signal(&process, signal).map_err(|error| match error {
                rustix::io::Errno::PERM => not_ours(),
                _ => ended(),
            })?;
        }
        Ok(())
    }

    /// Returns whether it is this program, or another build of it. For another user's process this is unknown, and it
    /// gets no signal.
    fn is_a_lab(self) -> bool {
        let program = Path::new("/proc").join(self.number().to_string()).join("exe");
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let is_this = || fs::metadata(&program).and_then(|it| Ok(same(it, fs::metadata("/proc/self/exe")?)));
        match fs::read_link(&program) {
            // The kernel appends this if another build has replaced the file.
            Ok(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                name.trim_end_matches(" (deleted)") == crate::NAME || is_this().unwrap_or(false)
            }
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        }
    }

    /// Returns whether it has this file open and locked.
    fn has_locked(self, file: &Metadata) -> std::io::Result<bool> {
        let process = Path::new("/proc").join(self.number().to_string());
        let is_it = |open: fs::DirEntry| {
            let is_file = fs::metadata(open.path()).is_ok_and(|of| (of.dev(), of.ino()) == (file.dev(), file.ino()));
            let about = || fs::read_to_string(process.join("fdinfo").join(open.file_name())).unwrap_or_default();
            is_file && about().lines().any(|line| line.starts_with("lock:") && line.contains(" FLOCK "))
        };
        Ok(fs::read_dir(process.join("fd"))?.flatten().any(is_it))
    }
}

/// Takes the right to start a run in this directory of results, until the returned value is dropped. Only one lab has
/// it at a time, so that checks before a start hold until the run has its lock.
///
/// # Errors
/// The directory cannot be created, or another lab does not finish.
pub(super) fn start_guard(results: &Path) -> Result<File, Refusal> {
    let failed = |error| {
        Refusal::failed(format_args!(
            "cannot write results to {}: {error}; start downpour-lab web in a writable directory",
            results.display()
        ))
    };
    fs::create_dir_all(results).map_err(failed)?;
    let directory = File::open(results).map_err(failed)?;
    let begun = Instant::now();
    loop {
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(LOOK_EVERY),
            Err(TryLockError::WouldBlock) => {
                return Err(Refusal::conflict(
                    "another downpour-lab web is starting a run in this directory: try again",
                ));
            }
            // A file system without such locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(directory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{RECORDS, Store};
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    #[test]
    fn holder_is_the_running_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let records = directory.path().join(RECORDS);
        let holder = || Locks::now().holder(&records);
        assert_eq!(holder(), None);
        let store = Store::open(directory.path()).expect("a new directory");
        assert_eq!(holder(), Some(Holder(rustix::process::getpid())));
        drop(store);
        assert_eq!(holder(), None);
    }

    /// A reused process number is not the run's.
    #[test]
    fn interrupt_spares_a_process_without_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let _store = Store::open(directory.path()).expect("a new directory");
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let refused =
            Holder(Pid::from_child(&other)).interrupt(&directory.path().join(RECORDS)).expect_err("not this one");
        assert!(refused.to_string().ends_with("has ended"), "{refused}");
        drop(other.stdin.take());
        assert!(other.wait().expect("it ends").success(), "it got no signal");
    }

    /// Otherwise Stop would interrupt that program.
    #[test]
    fn holder_ignores_other_programs() {
        let directory = tempfile::tempdir().expect("a directory");
        let (records, link) = (directory.path().join("own"), directory.path().join(RECORDS));
        fs::write(&records, "").expect("written");
        let mut other = Command::new("flock");
        let other = other.arg(&records).args(["sh", "-c", "echo locked; exec cat"]);
        let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        other.stdout.as_mut().expect("piped").read_exact(&mut [0; 7]).expect("it has the lock");
        let inode = format!(":{} ", fs::metadata(&records).expect("it exists").ino());
        assert!(Locks::now().0.contains(&inode), "it is locked");
        assert_eq!(Locks::now().holder(&records), None);
        Holder(Pid::from_child(&other)).interrupt(&records).expect_err("it runs nothing");
        drop(other.stdin.take());
        assert!(other.wait().expect("it ends").success(), "it got no signal");

        // Through a symbolic link, not even a lock of a lab.
        let store = Store::open(&directory.path().join("other")).expect("a new directory");
        std::os::unix::fs::symlink(directory.path().join("other").join(RECORDS), &link).expect("a link");
        assert_eq!(Locks::now().holder(&link), None);
        drop(store);
    }

    #[test]
    fn start_is_exclusive_among_labs() {
        let directory = tempfile::tempdir().expect("a directory");
        let results = directory.path().join("lab-results");
        let start_guard = start_guard(&results).expect("a new directory");
        let other = File::open(&results).expect("it exists");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(start_guard);
        assert!(other.try_lock().is_ok());
    }
}
