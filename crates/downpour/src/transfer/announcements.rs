//! The messages of a sender on the control stream, and their root.

use crate::error::Error;
use crate::files::{Attributes, Batch, IdName, SourceId};
use crate::messages::{Message, RootHasher, TransferEnd};

/// The messages of a sender. They are collected, so that a burst of digests becomes one write.
pub(super) struct Announcements {
    hasher: RootHasher,
    unwritten: Vec<u8>,
    /// Contents of the last message.
    totals: TransferEnd,
    has_begun: bool,
    has_ended: bool,
}

impl Announcements {
    /// Creates the messages of a transfer that has not begun.
    pub(super) fn new() -> Self {
        let hasher = RootHasher::new();
        let totals = TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: hasher.root() };
        Self { hasher, unwritten: Vec::new(), totals, has_begun: false, has_ended: false }
    }

    /// Announces the source and the directory whose contents are sent, the first time.
    pub(super) fn begin(&mut self, id: SourceId, top: &mut (Option<Attributes>, Vec<IdName>)) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        self.add(&Message::Begin(id))?;
        let (top, id_names) = std::mem::take(top);
        top.map_or(Ok(()), |top| self.add(&Message::Top(top)))?;
        self.add_id_names(id_names)
    }

    /// Adds a message that determines the contents of the target, and hashes it into the root.
    pub(super) fn add(&mut self, message: &Message) -> Result<(), Error> {
        let start = self.unwritten.len();
        message.encode(&mut self.unwritten)?;
        self.hasher.add(&self.unwritten[start..]);
        Ok(())
    }

    /// Adds a message that does not determine the contents of the target.
    pub(super) fn add_unhashed(&mut self, message: &Message) -> Result<(), Error> {
        Ok(message.encode(&mut self.unwritten)?)
    }

    /// Announces names of users and groups.
    pub(super) fn add_id_names(&mut self, names: Vec<IdName>) -> Result<(), Error> {
        names.into_iter().try_for_each(|name| self.add(&Message::IdName(name)))
    }

    /// Counts a batch.
    pub(super) const fn count(&mut self, batch: &Batch) {
        self.totals.batches += 1;
        self.totals.entries += batch.entries.len() as u64;
        self.totals.bytes += batch.length;
    }

    /// Counts a skipped name.
    pub(super) const fn count_skipped(&mut self) {
        self.totals.skipped += 1;
    }

    /// Returns the number of batches.
    pub(super) const fn batches(&self) -> u32 {
        self.totals.batches
    }

    /// Announces the end; returns the contents of the last message.
    pub(super) fn end(&mut self) -> Result<TransferEnd, Error> {
        self.has_ended = true;
        self.totals.root = self.hasher.root();
        self.add_unhashed(&Message::End(self.totals))?;
        Ok(self.totals)
    }

    /// Returns whether the end was announced.
    pub(super) const fn have_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of unwritten bytes.
    pub(super) const fn len(&self) -> usize {
        self.unwritten.len()
    }

    /// Takes the unwritten bytes, if there are any.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        (!self.unwritten.is_empty()).then(|| std::mem::take(&mut self.unwritten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MessageReader;

    #[test]
    fn root_covers_messages_that_determine_target() {
        let mut announcements = Announcements::new();
        let mut top = (None, Vec::new());
        let id = SourceId([7; 16]);
        for _ in 0..2 {
            announcements.begin(id, &mut top).unwrap();
        }
        let begin = announcements.take().unwrap();
        announcements.add_unhashed(&Message::Scanned).unwrap();
        announcements.count_skipped();
        assert!(!announcements.have_ended() && announcements.len() > 0);
        announcements.end().unwrap();
        let (bytes, mut reader, mut hasher) = (announcements.take().unwrap(), MessageReader::new(), RootHasher::new());
        hasher.add(&begin);
        let mut rest = &bytes[..];
        assert!(matches!(reader.next(&mut rest), Ok(Some(Message::Scanned))));
        let Ok(Some(Message::End(end))) = reader.next(&mut rest) else { panic!("no end") };
        assert_eq!((end.root, end.skipped, end.batches), (hasher.root(), 1, 0));
        assert!(announcements.have_ended() && announcements.take().is_none());
    }
}
