//! Statistics of runs of the same case.

use super::{Ending, Record};
use crate::plan::{Quantity, Spread};

/// A number, or a lower bound of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// As measured.
    Exactly(f64),
    /// At least this: runs did not finish.
    AtLeast(f64),
}

impl Bound {
    /// Returns the number, or the bound.
    pub fn value(self) -> f64 {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) => value,
        }
    }

    /// Returns it in another unit, given in the present one.
    pub(crate) fn over(self, unit: f64) -> Self {
        match self {
            Self::Exactly(value) => Self::Exactly(value / unit),
            Self::AtLeast(value) => Self::AtLeast(value / unit),
        }
    }

    /// Returns whether it is only a bound.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::AtLeast(_))
    }
}

/// A quantity of the valid runs of one peer at one point: times in seconds, delays in milliseconds. An unfinished or
/// failed run counts as at least its cap; invalid runs are not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct PointSummary {
    /// Valid runs that finished.
    pub finished: usize,
    /// Valid runs that reached the cap.
    pub not_finished: usize,
    /// Valid runs in which the peer failed.
    pub failed: usize,
    /// Invalid runs, which are not counted.
    pub invalid: usize,
    /// Statistics of the quantity, if it is known of any valid run.
    pub times: Option<Times>,
}

/// Order statistics of times, or of another quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The least.
    pub min: Bound,
    /// A quarter is less.
    pub first_quartile: Bound,
    /// The median. With an even number, the mean of the two in the middle; the upper one if it did not finish.
    pub median: Bound,
    /// A quarter is more.
    pub third_quartile: Bound,
    /// The most.
    pub max: Bound,
}

impl PointSummary {
    /// Summarises a quantity of runs of the same case, except for seed and repeat.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>, quantity: Quantity) -> Self {
        let mut summary = Self { finished: 0, not_finished: 0, failed: 0, invalid: 0, times: None };
        let mut times = Vec::new();
        for record in records {
            if !record.is_valid() {
                summary.invalid += 1;
                continue;
            }
            let count = match record.outcome.ending {
                Ending::Finished { .. } => &mut summary.finished,
                Ending::NotFinished => &mut summary.not_finished,
                Ending::Failed { .. } => &mut summary.failed,
            };
            *count += 1;
            let known = match record.outcome.ending {
                Ending::Finished { .. } => record.value(quantity).map(Bound::Exactly),
                Ending::NotFinished | Ending::Failed { .. } => record.bound(quantity).map(Bound::AtLeast),
            };
            times.extend(known);
        }
        summary.times = Times::of(times);
        summary
    }

    /// Returns the number of valid runs.
    pub fn valid(&self) -> usize {
        self.finished + self.not_finished + self.failed
    }
}

impl Times {
    /// Returns the statistics of the times of all runs; `None` if there are none.
    pub(crate) fn of(mut times: Vec<Bound>) -> Option<Self> {
        // Unfinished runs are last, whatever their cap.
        times.sort_by(|a, b| a.is_bound().cmp(&b.is_bound()).then(a.value().total_cmp(&b.value())));
        Some(Self {
            min: *times.first()?,
            first_quartile: quantile(&times, 0.25),
            median: quantile(&times, 0.5),
            third_quartile: quantile(&times, 0.75),
            max: *times.last()?,
        })
    }

    /// Returns the ends of an error bar.
    pub(crate) const fn bar(&self, spread: Spread) -> [Bound; 2] {
        match spread {
            Spread::Range => [self.min, self.max],
            Spread::Quartiles => [self.first_quartile, self.third_quartile],
        }
    }
}

/// The mean of runs, and its confidence. Unfinished runs have no time that could enter it; their number is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Runs in the mean; at least one.
    pub runs: usize,
    /// Unfinished runs, which are not in the mean.
    pub left_out: usize,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the runs, estimated from them (n - 1); `None` for a single run.
    pub deviation: Option<f64>,
    /// The 95 % confidence interval of the mean, if runs are independent and their values normally distributed
    /// (Student's t); `None` for a single run.
    pub interval: Option<[f64; 2]>,
}

impl Mean {
    /// Returns the mean of runs; `None` if none of them has a value.
    pub(crate) fn of(values: &[Bound]) -> Option<Self> {
        let known: Vec<f64> = values.iter().filter(|value| !value.is_bound()).map(|value| value.value()).collect();
        let runs = known.len();
        if runs == 0 {
            return None;
        }
        let mean = known.iter().sum::<f64>() / runs as f64;
        let degrees = runs - 1;
        let squares = known.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = (degrees > 0).then(|| (squares / degrees as f64).sqrt());
        let half = deviation.map(|deviation| student(degrees) * deviation / (runs as f64).sqrt());
        let interval = half.map(|half| [mean - half, mean + half]);
        Some(Self { runs, left_out: values.len() - runs, mean, deviation, interval })
    }
}

/// Returns the value that Student's t with these degrees of freedom, at least one, exceeds with a probability of 2.5 %.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    /// The value of the normal distribution.
    const NORMAL: f64 = 1.959_964;
    let beyond = || {
        // The first two terms of the expansion in 1 / degrees (Abramowitz 1964, 26.7.5), off by less than 0.001.
        let (z, n) = (NORMAL, degrees as f64);
        z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
    };
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or_else(beyond)
}

/// Interpolates linearly between the two neighbours; returns a bound if the upper one is a bound.
fn quantile(sorted: &[Bound], share: f64) -> Bound {
    let place = share * (sorted.len() - 1) as f64;
    let (lower, upper) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    let between = lower.value() + (upper.value() - lower.value()) * place.fract();
    match upper {
        Bound::Exactly(_) => Bound::Exactly(between),
        // A cap below another run's time is still only a bound.
        Bound::AtLeast(cap) => Bound::AtLeast(between.min(cap)),
    }
}

/// Returns the factor of the straight line through the origin with the least squares, and the share of the variance
/// that it explains; `None` where there is none.
pub(crate) fn line_through_origin(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let factor = sum(|(x, y)| x * y) / sum(|(x, _)| x * x);
    let mean = sum(|(_, y)| *y) / points.len() as f64;
    let squares = |from: &dyn Fn(f64) -> f64| points.iter().map(|(x, y)| (y - from(*x)).powi(2)).sum::<f64>();
    let share = 1.0 - squares(&|x| factor * x) / squares(&|_| mean);
    share.is_finite().then_some((factor, share))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{record, written};
    use super::Bound::{AtLeast, Exactly};
    use super::*;

    /// Returns runs of these seconds, and `not_finished` runs that did not finish in 60 s.
    fn runs(seconds: &[f64], not_finished: usize) -> Vec<Record> {
        let finished = seconds.iter().map(|seconds| record(*seconds));
        let mut late = record(0.0);
        late.outcome.ending = Ending::NotFinished;
        finished.chain(std::iter::repeat_n(late, not_finished)).collect()
    }

    fn times(seconds: &[f64], not_finished: usize) -> [Bound; 5] {
        let times = PointSummary::of(&runs(seconds, not_finished), Quantity::Seconds).times.expect("valid runs");
        [times.min, times.first_quartile, times.median, times.third_quartile, times.max]
    }

    #[test]
    fn order_statistics() {
        assert_eq!(times(&[2.0], 0), [Exactly(2.0); 5]);
        assert_eq!(times(&[4.0, 1.0, 2.0], 0), [1.0, 1.5, 2.0, 3.0, 4.0].map(Exactly));
        assert_eq!(times(&[4.0, 1.0, 2.0, 3.0], 0), [1.0, 1.75, 2.5, 3.25, 4.0].map(Exactly));
    }

    #[test]
    fn unfinished_runs_are_lower_bounds() {
        let late = AtLeast(60.0);
        assert_eq!(times(&[3.0, 1.0, 2.0, 4.0], 1), [Exactly(1.0), Exactly(2.0), Exactly(3.0), Exactly(4.0), late]);
        let half = times(&[1.0, 2.0], 2);
        assert_eq!(half, [Exactly(1.0), Exactly(1.75), AtLeast(31.0), late, late], "half did not finish");
        assert_eq!(times(&[], 3), [late; 5]);
        // A time above the cap of another run: unfinished runs are still last.
        assert_eq!(times(&[100.0], 2), [Exactly(100.0), late, late, late, late]);
    }

    #[test]
    fn invalid_runs_not_counted_failed_as_unfinished() {
        let mut all = runs(&[1.0, 2.0, 3.0], 0);
        all[0].outcome.verdict.reasons.push("late".into());
        all[2].outcome.ending = Ending::Failed { reason: "bytes differ".into() };
        let summary = PointSummary::of(&all, Quantity::Seconds);
        assert_eq!((summary.finished, summary.not_finished, summary.failed, summary.invalid), (1, 0, 1, 1));
        assert_eq!(summary.valid(), 2);
        let times = summary.times.expect("valid runs");
        assert_eq!((times.min, times.median), (Exactly(2.0), AtLeast(31.0)));
        all.truncate(1);
        assert_eq!(PointSummary::of(&all, Quantity::Seconds).times, None);
    }

    #[test]
    fn mean_has_deviation_and_interval() {
        let exactly = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(Exactly);
        let mean = Mean::of(&exactly).expect("runs");
        // The squares of the differences from 5 add up to 32, so that the deviation is the root of 32 / 7.
        let deviation = (32.0_f64 / 7.0).sqrt();
        let half = 2.365 * deviation / 8.0_f64.sqrt();
        assert_eq!((mean.runs, mean.left_out, mean.mean, mean.deviation), (8, 0, 5.0, Some(deviation)));
        assert_eq!(mean.interval, Some([5.0 - half, 5.0 + half]));
        let single = Mean::of(&[AtLeast(60.0), Exactly(2.0), AtLeast(60.0)]).expect("a run");
        let expected = Mean { runs: 1, left_out: 2, mean: 2.0, deviation: None, interval: None };
        assert_eq!(single, expected, "unfinished runs are counted separately");
        assert_eq!((Mean::of(&[AtLeast(60.0)]), Mean::of(&[])), (None, None));
    }

    #[test]
    fn student_approaches_normal() {
        for (degrees, expected) in [(1, 12.706), (4, 2.776), (30, 2.042), (31, 2.0395), (60, 2.0003), (120, 1.9799)] {
            assert!((student(degrees) - expected).abs() < 1e-3, "{degrees}: {}", student(degrees));
        }
        assert!((1..200).all(|degrees| student(degrees) > student(degrees + 1)));
    }

    #[test]
    fn delays_are_summarised() {
        let mut all = [written(50.0, 80.0), written(51.0, 95.0), written(52.0, 90.0)];
        let median = |all: &[Record], quantity| PointSummary::of(all, quantity).times.map(|times| times.median);
        assert_eq!(median(&all, Quantity::DelayP50), Some(Exactly(51.0)));
        assert_eq!(median(&all, Quantity::DelayP99), Some(Exactly(90.0)));
        assert_eq!(median(&all, Quantity::WirePerByte), Some(Exactly(2.5)));
        for late in &mut all[..2] {
            late.outcome.ending = Ending::NotFinished;
        }
        // The cap is 58 s after the last write.
        assert_eq!(median(&all, Quantity::DelayP99), Some(AtLeast(58e3)));
        assert_eq!(median(&all, Quantity::WirePerByte), Some(Exactly(2.5)), "of the finished one");
        assert_eq!(median(&[record(1.0)], Quantity::DelayP99), None, "files have no delays");
    }
}
