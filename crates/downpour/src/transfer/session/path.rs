//! What is known of the rate of a session's path: from an earlier transfer, and from the users who limit it.

use std::net::SocketAddr;

use net::PIPE_PEER;
use transport::congestion::SavedPath;
use transport::{ConnectionStats, Rate};

use super::config::SessionConfig;
use crate::path_cache::Lease;
use crate::ticket::Role;

/// The rate of the path.
#[derive(Debug)]
pub(in crate::transfer) struct Path {
    /// What an earlier transfer has learned.
    lease: Option<Lease>,
    /// The rate with which this one began because of that.
    remembered: Option<Rate>,
    /// The limits set by this side's user and by the peer's user.
    limits: [Option<Rate>; 2],
}

impl Path {
    /// Creates a path of which nothing is known but the limit of this side's user.
    pub(super) const fn new(limit: Option<Rate>) -> Self {
        Self { lease: None, remembered: None, limits: [limit, None] }
    }

    /// Takes out what an earlier transfer has learned of the path to `peer`, and returns it.
    pub(super) fn recall(&mut self, peer: SocketAddr, config: &SessionConfig) -> Option<SavedPath> {
        let is_told = config.role == Role::Receiver || config.fixed_rate().is_some() || peer == PIPE_PEER;
        self.lease = config.options.paths.as_ref().filter(|_| !is_told)?.lease(peer);
        let memory = self.lease.as_ref()?.memory()?;
        // A rate that is known comes first.
        self.remembered = Some(memory.rate).filter(|_| config.options.engine.profile.min_rate().is_none());
        Some(memory)
    }

    /// Puts back what was learned of the path, unless it was more than one.
    pub(super) fn give_back(&mut self, stats: Option<&ConnectionStats>) {
        if let Some(lease) = self.lease.take() {
            lease.give_back(stats.filter(|stats| stats.path.changes == 0).and_then(|stats| stats.congestion.memory));
        }
    }

    /// Returns the rate that an earlier transfer had, with which this one began.
    pub(super) const fn remembered(&self) -> Option<Rate> {
        self.remembered
    }

    /// Sets the limit of this side's user; returns the one that now holds.
    pub(in crate::transfer) fn limit(&mut self, limit: Option<Rate>) -> Option<Rate> {
        self.limits[0] = limit;
        self.least(None)
    }

    /// Sets the limit of the peer's user; returns the one that now holds.
    pub(in crate::transfer) fn limit_by_peer(&mut self, limit: Option<Rate>) -> Option<Rate> {
        self.limits[1] = limit;
        self.least(None)
    }

    /// Returns `line` or the least limit.
    pub(super) fn least(&self, line: Option<Rate>) -> Option<Rate> {
        self.limits.into_iter().flatten().chain(line).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_holds() {
        let rate = |bits| Some(Rate::from_bits_per_second(bits));
        let mut path = Path::new(rate(5));
        assert_eq!((path.least(rate(4)), path.least(None)), (rate(4), rate(5)));
        assert_eq!([path.limit_by_peer(rate(3)), path.limit(None), path.limit_by_peer(None)], [rate(3), rate(3), None]);
        assert_eq!((path.least(rate(9)), path.least(None)), (rate(9), None));
    }
}
