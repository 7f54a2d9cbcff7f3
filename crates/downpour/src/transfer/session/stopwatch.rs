//! The duration of a transfer without the time in which its user is asked.

use std::time::{Duration, Instant};

/// Measures a transfer from its first datagram on.
#[derive(Debug)]
pub(in crate::transfer) struct Stopwatch {
    started: Instant,
    ended: Option<Instant>,
    /// Time spent waiting for the user.
    waited: Duration,
    /// When the user was asked, if the answer is outstanding.
    asked: Option<Instant>,
}

impl Stopwatch {
    /// Starts to measure.
    pub(super) const fn new(started: Instant) -> Self {
        Self { started, ended: None, waited: Duration::ZERO, asked: None }
    }

    /// Handles a question to the user: the time until [`Stopwatch::on_answered`] is not counted.
    pub(in crate::transfer) const fn on_asked(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// Handles the user's answer.
    pub(in crate::transfer) fn on_answered(&mut self, now: Instant) {
        self.waited += self.asked.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    }

    /// Returns whether the user is being asked.
    pub(super) const fn is_waiting(&self) -> bool {
        self.asked.is_some()
    }

    /// Ends the transfer.
    pub(super) const fn stop(&mut self, now: Instant) {
        self.ended = Some(now);
    }

    /// Returns when the first datagram was sent or received.
    pub(super) const fn started(&self) -> Instant {
        self.started
    }

    /// Returns the time from the first datagram to the end of the transfer; until now if it has not ended.
    pub(super) fn total(&self, now: Instant) -> Duration {
        self.elapsed(self.ended.unwrap_or(now))
    }

    /// Returns the time from the first datagram.
    pub(super) fn elapsed(&self, until: Instant) -> Duration {
        let waits = self.asked.map_or(Duration::ZERO, |since| until.saturating_duration_since(since));
        until.saturating_duration_since(self.started).saturating_sub(self.waited + waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_user_is_asked_does_not_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut stopwatch = Stopwatch::new(start);
        let elapsed = |stopwatch: &Stopwatch, seconds| stopwatch.elapsed(at(seconds)).as_secs();
        assert_eq!(elapsed(&stopwatch, 2), 2);
        stopwatch.on_asked(at(2));
        assert!(stopwatch.is_waiting());
        assert_eq!(elapsed(&stopwatch, 10), 2);
        stopwatch.on_answered(at(12));
        assert_eq!((elapsed(&stopwatch, 13), stopwatch.is_waiting()), (3, false));
        stopwatch.stop(at(14));
        assert_eq!((elapsed(&stopwatch, 20), stopwatch.total(at(20)).as_secs()), (10, 4));
    }
}
