//! A batch from the last part of its manifest until the receiver has it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Error;
use crate::files::{Batch, EntryKind, InvalidatedFile, TreeObject, Wanted};
use crate::messages::{ListChunks, WantedPart};

/// Maximum number of ranges that a receiver may want of a batch, beyond two for each entry: for long files that it has
/// in scattered parts.
const MAX_PIECES: usize = 65_536;

/// Who decides which of a batch's bytes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The receiver, which lists the wanted ranges.
    Receiver,
    /// All bytes are sent, though the receiver lists the wanted ranges.
    Listed,
    /// All bytes are sent.
    None,
}

/// A batch whose manifest is written.
#[derive(Debug)]
pub(super) struct SentBatch {
    batch: Arc<Batch>,
    /// The ranges of its object.
    wanted: Wanted,
    /// The ranges that the receiver wants, if everything is sent anyway, and whether the list is complete.
    needed: Option<(Wanted, bool)>,
    /// Number of wanted ranges received.
    pieces: usize,
    /// Whether the receiver has requested chunks.
    is_listed: bool,
    /// Whether its files were sent before.
    again: bool,
    /// Entries whose files changed while they were read.
    voided: BTreeSet<u32>,
    phase: BatchState,
}

/// State of a batch.
#[derive(Debug)]
enum BatchState {
    /// The receiver has not yet listed all wanted ranges.
    AwaitingWanted,
    /// The wanted ranges are known, and other batches go first.
    Ready,
    /// Its object is being sent.
    Open {
        object: Arc<dyn TreeObject>,
        /// Bytes whose digests are written.
        digested: u64,
        /// Whether the receiver has every byte.
        is_sent: bool,
    },
}

impl SentBatch {
    /// Creates a batch whose object is not open.
    pub(super) fn new(batch: Arc<Batch>, choice: Choice, again: bool) -> Self {
        let (wanted, phase) = match choice {
            Choice::Receiver => (Wanted::none(), BatchState::AwaitingWanted),
            Choice::Listed | Choice::None => (Wanted::all(), BatchState::Ready),
        };
        let needed = (choice == Choice::Listed).then(|| (Wanted::none(), false));
        Self { batch, wanted, needed, pieces: 0, is_listed: false, again, voided: BTreeSet::new(), phase }
    }

    /// Returns the batch.
    pub(super) const fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    /// Returns the ranges of its object.
    pub(super) const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns whether its files were sent before.
    pub(super) const fn comes_again(&self) -> bool {
        self.again
    }

    /// Returns the length of its object in bytes.
    pub(super) fn length(&self) -> u64 {
        self.wanted.length(self.batch.length)
    }

    /// Takes wanted ranges, which are too early before the requested chunks. Returns the bytes that need not be sent,
    /// once that is known.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if the ranges were not requested, overlap or are too many.
    pub(super) fn on_wants(&mut self, wants: &WantedPart, is_early: bool) -> Result<u64, Error> {
        let broken = |what: &str| Error::ProtocolViolation(format!("{what} of batch {}", wants.batch));
        let is_due = match &self.needed {
            Some((_, is_all)) => !is_all,
            None => matches!(self.phase, BatchState::AwaitingWanted),
        };
        if !is_due {
            return Err(broken("wanted ranges listed twice"));
        }
        if is_early {
            return Err(broken("wanted ranges listed before the requested chunks"));
        }
        self.pieces += wants.ranges.len();
        if self.pieces > 2 * self.batch.entries.len() + MAX_PIECES {
            return Err(broken("too many wanted ranges"));
        }
        for range in &wants.ranges {
            let wanted = self.needed.as_mut().map_or(&mut self.wanted, |(needed, _)| needed);
            let taken = wanted.push_received(range.clone(), self.batch.length);
            taken.map_err(|_| broken("invalid wanted ranges"))?;
        }
        if let Some((_, is_all)) = &mut self.needed {
            *is_all = wants.last;
        } else if wants.last {
            self.phase = BatchState::Ready;
            return Ok(self.batch.length - self.length());
        }
        Ok(0)
    }

    /// Checks that chunks of its files may be listed, which is allowed once.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if it is not allowed.
    pub(super) fn on_list(&mut self, asked: &ListChunks, dry_run: bool) -> Result<(), Error> {
        let broken = |what: &str| Error::ProtocolViolation(format!("chunks requested of {what} {}", asked.batch));
        let was_listed = std::mem::replace(&mut self.is_listed, true);
        if !matches!(self.phase, BatchState::AwaitingWanted) || self.pieces > 0 || was_listed {
            return Err(broken("closed batch"));
        }
        if dry_run {
            return Err(broken("a dry run: batch"));
        }
        let is_file = |entry: &u32| {
            let entry = self.batch.entries.get(*entry as usize);
            entry.is_some_and(|entry| matches!(entry.kind, EntryKind::File { .. }))
        };
        if asked.entries.iter().all(is_file) { Ok(()) } else { Err(broken("entries that are no files, batch")) }
    }

    /// Returns whether it waits only for other batches.
    pub(super) const fn is_ready(&self) -> bool {
        matches!(self.phase, BatchState::Ready)
    }

    /// Returns whether its object is open.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, BatchState::Open { .. })
    }

    /// Opens its object, which is not sent if it is empty.
    pub(super) fn open(&mut self, object: Arc<dyn TreeObject>, is_nothing: bool) {
        let digested = if is_nothing { self.length() } else { 0 };
        self.phase = BatchState::Open { object, digested, is_sent: is_nothing };
    }

    /// Handles the digest of `bytes`; returns the files that their reading has shown to have changed.
    ///
    /// # Errors
    /// [`Error::Internal`] if the object is not open.
    pub(super) fn on_digest(&mut self, bytes: u64) -> Result<Vec<InvalidatedFile>, Error> {
        let BatchState::Open { object, digested, .. } = &mut self.phase else {
            return Err(Error::Internal("a digest of a batch that is not open"));
        };
        *digested += bytes;
        let voided = object.take_voided();
        self.voided.extend(voided.iter().map(|voided| voided.entry));
        Ok(voided)
    }

    /// Handles the arrival of the whole object.
    ///
    /// # Errors
    /// [`Error::Internal`] if the object is not open.
    pub(super) const fn on_sent(&mut self) -> Result<(), Error> {
        match &mut self.phase {
            BatchState::Open { is_sent, .. } => {
                *is_sent = true;
                Ok(())
            }
            BatchState::AwaitingWanted | BatchState::Ready => {
                Err(Error::Internal("a batch was sent that was not open"))
            }
        }
    }

    /// Returns whether bytes of its object have not arrived.
    pub(super) const fn is_crossing(&self) -> bool {
        matches!(self.phase, BatchState::Open { is_sent: false, .. })
    }

    /// Returns its object, once that is open.
    pub(super) fn object(&self) -> Option<&dyn TreeObject> {
        match &self.phase {
            BatchState::Open { object, .. } => Some(&**object),
            BatchState::AwaitingWanted | BatchState::Ready => None,
        }
    }

    /// Returns whether all digests are written.
    pub(super) fn is_digested(&self) -> bool {
        matches!(self.phase, BatchState::Open { digested, .. } if digested == self.length())
    }

    /// Returns whether the whole object has arrived and all digests are written.
    pub(super) fn is_done(&self) -> bool {
        let is_answered = self.needed.as_ref().is_none_or(|(_, is_all)| *is_all);
        is_answered && self.is_open() && !self.is_crossing() && self.is_digested()
    }

    /// Returns whether the receiver can have stored it. The report of that may overtake the acknowledgement of its
    /// bytes.
    pub(super) fn may_be_stored(&self, dry_run: bool) -> bool {
        self.is_digested() || (self.is_ready() && (dry_run || self.length() == 0))
    }

    /// Returns the files of which any part was sent, with their lengths, except changed ones; and the number of files
    /// of which the receiver wanted nothing.
    pub(super) fn files(&self) -> (Vec<(Vec<u8>, u64)>, u64) {
        let (mut files, mut unwanted) = (Vec::new(), 0);
        let mut start = 0;
        let needed = self.needed.as_ref().map_or(&self.wanted, |(needed, _)| needed);
        let mut wanted = needed.ranges(self.batch.length).peekable();
        for (number, entry) in (0..).zip(&self.batch.entries) {
            let EntryKind::File { size, .. } = entry.kind else { continue };
            let end = start + size;
            while wanted.next_if(|range| range.end <= start).is_some() {}
            if wanted.peek().is_none_or(|range| range.start >= end) {
                unwanted += 1;
            } else if !self.voided.contains(&number) {
                files.push((entry.path.clone(), size));
            }
            start = end;
        }
        (files, unwanted)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ops::Range;

    use super::*;
    use crate::files::{BatchSource, Scanner, SourceItem, SourceOptions};

    /// Creates a batch of two files of three bytes and a directory between them, and its scanner.
    pub(in crate::transfer::sending) fn scanned() -> (tempfile::TempDir, Scanner, Arc<Batch>) {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("b")).unwrap();
        for name in ["a", "c"] {
            std::fs::write(base.path().join(name), "123").unwrap();
        }
        let mut scanner = Scanner::new(vec![SourceItem::contents(base.path())], SourceOptions::default()).unwrap();
        let batch = Arc::new(scanner.next().unwrap());
        assert_eq!((batch.length, batch.entries.len()), (6, 3));
        (base, scanner, batch)
    }

    pub(in crate::transfer::sending) fn wants(batch: u32, last: bool, range: Option<Range<u64>>) -> WantedPart {
        WantedPart { batch, last, ranges: range.into_iter().collect() }
    }

    #[test]
    fn batch_wanted_ranges_once_in_order() {
        let (_base, _, batch) = scanned();
        for (choice, left) in [(Choice::Receiver, 5), (Choice::Listed, 0)] {
            let mut sent = SentBatch::new(Arc::clone(&batch), choice, false);
            assert_eq!((sent.is_ready(), sent.length()), (choice == Choice::Listed, if left == 5 { 0 } else { 6 }));
            assert_eq!(sent.on_wants(&wants(0, false, Some(1..2)), false).unwrap(), 0);
            assert!(matches!(sent.on_wants(&wants(0, false, Some(0..1)), false), Err(Error::ProtocolViolation(_))));
            assert!(matches!(sent.on_wants(&wants(0, false, Some(5..7)), false), Err(Error::ProtocolViolation(_))));
            assert_eq!(sent.on_wants(&wants(0, true, None), false).unwrap(), left);
            assert!(matches!(sent.on_wants(&wants(0, true, None), false), Err(Error::ProtocolViolation(_))));
            assert_eq!((sent.is_ready(), sent.length()), (true, 6 - left));
            assert_eq!(sent.files(), (vec![(b"a".to_vec(), 3)], 1));
        }
        let mut sent = SentBatch::new(batch, Choice::None, false);
        assert!(matches!(sent.on_wants(&wants(0, true, None), false), Err(Error::ProtocolViolation(_))));
        assert_eq!(sent.files().0.len(), 2);
    }

    #[test]
    fn batch_done_after_arrival_digests_and_wants() {
        let (_base, scanner, batch) = scanned();
        let mut sent = SentBatch::new(Arc::clone(&batch), Choice::Listed, false);
        assert!(sent.on_digest(1).is_err() && sent.on_sent().is_err() && !sent.may_be_stored(false));
        sent.open(Arc::new(BatchSource::new(batch, scanner.roots(), Wanted::all())), false);
        sent.on_sent().unwrap();
        assert!(!sent.is_done() && !sent.is_crossing());
        sent.on_digest(4).unwrap();
        assert!(!sent.is_digested());
        sent.on_digest(2).unwrap();
        assert!(sent.may_be_stored(false) && !sent.is_done(), "it is not answered");
        sent.on_wants(&wants(0, true, None), false).unwrap();
        assert!(sent.is_done());
    }

    #[test]
    fn batch_chunks_once_of_files_before_wants() {
        let (_base, _, batch) = scanned();
        let asked = |entries: &[u32]| ListChunks { batch: 0, entries: entries.to_vec() };
        let new = |choice| SentBatch::new(Arc::clone(&batch), choice, false);
        let mut sent = new(Choice::Receiver);
        sent.on_list(&asked(&[0, 2]), false).unwrap();
        assert!(sent.on_list(&asked(&[0]), false).is_err());
        assert!(new(Choice::Receiver).on_list(&asked(&[1]), false).is_err(), "a directory");
        assert!(new(Choice::Receiver).on_list(&asked(&[3]), false).is_err());
        assert!(new(Choice::Receiver).on_list(&asked(&[0]), true).is_err(), "a dry run");
        assert!(new(Choice::Listed).on_list(&asked(&[0]), false).is_err());
    }
}
