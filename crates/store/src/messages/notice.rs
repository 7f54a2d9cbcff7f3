//! Reports about single names: the receiver's actions and failures, and the sender's removals.

use super::entry::shortened;
use super::numbered::numbered;

/// A name, and the event at the receiver, or at its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event.
    pub kind: NoticeKind,
    /// For a failure, and for actions of the sender, the sender's name; otherwise the path beneath the target.
    pub path: Vec<u8>,
}

impl Notice {
    /// Creates a notice about a name of any length; a name too long for a message is shortened to its ends.
    #[must_use]
    pub fn new(kind: NoticeKind, path: &[u8]) -> Self {
        Self { kind, path: shortened(path.to_vec()) }
    }
}

/// The category of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeClass {
    /// An action of the receiver.
    Change,
    /// A remark that needs no action.
    Remark,
    /// A failure, which makes the transfer partial.
    Failure,
    /// Of a sender: an action on its source.
    Removal,
    /// Of a sender: a source that was not removed, which makes the transfer partial.
    NoRemoval,
}

numbered! {
/// An event of a name, with its number on the wire.
pub enum NoticeKind: NoticeClass {
    /// The name is new.
    Create = 1, Change, "create";
    /// The name replaces something else.
    Replace = 2, Change, "replace";
    /// Its content is right, its mode or time differs.
    Attributes = 3, Change, "change attributes of";
    /// The sender does not have it.
    Delete = 4, Change, "delete";
    /// The name exists and is left alone.
    Kept = 5, Remark, "kept";
    /// Of a sender: it is stored at the receiver, and removed from the source.
    SourceRemoved = 6, Removal, "remove from the source";
    /// Permission is missing.
    Permission = 16, Failure, "permission denied at the receiver";
    /// The file system does not support links of this kind.
    NoLinks = 17, Failure, "the receiver cannot create this link: unsupported by its file system";
    /// The name is too long for the file system, or contains characters that it does not accept.
    BadName = 18, Failure, "invalid name for the receiver's file system";
    /// A non-empty directory is in the way.
    DirectoryNotEmpty = 19, Failure, "a non-empty directory is in the way";
    /// Any other failure of the receiver's system.
    Other = 20, Failure, "cannot be created at the receiver";
    /// The name is a hard link to a file that did not arrive, or that is not part of the transfer.
    MissingLinkTarget = 21, Failure, "hard link target was not received";
    /// A FIFO, socket or device is in the way.
    SpecialInTheWay = 22, Failure, "a FIFO, socket or device is in the way";
    /// The name is reserved for staging directories.
    Reserved = 23, Failure, "name reserved for staging directories";
    /// Concerns the whole target: nothing was deleted, since the sender could not read its whole source.
    NotDeleted = 24, Failure, "nothing deleted: the source could not be read completely";
    /// The name exists and must not be replaced.
    Exists = 25, Failure, "exists and was not replaced";
    /// The symbolic link points out of the copied tree.
    UnsafeLink = 26, Remark, "is a symbolic link that points out of the copied tree";
    /// Nothing beneath this directory is deleted, because the sender has nothing in it: its disk may not be mounted.
    EmptySource = 27, Failure, "nothing deleted: the source is empty";
    /// Of the whole target: more names would be deleted than the request permits.
    DeleteLimit = 28, Failure, "limit of deletions reached: remaining files kept";
    /// The receiver's file system treats it as equal to another name of the transfer.
    NameCollision = 29, Failure, "name collides with another one on the receiver's file system";
    /// Owner, group or extended attributes could not be set as they are at the sender; everything else was.
    AttributesLost = 30, Failure, "owner, group, ACLs or extended attributes could not be set at the receiver";
    /// Of the whole target: its disk has less space than the transfer needs. Holes need none, so that it may fit.
    LowSpace = 31, Remark, "not enough free space at the destination, unless the files are sparse";
    /// Of a sender: it was to be removed from the source, and has changed since it was sent.
    SourceChanged = 32, NoRemoval, "copied but not removed: source changed meanwhile";
    /// Of a sender: it was to be removed from the source, and the system refused that.
    SourceRefused = 33, NoRemoval, "copied, but could not be removed from the source";
    /// Of a sender: it was to be removed from the source, which is the file at the target.
    SourceIsTarget = 34, NoRemoval, "not removed: source and destination are the same file";
    /// An existing file cannot be backed up, and is therefore not replaced or deleted.
    NoBackup = 35, Failure, "kept: its backup cannot be created";
    /// Of a path at the receiver: the staging directory of an interrupted transfer, or the own one that could not be
    /// removed.
    StaleStaging = 36, Remark, "staging directory of an interrupted transfer";
    /// The name is longer than the file system permits.
    NameTooLong = 37, Failure, "the name is too long for the receiver's file system";
    /// The name contains characters that the file system does not support.
    BadCharacters = 38, Failure, "the name has characters that the receiver's file system does not support";
    /// Its file has as many names, or its directory as many directories, as the file system permits.
    TooManyLinks = 39, Failure, "too many hard links of the file, or subdirectories, for the receiver's file system";
    /// Its parent directory does not exist: it was refused, or was removed meanwhile.
    NoDirectory = 40, Failure, "its directory does not exist at the receiver";
    /// The existing name is in use, as a mount point is.
    Busy = 41, Failure, "the existing file or directory is in use at the receiver (such as a mount point)";
    /// Something else got its name during the transfer.
    Exchanged = 42, Failure, "replaced by another program during the transfer";
    /// The name was received, but its mode or time could not be set.
    MetadataLost = 43, Failure, "copied, but its mode or time could not be set at the receiver";
    /// The file system does not support FIFOs, sockets or devices.
    NoSpecials = 44, Failure, "the receiver's file system does not support FIFOs, sockets or devices";
}
}

impl NoticeKind {
    /// Returns the kind that replaces it for a sender that does not know every kind: such a sender ends the transfer at
    /// an unknown one.
    #[must_use]
    pub const fn known_to_all(self) -> Self {
        match self {
            Self::NameTooLong | Self::BadCharacters => Self::BadName,
            Self::MetadataLost => Self::AttributesLost,
            Self::TooManyLinks | Self::NoDirectory | Self::Busy | Self::Exchanged | Self::NoSpecials => Self::Other,
            known => known,
        }
    }

    /// Returns the kind, if any, that replaces it for a sender that does not understand
    /// [`Message::Untouched`](super::Message::Untouched) either.
    #[must_use]
    pub const fn for_older_sender(self) -> Option<Self> {
        Some(match self.known_to_all() {
            Self::LowSpace | Self::StaleStaging => return None,
            Self::EmptySource => Self::NotDeleted,
            Self::Exists
            | Self::UnsafeLink
            | Self::DeleteLimit
            | Self::NameCollision
            | Self::AttributesLost
            | Self::NoBackup => Self::Other,
            // Only senders report these.
            Self::SourceRemoved | Self::SourceChanged | Self::SourceRefused | Self::SourceIsTarget => return None,
            known => known,
        })
    }

    /// Whether a sender reports it, about a source to be removed.
    #[must_use]
    pub const fn is_of_sender(self) -> bool {
        match self.class() {
            NoticeClass::Removal | NoticeClass::NoRemoval => true,
            NoticeClass::Change | NoticeClass::Remark | NoticeClass::Failure => false,
        }
    }

    /// Whether the transfer is partial because of it.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        match self.class() {
            NoticeClass::Failure | NoticeClass::NoRemoval => true,
            NoticeClass::Change | NoticeClass::Remark | NoticeClass::Removal => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_sender_gets_only_known_notice_kinds() {
        for kind in (0..=u8::MAX).filter_map(NoticeKind::from_code) {
            let Some(known) = kind.for_older_sender() else { continue };
            assert!(known as u8 <= 24, "{kind:?}");
            assert!(kind.known_to_all() as u8 <= 36 && kind.known_to_all().is_failure() == kind.is_failure());
            // No older kind has the meaning of a skipped name.
            assert!(known.is_failure() == kind.is_failure() || kind == NoticeKind::UnsafeLink, "{kind:?}");
            assert!(kind as u8 > 24 || known == kind, "{kind:?}");
        }
    }
}
