//! First messages that have opened a connection: a late copy, or a replay, is refused before anything is computed.
//!
//! This spares work; it does not make a replay harmless (docs/design/handshake.md): a forgotten message is answered
//! under keys that the replaying host cannot have. So the record may be bounded.

use super::ConnectionHandle;
use crate::wire::{ConnectionId, KeyId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Closed connections whose first messages are remembered. Chosen: copies still in flight when their connection closes
/// belong to the newest of them.
const MAX_ENDED: usize = 4_096;

/// The part of a first message that authenticates its sender.
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
        assert!(spent.contains(name(0)), "an open connection is never forgotten");
        assert!(spent.contains(name(1_000_000)) && !spent.contains(name(1_000_000 - MAX_ENDED as u64)));
        spent.on_end(ConnectionHandle(5_000_000));
        assert_eq!(spent.ended.len(), MAX_ENDED, "this side has opened it");
    }
}
