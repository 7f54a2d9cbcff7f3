//! Reports about single names: what the receiver does with them, or cannot do, and what the sender removes.

use serde::{Deserialize, Serialize};

use super::entry::shortened;

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

/// What happens to a name, with its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum NoticeKind {
    /// It is new.
    Create = 1,
    /// It replaces something else.
    Replace = 2,
    /// Its bytes are right, its mode or time is not.
    Attributes = 3,
    /// The sender does not have it.
    Delete = 4,
    /// It exists and is left alone.
    Kept = 5,
    /// Of a sender: it is stored at the receiver, and removed from the source.
    SourceRemoved = 6,
    /// Permission is missing.
    Permission = 16,
    /// The file system does not support such links.
    NoLinks = 17,
    /// The name is too long for the file system, or contains characters that it does not accept.
    BadName = 18,
    /// A folder that is not empty is in the way.
    FolderInTheWay = 19,
    /// Any other refusal by the receiver's system.
    Other = 20,
    /// It is a hard link to a file that did not arrive, or that is not part of the transfer.
    NoFirstName = 21,
    /// A pipe, socket or device is in the way.
    SpecialInTheWay = 22,
    /// It has the name of a staging folder.
    Reserved = 23,
    /// Concerns the whole target: nothing was deleted, since the sender could not read everything that it should send.
    NotDeleted = 24,
    /// It exists already and must not be replaced.
    Exists = 25,
    /// The symbolic link points out of the copied tree.
    UnsafeLink = 26,
    /// Nothing beneath this directory is deleted, because the sender has nothing in it: its disk may not be mounted.
    EmptySource = 27,
    /// Of the whole target: more would be deleted than is permitted.
    DeleteLimit = 28,
    /// The receiver's file system treats it as equal to another name of the transfer.
    Folded = 29,
    /// Owner, group or extended attributes could not be set as they are at the sender; everything else is right.
    AttributesLost = 30,
    /// Of the whole target: more is wanted than its disk has room for. Holes need none, so that it may fit.
    LowSpace = 31,
    /// Of a sender: it was to be removed from the source, and is not what was sent any more.
    SourceChanged = 32,
    /// Of a sender: it was to be removed from the source, and the system refused that.
    SourceRefused = 33,
    /// Of a sender: it was to be removed from the source, and is what stands at the target.
    SourceIsTarget = 34,
    /// There can be no backup of what stands there, which is therefore not replaced or deleted.
    NoBackup = 35,
    /// Of a path at the receiver: a transfer that was interrupted has left its staging folder there, or this one could
    /// not remove its own.
    Abandoned = 36,
    /// The name is longer than the file system permits.
    NameTooLong = 37,
    /// The name contains characters that the file system does not take.
    BadCharacters = 38,
    /// Its file has as many names, or its directory as many directories, as the file system permits.
    TooManyLinks = 39,
    /// The directory that it belongs in is not there: it was refused, or was removed meanwhile.
    NoDirectory = 40,
    /// What has the name is in use, as a mount point is.
    Busy = 41,
    /// Something else got its name during the transfer.
    Exchanged = 42,
    /// It is there, but its mode or time could not be set.
    MetadataLost = 43,
    /// The file system has no pipes, sockets or devices.
    NoSpecials = 44,
}

impl NoticeKind {
    /// Returns the kind with this number on the wire.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Create,
            Self::Replace,
            Self::Attributes,
            Self::Delete,
            Self::Kept,
            Self::Permission,
            Self::NoLinks,
            Self::BadName,
            Self::FolderInTheWay,
            Self::Other,
            Self::NoFirstName,
            Self::SpecialInTheWay,
            Self::Reserved,
            Self::NotDeleted,
            Self::Exists,
            Self::UnsafeLink,
            Self::EmptySource,
            Self::DeleteLimit,
            Self::Folded,
            Self::AttributesLost,
            Self::LowSpace,
            Self::SourceRemoved,
            Self::SourceChanged,
            Self::SourceRefused,
            Self::SourceIsTarget,
            Self::NoBackup,
            Self::Abandoned,
            Self::NameTooLong,
            Self::BadCharacters,
            Self::TooManyLinks,
            Self::NoDirectory,
            Self::Busy,
            Self::Exchanged,
            Self::MetadataLost,
            Self::NoSpecials,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == code)
    }

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
            Self::LowSpace | Self::Abandoned => return None,
            Self::EmptySource => Self::NotDeleted,
            Self::Exists
            | Self::UnsafeLink
            | Self::DeleteLimit
            | Self::Folded
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
        matches!(self, Self::SourceRemoved | Self::SourceChanged | Self::SourceRefused | Self::SourceIsTarget)
    }

    /// Whether the transfer is partial because of it.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        // An unsafe link is left out on purpose.
        self as u8 >= Self::Permission as u8 && !matches!(self, Self::UnsafeLink | Self::LowSpace | Self::Abandoned)
    }
}

impl std::fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Attributes => "change attributes of",
            Self::Delete => "delete",
            Self::Kept => "kept",
            Self::Permission => "no permission at the receiver",
            Self::NoLinks => "the receiver's file system has no such links",
            Self::BadName => "the receiver's file system does not take this name",
            Self::FolderInTheWay => "a folder that is not empty is in the way",
            Self::Other => "the receiver's system refuses it",
            Self::NoFirstName => "its first name did not come",
            Self::SpecialInTheWay => "something that is no file stands there",
            Self::Reserved => "it has the name of an unfinished transfer's folder",
            Self::NotDeleted => "nothing is deleted, for not all of the source could be read",
            Self::Exists => "exists already and is not replaced",
            Self::UnsafeLink => "is a link that points out of the copied tree",
            Self::EmptySource => "nothing is deleted here, because the source is empty",
            Self::DeleteLimit => "more would be deleted than is permitted; the rest is kept",
            Self::Folded => "the receiver's file system takes it for another name of this transfer",
            Self::AttributesLost => "owner, group, ACLs or extended attributes could not be set at the receiver",
            Self::SourceRemoved => "remove from the source",
            Self::SourceChanged => "was copied, has changed at the source since, and stays there",
            Self::SourceRefused => "was copied, and could not be removed from the source",
            Self::SourceIsTarget => "source and target are the same: not removed",
            Self::NoBackup => "what stands there is kept, since it cannot get the name of its backup",
            Self::NameTooLong => "the name is too long for the receiver's file system",
            Self::BadCharacters => "the receiver's file system does not take the characters of this name",
            Self::TooManyLinks => {
                "there are as many names of it, or directories beside it, as the receiver's file system permits"
            }
            Self::NoDirectory => "the directory that it belongs in is not there",
            Self::Busy => "what has this name at the receiver is in use, as a mount point is",
            Self::Exchanged => "something else got its name at the receiver meanwhile",
            Self::MetadataLost => "is there, but the receiver's system refuses its mode or time",
            Self::NoSpecials => "the receiver's file system has no pipes, sockets or devices",
            Self::Abandoned => "a staging directory that stays",
            Self::LowSpace => "more is coming than there is room for at the target, unless files have holes",
        })
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
