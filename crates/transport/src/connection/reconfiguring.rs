//! Another choice of the profile while the connection is under way.

use super::Connection;
use crate::profile::{Profile, ProfileError};
use crate::time::Time;
use crate::wire::Parameters;

/// Keys of a profile that are settled with the handshake: the receiver was told.
const SETTLED: [&str; 2] = ["symbols", "feedback"];

/// A choice that cannot be made any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// There is no such key or value.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The receiver was told it in the handshake.
    #[error("'{0}' is settled when a connection begins")]
    Settled(String),
}

impl Connection {
    /// Makes another choice from now on, as [`Profile::set`] does: controller, loss detection, timeout, estimators and limit at once, the
    /// schedule of all flows with their next symbol, block sizes and codes of objects with the next block that is opened. What is in
    /// flight stays in flight, and blocks that are open or planned already stay as they are (the last one of an object with a code of its
    /// own is planned from the beginning, and so all before it), sizes of a stream's likewise, up to the largest that it was announced with.
    /// How streams are coded changes for those opened from now on, and so do sizes that cut a whole object at once.
    ///
    /// # Errors
    /// A key or a value that there is not, or one that was settled in the handshake; nothing has changed then.
    pub fn set(&mut self, now: Time, key: &str, value: &str) -> Result<(), SetError> {
        if SETTLED.iter().any(|settled| key.split('.').next() == Some(settled)) {
            return Err(SetError::Settled(key.into()));
        }
        let mut profile = self.profile.clone();
        profile.set(key, value)?;
        self.reconfigure(now, profile);
        Ok(())
    }

    fn reconfigure(&mut self, now: Time, profile: Profile) {
        self.recovery.reconfigure(&profile.recovery, now);
        if profile.schedule != self.profile.schedule {
            self.outgoing.reschedule(&profile.schedule);
        }
        if profile.blocks != self.profile.blocks {
            let symbol_size = self.mtu.symbol_size();
            let largest_k = self.peer.as_ref().map_or(1, Parameters::largest_block);
            self.outgoing.resize_blocks(&profile.blocks, symbol_size, largest_k);
        }
        let limit = profile.limit;
        self.profile = profile;
        self.set_limit(now, limit);
    }
}
