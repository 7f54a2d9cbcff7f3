//! One seeded stream of random numbers per impairment.

/// A stream of its own for each impairment: switching one on does not change what another draws.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    loss: fastrand::Rng,
    jitter: fastrand::Rng,
    reorder: fastrand::Rng,
    duplicate: fastrand::Rng,
    corrupt: fastrand::Rng,
    mark: fastrand::Rng,
    scatter: fastrand::Rng,
}

/// The draws of one packet: exactly one of each stream, used or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) loss: u64,
    pub(crate) jitter: u64,
    pub(crate) reorder: u64,
    pub(crate) duplicate: u64,
    pub(crate) corrupt: u64,
    pub(crate) mark: u64,
    pub(crate) scatter: u64,
}

impl Streams {
    pub(crate) fn new(seed: u64) -> Self {
        // The number of a stream is part of every recorded run: append, never renumber.
        let stream = |number: u64| fastrand::Rng::with_seed(mix(mix(seed).wrapping_add(number)));
        Self {
            loss: stream(1),
            jitter: stream(2),
            reorder: stream(3),
            duplicate: stream(4),
            corrupt: stream(5),
            mark: stream(6),
            scatter: stream(7),
        }
    }

    pub(crate) fn draw(&mut self) -> Draws {
        Draws {
            loss: self.loss.u64(..),
            jitter: self.jitter.u64(..),
            reorder: self.reorder.u64(..),
            duplicate: self.duplicate.u64(..),
            corrupt: self.corrupt.u64(..),
            mark: self.mark.u64(..),
            scatter: self.scatter.u64(..),
        }
    }
}

/// Converts a draw to a number in `0..1`, with all 53 bits that a double holds.
pub(crate) fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// Converts a draw to a whole number in `0..=limit`.
pub(crate) fn up_to(limit: u64, draw: u64) -> u64 {
    let product = (u128::from(limit) + 1) * u128::from(draw);
    u64::try_from(product >> 64).expect("(2^64) * (2^64 - 1) >> 64 is below 2^64")
}

/// The SplitMix64 finaliser: neighbouring seeds give unrelated results.
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_at_the_ends() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!((up_to(0, 0), up_to(0, u64::MAX)), (0, 0));
        assert_eq!((up_to(9, 0), up_to(9, u64::MAX)), (0, 9));
        assert_eq!(up_to(u64::MAX, u64::MAX), u64::MAX);
    }
}
