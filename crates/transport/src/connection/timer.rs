//! The table of timers: every deadline of a connection by name.

use crate::time::Time;

/// An event that a connection may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The handshake: another round of first messages, or its end.
    Handshake,
    /// The close: another copy, or the end of the wait for an answer.
    Close,
    /// Liveness: the timeout of the peer.
    Idle,
    /// The path validator: another challenge, or the end of one.
    PathValidation,
    /// Recovery: a loss by age, a probe or a retransmission timeout.
    LossDetection,
    /// Liveness: a probe ahead of a retransmission timeout that has backed off.
    EarlyProbe,
    /// Liveness: a local flow is unfinished, and nothing is in flight.
    SendPing,
    /// Liveness: a flow of the peer is unfinished, and nothing arrives.
    ReceivePing,
    /// Liveness: the connection is idle.
    KeepAlive,
    /// The receiving half: feedback.
    Feedback,
    /// The sending half: the report that feedback was seen.
    FeedbackSeen,
    /// Path MTU discovery: a small packet that shows whether large ones vanish.
    BlackHole,
    /// Path MTU discovery: a larger packet.
    MtuSearch,
    /// The pacer: data again.
    Pacer,
    /// The flows' schedules: data held back.
    Schedule,
}

impl Timer {
    const ALL: [Self; 15] = [
        Self::Handshake,
        Self::Close,
        Self::Idle,
        Self::PathValidation,
        Self::LossDetection,
        Self::EarlyProbe,
        Self::SendPing,
        Self::ReceivePing,
        Self::KeepAlive,
        Self::Feedback,
        Self::FeedbackSeen,
        Self::BlackHole,
        Self::MtuSearch,
        Self::Pacer,
        Self::Schedule,
    ];

    /// Returns its name in qlog; qlog's own where it has one.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake_timeout",
            Self::Close => "close",
            Self::Idle => "idle_timeout",
            Self::PathValidation => "path_validation",
            Self::LossDetection => "loss_timeout",
            Self::EarlyProbe => "early_probe",
            Self::SendPing => "send_ping",
            Self::ReceivePing => "receive_ping",
            Self::KeepAlive => "keep_alive",
            Self::Feedback => "ack",
            Self::FeedbackSeen => "feedback_seen",
            Self::BlackHole => "black_hole",
            Self::MtuSearch => "mtu_search",
            Self::Pacer => "pacer",
            Self::Schedule => "schedule",
        }
    }
}

/// The expiry time of each timer. [`Time::ZERO`]: at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimerTable([Option<Time>; Timer::ALL.len()]);

impl TimerTable {
    /// Sets a timer, or stops it.
    pub(super) fn set(&mut self, timer: Timer, at: impl Into<Option<Time>>) {
        self.0[timer as usize] = at.into();
    }

    /// Returns when the first of them expires.
    pub(super) fn earliest(&self) -> Option<Time> {
        self.0.iter().flatten().min().copied()
    }

    /// Returns which of these timers have expired.
    pub(super) fn expired(&self, now: Time, of: &[Timer]) -> Expired {
        let due = of.iter().filter(|timer| self.0[**timer as usize].is_some_and(|at| at <= now));
        Expired(due.fold(0, |set, timer| set | 1 << *timer as u32))
    }
}

/// A set of timers that have expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expired(u32);

impl Expired {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn contains(self, timer: Timer) -> bool {
        self.0 & (1 << timer as u32) != 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Timer> {
        Timer::ALL.into_iter().filter(move |timer| self.contains(*timer))
    }
}

#[cfg(test)]
impl FromIterator<Timer> for Expired {
    fn from_iter<I: IntoIterator<Item = Timer>>(timers: I) -> Self {
        Self(timers.into_iter().fold(0, |set, timer| set | 1 << timer as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn the_table_holds_each_timer_once_under_a_name_of_its_own() {
        for (nth, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, nth);
            assert_eq!(Timer::ALL.iter().filter(|other| other.name() == timer.name()).count(), 1, "{timer:?}");
        }
    }

    #[test]
    fn the_earliest_deadline_counts() {
        let mut table = TimerTable::default();
        assert_eq!(table.earliest(), None);
        table.set(Timer::Idle, at(30));
        table.set(Timer::Pacer, Some(at(20)));
        assert_eq!(table.earliest(), Some(at(20)));
        table.set(Timer::Pacer, None);
        assert_eq!(table.earliest(), Some(at(30)));
    }

    #[test]
    fn timers_expire_at_their_deadline_and_only_those_that_were_asked_about_are_named() {
        let mut table = TimerTable::default();
        table.set(Timer::Pacer, at(10));
        table.set(Timer::Feedback, Time::ZERO);
        table.set(Timer::Idle, at(11));
        let expired = |now| table.expired(at(now), &[Timer::Idle, Timer::Pacer]).iter().collect::<Vec<_>>();
        assert_eq!(expired(9), []);
        assert_eq!(expired(10), [Timer::Pacer]);
        assert_eq!(expired(11), [Timer::Idle, Timer::Pacer]);
        assert!(table.expired(at(0), &Timer::ALL).contains(Timer::Feedback));
    }
}
