//! First messages that were answered: copies get the same answer, replays none.

use super::ConnectionHandle;
use crate::wire::{ConnectionId, KeyId, Message1};
use std::collections::BTreeMap;

/// First messages remembered. Once that many have been answered, no further connection is accepted: a forgotten message
/// could be replayed.
const MAX_KNOWN: usize = 65_536;

/// Copies of one first message that are answered: more than an initiator sends before its handshake times out.
const MAX_COPIES: u8 = 128;

/// Every first message that this endpoint has answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    by_message: BTreeMap<(KeyId, ConnectionId), State>,
    by_handle: BTreeMap<ConnectionHandle, (KeyId, ConnectionId)>,
}

#[derive(Debug)]
enum State {
    Live { handle: ConnectionHandle, noise1: Vec<u8>, noise2: Vec<u8>, copies: u8 },
    Spent,
}

/// The state of a first message.
#[derive(Debug)]
pub(super) enum Known {
    /// It is new.
    No,
    /// It opened this connection, and was answered with this Noise message.
    Answered(ConnectionHandle, Vec<u8>),
    /// It is no longer answered.
    Spent,
}

impl Answers {
    pub(super) fn find(&mut self, message: &Message1<'_>) -> Known {
        match self.by_message.get_mut(&(message.key, message.connection)) {
            None => Known::No,
            Some(State::Live { handle, noise1, noise2, copies }) if noise1 == message.noise && *copies < MAX_COPIES => {
                *copies += 1;
                Known::Answered(*handle, noise2.clone())
            }
            // The initiator's id is authenticated: another message with it is from another sender, or one copy too
            // many.
            Some(State::Live { .. } | State::Spent) => Known::Spent,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_message.len() >= MAX_KNOWN
    }

    pub(super) fn remember(&mut self, message: &Message1<'_>, handle: ConnectionHandle, noise2: Vec<u8>) {
        let name = (message.key, message.connection);
        self.by_handle.insert(handle, name);
        let noise1 = message.noise.to_vec();
        self.by_message.insert(name, State::Live { handle, noise1, noise2, copies: 1 });
    }

    /// Marks a connection's first message as spent once the connection has been removed.
    pub(super) fn spend(&mut self, handle: ConnectionHandle) {
        if let Some(name) = self.by_handle.remove(&handle) {
            self.by_message.insert(name, State::Spent);
        }
    }
}
