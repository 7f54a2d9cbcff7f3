//! Counters of connections and endpoints, as they are at the moment of the call.

use crate::carrier::CarrierRefused;
use crate::socket_info::ThreadTime;
use transport::ConnectionStats;
use transport::wire::RejectCounts;

/// The counters of a connection, returned by [`Connection::stats`](crate::Connection::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Every counter and estimate of the engine.
    pub connection: ConnectionStats,
    /// Datagrams refused on this connection, and those refused by the endpoint that belong to no connection.
    pub refused: RejectedDatagrams,
    /// Datagrams that the kernel has dropped since this connection began because the endpoint's receive buffer was
    /// full: the local host reads them too slowly. They may belong to other connections. At most a tenth of a second
    /// old, on a machine with very many sockets a few seconds; `None` over pipes, or if the kernel does not report it.
    pub socket_drops: Option<u64>,
    /// Streams of the peer in answer to an unknown or cancelled stream. They were stopped.
    pub unexpected_answers: u64,
    /// CPU time of the network thread, which all connections of the endpoint share; `None` if the kernel keeps no such
    /// statistics.
    pub network_thread: Option<ThreadTime>,
}

/// Datagrams dropped unread, by reason. Anyone can send such datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedDatagrams {
    pub(crate) engine: RejectCounts,
    pub(crate) carrier: CarrierRefused,
}

/// The counters of an endpoint that belong to none of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndpointCounters {
    pub(crate) refused: RejectedDatagrams,
    /// Datagrams that found the receive buffer full.
    pub(crate) overflowed: Option<u64>,
}

impl RejectedDatagrams {
    /// Returns every reason with its count, including zero counts. The names are those of the qlog events.
    pub fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let carrier = [("empty", self.carrier.empty), ("icmp", self.carrier.icmp)];
        self.engine.iter().map(|(reason, count)| (reason.name(), count)).chain(carrier)
    }

    /// Creates counts as given, and none for other reasons.
    #[must_use]
    pub fn of(counts: &[(transport::wire::RejectReason, u64)]) -> Self {
        let mut refused = Self::default();
        for (reason, count) in counts {
            (0..*count).for_each(|_| refused.engine.add(*reason));
        }
        refused
    }

    /// Adds the counts of another, such as those of an earlier connection.
    pub fn merge(&mut self, other: &Self) {
        self.engine.merge(&other.engine);
        self.carrier.empty += other.carrier.empty;
        self.carrier.icmp += other.carrier.icmp;
    }

    /// Returns the number of datagrams refused for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own_and_counts_in_the_total() {
        let carrier = CarrierRefused { empty: 2, icmp: 3 };
        let mut refused = RejectedDatagrams { carrier, ..RejectedDatagrams::default() };
        for reason in transport::wire::RejectReason::ALL {
            refused.engine.add(reason);
        }
        let names: std::collections::BTreeSet<_> = refused.by_reason().map(|(name, _)| name).collect();
        let reasons = transport::wire::RejectReason::ALL.len();
        assert_eq!(names.len(), reasons + 2);
        assert_eq!(refused.total(), reasons as u64 + 5);
        assert!(refused.by_reason().any(|found| found == ("icmp", 3)));
    }
}
