//! The number of check symbols of a code, and the number of symbols it needs.

use std::f64::consts::PI;

use super::TornadoCode;
use super::cascade::MOST_IN_END;

/// The check symbols' share of all symbols, in 128ths: 1 to 64. The actual share of a code is slightly larger, see
/// [`TornadoCode::symbol_limit`](super::TornadoCode::symbol_limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckShare(u8);

impl CheckShare {
    /// A quarter of all symbols are check symbols.
    pub const QUARTER: Self = Self(32);

    /// Half of all symbols are check symbols: the largest share.
    pub const HALF: Self = Self(64);

    /// Returns the rate `of_128` / 128, or `None` outside 1 to 64.
    #[must_use]
    pub const fn new(of_128: u8) -> Option<Self> {
        if matches!(of_128, 1..=64) { Some(Self(of_128)) } else { None }
    }

    /// Returns the share in 128ths.
    #[must_use]
    pub const fn of_128(self) -> u8 {
        self.0
    }

    /// Iterates over every rate, from few check symbols to many.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=64).map(Self)
    }

    /// Returns the rate with the fewest check symbols with which a block of `k` source symbols decodes in 99 of 100
    /// cases when each symbol is lost with probability `loss`. `overhead` is the planned reception overhead: 0.05 for
    /// 1.05 `k` symbols; the code's own need is planned for in any case. `None` if no rate suffices.
    #[must_use]
    pub fn for_loss(k: u32, loss: f64, overhead: f64) -> Option<Self> {
        Self::all().find(|&rate| {
            let limit = TornadoCode::new(rate).symbol_limit(k);
            let (all, needed) = (f64::from(limit), Overhead::new(k, limit - k));
            let median = needed.median.max(overhead * f64::from(k));
            // The numbers of arriving and of needed symbols vary independently.
            let spread = (all * loss * (1.0 - loss) + needed.spread * needed.spread).sqrt();
            all * (1.0 - loss) - Z_99 * spread >= f64::from(k) + median
        })
    }

    /// Returns the probability that decoding fails with `extra` symbols more than `k` received: about as measured, or
    /// slightly higher. It assumes that losses fall on all symbols at random; if they fall on one level alone, as many
    /// as it has checks are too many.
    #[must_use]
    pub fn failure(self, k: u32, extra: u32) -> f64 {
        let checks = TornadoCode::new(self).symbol_limit(k) - k;
        if extra >= checks {
            return 0.0;
        }
        let needed = Overhead::new(k, checks);
        if needed.spread == 0.0 {
            return 0.0;
        }
        // The logistic distribution of this mean and deviation: its tail is heavier than the normal one's, as is that
        // of the measurements.
        let scale = needed.spread * 3_f64.sqrt() / PI;
        1.0 / (1.0 + ((f64::from(extra) - needed.median) / scale).exp())
    }
}

/// The normal distribution's 99 % point.
const Z_99: f64 = 2.326;

/// The number of symbols beyond `k` that decoding takes.
///
/// With `l` check symbols the median is at most l/10 + 1.6 sqrt(l) and the deviation sqrt(l), measured on blocks of 121
/// to 50,000 symbols at rates from 1 to 64, with 400 to 5000 orders of arrival each. Large blocks need less: l/14 at
/// `k` = 50,000 and rate 32.
struct Overhead {
    median: f64,
    spread: f64,
}

impl Overhead {
    fn new(k: u32, checks: u32) -> Self {
        if k <= MOST_IN_END {
            return Self { median: 0.0, spread: 0.0 };
        }
        let checks = f64::from(checks);
        Self { median: 0.1 * checks + 1.6 * checks.sqrt(), spread: checks.sqrt() }
    }
}
