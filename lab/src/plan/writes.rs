//! Small writes: the work of a plan that moves no file.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The times and the handling of writes. Each write has the size of the case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    /// Seconds from one write to the next, or their mean.
    pub every_seconds: f64,
    /// Whether these times are random, with an exponential distribution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub poisson: bool,
    /// Seconds from the first write to the end of the last interval.
    pub seconds: f64,
    /// Whether the other host echoes the writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo: bool,
    /// Bytes of a file uploaded at the same time over a connection of its own. Writing ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<u64>,
}

impl Writes {
    /// Returns the due time of each write after the first; the seed determines random times.
    pub(crate) fn times(&self, seed: u64) -> Vec<Duration> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut times = Vec::new();
        let mut due = 0.0;
        while due < self.seconds {
            times.push(Duration::from_secs_f64(due));
            due = match self.poisson {
                true => due - self.every_seconds * (1.0 - random.f64()).ln(),
                // A sum of many steps would drift.
                false => self.every_seconds * times.len() as f64,
            };
        }
        times
    }
}

/// `each 200 ms on average for 60 s, echoed, beside an upload of 100 MB`.
impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = if self.poisson { " on average" } else { "" };
        write!(f, "each {}{mean} for {}", units::seconds(self.every_seconds), units::seconds(self.seconds))?;
        if self.echo {
            write!(f, ", echoed")?;
        }
        match self.beside {
            Some(bytes) => write!(f, ", beside an upload of {}", units::bytes(bytes)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Writes = Writes { every_seconds: 0.2, poisson: true, seconds: 2000.0, echo: true, beside: None };

    #[test]
    fn times_regular_without_drift() {
        let writes = Writes { every_seconds: 0.02, poisson: false, seconds: 60.0, echo: false, beside: None };
        let times = writes.times(7);
        assert_eq!((times.len(), times[0], times[2999]), (3000, Duration::ZERO, Duration::from_secs_f64(59.98)));
        assert_eq!(times, writes.times(8));
    }

    #[test]
    fn times_poisson_mean_and_spread() {
        let times = KEYS.times(1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        // 10,000 of them: standard errors of 1 %, and of 1 % of the share.
        assert!((9_600..10_400).contains(&gaps.len()), "{}", gaps.len());
        let longer = gaps.iter().filter(|gap| **gap > 0.2).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.02, "{longer}");
        assert_eq!(times, KEYS.times(1));
        assert_ne!(times, KEYS.times(2));
    }

    #[test]
    fn writes_display_and_serde_round_trip() {
        let beside = Writes { seconds: 60.0, beside: Some(100_000_000), ..KEYS };
        assert_eq!(beside.to_string(), "each 200 ms on average for 60.0 s, echoed, beside an upload of 100 MB");
        let plain = Writes { every_seconds: 0.02, poisson: false, seconds: 5.0, echo: false, beside: None };
        assert_eq!(plain.to_string(), "each 20 ms for 5.00 s");
        let json = serde_json::to_string(&plain).expect("JSON");
        assert_eq!(json, r#"{"every_seconds":0.02,"seconds":5.0}"#);
        assert_eq!(serde_json::from_str::<Writes>(&json).expect("it reads back"), plain);
    }
}
