//! What a connection does when time passes: probes, questions, signs of life, ends.

use super::closing::patience;
use super::outbox::Piece;
use super::path_validator::QUIET;
use super::{Closed, Connection, Phase};
use crate::recovery::{Cause, Timeout};
use crate::time::Time;
use crate::trace::TraceEvent;
use std::time::Duration;

/// What a peer may take to answer beyond two round trips: it writes, decodes, or holds feedback back.
const QUESTION_SLACK: Duration = Duration::from_millis(25);

/// Most time between two questions (design section 8).
const QUESTIONS_APART: Duration = Duration::from_secs(1);

/// A peer that was heard within this time, or within four round trips, is there whatever anybody says.
const SURELY_THERE: Duration = Duration::from_millis(100);

/// A silent peer is asked once this part of the time has passed after which it is given up, whatever the retransmission timeout.
const ASKED_BEFORE_DEATH: u32 = 8;

impl Connection {
    /// Time has come to [`Connection::poll_timeout`], or past it.
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.phase {
            Phase::Opening(opening) if opening.is_over(now) => {
                let versions = opening.versions.clone();
                self.end(versions.map_or(Closed::HandshakeTimeout, |offered| Closed::VersionMismatch { offered }));
            }
            Phase::Answered { until } if *until <= now => self.end(Closed::HandshakeTimeout),
            Phase::Closing(closing) if closing.is_over(now) => self.phase = Phase::Drained,
            Phase::Open if self.dead_at() <= now => {
                self.recovery.close(now);
                self.end(Closed::Dead);
            }
            Phase::Open => {
                self.paths.on_timer(now);
                if self.paths.is_validated() {
                    self.handle_open_timeout(now);
                }
            }
            _ => {}
        }
    }

    /// The network says that nobody listens at the peer's address (ICMP port unreachable). Anybody may have forged that, so it ends
    /// nothing by itself: a peer that was not heard lately is asked twice at once, and given up without `dead_after` if nothing
    /// authentic comes for 3 s or six round trips. Further hints change nothing about that. A peer that is still being looked for may only be
    /// about to listen. Poll for packets then.
    pub fn hint_unreachable(&mut self, now: Time) {
        let lately = (self.known_rtt() * 4).max(SURELY_THERE);
        if !matches!(self.phase, Phase::Open) || now < self.last_heard + lately || self.doubted_since().is_some() {
            return;
        }
        self.doubted = Some(now);
        self.trace.record(now, TraceEvent::UnreachableHint);
        self.probes = 2;
    }

    /// When a hint came that nobody is there, if nothing was heard since.
    fn doubted_since(&self) -> Option<Time> {
        self.doubted.filter(|at| self.last_heard < *at)
    }

    fn handle_open_timeout(&mut self, now: Time) {
        if self.recovery.next_timeout().is_some_and(|at| at <= now) {
            match self.recovery.on_timeout(now) {
                Timeout::None => {}
                Timeout::Lost => {
                    if self.recovery.report().cause == Cause::Timeout {
                        self.trace.record(now, TraceEvent::RetransmissionTimeout);
                    }
                    self.spread_report();
                    self.watch_sizes(now);
                }
                Timeout::Probe => {
                    self.probes = 2;
                    self.trace.record(now, TraceEvent::ProbeTimeout);
                }
            }
        }
        if self.sign_at().is_some_and(|at| at <= now) {
            // Two, as after a probe timeout: one with what is reliable, and a symbol.
            self.probes = 2;
            self.signed_at = now;
        }
        let asking = self.question_at();
        let listening = self.listen_at().is_some_and(|at| at <= now);
        if asking.is_some_and(|at| at <= now) || listening || self.keep_alive_at() <= now {
            self.questions += u32::from(asking.is_some());
            self.listen_pings += u32::from(listening);
            self.last_asked = now;
            self.outgoing.outbox.push(Piece::Ping);
        }
    }

    /// Something of ours is unfinished and nothing is in flight whose feedback would tell how it stands: credit, or the end of
    /// a block, may have been told in feedback that was lost. A peer that has not heard us under the new keys waits for that, and forgets us
    /// otherwise: a retransmission timeout sends no ping again. Asked for like a probe, backed off to one a second.
    fn question_at(&self) -> Option<Time> {
        let unfinished = self.outgoing.flow_count() > 0 || self.outgoing.control.backlog() > 0 || self.proving;
        let waits = unfinished && self.recovery.packets_in_flight() == 0;
        let spacing = (self.known_rtt() * 2 + QUESTION_SLACK) * (1 << self.questions.min(10));
        waits.then(|| self.last_asked.max(self.last_heard) + spacing.min(self.most_apart()))
    }

    /// Packets are in flight, and the timeout that would send more may be so long that the connection is given up before (law 3):
    /// RFC 6298 lets it back off to a minute and more. The peer is asked meanwhile; nothing is called lost for that.
    fn sign_at(&self) -> Option<Time> {
        let longest = self.limits.dead_after / ASKED_BEFORE_DEATH;
        // A peer that has not heard us under the new keys waits for that alone.
        let patience = if self.proving { longest.min(QUESTIONS_APART) } else { longest };
        // What is small may be answered all along; and what went out lately, a sign too, says nothing of how long the silence lasts.
        let first = self.outgoing.unanswered.unwrap_or_else(|| self.recovery.oldest_since()) + patience;
        let outlasts = self.profile.recovery.timeout.longest() > patience && self.recovery.packets_in_flight() > 0;
        outlasts.then(|| first.max(self.signed_at + QUESTIONS_APART))
    }

    /// Questions are no rarer than probes, and than one a second: timeouts that back off to more must not outlast the connection.
    pub(super) fn most_apart(&self) -> Duration {
        self.profile.recovery.timeout.longest().min(QUESTIONS_APART)
    }

    /// Something of the peer's is unfinished and nothing comes: it may be sending to an address that we have left. A ping
    /// shows it the new one; like a probe, backed off to one a second.
    fn listen_at(&self) -> Option<Time> {
        let waits = self.incoming.has_unfinished();
        let spacing = (self.known_rtt() * 4 + QUIET) * (1 << self.listen_pings.min(10));
        waits.then(|| self.last_asked.max(self.last_heard) + spacing.min(self.most_apart().max(QUIET)))
    }

    /// When patience ends: with the peer, with one that is said to be gone, or with a path that carries what is small and no symbols.
    fn dead_at(&self) -> Time {
        let since = self.outgoing.unanswered.map_or(self.last_heard, |unanswered| unanswered.min(self.last_heard));
        let dead = since + self.limits.dead_after;
        self.doubted_since().map_or(dead, |at| dead.min(at + patience(self.known_rtt())))
    }

    fn keep_alive_at(&self) -> Time {
        self.last_asked.max(self.last_heard) + self.limits.keep_alive
    }

    /// When to call [`Connection::handle_timeout`], if nothing else happens before; then poll for packets too.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.phase {
            Phase::Opening(opening) => Some(opening.due()),
            Phase::Answered { until } => Some(*until),
            Phase::Closing(closing) => Some(closing.due()),
            Phase::Open => {
                let dead = self.dead_at();
                if !self.paths.is_validated() {
                    return Some(self.paths.deadline().unwrap_or(dead).min(dead));
                }
                let feedback = [self.incoming.feedback_due(), self.seen_due()];
                let paths = [self.paths.deadline(), self.growth_at(), self.listen_at(), self.recovery.sounding_at()];
                let others = [self.recovery.next_timeout(), self.question_at(), self.sign_at(), self.wake];
                let first = others.into_iter().chain(feedback).chain(paths).flatten().min().unwrap_or(dead);
                Some(first.min(dead).min(self.keep_alive_at()))
            }
            Phase::Drained => None,
        }
    }
}
