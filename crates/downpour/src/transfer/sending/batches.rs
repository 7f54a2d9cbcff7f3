//! The batches of a sender: the one whose manifest is being written, and those that the receiver does not have yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{Choice, SentBatch};
use crate::error::Error;
use crate::files::Batch;
use crate::messages::{ListChunks, MAX_OPEN_BATCHES, ManifestPart, WantedPart, manifest_parts};

/// Batches whose bytes are in transit at once: while the last blocks of one are sent, the first of the next are read.
const MAX_OPEN: usize = 2;

/// Batches begun, including those whose manifest is with the receiver: while it lists the wanted ranges of one, the
/// next one's manifest is sent.
const MAX_BEGUN: usize = MAX_OPEN_BATCHES / 2;

/// A batch whose manifest is being written, and the first entry of the next part.
#[derive(Debug)]
struct PendingManifest {
    batch: Arc<Batch>,
    next_entry: usize,
    choice: Choice,
    /// Whether its files were sent before.
    again: bool,
}

/// Batches in the order of their numbers.
#[derive(Debug)]
pub(super) struct Batches {
    /// Whether none of their bytes are sent.
    dry_run: bool,
    opening: Option<PendingManifest>,
    begun: BTreeMap<u64, SentBatch>,
    /// Regular files of batches that the receiver has, and the bytes of their objects.
    files_over: u64,
    bytes_over: u64,
    /// Bytes that need not be sent.
    present: u64,
}

impl Batches {
    /// Creates the batches of a transfer that has not begun.
    pub(super) const fn new(dry_run: bool) -> Self {
        Self { dry_run, opening: None, begun: BTreeMap::new(), files_over: 0, bytes_over: 0, present: 0 }
    }

    /// Returns whether the receiver has all batches.
    pub(super) fn is_empty(&self) -> bool {
        self.opening.is_none() && self.begun.is_empty()
    }

    /// Returns whether all that have begun are announced and read to the end.
    pub(super) fn are_digested(&self) -> bool {
        self.opening.is_none() && self.begun.values().all(SentBatch::is_digested)
    }

    /// Returns whether another one may begin.
    pub(super) fn has_room(&self) -> bool {
        self.begun.len() < MAX_BEGUN
    }

    /// Begins to write a manifest, when no other is being written.
    pub(super) fn begin(&mut self, batch: Arc<Batch>, choice: Choice, again: bool) {
        self.opening = Some(PendingManifest { batch, next_entry: 0, choice, again });
    }

    /// Returns the next part of the manifest that is being written, if any is, and its batch.
    ///
    /// # Errors
    /// [`Error::Internal`] if it has no part.
    pub(super) fn next_part(&mut self) -> Result<Option<(ManifestPart, Arc<Batch>)>, Error> {
        let Some(PendingManifest { batch, next_entry, choice, again }) = self.opening.take() else { return Ok(None) };
        let part = manifest_parts(batch.number, batch.length, &batch.entries[next_entry..]).next();
        let whole = choice == Choice::Listed;
        let Some(part) = part.map(|part| ManifestPart { whole, again, ..part }) else {
            return Err(Error::Internal("a manifest without parts"));
        };
        if part.last {
            self.begun.insert(batch.number.into(), SentBatch::new(Arc::clone(&batch), choice, again));
        } else {
            let next_entry = next_entry + part.entries.len();
            self.opening = Some(PendingManifest { batch: Arc::clone(&batch), next_entry, choice, again });
        }
        Ok(Some((part, batch)))
    }

    /// Checks that the receiver can have stored a batch. It has if the batch was taken out.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if it cannot.
    pub(super) fn on_stored(&self, number: u32) -> Result<(), Error> {
        if self.begun.get(&number.into()).is_some_and(|begun| !begun.may_be_stored(self.dry_run)) {
            return Err(Error::ProtocolViolation(format!("batch {number} reported as stored before it was sent")));
        }
        Ok(())
    }

    /// Returns the batch of an event.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is none.
    pub(super) fn of_event(&mut self, tag: u64) -> Result<&mut SentBatch, Error> {
        self.begun.get_mut(&tag).ok_or(Error::Internal("an event of a batch that is not open"))
    }

    /// Takes wanted ranges, which may be too early: before the requested chunks.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`].
    pub(super) fn on_wants(&mut self, wants: &WantedPart, is_early: bool) -> Result<(), Error> {
        let unknown = || Error::ProtocolViolation(format!("wanted ranges of unknown batch {}", wants.batch));
        self.present += self.begun.get_mut(&wants.batch.into()).ok_or_else(unknown)?.on_wants(wants, is_early)?;
        Ok(())
    }

    /// Returns the batch whose chunks the receiver requests.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if it may not.
    pub(super) fn on_list(&mut self, asked: &ListChunks) -> Result<Arc<Batch>, Error> {
        let unknown = || Error::ProtocolViolation(format!("chunks requested of unknown batch {}", asked.batch));
        let begun = self.begun.get_mut(&asked.batch.into()).ok_or_else(unknown)?;
        begun.on_list(asked, self.dry_run)?;
        Ok(Arc::clone(begun.batch()))
    }

    /// Returns the batch whose object may be opened next, if there is room: they are opened in order, once the wanted
    /// ranges are known.
    pub(super) fn next_to_open(&mut self) -> Option<&mut SentBatch> {
        let is_full = self.begun.values().filter(|begun| begun.is_crossing()).count() >= MAX_OPEN;
        let next = self.begun.values_mut().find(|begun| !begun.is_open())?;
        (next.is_ready() && !is_full).then_some(next)
    }

    /// Takes out the first batch, if the receiver has it and all its digests are written.
    pub(super) fn take_done(&mut self) -> Option<SentBatch> {
        let first = self.begun.first_entry()?;
        let begun = if first.get().is_done() { first.remove() } else { return None };
        self.files_over += begun.batch().regular_files();
        self.bytes_over += if self.dry_run { 0 } else { begun.length() };
        Some(begun)
    }

    /// Takes out all remaining batches.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = SentBatch> + use<> {
        std::mem::take(&mut self.begun).into_values()
    }

    /// Returns the bytes that need not be sent.
    pub(super) const fn present(&self) -> u64 {
        self.present
    }

    /// Returns the regular files that the receiver has, given the arrived bytes of the objects. They are sent one after
    /// the other.
    pub(super) fn files_done(&self, arrived: u64) -> u64 {
        let mut left = arrived.saturating_sub(self.bytes_over);
        let within = self.begun.values().filter_map(SentBatch::object).map(|source| {
            let of_this = left.min(source.length());
            left -= of_this;
            source.files_within(of_this)
        });
        self.files_over + within.sum::<u64>()
    }

    /// Returns the name of the file that is being read.
    pub(super) fn current(&self) -> Option<Vec<u8>> {
        let sources = self.begun.values().filter_map(SentBatch::object);
        sources.filter_map(|source| source.current()).next_back().map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{BatchSource, Scanner, Wanted};
    use crate::transfer::sending::batch::tests::{scanned, wants};

    fn open(begun: &mut SentBatch, scanner: &Scanner) {
        let source = BatchSource::new(Arc::clone(begun.batch()), scanner.roots(), Wanted::all());
        begun.open(Arc::new(source), false);
    }

    /// Creates batches of the same files, two bytes of the first of which are wanted.
    fn begun(batch: &Arc<Batch>, count: u32, dry_run: bool) -> Batches {
        let mut batches = Batches::new(dry_run);
        for number in 0..count {
            batches.begin(Arc::new(Batch { number, ..Batch::clone(batch) }), Choice::Receiver, false);
            assert!(!batches.is_empty() && !batches.are_digested());
            let (part, _) = batches.next_part().unwrap().unwrap();
            assert!(part.last && !part.whole && batches.next_part().unwrap().is_none());
        }
        batches
    }

    #[test]
    fn batches_are_opened_in_order_and_two_at_once() {
        let (_base, scanner, batch) = scanned();
        let mut batches = begun(&batch, 3, false);
        assert!(batches.next_to_open().is_none(), "the wanted ranges are unknown");
        batches.on_wants(&wants(1, true, Some(0..2)), false).unwrap();
        assert!(batches.next_to_open().is_none(), "another is before it");
        for number in [0, 2] {
            batches.on_wants(&wants(number, true, Some(0..2)), false).unwrap();
        }
        assert_eq!(batches.present(), 3 * 4);
        for number in [0, 1] {
            let next = batches.next_to_open().unwrap();
            assert_eq!(next.batch().number, number);
            open(next, &scanner);
        }
        assert!(batches.next_to_open().is_none(), "two are open");
        batches.of_event(0).unwrap().on_sent().unwrap();
        assert_eq!(batches.next_to_open().unwrap().batch().number, 2);
        assert!(batches.take_done().is_none(), "its digests are missing");
        assert!(batches.on_stored(0).is_err());
        batches.of_event(0).unwrap().on_digest(2).unwrap();
        batches.on_stored(0).unwrap();
        assert_eq!(batches.take_done().map(|done| done.batch().number), Some(0));
        assert_eq!((batches.files_done(2), batches.on_stored(0).is_ok()), (2, true));
        assert_eq!((batches.take_done().is_none(), batches.take_all().count(), batches.is_empty()), (true, 2, true));
    }

    #[test]
    fn batches_unknown_or_early_wants_refused() {
        let (_base, _, batch) = scanned();
        let mut batches = begun(&batch, 1, false);
        let asked = |batch| ListChunks { batch, entries: vec![0] };
        assert!(batches.on_wants(&wants(1, true, None), false).is_err());
        assert!(batches.on_list(&asked(1)).is_err());
        batches.on_list(&asked(0)).unwrap();
        assert!(batches.on_wants(&wants(0, true, None), true).is_err());
        assert!(begun(&batch, 1, true).on_list(&asked(0)).is_err(), "a dry run");
    }

    #[test]
    fn batches_begun_at_most_half_of_receiver_limit() {
        let (_base, _, batch) = scanned();
        let most = u32::try_from(MAX_BEGUN).unwrap();
        assert!(begun(&batch, most - 1, false).has_room() && !begun(&batch, most, false).has_room());
    }
}
