//! Changes of the profile while a connection is open.

use super::Connection;
use crate::profile::{Profile, ProfileError};
use crate::time::Time;
use crate::wire::Parameters;

/// Keys fixed once the handshake has sent them to the receiver.
const SETTLED: [&str; 2] = ["symbols", "feedback"];

/// The reason why the profile could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigureError {
    /// The key or the value is unknown.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The key was fixed by the handshake.
    #[error("'{0}' cannot change once a connection has begun")]
    Settled(String),
}

impl Connection {
    /// Changes a setting of the profile from now on, as [`Profile::set`] does.
    ///
    /// Controller, loss detection, timeout, estimators and limit change at once; packets in flight stay in flight.
    /// Schedules change with the next symbol of each flow. Block sizes and codes change with the next block opened,
    /// unless it is already planned: if the last block of an object has a code of its own, all are planned from the
    /// beginning. The blocks of a stream stay within the largest size with which it was announced. The bound on the
    /// repair of streams changes for all of them at once. The coding of streams, and sizes that divide a whole object
    /// at once, change for flows opened from now on.
    ///
    /// # Errors
    /// An unknown key or value, or one fixed by the handshake. Nothing has changed then.
    pub fn set(&mut self, now: Time, key: &str, value: &str) -> Result<(), ReconfigureError> {
        if SETTLED.iter().any(|settled| key.split('.').next() == Some(settled)) {
            return Err(ReconfigureError::Settled(key.into()));
        }
        let mut profile = self.profile.clone();
        profile.set(key, value)?;
        self.reconfigure(now, profile);
        Ok(())
    }

    fn reconfigure(&mut self, now: Time, profile: Profile) {
        self.recovery.reconfigure(&profile.recovery, now);
        if profile.schedule != self.profile.schedule {
            self.send_flows.reschedule(&profile.schedule);
        }
        self.send_flows.bound_repair(profile.streams.overhead());
        if profile.blocks != self.profile.blocks {
            let symbol_size = self.mtu.symbol_size();
            let largest_k = self.peer.as_ref().map_or(1, Parameters::largest_block);
            self.send_flows.resize_blocks(&profile.blocks, symbol_size, largest_k);
        }
        let limit = profile.limit;
        self.profile = profile;
        self.set_limit(now, limit);
    }
}
