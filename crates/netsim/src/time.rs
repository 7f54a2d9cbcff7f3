//! Virtual time in whole picoseconds.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_SECOND: f64 = 1e12;

/// A point in time: picoseconds since the start of the run, with a range of 213 days.
///
/// Picoseconds, because one byte at 100 Gbit/s takes 80 of them: in nanoseconds the rate of a fast link would be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than everything that happens: a deadline at `MAX` never fires.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time `picos` picoseconds after the start.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns the time `nanos` nanoseconds after the start; `MAX` if that does not fit.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos.saturating_mul(PICOS_PER_NANO))
    }

    /// Returns the time `seconds` after the start, rounded down; zero for a negative number or NaN, `MAX` if it does
    /// not fit.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * PICOS_PER_SECOND) as u64)
    }

    /// Returns the picoseconds since the start.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the whole nanoseconds since the start, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / PICOS_PER_NANO
    }

    /// Returns the seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SECOND
    }

    /// Returns `self + duration`, or `None` past the end of time.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let picos = duration.as_nanos().checked_mul(u128::from(PICOS_PER_NANO))?;
        self.0.checked_add(u64::try_from(picos).ok()?).map(Self)
    }

    /// Returns the time since `earlier`, in whole nanoseconds rounded down, or `None` if `earlier` is later.
    pub fn checked_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(|picos| Duration::from_nanos(picos / PICOS_PER_NANO))
    }

    /// Returns the first multiple of `interval` not before `self`, or `self` if `interval` is zero; saturates at `MAX`.
    pub(crate) fn next_multiple_of(self, interval: Duration) -> Self {
        match picos(interval) {
            0 => self,
            interval => Self(self.0.checked_next_multiple_of(interval).unwrap_or(u64::MAX)),
        }
    }

    /// Returns `self` plus `picos` picoseconds; saturates at `MAX`.
    pub(crate) const fn plus_picos(self, picos: u64) -> Self {
        Self(self.0.saturating_add(picos))
    }
}

/// Returns the picoseconds in `duration`; saturates at the largest number.
pub(crate) fn picos(duration: Duration) -> u64 {
    (Time::ZERO + duration).as_picos()
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates at [`Time::MAX`].
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }
}

impl Sub for Time {
    type Output = Duration;

    /// In whole nanoseconds, rounded down; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.checked_since(earlier).unwrap_or(Duration::ZERO)
    }
}

impl From<Duration> for Time {
    /// Converts a time after the start; saturates at [`Time::MAX`].
    fn from(since_start: Duration) -> Self {
        Self::ZERO + since_start
    }
}

impl fmt::Display for Time {
    /// Prints seconds with all twelve digits, so that two traces can be compared as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:012} s", self.0 / 1_000_000_000_000, self.0 % 1_000_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Time::MAX + Duration::from_nanos(1), Time::MAX);
        assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
        assert_eq!(Time::MAX.checked_add(Duration::from_nanos(1)), None);
        assert_eq!(Time::ZERO - Time::from_nanos(1), Duration::ZERO);
        assert_eq!(Time::ZERO.checked_since(Time::from_picos(1)), None);
        assert_eq!(Time::from_nanos(u64::MAX), Time::MAX);
        assert_eq!(Time::from_secs_f64(f64::NAN), Time::ZERO);
        assert_eq!(Time::from_secs_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_secs_f64(1e30), Time::MAX);
    }

    #[test]
    fn units_agree() {
        assert_eq!(Time::from_secs_f64(1.5), Time::from_nanos(1_500_000_000));
        assert_eq!(Time::from_picos(1_999).as_nanos(), 1);
        assert_eq!(Time::from_picos(5_999) - Time::from_picos(1_000), Duration::from_nanos(4));
        assert_eq!(Time::from_nanos(1_500_000_000).to_string(), "1.500000000000 s");
    }
}
