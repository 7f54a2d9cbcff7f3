//! Reports about single names: what the receiver does with them, or cannot do, and what the sender removes.

use super::entry::shortened;
use super::numbered::numbered;

/// A name, and what happens to it at the receiver, or to its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happens.
    pub kind: NoticeKind,
    /// For a failure, and for what the sender does, the sender's name; otherwise the path beneath the target.
    pub path: Vec<u8>,
}

impl Notice {
    /// Creates a notice about a name of any length; of one that no message holds, only the ends are named.
    #[must_use]
    pub fn new(kind: NoticeKind, path: &[u8]) -> Self {
        Self { kind, path: shortened(path.to_vec()) }
    }
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// What the receiver does.
    Change,
    /// Nothing to mend.
    Remark,
    /// What makes the transfer partial.
    Failure,
    /// Of a sender: what it does to its source.
    Removal,
    /// Of a sender: a source that it was to remove and leaves, which makes the transfer partial.
    NoRemoval,
}

numbered! {
/// What happens to a name, with its number on the wire.
pub enum NoticeKind: Nature {
    /// It is new.
    Create = 1, Change, "create";
    /// It replaces something else.
    Replace = 2, Change, "replace";
    /// Its bytes are right, its mode or time is not.
    Attributes = 3, Change, "change attributes of";
    /// The sender does not have it.
    Delete = 4, Change, "delete";
    /// It exists and is left alone.
    Kept = 5, Remark, "kept";
    /// Of a sender: it is stored at the receiver, and removed from the source.
    SourceRemoved = 6, Removal, "remove from the source";
    /// Permission is missing.
    Permission = 16, Failure, "no permission at the receiver";
    /// The file system does not support such links.
    NoLinks = 17, Failure, "the receiver's file system has no such links";
    /// The name is too long for the file system, or contains characters that it does not accept.
    BadName = 18, Failure, "the receiver's file system does not take this name";
    /// A directory that is not empty is in the way.
    DirectoryNotEmpty = 19, Failure, "a directory that is not empty is in the way";
    /// Any other refusal by the receiver's system.
    Other = 20, Failure, "the receiver's system refuses it";
    /// It is a hard link to a file that did not arrive, or that is not part of the transfer.
    MissingLinkTarget = 21, Failure, "its first name did not come";
    /// A pipe, socket or device is in the way.
    SpecialInTheWay = 22, Failure, "something that is no file stands there";
    /// It has the name of a staging directory.
    Reserved = 23, Failure, "it has the name of an unfinished transfer's directory";
    /// Concerns the whole target: nothing was deleted, since the sender could not read everything that it should send.
    NotDeleted = 24, Failure, "nothing is deleted, for not all of the source could be read";
    /// It exists already and must not be replaced.
    Exists = 25, Failure, "exists already and is not replaced";
    /// The symbolic link points out of the copied tree.
    UnsafeLink = 26, Remark, "is a link that points out of the copied tree";
    /// Nothing beneath this directory is deleted, because the sender has nothing in it: its disk may not be mounted.
    EmptySource = 27, Failure, "nothing is deleted here, because the source is empty";
    /// Of the whole target: more would be deleted than is permitted.
    DeleteLimit = 28, Failure, "more would be deleted than is permitted; the rest is kept";
    /// The receiver's file system treats it as equal to another name of the transfer.
    NameCollision = 29, Failure, "the receiver's file system takes it for another name of this transfer";
    /// Owner, group or extended attributes could not be set as they are at the sender; everything else is right.
    AttributesLost = 30, Failure, "owner, group, ACLs or extended attributes could not be set at the receiver";
    /// Of the whole target: more is wanted than its disk has room for. Holes need none, so that it may fit.
    LowSpace = 31, Remark, "more is coming than there is room for at the target, unless files have holes";
    /// Of a sender: it was to be removed from the source, and is not what was sent any more.
    SourceChanged = 32, NoRemoval, "was copied, has changed at the source since, and stays there";
    /// Of a sender: it was to be removed from the source, and the system refused that.
    SourceRefused = 33, NoRemoval, "was copied, and could not be removed from the source";
    /// Of a sender: it was to be removed from the source, and is what stands at the target.
    SourceIsTarget = 34, NoRemoval, "source and target are the same: not removed";
    /// There can be no backup of what stands there, which is therefore not replaced or deleted.
    NoBackup = 35, Failure, "what stands there is kept, since it cannot get the name of its backup";
    /// Of a path at the receiver: a transfer that was interrupted has left its staging directory there, or this one
    /// could not remove its own.
    StaleStaging = 36, Remark, "a staging directory that stays";
    /// The name is longer than the file system permits.
    NameTooLong = 37, Failure, "the name is too long for the receiver's file system";
    /// The name contains characters that the file system does not take.
    BadCharacters = 38, Failure, "the receiver's file system does not take the characters of this name";
    /// Its file has as many names, or its directory as many directories, as the file system permits.
    TooManyLinks = 39, Failure, "there are as many names of it, or directories beside it, as the receiver's file system permits";
    /// The directory that it belongs in is not there: it was refused, or was removed meanwhile.
    NoDirectory = 40, Failure, "the directory that it belongs in is not there";
    /// What has the name is in use, as a mount point is.
    Busy = 41, Failure, "what has this name at the receiver is in use, as a mount point is";
    /// Something else got its name during the transfer.
    Exchanged = 42, Failure, "something else got its name at the receiver meanwhile";
    /// It is there, but its mode or time could not be set.
    MetadataLost = 43, Failure, "is there, but the receiver's system refuses its mode or time";
    /// The file system has no pipes, sockets or devices.
    NoSpecials = 44, Failure, "the receiver's file system has no pipes, sockets or devices";
}
}

impl NoticeKind {
    /// Returns the kind that stands for it to a sender that does not know every kind: at a later one it would end the
    /// transfer.
    #[must_use]
    pub const fn known_to_all(self) -> Self {
        match self {
            Self::NameTooLong | Self::BadCharacters => Self::BadName,
            Self::MetadataLost => Self::AttributesLost,
            Self::TooManyLinks | Self::NoDirectory | Self::Busy | Self::Exchanged | Self::NoSpecials => Self::Other,
            known => known,
        }
    }

    /// Returns the kind, if any, that stands for it to a sender that does not understand
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
            // Only senders say these.
            Self::SourceRemoved | Self::SourceChanged | Self::SourceRefused | Self::SourceIsTarget => return None,
            known => known,
        })
    }

    /// Whether a sender says it, of what it was to remove.
    #[must_use]
    pub const fn is_of_sender(self) -> bool {
        match self.nature() {
            Nature::Removal | Nature::NoRemoval => true,
            Nature::Change | Nature::Remark | Nature::Failure => false,
        }
    }

    /// Whether the transfer is partial because of it.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        match self.nature() {
            Nature::Failure | Nature::NoRemoval => true,
            Nature::Change | Nature::Remark | Nature::Removal => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_sender_hears_only_of_kinds_that_it_knows() {
        for kind in (0..=u8::MAX).filter_map(NoticeKind::from_code) {
            let Some(told) = kind.for_older_sender() else { continue };
            assert!(told as u8 <= 24, "{kind:?}");
            assert!(kind.known_to_all() as u8 <= 36 && kind.known_to_all().is_failure() == kind.is_failure());
            // None of the older kinds says that something was left out as requested.
            assert!(told.is_failure() == kind.is_failure() || kind == NoticeKind::UnsafeLink, "{kind:?}");
            assert!(kind as u8 > 24 || told == kind, "{kind:?}");
        }
    }
}
