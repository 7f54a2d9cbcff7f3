//! The search for the most symbols that a packet may have: larger and larger packets are sent along with data (RFC 8899
//! section 5.2).

use super::MAX_PROBES;
use crate::time::Time;
use std::time::Duration;

/// Time that a response may take beyond two round trips.
const SLACK: Duration = Duration::from_millis(25);

/// A search that probes packets of one size.
#[derive(Debug)]
pub(super) struct UpwardSearch {
    /// Symbols in the probed packet.
    symbols: u8,
    /// The fewest symbols known not to pass.
    too_many: u16,
    /// The data that the response must carry.
    data: [u8; 8],
    copies: usize,
    last_sent: Option<Time>,
}

impl UpwardSearch {
    /// Creates a search that probes packets with `symbols`, where `too_many` do not pass.
    pub(super) const fn new(symbols: u8, too_many: u16, data: [u8; 8]) -> Self {
        Self { symbols, too_many, data, copies: 0, last_sent: None }
    }

    /// Returns the symbols in the probed packets.
    pub(super) const fn symbols(&self) -> u8 {
        self.symbols
    }

    /// Returns when the next probe is due: when a response to the last one should have arrived.
    pub(super) fn deadline(&self, rtt: Duration) -> Time {
        self.last_sent.map_or(Time::ZERO, |sent| sent + rtt * 2 + SLACK)
    }

    /// Returns the next probe of this size: its symbols and the bytes of its challenge. `None` when the size is assumed
    /// not to pass.
    pub(super) fn next_probe(&mut self, now: Time) -> Option<(u8, [u8; 8])> {
        if self.copies == MAX_PROBES {
            return None;
        }
        self.copies += 1;
        self.last_sent = Some(now);
        Some((self.symbols, self.data))
    }

    /// Returns whether this response is to a probe of this size.
    pub(super) fn is_answered_by(&self, response: [u8; 8]) -> bool {
        self.data == response
    }

    /// Continues below this size, which does not pass, and above the symbols that do.
    pub(super) fn below(&self, passing: u8, data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        Self::between(passing, self.symbols.into(), data)
    }

    /// Continues above this size, which was answered.
    pub(super) fn above(&self, passing: u8, data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        Self::between(passing, self.too_many, data)
    }

    fn between(passing: u8, too_many: u16, mut data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        let symbols = u8::try_from(u16::midpoint(passing.into(), too_many)).unwrap_or(u8::MAX);
        (symbols > passing).then(|| Self::new(symbols, too_many, data()))
    }
}
