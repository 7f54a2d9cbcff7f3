//! Axes: the positions of values, and the labels beside them.

use crate::plan::{Axis, Scale, Sweep};

/// One axis: the range of numbers it shows, and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruler {
    pub(super) title: String,
    scale: Scale,
    low: f64,
    high: f64,
    /// Positions and labels.
    pub(super) ticks: Vec<(f64, String)>,
}

/// A share of an axis left free on either side of the outermost points.
const MARGIN: f64 = 0.05;
/// Round steps.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];
const MOST_TICKS: f64 = 7.0;
/// Above this many decades only their beginnings have ticks.
const WIDE_DECADES: f64 = 2.5;

impl Ruler {
    /// Creates the axis of the varied quantity, with a tick at each measured position.
    pub(super) fn of_places(sweep: &Sweep, others: impl Iterator<Item = f64>) -> Self {
        let Sweep { axis, scale, points, .. } = sweep;
        if *axis == Axis::Link {
            return Self::of_names(axis.title(), points.iter().map(|point| (point.x, point.label.clone())).collect());
        }
        let ticks = points.iter().map(|point| (point.x, units::number(point.x))).collect();
        Self::of_ticks(&format!("{}, {}", axis.title(), axis.unit()), *scale, ticks, others)
    }

    /// Creates an axis of names, one beside the other.
    pub(super) fn of_names(title: &str, ticks: Vec<(f64, String)>) -> Self {
        let ruler = Self::of_ticks(title, Scale::Linear, ticks, std::iter::empty());
        let (low, high) = (ruler.ticks[0].0 - 0.5, ruler.ticks[ruler.ticks.len() - 1].0 + 0.5);
        Self { low, high, ..ruler }
    }

    /// Creates an axis with these ticks, the positions of all values except `others`.
    pub(super) fn of_ticks(
        title: &str,
        scale: Scale,
        mut ticks: Vec<(f64, String)>,
        others: impl Iterator<Item = f64>,
    ) -> Self {
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places: Vec<f64> = ticks.iter().map(|(place, _)| *place).chain(others).collect();
        let (low, high) = range(&places);
        let (low, high) = match scale {
            Scale::Linear if low == high => (low - 1.0, high + 1.0),
            Scale::Linear => (low - MARGIN * (high - low), high + MARGIN * (high - low)),
            Scale::Log if low == high => (low / 2.0, high * 2.0),
            Scale::Log => (low * (low / high).powf(MARGIN), high * (high / low).powf(MARGIN)),
        };
        Self { title: title.to_owned(), scale, low, high, ticks }
    }

    /// Creates an axis that shows all `values`: from 0 if it is linear.
    pub(super) fn of_values(title: &str, scale: Scale, values: Vec<f64>) -> Self {
        let title = title.to_owned();
        let positive: Vec<f64> = values.into_iter().filter(|value| *value > 0.0 && value.is_finite()).collect();
        let (low, high) = if positive.is_empty() { (0.1, 1.0) } else { range(&positive) };
        match scale {
            Scale::Linear => {
                let high = high * (1.0 + MARGIN);
                let step = step(high / MOST_TICKS);
                let count = (high / step).ceil() as u32;
                let ticks = (0..=count).map(|index| f64::from(index) * step).map(|y| (y, short(y))).collect();
                Self { title, scale, low: 0.0, high: f64::from(count) * step, ticks }
            }
            Scale::Log => {
                let (low, high) = (below(low / (1.0 + MARGIN)), step(high * (1.0 + MARGIN)));
                let wide = (high / low).log10() > WIDE_DECADES;
                let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
                let steps = if wide { &STEPS[..1] } else { &STEPS[..] };
                let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
                let within = |y: &f64| *y >= low * 0.999 && *y <= high * 1.001;
                Self { title, scale, low, high, ticks: all.filter(within).map(|y| (y, short(y))).collect() }
            }
        }
    }

    /// Creates an axis that shows exactly this range.
    pub(super) fn of_range(title: &str, [low, high]: [f64; 2]) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = step((high - low) / MOST_TICKS);
        let (first, last) = ((low / step).ceil(), (high / step).floor());
        let count = (last - first).max(0.0) as u32;
        let ticks = (0..=count).map(|index| (first + f64::from(index)) * step).map(|x| (x, short(x))).collect();
        Self { title: title.to_owned(), scale: Scale::Linear, low, high, ticks }
    }

    /// Returns values at equal distances over the whole axis, `count` of them.
    pub(super) fn spread(&self, count: u32) -> impl Iterator<Item = f64> {
        let share = move |index: u32| f64::from(index) / f64::from(count - 1);
        (0..count).map(move |index| match self.scale {
            Scale::Linear => self.low + (self.high - self.low) * share(index),
            Scale::Log => self.low * (self.high / self.low).powf(share(index)),
        })
    }

    /// Returns whether a value lies on the axis.
    pub(super) fn shows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the position of a value, from 0 at the axis' beginning to 1 at its end; values beyond are drawn at the
    /// end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// Formats `0.005`, `1e-6`: numbers with too many digits are written with their power of ten.
fn short(number: f64) -> String {
    if number.abs() >= 1e-3 || number == 0.0 {
        return units::number(number);
    }
    // 5 * 10^-7 is 4.9999999999999998e-7.
    format!("{number:.0e}")
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// Returns the least of 1, 2, 5, 10, 20 ... (and 0.5, 0.2 ...) that is not below `least`.
fn step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    // A small tolerance: rounding must not turn 1 into 2.
    STEPS.iter().map(|step| step * decade).find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// Returns the greatest of those that is not above `most`.
fn below(most: f64) -> f64 {
    let decade = 10_f64.powf(most.log10().floor());
    STEPS.iter().rev().map(|step| step * decade).find(|step| *step <= most * (1.0 + 1e-9)).unwrap_or(decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let linear = Ruler::of_values("s", Scale::Linear, vec![3.0, 42.0]);
        assert_eq!(labels(&linear), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!((linear.place(0.0), linear.place(25.0), linear.place(60.0)), (0.0, 0.5, 1.0));
        let narrow = Ruler::of_values("s", Scale::Log, vec![0.9, 17.0]);
        assert_eq!(labels(&narrow), ["0.5", "1", "2", "5", "10", "20"]);
        let wide = Ruler::of_values("s", Scale::Log, vec![0.03, 110.0]);
        assert_eq!(labels(&wide), ["0.1", "1", "10", "100"]);
        assert!((wide.place(2.0) - 0.5).abs() < 1e-9, "half way from 0.02 to 200");
        assert_eq!(labels(&Ruler::of_values("s", Scale::Log, vec![])), ["0.05", "0.1", "0.2", "0.5", "1", "2"]);
        let rare = Ruler::of_values("share", Scale::Log, vec![3e-6, 1.0]);
        assert_eq!(labels(&rare), ["1e-5", "1e-4", "0.001", "0.01", "0.1", "1"]);
    }
}
