//! The consent of a receiver's user: messages are buffered until there are enough for an offer, and until the answer.

use std::path::PathBuf;

use super::listing::is_all;
use crate::messages::{MAX_OPEN_BATCHES, ManifestPart, Message};
use crate::transfer::events::Offer;

/// Bytes of messages after which the user is asked even if the first batch's manifest is not complete: well below the
/// amount that the driver buffers before it stops reading.
const ENOUGH_TO_ASK: usize = 256 << 10;

/// Number of batches after which the user is asked at the latest: a sender may then be waiting for the wanted ranges.
const BATCHES_TO_ASK: usize = MAX_OPEN_BATCHES / 2;

/// Maximum number of names shown at the top of an offer.
const MAX_NAMES: usize = 100;

/// State of the user's consent.
#[derive(Debug)]
pub(super) enum Consent {
    /// Messages are buffered until there are enough for an offer.
    Gathering(Vec<Message>),
    /// The user was asked.
    Asked(Vec<Message>),
    Given,
}

/// The result for a message.
#[derive(Debug)]
pub(super) enum Deferral {
    /// It waits for the consent.
    Yes,
    /// It waits too, and the messages are now enough for an offer.
    Enough,
    /// Consent was given: it is processed.
    No(Message),
}

impl Consent {
    /// Creates a consent that was not requested.
    pub(super) const fn new() -> Self {
        Self::Gathering(Vec::new())
    }

    /// Takes a message, with which `bytes` are buffered. The target `is_decided` or may still depend on later messages:
    /// a batch without entries does not decide it.
    pub(super) fn take(&mut self, message: Message, is_decided: impl FnOnce() -> bool, bytes: usize) -> Deferral {
        match self {
            Self::Given => Deferral::No(message),
            Self::Asked(held) => {
                held.push(message);
                Deferral::Yes
            }
            Self::Gathering(held) => {
                let is_enough = match &message {
                    Message::Manifest(part) => part.last && (is_decided() || ends(held) + 1 >= BATCHES_TO_ASK),
                    Message::End(_) => true,
                    _ => false,
                };
                held.push(message);
                if is_enough || bytes >= ENOUGH_TO_ASK { Deferral::Enough } else { Deferral::Yes }
            }
        }
    }

    /// Returns the buffered parts of manifests.
    pub(super) fn parts(&self) -> impl Iterator<Item = &ManifestPart> + Clone {
        let held = match self {
            Self::Gathering(held) | Self::Asked(held) => &held[..],
            Self::Given => &[],
        };
        held.iter().filter_map(|message| if let Message::Manifest(part) = message { Some(part) } else { None })
    }

    /// Requests consent, the first time: returns the offer, to be written to `into` within `limits`.
    pub(super) fn ask(&mut self, limits: (Option<u64>, Option<u64>), into: PathBuf) -> Option<Offer> {
        let Self::Gathering(held) = self else { return None };
        let held = std::mem::take(held);
        let (names, is_all) = (Vec::new(), is_all(&held));
        *self = Self::Asked(held);
        let mut offer = Offer { names, entries: 0, bytes: 0, is_all, limits, into };
        for part in self.parts() {
            offer.entries += part.entries.len() as u64;
            offer.bytes = part.entries.iter().fold(offer.bytes, |bytes, entry| bytes.saturating_add(entry.size()));
            let tops = part.entries.iter().filter(|entry| !entry.path.contains(&b'/'));
            offer.names.extend(tops.map(|entry| entry.path.clone()).take(MAX_NAMES - offer.names.len()));
        }
        Some(offer)
    }

    /// Gives consent, if it was requested: returns the buffered messages.
    pub(super) fn give(&mut self) -> Option<Vec<Message>> {
        let Self::Asked(held) = self else { return None };
        let held = std::mem::take(held);
        *self = Self::Given;
        Some(held)
    }

    /// Returns whether consent was given.
    pub(super) const fn is_given(&self) -> bool {
        matches!(self, Self::Given)
    }
}

/// Counts the batches whose manifests end among `messages`.
fn ends(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message, Message::Manifest(part) if part.last)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Entry, EntryKind};

    fn part(last: bool, names: &[&str]) -> Message {
        let kind = EntryKind::File { size: 1 << 63, version: 0, hash: None };
        let entry = |name: &&str| Entry {
            path: name.as_bytes().to_vec(),
            kind: kind.clone(),
            mode: 0o644,
            mtime: Default::default(),
            extra: Default::default(),
        };
        let entries = names.iter().map(entry).collect();
        Message::Manifest(ManifestPart { batch: 0, last, whole: false, again: false, length: 0, entries })
    }

    #[test]
    fn consent_offer_shows_buffered_names_once() {
        let mut consent = Consent::new();
        assert!(consent.give().is_none() && !consent.is_given());
        assert!(matches!(consent.take(part(false, &["a", "a/b"]), || true, 10), Deferral::Yes));
        assert!(matches!(consent.take(Message::Scanned, || true, 10), Deferral::Yes));
        assert!(matches!(consent.take(part(true, &["c"]), || true, 10), Deferral::Enough));
        let offer = consent.ask((Some(1), None), PathBuf::from("into")).unwrap();
        assert_eq!((offer.names, offer.entries, offer.bytes), (vec![b"a".to_vec(), b"c".to_vec()], 3, u64::MAX));
        assert!(offer.is_all && consent.ask((None, None), PathBuf::new()).is_none());
        assert!(matches!(consent.take(Message::Accepted, || true, 10), Deferral::Yes));
        assert_eq!(consent.give().map(|held| held.len()), Some(4));
        assert!(consent.is_given() && consent.give().is_none());
        assert!(matches!(consent.take(Message::Accepted, || true, 10), Deferral::No(Message::Accepted)));
    }

    #[test]
    fn consent_endless_list_offered() {
        let mut consent = Consent::new();
        assert!(matches!(consent.take(part(false, &["a"]), || true, ENOUGH_TO_ASK), Deferral::Enough));
        let mut undecided = Consent::new();
        let taken = (0..BATCHES_TO_ASK).map(|_| undecided.take(part(true, &[]), || false, 0)).collect::<Vec<_>>();
        let (last, others) = taken.split_last().unwrap();
        assert!(matches!(last, Deferral::Enough) && others.iter().all(|taken| matches!(taken, Deferral::Yes)));
    }
}
