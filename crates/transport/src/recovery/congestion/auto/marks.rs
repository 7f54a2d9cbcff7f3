//! CE marks: the queue is managed, and they show when it is full.

use crate::time::Time;
use std::time::Duration;

/// A path that has marked so recently marks whatever queues.
const RECENT: Duration = Duration::from_secs(20);

/// The marks of a path.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Some have not been answered.
    unanswered: bool,
    last: Option<Time>,
}

impl Marks {
    /// Notes marks in feedback.
    pub(super) const fn note(&mut self, now: Time) {
        (self.unanswered, self.last) = (true, Some(now));
    }

    /// Returns whether marks arrived since the last call.
    pub(super) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.unanswered, false)
    }

    /// Returns whether the path marks packets that queue, so that marks and not the delay show where it is full.
    pub(super) fn are_recent(&self, now: Time) -> bool {
        self.last.is_some_and(|at| now.since(at) < RECENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_answered_once_and_remembered_for_twenty_seconds() {
        let (mut marks, at) = (Marks::default(), Time::ZERO + Duration::from_secs(5));
        assert!(!marks.take() && !marks.are_recent(at));
        marks.note(at);
        assert!(marks.take() && !marks.take());
        assert!(marks.are_recent(at + Duration::from_millis(19_999)) && !marks.are_recent(at + RECENT));
    }
}
