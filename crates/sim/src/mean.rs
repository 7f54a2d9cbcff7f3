//! The mean of a number over time.

use netsim::Time;

/// The mean over time of a number that keeps each value until the next one is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeMean {
    /// Value times seconds so far, and seconds.
    sum: f64,
    seconds: f64,
    last: Option<(Time, f64)>,
}

impl TimeMean {
    /// Records that the number has this value from now on.
    pub fn see(&mut self, now: Time, value: f64) {
        if let Some((since, held)) = self.last {
            let seconds = (now - since).as_secs_f64();
            self.sum += held * seconds;
            self.seconds += seconds;
        }
        self.last = Some((now, value));
    }

    /// Returns the mean from the first value to the last; `None` if no time passed between them.
    pub fn mean(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_mean_weights_by_duration() {
        let mut mean = TimeMean::default();
        assert_eq!(mean.mean(), None);
        for (milliseconds, value) in [(500, 8.0), (500, 1.0), (1_500, 4.0), (2_000, 100.0)] {
            mean.see(Time::from_nanos(milliseconds * 1_000_000), value);
        }
        assert_eq!(mean.mean(), Some(2.0), "1 for a second, 4 for half of one, and the last for no time");
    }
}
