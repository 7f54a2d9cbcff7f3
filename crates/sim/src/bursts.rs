//! A source that sends and pauses, for traffic with which others share links.

use std::time::Duration;
use transport::{ConnectionHandle, Time};

/// Objects of random size on one connection, with pauses of random length between them. Both are drawn from a Pareto
/// distribution, as in ns-2's Application/Traffic/Pareto: a few long bursts carry most of the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// Mean size of an object, in bytes.
    pub burst: u64,
    /// Mean pause, from when the receiver has one object to the start of the next.
    pub idle: Duration,
    /// Shape of both distributions, above 1, for which they have a mean; below 2 they have no variance.
    pub shape: f64,
}

impl Default for OnOff {
    /// ns-2's defaults: bursts of 500 ms at 64 kbit/s, which are 4000 bytes, pauses of 500 ms, and shape 1.5.
    fn default() -> Self {
        Self { burst: 4_000, idle: Duration::from_millis(500), shape: 1.5 }
    }
}

/// Limit on the size of an object: one in 10^10 would be larger at the default shape and mean.
const LARGEST: f64 = 1e12;

/// The progress of such a source.
#[derive(Debug)]
pub(crate) struct Bursts {
    script: OnOff,
    random: fastrand::Rng,
    /// The connection, and when the next object is sent on it.
    next: Option<(Time, ConnectionHandle)>,
}

impl Bursts {
    pub(crate) fn new(script: OnOff, seed: u64) -> Self {
        Self { script, random: fastrand::Rng::with_seed(seed), next: None }
    }

    /// Starts on an established connection: sends the first object at once.
    pub(crate) fn begin(&mut self, now: Time, handle: ConnectionHandle) {
        self.next = Some((now, handle));
    }

    /// Handles the arrival of an object: begins a pause.
    pub(crate) fn pause(&mut self, now: Time, handle: ConnectionHandle) {
        let pause = self.draw(self.script.idle.as_secs_f64());
        self.next = Some((now + Duration::from_secs_f64(pause), handle));
    }

    /// Returns when to send the next object.
    pub(crate) fn due(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    /// Returns the connection for an object due by now, and its number of bytes.
    pub(crate) fn take(&mut self, now: Time) -> Option<(ConnectionHandle, u64)> {
        let (_, handle) = self.next.take_if(|(at, _)| *at <= now)?;
        Some((handle, (self.draw(self.script.burst as f64).round() as u64).max(1)))
    }

    /// Draws a number from the distribution with this mean.
    fn draw(&mut self, mean: f64) -> f64 {
        let shape = self.script.shape;
        let least = mean * (shape - 1.0) / shape;
        // 1 - u is above 0, so that the power is finite.
        (least * (1.0 - self.random.f64()).powf(-1.0 / shape)).min(LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_pauses_are_pareto() {
        let seed = 7;
        let mut bursts = Bursts::new(OnOff { shape: 2.5, ..OnOff::default() }, seed);
        let mut drawn: Vec<f64> = (0..100_000).map(|_| bursts.draw(4_000.0)).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        // Variance m^2 / (a (a - 2)) = (3578)^2: the mean of 100,000 deviates by 11, one sigma.
        assert!((mean - 4_000.0).abs() < 50.0, "seed {seed}: {mean}");
        drawn.sort_by(f64::total_cmp);
        // Least m (a - 1) / a = 2400; P(X > x) = (2400 / x)^2.5, a quarter at 4179.
        assert!(drawn[0] >= 2_400.0 && drawn[0] < 2_401.0, "seed {seed}: {}", drawn[0]);
        assert!((drawn[75_000] - 4_179.0).abs() < 60.0, "seed {seed}: {}", drawn[75_000]);
    }
}
