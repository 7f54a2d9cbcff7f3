//! The description of one name of a transfer in a manifest.

use request::MAX_PATH;

use super::extra::Extra;
use super::numbered::numbered;

/// Maximum number of entries in a batch (`docs/design/flow-control.md`).
pub const MAX_BATCH_ENTRIES: usize = 65_536;
/// Maximum total length of paths, link targets and extended attributes in a batch, in bytes. A scanner closes a batch
/// that reaches it, which bounds what a receiver keeps for an open batch whatever the names are.
pub const MAX_BATCH_NAMES: usize = 8 << 20;

/// One name of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Components joined by `/`, beginning with the name of the item, or with a name in it if it is sent without its
    /// own. Any bytes but NUL.
    pub path: Vec<u8>,
    /// The kind of the name.
    pub kind: EntryKind,
    /// Permission bits, `st_mode & 0o7777`.
    pub mode: u32,
    /// Time of last modification.
    pub mtime: Mtime,
    /// Owner, group and extended attributes, if requested.
    pub extra: Extra,
}

/// The kind of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file; its bytes are part of the batch.
    File {
        /// Length in bytes.
        size: u64,
        /// Differs, except by chance, whenever the content may differ: derived from the sender's inode number and
        /// change time, which no program can set. Only compared, and only by a receiver that holds part of the file.
        version: u64,
        /// BLAKE3 of the content, if requested.
        hash: Option<[u8; 32]>,
    },
    /// A directory; its contents follow as entries of their own.
    Directory,
    /// A symbolic link, sent as a link.
    Symlink {
        /// The link's target, never resolved.
        target: Vec<u8>,
    },
    /// Another name of a file that occurs earlier in the transfer.
    HardLink {
        /// Path of that entry.
        target: Vec<u8>,
    },
    /// A FIFO, socket or device, if requested.
    Special(Special),
}

/// A FIFO, socket or device: only its kind and number are sent; its content is never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice(DeviceNumber),
    /// A block device.
    BlockDevice(DeviceNumber),
}

/// The number of a device, by which the kernel finds its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device among those of the driver.
    pub minor: u32,
}

/// Mode, mtime and further attributes of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits, `st_mode & 0o7777`.
    pub mode: u32,
    /// Time of last modification.
    pub mtime: Mtime,
    /// As in [`Entry::extra`].
    pub extra: Extra,
}

/// A file time: seconds and nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mtime {
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, below 10^9.
    pub nanoseconds: u32,
}

impl Entry {
    /// Returns the number of bytes that this entry adds to the batch's object.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size, .. } => size,
            EntryKind::Directory | EntryKind::Symlink { .. } | EntryKind::HardLink { .. } | EntryKind::Special(_) => 0,
        }
    }

    /// Returns the length of the entry's names and extended attributes in bytes, counted against [`MAX_BATCH_NAMES`].
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.path.len()
            + self.extra.size()
            + match &self.kind {
                EntryKind::Symlink { target } | EntryKind::HardLink { target } => target.len(),
                EntryKind::File { .. } | EntryKind::Directory | EntryKind::Special(_) => 0,
            }
    }
}

/// Identifies a source: equal for the same items on the same host. A receiver uses it to find the partial data of an
/// interrupted transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(pub [u8; 16]);

/// A name that the sender skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// As in [`Entry::path`].
    pub path: Vec<u8>,
    /// The reason.
    pub reason: SkipReason,
}

impl Skipped {
    /// Creates a message about a name of any length; a name too long for a message is shortened to its ends.
    #[must_use]
    pub fn new(path: Vec<u8>, reason: SkipReason) -> Self {
        Self { path: shortened(path), reason }
    }
}

/// Returns the path, or the components at the ends of one that is longer than [`MAX_PATH`] with `...` in between.
pub(super) fn shortened(path: Vec<u8>) -> Vec<u8> {
    /// Enough of each end to recognise the path by.
    const END: usize = 200;
    if path.len() <= MAX_PATH {
        return path;
    }
    let head = &path[..path[..END].iter().rposition(|byte| *byte == b'/').unwrap_or(END)];
    let tail = &path[path.len() - END..];
    let tail = &tail[tail.iter().position(|byte| *byte == b'/').map_or(0, |slash| slash + 1)..];
    [head, b"/.../", tail].concat()
}

/// Whether a name is skipped on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkipClass {
    OnPurpose,
    /// The transfer is partial because of it.
    Failure,
}

numbered! {
/// The reason why a name was skipped, with its number on the wire.
pub enum SkipReason: SkipClass {
    /// The file cannot be read, for lack of permission or because of a failure.
    Unreadable = 1, Failure, "cannot be read";
    /// The name was listed and disappeared a moment later.
    Vanished = 2, Failure, "vanished";
    /// A socket, FIFO or device: only sent on request, and not a failure.
    SpecialFile = 3, OnPurpose, "is a socket, FIFO or device";
    /// Its path is longer than [`MAX_PATH`] or a component longer than [`MAX_COMPONENT`](request::MAX_COMPONENT).
    NameTooLong = 4, Failure, "has a name that is too long";
    /// The name is in the user's list, but does not exist.
    Absent = 5, Failure, "does not exist";
    /// A link to a directory that contains it, or one of a cycle.
    Loop = 6, Failure, "is a symbolic link that forms a loop";
    /// A dangling link, when links are followed.
    Dangling = 7, Failure, "is a dangling symbolic link";
    /// A symbolic link, where those are skipped: not a failure. Sent so that the receiver deletes nothing under its
    /// name.
    Link = 8, OnPurpose, "is a symbolic link";
    /// A file that reports size 0 but has content, which is generated when it is read, as in `/proc`.
    Unsized = 9, Failure, "has content but reports size 0 (as in /proc)";
    /// A directory on another file system, whose contents are skipped: not a failure. Sent so that the receiver deletes
    /// nothing beneath it.
    OtherFileSystem = 10, OnPurpose, "is a mount point: contents skipped";
    /// Its extended attributes are larger than [`MAX_XATTRS`](super::MAX_XATTRS). Everything else of it is sent.
    LargeXattrs = 11, Failure, "has more than 128 KiB of extended attributes: copied without them";
    /// A listed directory, whose contents are only sent on request: not a failure.
    Contents = 12, OnPurpose, "is a directory: contents skipped";
    /// A file that the sender writes about the transfer: not a failure. Sent so that the receiver deletes nothing under
    /// its name.
    Output = 13, OnPurpose, "is written by this command: skipped";
}
}

impl SkipReason {
    /// Whether the transfer is partial because of it.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self.class(), SkipClass::Failure)
    }

    /// Whether every release of this protocol version knows it. A receiver that does not ends the transfer.
    #[must_use]
    pub const fn is_known_to_all(self) -> bool {
        self as u8 <= Self::LargeXattrs as u8
    }
}

/// Whether the cause of a voided file passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VoidClass {
    /// The file may be read unchanged at another attempt.
    Passing,
    Lasting,
}

numbered! {
/// The reason why a file was voided, with its number on the wire.
pub enum VoidReason: VoidClass {
    /// Its size grew or its time changed since the scan.
    Changed = 1, Passing, "changed while it was sent";
    /// The file ended before its size at the scan.
    Shrank = 2, Passing, "shrank while it was sent";
    /// The file was deleted or renamed.
    Vanished = 3, Lasting, "was deleted while it was sent";
    /// Opening or reading it failed.
    Unreadable = 4, Lasting, "could not be read";
}
}

impl VoidReason {
    /// Whether the file may be read unchanged at another attempt.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(self.class(), VoidClass::Passing)
    }
}
