//! Timing in alternating rounds.
//!
//! It is our own rather than that of divan (0.1), which takes the time of day, or of the cycle counter, for the whole
//! of a closure, measures one thing to its end before the next, and prints its figures without returning them. Here
//! each round measures both sides of a comparison on the same block with the same losses, so that their ratio can be
//! taken round by round; only processor time of this thread counts, and only the decoder's part of a decode; and
//! tables, pictures and targets use the figures.

use std::time::{Duration, Instant};

/// Processor time of this thread, which excludes other load on the machine.
pub(super) use lab::codes::timed;

use xtask::failure::Failure;
use xtask::measuring::Sample;

/// The duration of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The least and the most rounds.
    pub(super) rounds: (usize, usize),
    /// No further round starts after that, once there are enough.
    pub(super) time: Duration,
}

impl Patience {
    pub(super) fn new(quick: bool) -> Self {
        let (rounds, seconds) = if quick { ((3, 50), 0.4) } else { ((9, 400), 3.0) };
        Self { rounds, time: Duration::from_secs_f64(seconds) }
    }
}

/// Seconds of a piece of work, round by round.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// All of them.
    pub(super) fn sample(&self) -> Sample {
        self.0.iter().copied().collect()
    }

    /// Returns MB/s for this number of bytes in each round.
    pub(super) fn speed(&self, bytes: usize) -> Sample {
        self.0.iter().map(|seconds| bytes as f64 / 1e6 / seconds).collect()
    }

    /// Returns the ratios to the times of another in the same rounds, in which common slowdowns cancel.
    pub(super) fn over(&self, other: &Self) -> Sample {
        self.0.iter().zip(&other.0).map(|(this, other)| this / other).collect()
    }
}

/// Work that is done once and returns its time.
pub(super) type Round<'a> = dyn FnMut() -> Result<Duration, Failure> + 'a;

/// Runs each of them in turn, round after round. The first round creates tables and plans and does not count.
pub(super) fn in_turns<const N: usize>(
    patience: Patience,
    mut all: [&mut Round<'_>; N],
) -> Result<[Times; N], Failure> {
    let mut times = [const { Times(Vec::new()) }; N];
    for one in &mut all {
        one()?;
    }
    let started = Instant::now();
    let (least, most) = patience.rounds;
    for round in 0..most {
        if round >= least && started.elapsed() > patience.time {
            break;
        }
        for (one, times) in all.iter_mut().zip(&mut times) {
            times.0.push(one()?.as_secs_f64());
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turns_alternates_and_skips_the_first_round() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: char, millis: u64| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(Duration::from_millis(millis))
            }
        };
        let (mut a, mut b) = (side('a', 10), side('b', 30));
        let patience = Patience { rounds: (3, 3), time: Duration::ZERO };
        let [a, b] = in_turns(patience, [&mut a, &mut b]).expect("both go well");
        assert_eq!(*order.borrow(), "abababab");
        assert_eq!((a.0.len(), b.over(&a).median()), (3, 3.0));
        assert_eq!(a.speed(1_000_000).median(), 100.0);
    }
}
