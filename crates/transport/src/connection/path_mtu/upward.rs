//! The search for the most symbols that a packet may have: larger and larger packets are sent while data goes on (RFC 8899 section 5.2).

use super::MAX_PROBES;
use crate::time::Time;
use std::time::Duration;

/// What a response may take beyond two round trips.
const SLACK: Duration = Duration::from_millis(25);

/// A search that asks about packets of one size.
#[derive(Debug)]
pub(super) struct UpwardSearch {
    /// Symbols in the packet that is asked about.
    symbols: u8,
    /// The fewest symbols known not to pass.
    too_many: u16,
    /// What the response has to bring.
    data: [u8; 8],
    copies: usize,
    last_sent: Option<Time>,
}

impl UpwardSearch {
    /// Asks whether packets with `symbols` pass, where `too_many` do not.
    pub(super) const fn new(symbols: u8, too_many: u16, data: [u8; 8]) -> Self {
        Self { symbols, too_many, data, copies: 0, last_sent: None }
    }

    /// Symbols in the packets that are asked about.
    pub(super) const fn symbols(&self) -> u8 {
        self.symbols
    }

    /// When the next probe is due: as soon as a response to the last one would be there.
    pub(super) fn deadline(&self, rtt: Duration) -> Time {
        self.last_sent.map_or(Time::ZERO, |sent| sent + rtt * 2 + SLACK)
    }

    /// The next probe of this size: its symbols and the bytes of its challenge. `None` when the size is taken not to pass.
    pub(super) fn next_probe(&mut self, now: Time) -> Option<(u8, [u8; 8])> {
        if self.copies == MAX_PROBES {
            return None;
        }
        self.copies += 1;
        self.last_sent = Some(now);
        Some((self.symbols, self.data))
    }

    /// Whether this response is to a probe of this size.
    pub(super) fn is_answered_by(&self, response: [u8; 8]) -> bool {
        self.data == response
    }

    /// The size does not pass: the search goes on between it and the symbols that do.
    pub(super) fn below(&self, passing: u8, data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        Self::between(passing, self.symbols.into(), data)
    }

    /// The size was answered: the search goes on above it.
    pub(super) fn above(&self, passing: u8, data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        Self::between(passing, self.too_many, data)
    }

    fn between(passing: u8, too_many: u16, mut data: impl FnMut() -> [u8; 8]) -> Option<Self> {
        let symbols = u8::try_from(u16::midpoint(passing.into(), too_many)).unwrap_or(u8::MAX);
        (symbols > passing).then(|| Self::new(symbols, too_many, data()))
    }
}
