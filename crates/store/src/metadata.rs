//! Modes, times and kinds of existing files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, Stat, Timespec, Timestamps, fchmod, fstat, futimens, major, minor};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::messages::{DeviceNumber, Mtime, Special};

/// Set-user-id and set-group-id. They give away the rights of the owner and group: a transfer sets them only with both.
pub(super) const SET_ID: u32 = 0o6000;
pub(super) const PERMISSIONS: u32 = 0o7777;

/// More than a tick of any kernel: time stamps are no finer on most file systems before Linux 6.13.
const TICK: Duration = Duration::from_millis(20);

/// The status of a file, directory or link, as `stat(2)` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) file_type: FileType,
    /// In bytes.
    pub(super) size: u64,
    /// Permission bits, `st_mode & 0o7777`.
    pub(super) mode: u32,
    pub(super) mtime: Mtime,
    /// Seconds and nanoseconds of the last change of the inode.
    pub(super) ctime: (i64, u64),
    pub(super) identity: Identity,
    /// Number of names.
    pub(super) links: u64,
    /// User id.
    pub(super) owner: u32,
    /// Group id.
    pub(super) group: u32,
    /// Device number of a device.
    pub(super) device: DeviceNumber,
}

/// Device and inode number: equal for all names of a file or directory, and unique among existing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl From<&std::fs::Metadata> for Identity {
    fn from(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { device: found.dev(), inode: found.ino() }
    }
}

impl From<Stat> for Status {
    fn from(stat: Stat) -> Self {
        Self {
            file_type: FileType::from_raw_mode(stat.st_mode),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & PERMISSIONS,
            mtime: Mtime { seconds: stat.st_mtime, nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) },
            ctime: (stat.st_ctime, stat.st_ctime_nsec),
            identity: Identity { device: stat.st_dev, inode: stat.st_ino },
            links: stat.st_nlink,
            owner: stat.st_uid,
            group: stat.st_gid,
            device: DeviceNumber { major: major(stat.st_rdev), minor: minor(stat.st_rdev) },
        }
    }
}

impl Status {
    /// Whether the modification time is `mtime`, at the resolution of the file system.
    pub(super) fn has_time(&self, mtime: Mtime) -> bool {
        /// Timestamp resolutions in nanoseconds: most file systems, NTFS, some network file systems, one second.
        const STEPS: [u32; 4] = [1, 100, 1000, 1_000_000_000];
        let kept = |step| mtime.nanoseconds / step * step == self.mtime.nanoseconds;
        mtime.seconds == self.mtime.seconds && STEPS.into_iter().any(kept)
    }

    /// Whether the modification time is `mtime`, or differs by no more than these seconds.
    pub(super) fn has_time_within(&self, mtime: Mtime, window: u32) -> bool {
        self.has_time(mtime) || (window > 0 && self.mtime.seconds.abs_diff(mtime.seconds) <= u64::from(window))
    }

    /// Whether it was modified after `mtime`. With a window, as for rsync, it counts as newer only if it is newer by
    /// more than the window.
    pub(super) fn is_newer(&self, mtime: Mtime, window: u32) -> bool {
        match window {
            0 => self.mtime > mtime,
            window => mtime.seconds.saturating_sub(self.mtime.seconds) < i64::from(window),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.file_type == FileType::RegularFile
    }

    pub(super) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    pub(super) fn is_symlink(&self) -> bool {
        self.file_type == FileType::Symlink
    }

    /// Whether it is a socket, FIFO or device.
    pub(super) fn is_special(&self) -> bool {
        !matches!(self.file_type, FileType::RegularFile | FileType::Directory | FileType::Symlink)
    }

    /// Returns the kind of special file.
    pub(super) fn special(&self) -> Option<Special> {
        match self.file_type {
            FileType::Fifo => Some(Special::Pipe),
            FileType::Socket => Some(Special::Socket),
            FileType::CharacterDevice => Some(Special::CharacterDevice(self.device)),
            FileType::BlockDevice => Some(Special::BlockDevice(self.device)),
            _ => None,
        }
    }

    /// Returns how long to wait until every write changes the change time: a write within the same tick of the kernel's
    /// clock may not.
    pub(super) fn unsettled_for(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = (u64::try_from(self.ctime.0).ok()?, u32::try_from(self.ctime.1).ok()?);
        let (now, changed) = (runtime::system_time(), UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        // If the change time is far ahead, the file system has another clock.
        let since = now
            .duration_since(changed)
            .or_else(|ahead| if ahead.duration() < TICK { Ok(Duration::ZERO) } else { Err(ahead) });
        TICK.checked_sub(since.ok()?).filter(|rest| !rest.is_zero())
    }

    /// Whether the inode was changed after another one, by the clock of their file system.
    pub(super) fn changed_after(&self, other: &Self) -> bool {
        self.ctime > other.ctime
    }

    /// Distinguishes one content of a file from another: FNV-1a over inode number and change time, which no user can
    /// set. The device is excluded: on some file systems its number changes with every reboot.
    pub(super) fn version(&self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let fields = [self.identity.inode, self.ctime.0.cast_unsigned(), self.ctime.1];
        let bytes = fields.into_iter().flat_map(u64::to_be_bytes);
        bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    }
}

/// Returns the birth time of a name in nanoseconds since 1970: together with the inode number it distinguishes the file
/// from later ones with the same number. Zero if the file system does not report it; the change time cannot replace it,
/// because it moves with every name made inside.
#[cfg(target_os = "linux")]
pub(super) fn birth(directory: impl AsFd, name: impl rustix::path::Arg) -> u64 {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let Ok(found) = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME) else { return 0 };
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
        return 0;
    }
    let seconds = found.stx_btime.tv_sec.cast_unsigned();
    seconds.wrapping_mul(1_000_000_000).wrapping_add(found.stx_btime.tv_nsec.into())
}

/// Unknown on this platform.
#[cfg(not(target_os = "linux"))]
pub(super) fn birth(_: impl AsFd, _: impl rustix::path::Arg) -> u64 {
    0
}

/// Returns `mode` with the set-id bits of `found`. A directory may have inherited the latter from its parent.
pub(super) fn with_set_id(mode: u32, found: u32) -> u32 {
    mode & !SET_ID | found & SET_ID
}

/// Sets the given mode and time of an open file or directory. Succeeds if the file system has no modes or times (FAT,
/// some network ones).
///
/// # Errors
/// I/O errors, also if the file belongs to another user.
pub(super) fn set_metadata(file: impl AsFd, mode: Option<u32>, mtime: Option<Mtime>) -> io::Result<()> {
    let file = file.as_fd();
    mode.map_or(Ok(()), |mode| tolerate(fchmod(file, mode_of(mode)), file, || fstat(file)))?;
    mtime.map_or(Ok(()), |mtime| tolerate(futimens(file, &timestamps(mtime)), file, || fstat(file)))
}

/// Ignores that a file system does not support an attribute. `look` returns the status of the object, which is on the
/// file system of `on`: if that has owners, a lack of permission for another user's object is an error.
pub(super) fn tolerate(
    result: rustix::io::Result<()>,
    on: BorrowedFd<'_>,
    look: impl FnOnce() -> rustix::io::Result<Stat>,
) -> io::Result<()> {
    let is_ours = || look().is_ok_and(|found| found.st_uid == geteuid().as_raw());
    match result {
        Err(Errno::PERM) if !has_no_owners(on) && !is_ours() => Err(Errno::PERM.into()),
        result => tolerate_own(result),
    }
}

/// As [`tolerate`], for an object of this program in a directory where no other user can replace it.
pub(super) fn tolerate_own(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if !is_unsupported(error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether the file system of an open file gives all its files the same owner.
#[cfg(target_os = "linux")]
fn has_no_owners(on: BorrowedFd<'_>) -> bool {
    /// FAT, exFAT, NTFS, CIFS and SMB2, from `linux/magic.h` and the file systems' sources.
    const TYPES: [u32; 5] = [0x4d44, 0x2011_bab0, 0x7366_746e, 0xff53_4d42, 0xfe53_4d42];
    rustix::fs::fstatfs(on)
        .is_ok_and(|found| TYPES.iter().any(|number| i128::from(found.f_type) == i128::from(*number)))
}

/// Unknown on this platform.
#[cfg(not(target_os = "linux"))]
fn has_no_owners(_: BorrowedFd<'_>) -> bool {
    false
}

/// Whether an error means that a file system does not support an attribute.
pub(super) fn is_unsupported(error: Errno) -> bool {
    [Errno::PERM, Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

/// Whether a path is, or is a symbolic link to, a device, FIFO or socket.
pub fn leads_to_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Permission bits of `st_mode`; bits beyond are dropped.
pub(super) fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & PERMISSIONS) as rustix::fs::RawMode)
}

/// Returns both times of a file; the last access is set to the last modification.
pub(super) fn timestamps(mtime: Mtime) -> Timestamps {
    let time = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_time_settles_after_a_tick() {
        let dir = tempfile::tempdir().unwrap();
        let mut status = Status::from(fstat(std::fs::File::open(dir.path()).unwrap()).unwrap());
        let since = UNIX_EPOCH.elapsed().unwrap();
        for (seconds, settled) in [(-100, true), (-1, true), (1000, true)] {
            status.ctime = (i64::try_from(since.as_secs()).unwrap() + seconds, 0);
            assert_eq!(status.unsettled_for().is_none(), settled, "{seconds}");
        }
        status.ctime = (i64::try_from(since.as_secs()).unwrap(), u64::from(since.subsec_nanos()));
        let unsettled = status.unsettled_for();
        // This process may have waited meanwhile.
        assert!(unsettled.is_none_or(|rest| rest <= TICK), "{unsettled:?}");
    }

    #[test]
    fn mtime_compared_at_file_system_resolution() {
        let stat = rustix::fs::stat("/").unwrap();
        let at = |nanoseconds| Mtime { seconds: 5, nanoseconds };
        let found = |nanoseconds| Status { mtime: at(nanoseconds), ..Status::from(stat) };
        assert!(found(123_456_789).has_time(at(123_456_789)));
        assert!(found(123_456_700).has_time(at(123_456_789)));
        assert!(found(123_456_000).has_time(at(123_456_789)));
        assert!(found(0).has_time(at(123_456_789)));
        assert!(!found(123_456_788).has_time(at(123_456_789)));
        assert!(!found(123_456_789).has_time(at(123_456_700)));
        assert!(!found(123_456_789).has_time(at(0)));
        assert!(!found(0).has_time(Mtime { seconds: 6, nanoseconds: 0 }));
    }
}
