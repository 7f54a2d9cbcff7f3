//! What the system says of a file, as far as a sender looks at it.

use rustix::fs::{FileType, Stat};

use super::entry::Mtime;

/// What stands under a name, and in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) file_type: FileType,
    /// Permission bits, `st_mode & 0o7777`.
    pub(super) mode: u32,
    /// In bytes.
    pub(super) size: u64,
    pub(super) mtime: Mtime,
    /// See [`Kind::File`](super::Kind::File).
    pub(super) version: u64,
    pub(super) identity: Identity,
    /// Names of the file.
    pub(super) links: u64,
    /// User id.
    pub(super) owner: u32,
}

/// Device and inode number: the same for all names of a file or folder, and for nothing else that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Device number.
    pub(super) fn device(self) -> u64 {
        self.device
    }
}

impl From<Stat> for Seen {
    fn from(stat: Stat) -> Self {
        Self {
            file_type: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: Mtime { seconds: stat.st_mtime, nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) },
            version: version(stat.st_ino, stat.st_ctime, stat.st_ctime_nsec),
            identity: Identity { device: stat.st_dev, inode: stat.st_ino },
            links: stat.st_nlink,
            owner: stat.st_uid,
        }
    }
}

/// What tells one content of a file from another: FNV-1a over inode number and change time, which nobody can set. The device is not in
/// it: some file systems have another after each reboot.
fn version(inode: u64, seconds: i64, nanoseconds: u64) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let fields = [inode, seconds.cast_unsigned(), nanoseconds];
    let bytes = fields.into_iter().flat_map(u64::to_be_bytes);
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
