//! Names that the scan inspects, and the reasons for skipping them.

use std::io;

use rustix::io::Errno;

use crate::messages::SkipReason;

/// A name to inspect.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Path of the entry.
    pub(super) sent: Vec<u8>,
    pub(super) provenance: Provenance,
}

/// The reason why a name is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provenance {
    /// The walk found it.
    Met,
    /// The user's list names it.
    Listed,
    /// It is a parent directory of a listed name.
    Way,
}

/// Joins the path of a directory and a name in it.
pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    if !directory.is_empty() {
        path.extend_from_slice(directory);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Returns the reason for skipping a name with this error.
pub(super) fn reason_of(provenance: Provenance, error: &io::Error) -> SkipReason {
    match skip_reason(error) {
        SkipReason::Vanished if provenance != Provenance::Met => SkipReason::Absent,
        _ if provenance != Provenance::Met && error.kind() == io::ErrorKind::NotADirectory => SkipReason::Absent,
        reason => reason,
    }
}

/// Returns the reason for skipping a name with this error.
pub(super) fn skip_reason(error: &io::Error) -> SkipReason {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => SkipReason::Vanished,
        Some(Errno::NAMETOOLONG) => SkipReason::NameTooLong,
        _ if error.kind() == io::ErrorKind::NotFound => SkipReason::Vanished,
        _ => SkipReason::Unreadable,
    }
}
