//! The announcements of a sender.

use crate::error::Error;
use crate::messages::{ManifestPart, Message, TransferEnd};

/// How much the sender has announced. Scanned precedes the last part of the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extent {
    /// More batches may follow.
    #[default]
    Open,
    /// The batch that is being announced, or the next one, is the last.
    Ending,
    /// Everything has been announced.
    Complete,
}

impl Extent {
    /// The state after `message`.
    fn after(self, message: &Message) -> Self {
        match (self, message) {
            (Self::Open, Message::Scanned) => Self::Ending,
            (Self::Ending, Message::Manifest(part)) if part.last => Self::Complete,
            (_, Message::End(_)) => Self::Complete,
            _ => self,
        }
    }
}

/// Returns whether these messages, the first of a sender, announce everything.
pub(super) fn is_all(messages: &[Message]) -> bool {
    messages.iter().fold(Extent::default(), Extent::after) == Extent::Complete
}

/// The announcements of the sender so far.
#[derive(Debug, Default)]
pub(super) struct Listing {
    extent: Extent,
    /// The batch whose manifest has begun and not ended.
    building: Option<u32>,
    end: Option<TransferEnd>,
}

impl Listing {
    /// Handles a message that is about to be processed.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if it announces more after everything, unless it `is_resent`: the user may have
    /// accepted a complete list.
    pub(super) fn on_message(
        &mut self,
        message: &Message,
        comes_again: impl Fn(&ManifestPart) -> bool,
    ) -> Result<(), Error> {
        if self.extent == Extent::Complete && matches!(message, Message::Manifest(part) if !comes_again(part)) {
            return Err(Error::ProtocolViolation("entries announced after the end of its list".to_owned()));
        }
        self.extent = self.extent.after(message);
        Ok(())
    }

    /// Handles a part of a manifest; `more` parts follow or not.
    pub(super) fn on_part(&mut self, batch: u32, more: bool) {
        self.building = more.then_some(batch);
    }

    /// Returns whether this part begins a manifest.
    pub(super) fn begins(&self, part: &ManifestPart) -> bool {
        self.building != Some(part.batch)
    }

    /// Handles the last message.
    pub(super) const fn on_end(&mut self, end: TransferEnd) {
        self.end = Some(end);
    }

    /// Returns the last message, if it has arrived.
    pub(super) const fn end(&self) -> Option<TransferEnd> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::RootHasher;

    fn part(batch: u32, last: bool, again: bool) -> ManifestPart {
        ManifestPart { batch, last, whole: false, again, length: 0, entries: Vec::new() }
    }

    #[test]
    fn listing_complete_after_scanned_or_end() {
        let manifest = |last| Message::Manifest(part(0, last, false));
        let end =
            Message::End(TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: RootHasher::new().root() });
        assert!(!is_all(&[manifest(true)]) && !is_all(&[Message::Scanned]));
        assert!(!is_all(&[Message::Scanned, manifest(false)]));
        assert!(is_all(&[manifest(false), Message::Scanned, manifest(true)]) && is_all(&[end]));
    }

    #[test]
    fn listing_complete_allows_only_resends() {
        let mut listing = Listing::default();
        let mut announce = |message: Message| listing.on_message(&message, |part| part.again);
        announce(Message::Scanned).unwrap();
        announce(Message::Manifest(part(0, true, false))).unwrap();
        announce(Message::Accepted).unwrap();
        announce(Message::Manifest(part(1, true, true))).unwrap();
        assert!(matches!(announce(Message::Manifest(part(1, true, false))), Err(Error::ProtocolViolation(_))));
    }

    #[test]
    fn a_manifest_begins_with_its_first_part() {
        let mut listing = Listing::default();
        assert!(listing.begins(&part(0, false, false)));
        listing.on_part(0, true);
        assert!(!listing.begins(&part(0, true, false)) && listing.begins(&part(1, true, false)));
        listing.on_part(0, false);
        assert!(listing.begins(&part(1, true, false)));
    }
}
