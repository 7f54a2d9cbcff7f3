//! First messages that have opened a connection: a late copy, or a replay, is refused before anything is computed.
//!
//! This spares work, and is not what makes a replay harmless (docs/design/handshake.md): one that was forgotten is
//! answered under keys that whoever replays it cannot have. So the memory may be bounded.

use super::ConnectionHandle;
use crate::wire::{ConnectionId, KeyId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Connections that have ended whose first messages are remembered. Chosen: copies that are still on their way when
/// their connection ends belong to the newest of them.
const MAX_ENDED: usize = 4_096;

/// What a first message authenticates of its sender.
pub(super) type Name = (KeyId, ConnectionId);

/// The first messages of the open connections and of the last that have ended.
#[derive(Debug, Default)]
pub(super) struct Spent {
    names: BTreeSet<Name>,
    open: BTreeMap<ConnectionHandle, Name>,
    ended: VecDeque<Name>,
}

impl Spent {
    pub(super) fn contains(&self, name: Name) -> bool {
        self.names.contains(&name)
    }

    /// Notes that the first message of this name has opened a connection.
    pub(super) fn on_open(&mut self, handle: ConnectionHandle, name: Name) {
        self.names.insert(name);
        self.open.insert(handle, name);
    }

    /// Whether the peer has opened this connection.
    pub(super) fn has_opened(&self, handle: ConnectionHandle) -> bool {
        self.open.contains_key(&handle)
    }

    /// Notes that a connection, opened by the peer or not, was removed.
    pub(super) fn on_end(&mut self, handle: ConnectionHandle) {
        let Some(name) = self.open.remove(&handle) else { return };
        self.ended.push_back(name);
        if self.ended.len() > MAX_ENDED {
            self.ended.pop_front().iter().for_each(|oldest| _ = self.names.remove(oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn name(number: u64) -> Name {
        (KeyId([1; 8]), ConnectionId(number.to_be_bytes()))
    }

    #[test]
    fn a_million_connections_one_after_another_leave_the_last_few_thousand() {
        let mut spent = Spent::default();
        spent.on_open(ConnectionHandle(0), name(0));
        for number in 1..=1_000_000 {
            spent.on_open(ConnectionHandle(number), name(number));
            assert!(spent.contains(name(number)));
            spent.on_end(ConnectionHandle(number));
        }
        assert_eq!((spent.names.len(), spent.open.len(), spent.ended.len()), (MAX_ENDED + 1, 1, MAX_ENDED));
        assert!(spent.contains(name(0)), "one that is open is never forgotten");
        assert!(spent.contains(name(1_000_000)) && !spent.contains(name(1_000_000 - MAX_ENDED as u64)));
        spent.on_end(ConnectionHandle(5_000_000));
        assert_eq!(spent.ended.len(), MAX_ENDED, "this side has opened it");
    }
}
