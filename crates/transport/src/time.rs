//! Time and rates of the engine. Neither knows a clock: the caller passes the time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Whole microseconds, as many as the 32 bits hold that the wire has for them.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Nanoseconds since an origin that the caller chooses (584 years before it wraps).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A rate in bits of IP packets per second: UDP payload plus the headers below it (docs/design/floor.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Rate(u64);

impl From<u64> for Rate {
    fn from(bits_per_second: u64) -> Self {
        Self::from_bits_per_second(bits_per_second)
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

impl Rate {
    /// A rate of `bits` bits per second, at least 1.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(if bits == 0 { 1 } else { bits })
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// How long `bytes` bytes take at this rate.
    pub fn time_for(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes this rate carries in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * time.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// This rate times `factor`, saturating.
    pub fn scaled(self, factor: f64) -> Self {
        Self::from_bits_per_second((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        match self.0 {
            0..1_000_000 => write!(f, "{:.1} kbit/s", bits / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} Mbit/s", bits / 1e6),
            _ => write!(f, "{:.2} Gbit/s", bits / 1e9),
        }
    }
}
