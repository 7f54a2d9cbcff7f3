//! What this side tells the peer about its feedback: which has been seen, so that the peer need not repeat its content.

use crate::time::Time;
use std::time::Duration;

/// Times per round trip that the newest feedback seen is named (docs/design/feedback.md).
const PER_RTT: u32 = 4;

/// The newest feedback seen, until the peer is told.
#[derive(Debug, Default)]
pub(super) struct SeenFeedback {
    newest: Option<u32>,
    last_told: Option<Time>,
}

impl SeenFeedback {
    /// Notes that feedback of this number was processed.
    pub(super) fn on_feedback(&mut self, number: u32) {
        self.newest = self.newest.max(Some(number));
    }

    /// Returns when to tell the peer.
    pub(super) fn deadline(&self, rtt: Duration) -> Option<Time> {
        self.newest?;
        Some(self.last_told.map_or(Time::ZERO, |told| told + rtt / PER_RTT))
    }

    /// Takes the number to tell now, with whatever else is sent.
    pub(super) fn take(&mut self, now: Time) -> Option<u32> {
        let number = self.newest.take()?;
        self.last_told = Some(now);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_told_once_and_four_times_a_round_trip_at_most() {
        let (rtt, at) = (Duration::from_millis(40), |millis| Time::ZERO + Duration::from_millis(millis));
        let mut seen = SeenFeedback::default();
        assert_eq!((seen.deadline(rtt), seen.take(at(0))), (None, None));
        seen.on_feedback(7);
        seen.on_feedback(6);
        assert_eq!(seen.deadline(rtt), Some(Time::ZERO), "the first at once");
        assert_eq!(seen.take(at(5)), Some(7));
        assert_eq!((seen.deadline(rtt), seen.take(at(5))), (None, None), "nothing new");
        seen.on_feedback(8);
        assert_eq!(seen.deadline(rtt), Some(at(15)));
    }
}
