//! Why no data is being sent, and until when.

use super::stats::SendLimit;
use crate::time::Time;

/// The state of sending after the last attempt.
#[derive(Debug, Default)]
pub(super) struct SendWait {
    /// When the pacer allows the next batch.
    pacer: Option<Time>,
    /// When a schedule has something to send again.
    schedule: Option<Time>,
    limited_by: SendLimit,
}

impl SendWait {
    /// Begins an attempt to send, which determines the time of the next.
    pub(super) const fn on_attempt(&mut self) {
        self.stop();
    }

    /// Stops waiting.
    pub(super) const fn stop(&mut self) {
        self.pacer = None;
        self.schedule = None;
    }

    /// Notes that nothing can be sent until something else happens.
    pub(super) const fn on_blocked(&mut self, by: SendLimit) {
        self.limited_by = by;
    }

    /// Notes that the pacer has to be waited for.
    pub(super) const fn on_paced(&mut self, until: Time) {
        self.limited_by = SendLimit::Pacing;
        self.pacer = Some(until);
    }

    /// Notes that the schedules had nothing to send although the path would have accepted it. `until`: one of them
    /// waits for that time.
    pub(super) const fn on_idle(&mut self, by: SendLimit, until: Option<Time>) {
        self.limited_by = by;
        self.schedule = until;
    }

    /// Handles a change of the pacer's rate: its deadline no longer holds.
    pub(super) fn on_rate_change(&mut self, now: Time) {
        for until in [&mut self.pacer, &mut self.schedule].into_iter().flatten() {
            *until = now.min(*until);
        }
    }

    pub(super) const fn pacer_deadline(&self) -> Option<Time> {
        self.pacer
    }

    pub(super) const fn schedule_deadline(&self) -> Option<Time> {
        self.schedule
    }

    /// Returns the limit that keeps data from being sent faster.
    pub(super) const fn limited_by(&self) -> SendLimit {
        self.limited_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn each_attempt_finds_out_anew_when_the_next_is_due_and_keeps_the_reason() {
        let mut pause = SendWait::default();
        pause.on_paced(at(10));
        assert_eq!((pause.pacer_deadline(), pause.schedule_deadline()), (Some(at(10)), None));
        pause.on_attempt();
        assert_eq!((pause.pacer_deadline(), pause.limited_by()), (None, SendLimit::Pacing));
        pause.on_idle(SendLimit::Source, Some(at(20)));
        assert_eq!((pause.schedule_deadline(), pause.limited_by()), (Some(at(20)), SendLimit::Source));
        pause.on_attempt();
        pause.on_blocked(SendLimit::Window);
        assert_eq!((pause.pacer_deadline(), pause.schedule_deadline()), (None, None));
    }

    #[test]
    fn another_rate_ends_a_wait_and_starts_none() {
        let mut pause = SendWait::default();
        pause.on_rate_change(at(5));
        assert_eq!(pause.pacer_deadline(), None);
        pause.on_paced(at(10));
        pause.on_rate_change(at(5));
        assert_eq!(pause.pacer_deadline(), Some(at(5)));
        pause.on_rate_change(at(7));
        assert_eq!(pause.pacer_deadline(), Some(at(5)));
    }
}
