//! What a manifest says about one name of a transfer.

/// Longest path of an entry and longest target of a symlink, in bytes (Linux `PATH_MAX`).
pub const MAX_PATH: usize = 4096;
/// Longest single name inside a path, in bytes (POSIX `NAME_MAX` of the common file systems).
pub const MAX_COMPONENT: usize = 255;
/// Most entries of one batch (`docs/design/flow-control.md`).
pub const MAX_BATCH_ENTRIES: usize = 65_536;
/// Most bytes of paths and symlink targets in one batch; a scanner closes a batch that reaches it, so that what a
/// receiver keeps for an open batch is bounded whatever the names are.
pub const MAX_BATCH_NAMES: usize = 8 << 20;

/// One name of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Components joined by `/`, beginning with the name of the item that was sent, or with a name in it if it is sent without its own.
    /// Any bytes but NUL.
    pub path: Vec<u8>,
    /// What stands there.
    pub kind: Kind,
    /// Permission bits, `st_mode & 0o7777`.
    pub mode: u32,
    /// Time of last modification.
    pub mtime: Mtime,
}

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file; its bytes are part of the batch.
    File {
        /// Length in bytes.
        size: u64,
        /// Differs, but for chance, whenever the content may differ: from the sender's inode number and change time, which nobody can
        /// set. Only compared, and only by a receiver that holds a part of the file.
        version: u64,
        /// BLAKE3 of the content, where the sender was asked for it.
        hash: Option<[u8; 32]>,
    },
    /// A folder; its content follows as entries of its own.
    Directory,
    /// A symbolic link, sent as a link.
    Symlink {
        /// What the link says, never resolved.
        target: Vec<u8>,
    },
    /// Another name of a file that stands earlier in the transfer.
    HardLink {
        /// Path of that entry.
        target: Vec<u8>,
    },
}

/// Mode and time of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits, `st_mode & 0o7777`.
    pub mode: u32,
    /// Time of last modification.
    pub mtime: Mtime,
}

/// A file time: seconds and nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mtime {
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, below 10^9.
    pub nanoseconds: u32,
}

impl Entry {
    /// Bytes this entry adds to the batch's object.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size, .. } => size,
            Kind::Directory | Kind::Symlink { .. } | Kind::HardLink { .. } => 0,
        }
    }

    /// Bytes of names this entry holds, counted against [`MAX_BATCH_NAMES`].
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.path.len()
            + match &self.kind {
                Kind::Symlink { target } | Kind::HardLink { target } => target.len(),
                Kind::File { .. } | Kind::Directory => 0,
            }
    }
}

/// Names what is sent, from where: the same for the same sources on the same machine. A receiver finds by it what an earlier, broken
/// transfer has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(pub [u8; 16]);

/// A name that the sender met and left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// As in [`Entry::path`].
    pub path: Vec<u8>,
    /// Why.
    pub reason: SkipReason,
}

/// Why a name was left out. The number is the one on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SkipReason {
    /// It may not be read.
    Unreadable = 1,
    /// It was listed and gone a moment later.
    Vanished = 2,
    /// A socket, pipe or device: never sent, and no failure.
    SpecialFile = 3,
    /// Its path is longer than [`MAX_PATH`] or a component longer than [`MAX_COMPONENT`].
    NameTooLong = 4,
    /// The user's list names it, and it is not there.
    Absent = 5,
    /// A link that leads to a folder that it is in, or round in a circle.
    Loop = 6,
    /// A link that leads nowhere, where links are followed.
    Dangling = 7,
    /// A symbolic link, where those are left out: no failure. Said so that the receiver deletes nothing under its name.
    Link = 8,
    /// A file whose size is told as nothing and which has content all the same: made when it is read, as in `/proc`.
    Unsized = 9,
}

impl SkipReason {
    /// The reason with this number on the wire.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Unreadable,
            Self::Vanished,
            Self::SpecialFile,
            Self::NameTooLong,
            Self::Absent,
            Self::Loop,
            Self::Dangling,
            Self::Link,
            Self::Unsized,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == code)
    }

    /// Whether the transfer is partial for it.
    #[must_use]
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::SpecialFile | Self::Link)
    }
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "may not be read",
            Self::Vanished => "vanished",
            Self::SpecialFile => "is a socket, pipe or device",
            Self::NameTooLong => "has too long a name",
            Self::Absent => "is not there",
            Self::Loop => "is a link that leads back to where it is",
            Self::Dangling => "is a link that leads nowhere",
            Self::Link => "is a link",
            Self::Unsized => "has content but no size, as files in /proc: write it to a file first",
        })
    }
}

/// Why a file was voided. The number is the one on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum VoidReason {
    /// Its size grew or its time changed since the scan.
    Changed = 1,
    /// It ended before the size it had at the scan.
    Shrank = 2,
    /// It is gone.
    Vanished = 3,
    /// Opening or reading it failed.
    Unreadable = 4,
}

impl VoidReason {
    /// The reason with this number on the wire.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Changed, Self::Shrank, Self::Vanished, Self::Unreadable].into_iter().find(|r| *r as u8 == code)
    }
}

impl std::fmt::Display for VoidReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed while it was sent",
            Self::Shrank => "shrank while it was sent",
            Self::Vanished => "vanished while it was sent",
            Self::Unreadable => "could not be read",
        })
    }
}
