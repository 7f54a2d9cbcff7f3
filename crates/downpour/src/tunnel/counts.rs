//! The counters of a session.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::relay::Traffic;

/// The side whose program opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Local,
    Remote,
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionStage {
    /// Its target is unknown.
    Unasked,
    /// It waits for its reply.
    Wanted,
    Open,
    /// It was refused.
    Refused,
    /// Both directions were finished.
    Completed,
    /// It was reset, open or not.
    Cut,
}

/// Connections that programs of one side opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Connections that wait for their replies now.
    pub(super) opening: u64,
    /// Connections that are open now.
    pub(super) open: u64,
    /// Connections that were ever open.
    pub(super) opened: u64,
    pub(super) refused: u64,
    pub(super) completed: u64,
    pub(super) cut: u64,
}

impl Figures {
    /// Returns the number of all of them.
    pub(super) const fn total(&self) -> u64 {
        self.opening + self.open + self.refused + self.completed + self.cut
    }

    fn of(&mut self, stage: ConnectionStage) -> Option<&mut u64> {
        match stage {
            ConnectionStage::Unasked => None,
            ConnectionStage::Wanted => Some(&mut self.opening),
            ConnectionStage::Open => Some(&mut self.open),
            ConnectionStage::Refused => Some(&mut self.refused),
            ConnectionStage::Completed => Some(&mut self.completed),
            ConnectionStage::Cut => Some(&mut self.cut),
        }
    }
}

/// The counters of a session since it began.
#[derive(Debug)]
pub(super) struct TunnelCounters {
    pub(super) begun: SystemTime,
    /// Bytes of both sides.
    pub(super) traffic: Traffic,
    connections: Mutex<[Figures; 2]>,
}

impl TunnelCounters {
    pub(super) fn new() -> Self {
        Self { begun: runtime::system_time(), traffic: Traffic::default(), connections: Mutex::default() }
    }

    /// Counts a connection that changes from one stage to another.
    pub(super) fn count(&self, from: Origin, before: ConnectionStage, next: ConnectionStage) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = &mut connections[from as usize];
        figures.of(before).into_iter().for_each(|count| *count -= 1);
        figures.of(next).into_iter().for_each(|count| *count += 1);
        figures.opened += u64::from(next == ConnectionStage::Open);
    }

    /// Returns the figures of local and remote programs.
    pub(super) fn connections(&self) -> [(Origin, Figures); 2] {
        let [local, remote] = *self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        [(Origin::Local, local), (Origin::Remote, remote)]
    }
}
