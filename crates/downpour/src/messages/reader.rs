//! From chunks of the control stream to messages.

use super::{MAX_MESSAGE, Message, MessageError};

/// Bytes of the length field.
const LENGTH: usize = 4;
/// A buffer larger than this is given back once its message is read.
const KEPT: usize = 128 << 10;

/// Reads messages from chunks of any size. It holds the bytes of one unfinished message that have come, never what a
/// length field claims.
#[derive(Debug, Default)]
pub struct MessageReader {
    buffer: Vec<u8>,
    failed: Option<MessageError>,
}

impl MessageReader {
    /// A reader at the beginning of the stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes from `input` what completes the next message and returns it. `None` says that all of `input` is taken and
    /// more is needed; call until then.
    ///
    /// # Errors
    /// The first malformed message; a stream is of no use after it, and every further call repeats the error.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Message>, MessageError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read(input).inspect_err(|error| {
            self.failed = Some(*error);
            self.buffer = Vec::new();
        })
    }

    /// Bytes of an unfinished message that are held.
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

    /// Moves bytes from `input` until `total` are held; says whether they are.
    fn fill(&mut self, total: usize, input: &mut &[u8]) -> bool {
        let wanted = total.saturating_sub(self.buffer.len());
        let (taken, rest) = input.split_at(wanted.min(input.len()));
        self.buffer.extend_from_slice(taken);
        *input = rest;
        self.buffer.len() >= total
    }
}
