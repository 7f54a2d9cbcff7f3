//! Assembles messages from chunks of the control stream.

use super::{MAX_MESSAGE, Message, MessageError};

/// Size of the length field in bytes.
const LENGTH: usize = 4;
/// A buffer larger than this is freed once its message is read.
const KEPT: usize = 128 << 10;

/// Reads messages from chunks of any size. Buffers only the received bytes of one unfinished message, never the length
/// that a field claims.
#[derive(Debug, Default)]
pub struct MessageReader {
    buffer: Vec<u8>,
    failed: Option<MessageError>,
}

impl MessageReader {
    /// Creates a reader at the beginning of the stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes from `input` the rest of the next message and returns it. `None` means that all of `input` was taken and
    /// more is needed; call until then.
    ///
    /// # Errors
    /// The first malformed message. The stream is unusable after it, and every further call returns the same error.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Message>, MessageError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read(input).inspect_err(|error| {
            self.failed = Some(*error);
            self.buffer = Vec::new();
        })
    }

    /// Returns the number of buffered bytes of an unfinished message.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    fn read(&mut self, input: &mut &[u8]) -> Result<Option<Message>, MessageError> {
        if !self.fill(LENGTH, input) {
            return Ok(None);
        }
        let field = self.buffer.first_chunk().expect("four bytes were filled");
        let claimed = u32::from_be_bytes(*field);
        let length = usize::try_from(claimed).unwrap_or(usize::MAX);
        if !(1..=MAX_MESSAGE).contains(&length) {
            return Err(MessageError::Length(u64::from(claimed)));
        }
        if !self.fill(LENGTH + length, input) {
            return Ok(None);
        }
        let message = Message::decode(&self.buffer[LENGTH..])?;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        Ok(Some(message))
    }

    /// Moves bytes from `input` until `total` are buffered; returns whether they are.
    fn fill(&mut self, total: usize, input: &mut &[u8]) -> bool {
        let wanted = total.saturating_sub(self.buffer.len());
        let (taken, rest) = input.split_at(wanted.min(input.len()));
        self.buffer.extend_from_slice(taken);
        *input = rest;
        self.buffer.len() >= total
    }
}
