//! The figures of a connection at the end of a transfer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use transport::Rate;

use super::memory_ticks::Side;

/// The measurements of the connection of a transfer. Read by other releases: a new field needs a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Share of repair symbols among the symbols sent, at the sender; `None` if too few were sent for a meaningful
    /// share.
    pub repair_share: Option<f64>,
    /// Smoothed round-trip time at the end.
    pub rtt: Option<Duration>,
    /// Share of sent packets that the path lost, at the sender; `None` if too few were sent for a meaningful share.
    pub loss: Option<f64>,
    /// Datagrams dropped for any reason: unknown connections, corruption, replay.
    pub refused: u64,
    /// The same by reason, as in [`net::RejectedDatagrams::by_reason`]; empty from an older release.
    #[serde(default)]
    pub refused_for: BTreeMap<String, u64>,
    /// At a sender with a configured rate, which may differ from the capacity: the shortest possible time at this rate,
    /// loss and round-trip time for the transferred bytes, divided by the time taken. This includes the time in which
    /// the receiver's user was asked, which the sender does not know. `None` for a transfer that is too short to
    /// measure a path.
    pub path_share: Option<f64>,
    /// The rate of an earlier transfer over this path, with which this one began.
    pub remembered: Option<Rate>,
    /// The side whose memory bound has slowed the transfer.
    pub memory_bound: Option<Side>,
    /// Datagrams that the kernel of the receiver of the files has dropped during the transfer, because the receive
    /// buffer of its socket was full; `None` if this side does not know.
    pub overflowed: Option<u64>,
}

/// Minimum number of symbols or packets for a share: of fewer, a single one is more than one per cent.
const ENOUGH_FOR_SHARE: u64 = 100;

/// Returns the share of `part` in `all`, unless there are too few.
pub(super) fn share(part: u64, all: u64) -> Option<f64> {
    (all >= ENOUGH_FOR_SHARE).then(|| part as f64 / all as f64)
}

/// Returns the number of rejected datagrams by reason.
pub(super) fn counted(refused: &net::RejectedDatagrams) -> BTreeMap<String, u64> {
    refused.by_reason().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count)).collect()
}

/// Returns the share of the path's rate that a transfer used which takes at least `least` and took `elapsed`; `None` if
/// its beginning and end, on both hosts, weigh more than the path.
pub(super) fn path_share(least: Duration, elapsed: Duration) -> Option<f64> {
    /// Below this, pacing in bursts and the work on both disks dominate.
    const MEASURABLE: Duration = Duration::from_millis(100);
    (least >= MEASURABLE).then(|| least.as_secs_f64() / elapsed.as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_share_short_transfer_is_none() {
        assert_eq!(path_share(Duration::from_millis(99), Duration::from_millis(50)), None);
        assert_eq!(path_share(Duration::from_secs(1), Duration::from_secs(2)), Some(0.5));
    }

    #[test]
    fn a_share_of_a_few_is_none() {
        assert_eq!([share(2, 3), share(0, 0), share(99, 99)], [None; 3]);
        assert_eq!(share(5, 100), Some(0.05));
    }
}
