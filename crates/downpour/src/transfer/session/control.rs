//! The control stream of a session: the peer's messages until they are processed, and the local bytes until they have
//! arrived.

use std::collections::VecDeque;

use crate::error::Error;
use crate::messages::{HostPressure, Message, MessageReader};

/// Bytes of the control stream that may be outstanding before another part of a manifest is written or processed.
const MAX_BACKLOG: usize = 512 << 10;

/// Both directions of the control stream.
#[derive(Default)]
pub(in crate::transfer) struct ControlStream {
    reader: MessageReader,
    messages: VecDeque<Message>,
    /// Bytes behind `messages`, which are released when those are processed.
    unreleased: usize,
    /// Whether this side buffers messages, so that their bytes are not released.
    is_held: bool,
    /// Whether messages stay in the queue.
    is_paused: bool,
    /// Bytes that were written and have not arrived.
    outstanding: usize,
}

impl ControlStream {
    /// Handles bytes of the peer. A report of its pressure describes the present, and does not wait for earlier
    /// messages: it is passed on at once.
    ///
    /// # Errors
    /// A malformed message.
    pub(super) fn on_bytes(&mut self, mut bytes: &[u8], mut strain: impl FnMut(HostPressure)) -> Result<(), Error> {
        self.unreleased += bytes.len();
        while let Some(message) = self.reader.next(&mut bytes)? {
            match message {
                Message::Strain(reported) => strain(reported),
                message => self.messages.push_back(message),
            }
        }
        Ok(())
    }

    /// Takes the next message from the queue, unless messages stay in it.
    pub(super) fn next(&mut self) -> Option<Message> {
        if self.is_paused { None } else { self.messages.pop_front() }
    }

    /// Returns the bytes that the peer may send in place of those which were processed; 0 while messages are queued or
    /// buffered.
    pub(super) fn release(&mut self) -> usize {
        let is_processed = self.messages.is_empty() && !self.is_paused && !self.is_held;
        if is_processed { std::mem::take(&mut self.unreleased) } else { 0 }
    }

    /// Sets whether messages taken from the queue keep counting against the bytes that the peer may send.
    pub(in crate::transfer) const fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Sets whether messages stay in the queue.
    pub(in crate::transfer) const fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Puts messages back at the front of the queue.
    pub(in crate::transfer) fn put_back(&mut self, messages: Vec<Message>) {
        for message in messages.into_iter().rev() {
            self.messages.push_front(message);
        }
    }

    /// Returns the next message, if it has arrived.
    pub(in crate::transfer) fn peek(&self) -> Option<&Message> {
        self.messages.front()
    }

    /// Returns the unreleased bytes of messages.
    pub(in crate::transfer) const fn held(&self) -> usize {
        self.unreleased
    }

    /// Handles bytes that this side has written.
    pub(super) const fn on_written(&mut self, bytes: usize) {
        self.outstanding += bytes;
    }

    /// Handles bytes that have arrived at the peer.
    pub(super) const fn on_acknowledged(&mut self, bytes: usize) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
    }

    /// Returns whether everything that was written has arrived.
    pub(super) const fn has_arrived(&self) -> bool {
        self.outstanding == 0
    }

    /// Returns whether so much is outstanding, with `more` bytes that are about to be written, that nothing should
    /// cause further messages.
    pub(in crate::transfer) const fn is_full(&self, more: usize) -> bool {
        self.outstanding + more >= MAX_BACKLOG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(messages: &[Message]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.encode(&mut bytes).unwrap());
        bytes
    }

    #[test]
    fn bytes_are_released_once_their_messages_are_processed() {
        let mut control = ControlStream::default();
        let sent = bytes(&[Message::Accepted, Message::Scanned]);
        control.on_bytes(&sent, |_| ()).unwrap();
        assert_eq!((control.release(), control.held()), (0, sent.len()));
        let first = control.next().unwrap();
        assert!(matches!(control.peek(), Some(Message::Scanned)));
        control.put_back(vec![first]);
        control.pause(true);
        assert!(control.next().is_none());
        control.pause(false);
        assert!(matches!([control.next(), control.next()], [Some(Message::Accepted), Some(Message::Scanned)]));
        control.hold(true);
        assert_eq!(control.release(), 0);
        control.hold(false);
        assert_eq!([control.release(), control.release()], [sent.len(), 0]);
    }

    #[test]
    fn control_pressure_overtakes_queue() {
        let mut control = ControlStream::default();
        let strain = HostPressure { memory: true, overflowed: 7 };
        let mut reported = Vec::new();
        let mut sent = bytes(&[Message::Accepted, Message::Strain(strain)]);
        control.on_bytes(&sent, |strain| reported.push(strain)).unwrap();
        // Also before invalid bytes.
        sent = [bytes(&[Message::Strain(strain)]), vec![0; 4]].concat();
        assert!(control.on_bytes(&sent, |strain| reported.push(strain)).is_err());
        assert_eq!(reported, [strain; 2]);
        assert!(matches!([control.next(), control.next()], [Some(Message::Accepted), None]));
    }

    #[test]
    fn control_backlog_is_unacknowledged_bytes() {
        let mut control = ControlStream::default();
        control.on_written(MAX_BACKLOG - 1);
        assert!(!control.is_full(0) && control.is_full(1));
        control.on_acknowledged(MAX_BACKLOG);
        assert!(control.has_arrived());
    }
}
