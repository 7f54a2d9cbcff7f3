//! The known rate of a session's path: from an earlier transfer, and from the users who limit it.

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
    /// The measurements of an earlier transfer.
    lease: Option<Lease>,
    /// The rate with which this one began because of them.
    remembered: Option<Rate>,
    /// The limits set by the local user and by the peer's user.
    limits: [Option<Rate>; 2],
}

impl Path {
    /// Creates a path of which only the limit of the local user is known.
    pub(super) const fn new(limit: Option<Rate>) -> Self {
        Self { lease: None, remembered: None, limits: [limit, None] }
    }

    /// Takes the measurements of the path to `peer` from the cache, and returns them.
    pub(super) fn recall(&mut self, peer: SocketAddr, config: &SessionConfig) -> Option<SavedPath> {
        let is_useless = config.role == Role::Receiver || config.fixed_rate().is_some() || peer == PIPE_PEER;
        self.lease = config.options.paths.as_ref().filter(|_| !is_useless)?.lease(peer);
        let memory = self.lease.as_ref()?.memory()?;
        // A configured rate has precedence.
        self.remembered = Some(memory.rate).filter(|_| config.options.engine.profile.min_rate().is_none());
        Some(memory)
    }

    /// Puts the measurements of the path into the cache, unless there was more than one path.
    pub(super) fn restore(&mut self, stats: Option<&ConnectionStats>) {
        if let Some(lease) = self.lease.take() {
            lease.restore(stats.filter(|stats| stats.path.changes == 0).and_then(|stats| stats.congestion.memory));
        }
    }

    /// Returns the rate of an earlier transfer, with which this one began.
    pub(super) const fn remembered(&self) -> Option<Rate> {
        self.remembered
    }

    /// Sets the limit of the local user; returns the effective one.
    pub(in crate::transfer) fn limit(&mut self, limit: Option<Rate>) -> Option<Rate> {
        self.limits[0] = limit;
        self.least(None)
    }

    /// Sets the limit of the peer's user; returns the effective one.
    pub(in crate::transfer) fn limit_by_peer(&mut self, limit: Option<Rate>) -> Option<Rate> {
        self.limits[1] = limit;
        self.least(None)
    }

    /// Returns `rate` or the lowest limit.
    pub(super) fn least(&self, rate: Option<Rate>) -> Option<Rate> {
        self.limits.into_iter().flatten().chain(rate).min()
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
