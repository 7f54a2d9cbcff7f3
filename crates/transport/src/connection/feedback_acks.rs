//! Acknowledgements of the peer's feedback, so that the peer need not repeat its content.

use crate::time::Time;
use crate::wire::expand;
use std::time::Duration;

/// Acknowledgements of the newest feedback per round trip (docs/design/feedback.md): one where the repeated content
/// costs less than a packet.
const PER_RTT: u32 = 4;

/// Feedback of at most so many bytes is brief.
const BRIEF: usize = 128;

/// The newest feedback seen, until it is acknowledged.
#[derive(Debug, Default)]
pub(super) struct SeenFeedback {
    /// The highest number processed.
    highest: u64,
    is_pending: bool,
    /// The newest is brief: it repeats little.
    is_brief: bool,
    last_sent: Option<Time>,
}

impl SeenFeedback {
    /// Returns the full number of feedback with this truncated number. It is unambiguous: each packet carries at most
    /// one feedback, and packets arrive at most a replay window apart.
    pub(super) fn number_of(&self, truncated: u32) -> u64 {
        expand(truncated, self.highest)
    }

    /// Reports the round-trip time of the handshake to the peer before it has sent any feedback: the credit that a path
    /// needs follows from it.
    pub(super) const fn on_handshake(&mut self) {
        self.is_pending = true;
    }

    /// Notes that feedback of this number, with so many bytes, was processed.
    pub(super) const fn on_feedback(&mut self, number: u64, bytes: usize) {
        if number > self.highest {
            self.highest = number;
            self.is_brief = bytes <= BRIEF;
            self.is_pending = true;
        }
    }

    /// Returns when to send the acknowledgement.
    pub(super) fn deadline(&self, rtt: Duration) -> Option<Time> {
        let spacing = if self.is_brief { rtt } else { rtt / PER_RTT };
        self.is_pending.then(|| self.last_sent.map_or(Time::ZERO, |last| last + spacing))
    }

    /// Takes the number to acknowledge now, with any other content.
    pub(super) fn take(&mut self, now: Time) -> Option<u32> {
        std::mem::take(&mut self.is_pending).then(|| {
            self.last_sent = Some(now);
            self.highest as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_ack_at_most_4_per_rtt() {
        let (rtt, at) = (Duration::from_millis(40), |millis| Time::ZERO + Duration::from_millis(millis));
        let mut seen = SeenFeedback::default();
        assert_eq!((seen.deadline(rtt), seen.take(at(0))), (None, None));
        seen.on_feedback(7, BRIEF + 1);
        seen.on_feedback(6, BRIEF + 1);
        assert_eq!(seen.deadline(rtt), Some(Time::ZERO), "the first at once");
        assert_eq!(seen.take(at(5)), Some(7));
        assert_eq!((seen.deadline(rtt), seen.take(at(5))), (None, None), "nothing new");
        seen.on_feedback(8, BRIEF + 1);
        assert_eq!(seen.deadline(rtt), Some(at(15)));
        seen.on_feedback(9, BRIEF);
        assert_eq!(seen.deadline(rtt), Some(at(45)));
    }

    #[test]
    fn no_feedback_is_named_after_a_handshake() {
        let mut seen = SeenFeedback::default();
        seen.on_handshake();
        assert_eq!((seen.deadline(Duration::ZERO), seen.take(Time::ZERO)), (Some(Time::ZERO), Some(0)));
    }

    #[test]
    fn numbers_continue_beyond_those_of_the_wire() {
        let mut seen = SeenFeedback::default();
        for number in (1 << 32) - 3..(1 << 32) + 3 {
            assert_eq!(seen.number_of(number as u32), number);
            seen.on_feedback(number, BRIEF);
            assert_eq!(seen.number_of((number - 2) as u32), number - 2, "overtaken");
            assert_eq!(seen.take(Time::ZERO), Some(number as u32));
        }
    }
}
