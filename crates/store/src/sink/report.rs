//! The outcome of a transfer.

use std::collections::HashSet;
use std::sync::Mutex;

use request::base64;
use serde::{Deserialize, Serialize};

use super::super::staged_id::path_hash;
use super::super::staging::StagingLeft;
use crate::lock::lock;
use crate::messages::{Entry, EntryKind, Notice, NoticeKind, SkipReason, VoidReason};

/// Name of the target itself in notices.
pub(crate) const TOP: &[u8] = b".";

/// Maximum number of notices waiting to be taken.
const MAX_NOTICES: usize = 65_536;

/// Maximum number of names listed; the rest is only counted.
const MAX_LISTED: usize = 1000;

/// The outcome of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveOutcome {
    /// Regular files that are in place as they were sent, including hard links.
    pub files: u64,
    /// Bytes in them; a file with several hard links counts once.
    pub bytes: u64,
    /// Files among `files` that were in place before.
    pub unchanged: u64,
    /// Bytes among `bytes` that were present before, in whole or partial files.
    pub present: u64,
    /// Unverified bytes kept from an earlier run ([`ReceiveRequest::trust_staging`](crate::ReceiveRequest)).
    pub unchecked: u64,
    /// Bytes kept from an earlier run that had changed since, and were received again.
    pub altered: u64,
    /// Directories.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Existing names that were kept ([`Existing::Skip`](crate::Existing::Skip)).
    pub kept: u64,
    /// Names deleted because the sender does not have them.
    pub deleted: u64,
    /// Deletion was requested but not carried out, because the sender could not read everything it should send.
    pub delete_left_out: bool,
    /// Names that should be in place and are not, for any reason.
    pub failed_count: u64,
    /// Those among them that had vanished when the sender reached them.
    pub vanished_count: u64,
    /// Sockets, FIFOs and devices that the sender skipped.
    pub special_count: u64,
    /// Symbolic links that the sender skipped on request.
    pub links_left_out: u64,
    /// Symbolic links that were skipped because they point out of the copied tree
    /// ([`ReceiveRequest::safe_links`](crate::ReceiveRequest)).
    pub unsafe_links: u64,
    /// The staging directory, if it could not be removed.
    pub staging_left: Option<StagingLeft>,
    /// The first thousand names that failed.
    pub listed: Vec<Failed>,
    /// The first thousand special files.
    pub special: Vec<Failed>,
}

/// A name missing at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The sender's name: any bytes, to be escaped before display.
    #[serde(with = "base64::bytes")]
    pub path: Vec<u8>,
    /// The reason.
    pub reason: FailReason,
}

/// The reason why a name is not in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum FailReason {
    /// The sender could not read it unchanged.
    #[error("{0}")]
    Voided(VoidReason),
    /// The sender skipped it.
    #[error("{0}")]
    Skipped(SkipReason),
    /// The receiver cannot create it.
    #[error("{0}")]
    Refused(NoticeKind),
}

impl FailReason {
    /// Whether it vanished after the sender had seen it.
    #[must_use]
    pub const fn has_vanished(self) -> bool {
        matches!(self, Self::Voided(VoidReason::Vanished) | Self::Skipped(SkipReason::Vanished))
    }
}

impl ReceiveOutcome {
    /// Whether a name that should be in place is missing.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.failed_count > 0
    }

    /// Counts a missing name, and lists it while there is room.
    pub(super) fn add(&mut self, path: &[u8], reason: FailReason) {
        let list = match reason {
            FailReason::Skipped(SkipReason::Link) => {
                self.links_left_out += 1;
                return;
            }
            FailReason::Skipped(skip) if !skip.is_failure() => {
                self.special_count += 1;
                &mut self.special
            }
            FailReason::Refused(kind) if !kind.is_failure() => {
                self.unsafe_links += 1;
                return;
            }
            _ => {
                self.failed_count += 1;
                self.vanished_count += u64::from(reason.has_vanished());
                &mut self.listed
            }
        };
        if list.len() < MAX_LISTED {
            list.push(Failed { path: path.to_vec(), reason });
        }
    }
}

/// Collects the outcome during the transfer, and the notices for the sender.
#[derive(Debug, Default)]
pub(crate) struct ReceiveLog {
    outcome: Mutex<ReceiveOutcome>,
    notices: Mutex<Vec<Notice>>,
    /// Hashes of the sender's names that are in place without all of their attributes.
    lossy: Mutex<HashSet<u64>>,
}

impl ReceiveLog {
    /// Updates the counters.
    pub(crate) fn update(&self, update: impl FnOnce(&mut ReceiveOutcome)) {
        update(&mut lock(&self.outcome));
    }

    /// Returns the outcome so far.
    pub(crate) fn outcome(&self) -> ReceiveOutcome {
        let mut outcome = lock(&self.outcome).clone();
        // Files that failed later were counted as present too.
        outcome.present = outcome.present.min(outcome.bytes);
        outcome
    }

    /// Returns the number of regular files that are in place so far.
    pub(crate) fn files(&self) -> u64 {
        lock(&self.outcome).files
    }

    /// Counts a name that is, or would be, deleted.
    pub(crate) fn deleted(&self, path: &[u8]) {
        self.update(|outcome| outcome.deleted += 1);
        self.notice(NoticeKind::Delete, path);
    }

    /// Counts an entry that is, or would be, in place.
    pub(crate) fn count(&self, entry: &Entry, unchanged: bool) {
        self.update(|outcome| match entry.kind {
            EntryKind::File { .. } | EntryKind::HardLink { .. } | EntryKind::Special(_) => {
                outcome.files += 1;
                outcome.bytes += entry.size();
                if unchanged {
                    outcome.unchanged += 1;
                    outcome.present += entry.size();
                }
            }
            EntryKind::Directory => outcome.directories += 1,
            EntryKind::Symlink { .. } => outcome.symlinks += 1,
        });
    }

    /// Counts and lists a missing name, as the sender calls it.
    pub(crate) fn fail(&self, path: &[u8], reason: FailReason) {
        self.update(|outcome| outcome.add(path, reason));
    }

    /// Takes back the failure of a file that is sent again.
    pub(crate) fn forgive(&self, path: &[u8]) {
        self.update(|outcome| {
            outcome.failed_count -= 1;
            outcome.listed.retain(|failed| failed.path != path);
        });
    }

    /// Counts a name that cannot be created as it was sent, and notifies the sender.
    pub(crate) fn refused(&self, sent: &[u8], kind: NoticeKind) {
        self.fail(sent, FailReason::Refused(kind));
        if kind == NoticeKind::AttributesLost {
            lock(&self.lossy).insert(path_hash(sent));
        }
        self.notice(kind, sent);
    }

    /// Whether the sender's name `sent` is in place without all of its attributes.
    pub(super) fn is_lossy(&self, sent: &[u8]) -> bool {
        lock(&self.lossy).contains(&path_hash(sent))
    }

    /// Counts a kept name of the target.
    pub(crate) fn kept(&self, path: &[u8]) {
        self.update(|outcome| outcome.kept += 1);
        self.notice(NoticeKind::Kept, path);
    }

    /// Adds a notice for the sender, while there is room.
    pub(crate) fn notice(&self, kind: NoticeKind, path: &[u8]) {
        let mut notices = lock(&self.notices);
        if notices.len() < MAX_NOTICES {
            notices.push(Notice::new(kind, path));
        }
    }

    pub(crate) fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.notices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_listed_despite_skipped_special_files() {
        let mut outcome = ReceiveOutcome::default();
        let count = MAX_LISTED as u64 + 5;
        for _ in 0..count {
            outcome.add(b"pipe", FailReason::Skipped(SkipReason::SpecialFile));
            outcome.add(b"link", FailReason::Skipped(SkipReason::Link));
        }
        assert!(!outcome.is_partial());
        for _ in 0..count {
            outcome.add(b"gone", FailReason::Voided(VoidReason::Vanished));
            outcome.add(b"closed", FailReason::Skipped(SkipReason::Unreadable));
        }
        assert_eq!((outcome.special_count, outcome.links_left_out), (count, count));
        assert_eq!((outcome.failed_count, outcome.vanished_count), (2 * count, count));
        assert_eq!((outcome.listed.len(), outcome.special.len()), (MAX_LISTED, MAX_LISTED));
        assert!(outcome.listed.iter().all(|failed| failed.path != b"pipe"));
    }
}
