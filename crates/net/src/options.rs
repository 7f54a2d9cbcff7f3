//! Options of an endpoint: how long it waits, and how much memory it may fill.

use std::fs;
use std::time::Duration;

use rustix::system::sysinfo;
use transport::wire::StreamLimits;
use transport::{ConnectionConfig, Priority};

/// The least bound on memory, in bytes: room for two blocks of the largest size that a peer may choose (11.5 MB each,
/// one of them being written), and in a separate budget for 88 streams (16 MB).
pub const MIN_MEMORY: u64 = 32_000_000;

/// Without another bound, the time without a packet after which a connection is lost. See docs/design/recovery.md.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Without another bound, the part of the machine's memory that may be filled by data of one direction: an eighth.
const MEMORY_SHARE: u64 = 8;

/// Options of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointOptions {
    /// A connection on which nothing is received for this long ends.
    pub dead_after: Duration,
    /// Bytes that all connections together may buffer in each direction: those of objects that are read ahead, in
    /// flight, incomplete or not yet written, and as many again of the streams of each connection. `None` means an
    /// eighth of the memory of the machine, or of this process's control group, and at most 2 GiB. Smaller
    /// values are raised to [`MIN_MEMORY`]. Repair symbols and the program's own memory are not included.
    pub max_memory: Option<u64>,
}

impl EndpointOptions {
    /// Returns options with the bound on memory that suits the machine.
    #[must_use]
    pub const fn new(dead_after: Duration) -> Self {
        Self { dead_after, max_memory: None }
    }

    /// Bounds what all connections together may buffer in each direction, in bytes.
    #[must_use]
    pub fn max_memory(self, max_memory: impl Into<Option<u64>>) -> Self {
        Self { max_memory: max_memory.into(), ..self }
    }

    /// Returns the engine's limits.
    pub(crate) fn limits(&self) -> ConnectionConfig {
        let Self { dead_after, max_memory } = *self;
        let default = ConnectionConfig::default();
        let symbol = u64::from(default.flows.largest_symbol);
        let most_symbols = max_memory.unwrap_or_else(default_memory).max(MIN_MEMORY) / symbol;
        let StreamLimits { count, window, shared } = default.streams;
        let most = u32::try_from(most_symbols).unwrap_or(u32::MAX);
        // Half of it is for the streams' own windows.
        let count = u16::try_from(most / 2 / window).unwrap_or(u16::MAX).min(count);
        let left = most.saturating_sub(u32::from(count) * window);
        let streams = StreamLimits { count, shared: shared.min(left), ..default.streams };
        let keep_alive = default.keep_alive.min(dead_after / 2);
        ConnectionConfig { dead_after, keep_alive, most_symbols, streams, ..default }
    }
}

impl Default for EndpointOptions {
    /// A connection ends after 30 s of silence.
    fn default() -> Self {
        Self::new(DEAD_AFTER)
    }
}

/// Returns the default limit on an endpoint's memory, in bytes.
pub fn default_memory() -> u64 {
    let default = ConnectionConfig::default();
    (available_memory() / MEMORY_SHARE).min(default.most_symbols * u64::from(default.flows.largest_symbol))
}

/// Returns the memory that this process may use, in bytes: the machine's, or the limit of its control group.
fn available_memory() -> u64 {
    let info = sysinfo();
    let machine = (info.totalram as u64).saturating_mul(info.mem_unit.into());
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    group.and_then(|text| text.trim().parse().ok()).map_or(machine, |group: u64| group.min(machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_memory: Option<u64>) -> ConnectionConfig {
        EndpointOptions::default().max_memory(max_memory).limits()
    }

    #[test]
    fn the_bound_is_kept_in_each_direction_and_suffices_for_the_largest_blocks() {
        let default = ConnectionConfig::default();
        for (bound, bytes) in [(100_000_000, 100_000_000), (10 << 30, 10 << 30), (1, MIN_MEMORY)] {
            let limits = limits(Some(bound));
            assert_eq!(limits.most_symbols, bytes / 1_408);
            let streams = u64::from(limits.streams.count) * u64::from(limits.streams.window);
            assert!(streams + u64::from(limits.streams.shared) <= limits.most_symbols);
        }
        assert!(limits(Some(1)).most_symbols >= 2 * u64::from(default.flows.largest_k));
        assert_eq!(limits(Some(10 << 30)).streams, default.streams);
        assert!(limits(None).most_symbols <= default.most_symbols);
    }
}

/// A stream to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The program's name for it, below 2^63; the peer sees it.
    pub tag: u64,
    /// The priority on the path. Each side chooses it for its own direction.
    pub priority: Priority,
}

impl StreamOptions {
    /// Returns options of a stream with this tag, below 2^63, and of [`Priority::Auto`].
    #[must_use]
    pub fn new(tag: u64) -> Self {
        Self { tag, ..Self::default() }
    }

    /// Sends with this priority.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }
}

/// A stream of this name, and of [`Priority::Auto`].
impl From<u64> for StreamOptions {
    fn from(tag: u64) -> Self {
        Self::new(tag)
    }
}
