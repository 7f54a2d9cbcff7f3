//! The batches of a receiver, each from the first part of its manifest, or its announcement, to its last byte.

use std::collections::BTreeMap;

use net::IncomingObject;

use crate::error::Error;
use crate::messages::MAX_OPEN_BATCHES;

/// Maximum number of batches whose bytes have not all arrived: those that may be unverified, and as many without any
/// file.
const MAX_BATCHES: usize = 2 * MAX_OPEN_BATCHES;

/// A batch that has begun.
#[derive(Debug, Default)]
struct Batch {
    /// Length of all its files, once the manifest has begun.
    full: u64,
    /// Length of its object, once the wanted ranges are known.
    wanted: Option<u64>,
    /// The announced object, until it is accepted.
    object: Option<IncomingObject>,
    is_accepted: bool,
}

impl Batch {
    /// Returns the object to accept, once it is announced and the wanted ranges are known.
    fn accept(&mut self, tag: u64) -> Result<Option<IncomingObject>, Error> {
        let Some(wanted) = self.wanted else { return Ok(None) };
        let Some(object) = self.object.take() else { return Ok(None) };
        let length = object.length();
        if length != wanted {
            return Err(Error::ProtocolViolation(format!("batch {tag} has {length} bytes instead of {wanted}")));
        }
        self.is_accepted = true;
        Ok(Some(object))
    }
}

/// Batches whose bytes have not all arrived, and the number of the others.
#[derive(Debug, Default)]
pub(super) struct Batches {
    begun: BTreeMap<u64, Batch>,
    arrived: u32,
}

impl Batches {
    /// Handles a part of the manifest of a batch whose files are of this length.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if there are too many batches.
    pub(super) fn on_part(&mut self, tag: u64, full: u64) -> Result<(), Error> {
        self.begun(tag)?.full = full;
        Ok(())
    }

    /// Returns the length of all files of a batch.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if there are too many batches.
    pub(super) fn full_length(&mut self, tag: u64) -> Result<u64, Error> {
        Ok(self.begun(tag)?.full)
    }

    /// Handles the announcement of a batch's object; returns it if it can be accepted now.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if it was announced before, is of the wrong length, or there are too many batches.
    pub(super) fn on_object(&mut self, object: IncomingObject) -> Result<Option<IncomingObject>, Error> {
        let tag = object.tag();
        let batch = self.begun(tag)?;
        if batch.is_accepted || batch.object.replace(object).is_some() {
            return Err(Error::ProtocolViolation(format!("batch {tag} opened twice")));
        }
        batch.accept(tag)
    }

    /// Sets the length of the wanted ranges of a batch; returns its object if that can be accepted now.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if the object is of another length, or there are too many batches.
    pub(super) fn on_wanted(&mut self, tag: u64, length: u64) -> Result<Option<IncomingObject>, Error> {
        let batch = self.begun(tag)?;
        batch.wanted = Some(length);
        batch.accept(tag)
    }

    /// Handles the arrival of all bytes of a batch.
    ///
    /// # Errors
    /// [`Error::Internal`] if it has not begun.
    pub(super) fn on_received(&mut self, tag: u64) -> Result<(), Error> {
        self.begun.remove(&tag).ok_or(Error::Internal("bytes of a batch that is not open"))?;
        self.arrived += 1;
        Ok(())
    }

    /// Returns the number of batches of which every byte is written.
    pub(super) const fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Returns a batch that has begun, with its manifest or its object.
    fn begun(&mut self, tag: u64) -> Result<&mut Batch, Error> {
        if self.begun.len() >= MAX_BATCHES && !self.begun.contains_key(&tag) {
            return Err(Error::ProtocolViolation("too many batches opened".to_owned()));
        }
        Ok(self.begun.entry(tag).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_batch_once_and_bounded() {
        let mut batches = Batches::default();
        for tag in 0..MAX_BATCHES as u64 {
            batches.on_part(tag, 7).unwrap();
        }
        assert!(matches!(batches.on_part(1000, 0), Err(Error::ProtocolViolation(_))));
        assert_eq!(batches.full_length(0).unwrap(), 7);
        assert!(batches.on_wanted(0, 3).unwrap().is_none(), "its object is not announced");
        batches.on_received(0).unwrap();
        assert!(matches!(batches.on_received(0), Err(Error::Internal(_))));
        batches.on_part(1000, 0).unwrap();
        assert_eq!(batches.arrived(), 1);
    }
}
