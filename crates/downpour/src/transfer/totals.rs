//! The counters of one side of a transfer.

use std::path::PathBuf;

use super::events::{Events, TransferEvent};
use super::summary::{ByteCounts, Failures, NameCounts};
use crate::files::{FailReason, Failed, Notice};
use crate::messages::NoticeKind;

/// Progress of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct SideProgress {
    /// Bytes transferred.
    pub(super) bytes_done: u64,
    /// Bytes that were present before.
    pub(super) bytes_present: u64,
    pub(super) bytes_known: u64,
    pub(super) total_is_final: bool,
    /// Bytes that have arrived in blocks which are not done.
    pub(super) bytes_underway: u64,
    pub(super) files_done: u64,
    pub(super) files_known: u64,
    /// The file that is being read or written.
    pub(super) current: Option<Vec<u8>>,
}

/// Results of a side at the end.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) into: Option<PathBuf>,
    pub(super) names: NameCounts,
    pub(super) bytes: ByteCounts,
    /// Names that were not transferred.
    pub(super) failures: Failures,
}

impl Totals {
    /// Counts a change of a name at the receiver, or of its source, and reports it to the local user.
    pub(super) fn notice(&mut self, notice: Notice, events: &Events) {
        if notice.kind.is_failure() {
            self.failures.add(&notice.path, FailReason::Refused(notice.kind));
        } else if notice.kind == NoticeKind::UnsafeLink {
            let reason = FailReason::Refused(notice.kind);
            events.emit(TransferEvent::Skipped(Failed { path: notice.path, reason }));
        } else {
            self.names.deleted += u64::from(notice.kind == NoticeKind::Delete);
            self.names.removed += u64::from(notice.kind == NoticeKind::SourceRemoved);
            events.emit(TransferEvent::Notice { kind: notice.kind, path: notice.path });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::Transfer;

    #[test]
    fn totals_count_and_report_notices() {
        let (events, mut transfer) = Transfer::new();
        let mut totals = Totals::default();
        for kind in [NoticeKind::Exists, NoticeKind::UnsafeLink, NoticeKind::Delete, NoticeKind::SourceRemoved] {
            totals.notice(Notice::new(kind, b"name"), &events);
        }
        drop(events);
        assert_eq!((totals.failures.count, totals.names.deleted, totals.names.removed), (1, 1, 1));
        let mut reported = Vec::new();
        while let Some(event) = transfer.next_blocking() {
            reported.push(match event {
                TransferEvent::Skipped(_) => None,
                TransferEvent::Notice { kind, .. } => Some(kind),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(reported, [None, Some(NoticeKind::Delete), Some(NoticeKind::SourceRemoved)]);
    }
}
