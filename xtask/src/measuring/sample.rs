//! Median and spread.

use std::fmt;

/// Some numbers of the same kind.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds one.
    pub fn push(&mut self, number: f64) {
        let at = self.0.partition_point(|other| other.total_cmp(&number).is_lt());
        self.0.insert(at, number);
    }

    /// Returns the middle one; of an even number the mean of the two in the middle, of none not a number.
    pub fn median(&self) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return f64::NAN };
        f64::midpoint(self.0[last / 2], self.0[last.div_ceil(2)])
    }

    /// Returns the number that this share of the others is below, between the two nearest.
    pub fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return f64::NAN };
        let place = share * last as f64;
        let (lower, upper) = (self.0[place.floor() as usize], self.0[place.ceil() as usize]);
        lower + (upper - lower) * place.fract()
    }

    /// Returns the least.
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// Returns the largest.
    pub fn largest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut sample = Self::default();
        numbers.into_iter().for_each(|number| sample.push(number));
        sample
    }
}

/// `1.234 (1.200 to 1.300)`, with the formatter's precision.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median(), self.least(), self.largest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        let sample: Sample = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!((sample.median(), sample.least(), sample.largest()), (2.0, 1.0, 3.0));
        assert_eq!([4.0, 1.0, 2.0, 3.0].into_iter().collect::<Sample>().median(), 2.5);
        assert_eq!(format!("{sample:.1}"), "2.0 (1.0 to 3.0)");
        assert!(Sample::default().median().is_nan());
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sample: Sample = [4.0, 1.0, 2.0, 3.0].into_iter().collect();
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| sample.quantile(share)), [1.0, 1.75, 2.5, 4.0]);
        assert!(Sample::default().quantile(0.5).is_nan());
    }
}
