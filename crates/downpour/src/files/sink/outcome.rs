//! What a transfer became.

use std::path::PathBuf;

use super::super::entry::{SkipReason, VoidReason};
use super::super::notice::NoticeKind;

/// Most names that are listed; the rest is counted.
const MAX_LISTED: usize = 1000;

/// What a transfer became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
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
    /// As the sender named it; show it through [`display_name`](crate::files::display_name).
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

impl Outcome {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_listed_and_counted_however_much_else_is_left_out() {
        let mut outcome = Outcome::default();
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
