//! What a transfer became.

use std::path::PathBuf;
use std::sync::Mutex;

use super::lock;
use crate::messages::{Entry, Kind, Notice, NoticeKind, SkipReason, VoidReason};

/// Most notices that wait to be taken.
const MAX_NOTICES: usize = 65_536;

/// Most names that are listed; the rest is counted.
const MAX_LISTED: usize = 1000;

/// What a transfer became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveOutcome {
    /// Regular files that stand under their names as they were sent, hard links among them.
    pub files: u64,
    /// Bytes in them; those of a file with several hard links once.
    pub bytes: u64,
    /// Files among `files` that stood there before.
    pub unchanged: u64,
    /// Bytes among `bytes` that were here before, in whole files or in parts of some.
    pub present: u64,
    /// Folders.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Names that were taken and left as they were ([`Existing::Skip`](crate::files::Existing::Skip)).
    pub kept: u64,
    /// Names deleted because the sender does not have them.
    pub deleted: u64,
    /// Nothing was deleted although it was asked for: the sender could not read all it should send.
    pub delete_left_out: bool,
    /// Names that should be there and are not, for any reason.
    pub failed_count: u64,
    /// Those among them that had vanished when the sender came to them.
    pub vanished_count: u64,
    /// Sockets, pipes and devices that the sender left out.
    pub special_count: u64,
    /// Symbolic links that it left out, as its user wanted.
    pub links_left_out: u64,
    /// The staging folder, if the system did not let it be removed: something in it is still in use.
    pub staging_left: Option<PathBuf>,
    /// The first thousand that failed.
    pub listed: Vec<Failed>,
    /// The first thousand that are special.
    pub special: Vec<Failed>,
}

/// A name that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// As the sender named it: any bytes, which a program escapes before it shows them.
    pub path: Vec<u8>,
    /// Why.
    pub reason: FailReason,
}

/// Why a name is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FailReason {
    /// The sender could not read it as it was.
    #[error("{0}")]
    Voided(VoidReason),
    /// The sender left it out.
    #[error("{0}")]
    Skipped(SkipReason),
    /// It cannot be here.
    #[error("{0}")]
    Refused(NoticeKind),
}

impl FailReason {
    /// Whether the sender had seen it before it was gone.
    #[must_use]
    pub const fn has_vanished(self) -> bool {
        matches!(self, Self::Voided(VoidReason::Vanished) | Self::Skipped(SkipReason::Vanished))
    }
}

impl ReceiveOutcome {
    /// Whether something that should be there is not.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.failed_count > 0
    }

    /// Counts a name that is not there, and lists it while there is room.
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

/// Gathers the outcome while the transfer runs, and the notices for the sender.
#[derive(Debug, Default)]
pub(super) struct Report {
    outcome: Mutex<ReceiveOutcome>,
    notices: Mutex<Vec<Notice>>,
}

impl Report {
    /// Changes what is counted.
    pub(super) fn update(&self, update: impl FnOnce(&mut ReceiveOutcome)) {
        update(&mut lock(&self.outcome));
    }

    /// The outcome so far.
    pub(super) fn outcome(&self) -> ReceiveOutcome {
        let mut outcome = lock(&self.outcome).clone();
        // Files that failed later were counted as present too.
        outcome.present = outcome.present.min(outcome.bytes);
        outcome
    }

    /// Counts an entry that is in place, or would be.
    pub(super) fn count(&self, entry: &Entry, unchanged: bool) {
        self.update(|outcome| match entry.kind {
            Kind::File { .. } | Kind::HardLink { .. } => {
                outcome.files += 1;
                outcome.bytes += entry.size();
                if unchanged {
                    outcome.unchanged += 1;
                    outcome.present += entry.size();
                }
            }
            Kind::Directory => outcome.directories += 1,
            Kind::Symlink { .. } => outcome.symlinks += 1,
        });
    }

    /// Counts and lists a name, as the sender calls it, that is not in place.
    pub(super) fn fail(&self, path: &[u8], reason: FailReason) {
        self.update(|outcome| outcome.add(path, reason));
    }

    /// Counts a name of the target that stays as it is.
    pub(super) fn kept(&self, path: &[u8]) {
        self.update(|outcome| outcome.kept += 1);
        self.notice(NoticeKind::Kept, path);
    }

    /// Adds a notice for the sender, while there is room.
    pub(super) fn notice(&self, kind: NoticeKind, path: &[u8]) {
        let mut notices = lock(&self.notices);
        if notices.len() < MAX_NOTICES {
            notices.push(Notice { kind, path: path.to_vec() });
        }
    }

    pub(super) fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.notices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_listed_and_counted_however_much_else_is_left_out() {
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
