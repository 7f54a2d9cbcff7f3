//! The outcomes of the packets of each round, by the time when they were sent.

use crate::recovery::report::Report;
use crate::recovery::sent_packets::SentPacket;
use crate::time::Time;
use std::collections::VecDeque;

/// Rounds after which one is judged although the outcome of some of its packets is unknown.
const MOST_OPEN: usize = 8;

/// The packets sent during a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round<P> {
    /// Its number.
    pub(super) number: u64,
    /// The controller's phase meanwhile.
    pub(super) phase: P,
    begin: Time,
    end: Option<Time>,
    pub(super) sent: f64,
    pub(super) lost: f64,
    resolved: f64,
    sent_bytes: f64,
    lost_bytes: f64,
    queue_sum: f64,
    delivered: f64,
}

impl<P> Round<P> {
    const fn new(number: u64, phase: P, begin: Time) -> Self {
        Self {
            number,
            phase,
            begin,
            end: None,
            sent: 0.0,
            lost: 0.0,
            resolved: 0.0,
            sent_bytes: 0.0,
            lost_bytes: 0.0,
            queue_sum: 0.0,
            delivered: 0.0,
        }
    }

    /// Returns its length in seconds.
    pub(super) fn span(&self) -> f64 {
        self.end.map_or(0.0, |end| end.since(self.begin).as_secs_f64()).max(1e-6)
    }

    /// Returns the rate at which it was sent, in bytes per second.
    pub(super) fn sending_rate(&self) -> f64 {
        self.sent_bytes / self.span()
    }

    /// Returns the rate at which it was delivered, in bytes per second.
    pub(super) fn delivered_rate(&self) -> f64 {
        (self.sent_bytes - self.lost_bytes).max(0.0) / self.span()
    }

    /// Returns the mean queue that its packets found, in seconds.
    pub(super) fn queue(&self) -> f64 {
        self.queue_sum / self.delivered.max(1.0)
    }

    fn is_settled(&self) -> bool {
        self.end.is_some() && self.resolved >= self.sent
    }
}

/// The rounds with packets without an outcome.
#[derive(Debug)]
pub(super) struct Ledger<P> {
    rounds: VecDeque<Round<P>>,
}

impl<P: Copy> Ledger<P> {
    pub(super) fn new(phase: P) -> Self {
        Self { rounds: VecDeque::from([Round::new(0, phase, Time::ZERO)]) }
    }

    /// Counts a packet sent now.
    pub(super) fn on_sent(&mut self, bytes: u32) {
        if let Some(round) = self.rounds.back_mut() {
            round.sent += 1.0;
            round.sent_bytes += f64::from(bytes);
        }
    }

    /// Notes the outcomes of packets, of which the newest found a queue of this many seconds.
    pub(super) fn on_report(&mut self, report: &Report<'_>, queue: f64) {
        for sent in report.lost {
            if let Some(round) = self.round_of(sent) {
                round.lost += 1.0;
                round.lost_bytes += f64::from(sent.bytes);
                round.resolved += 1.0;
            }
        }
        for sent in report.spurious {
            if let Some(round) = self.round_of(sent) {
                round.lost = (round.lost - 1.0).max(0.0);
                round.lost_bytes = (round.lost_bytes - f64::from(sent.bytes)).max(0.0);
            }
        }
        for sent in report.delivered {
            if let Some(round) = self.round_of(sent) {
                round.resolved += 1.0;
                round.delivered += 1.0;
                round.queue_sum += queue;
            }
        }
    }

    fn round_of(&mut self, sent: &SentPacket) -> Option<&mut Round<P>> {
        self.rounds.iter_mut().rev().find(|round| round.begin <= sent.time)
    }

    /// Returns the number of the round in which packets are sent now.
    pub(super) fn current(&self) -> u64 {
        self.rounds.back().map_or(0, |round| round.number)
    }

    /// Ends the current round, and begins one in `phase`.
    pub(super) fn begin_round(&mut self, now: Time, phase: P) {
        let number = self.current() + 1;
        if let Some(round) = self.rounds.back_mut() {
            round.end = Some(now);
        }
        self.rounds.push_back(Round::new(number, phase, now));
    }

    /// Takes the oldest round, if the outcome of its packets is known.
    pub(super) fn settled(&mut self) -> Option<Round<P>> {
        let is_due = self.rounds.front().is_some_and(Round::is_settled) || self.rounds.len() > MOST_OPEN;
        if is_due { self.rounds.pop_front() } else { None }
    }

    /// Forgets the packets without an outcome, after an outage.
    pub(super) fn forget(&mut self, now: Time, phase: P) {
        let number = self.current() + 1;
        self.rounds.clear();
        self.rounds.push_back(Round::new(number, phase, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packets::Content;
    use std::time::Duration;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn packets(millis: &[u64]) -> Vec<SentPacket> {
        let sent = |millis| SentPacket { number: 0, time: at(millis), bytes: 1000, content: Content::Nothing };
        millis.iter().copied().map(sent).collect()
    }

    #[test]
    fn losses_belong_to_the_round_that_sent_them() {
        let mut ledger = Ledger::new('a');
        let report = Report::empty(at(0));
        let send = |ledger: &mut Ledger<char>, count: u32| (0..count).for_each(|_| ledger.on_sent(1000));
        send(&mut ledger, 4);
        ledger.begin_round(at(100), 'b');
        send(&mut ledger, 2);
        ledger.begin_round(at(200), 'c');
        assert!(ledger.settled().is_none());
        ledger.on_report(&Report { delivered: &packets(&[10, 20]), ..report }, 0.002);
        ledger.on_report(&Report { lost: &packets(&[30, 40, 110]), delivered: &packets(&[120]), ..report }, 0.004);
        ledger.on_report(&Report { spurious: &packets(&[30]), ..report }, 0.0);
        let first = ledger.settled().expect("all of its packets have an outcome");
        assert_eq!((first.number, first.phase, first.sent, first.lost), (0, 'a', 4.0, 1.0));
        assert_eq!([first.sending_rate(), first.delivered_rate()].map(f64::round), [40_000.0, 30_000.0]);
        assert_eq!((first.queue() * 1e3).round(), 2.0);
        let second = ledger.settled().expect("all of its packets have an outcome");
        assert_eq!((second.number, second.phase, second.sent, second.lost), (1, 'b', 2.0, 1.0));
        assert!(ledger.settled().is_none(), "not over yet");
    }

    #[test]
    fn a_round_is_judged_in_the_end_and_an_outage_forgotten() {
        let mut ledger = Ledger::new(());
        for round in 0..MOST_OPEN as u64 {
            ledger.on_sent(1000);
            assert!(ledger.settled().is_none(), "round {round}");
            ledger.begin_round(at(round + 1), ());
        }
        assert_eq!(ledger.settled().map(|round| round.number), Some(0));
        ledger.forget(at(100), ());
        ledger.on_report(&Report { lost: &packets(&[1]), ..Report::empty(at(101)) }, 0.0);
        ledger.begin_round(at(102), ());
        assert_eq!(ledger.settled().map(|round| round.lost), Some(0.0));
    }
}
