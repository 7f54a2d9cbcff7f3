//! Liveness of the peer: when silence requires a PING or a probe, and when the peer is given up.

use super::closing::patience;
use super::options::ConnectionConfig;
use super::path_validator::QUIET;
use super::timer::{Expired, Timer};
use crate::time::Time;
use std::time::Duration;

/// Time a peer may take to answer beyond two round trips: it writes, decodes, or withholds feedback.
const PING_SLACK: Duration = Duration::from_millis(25);

/// Longest time between two PINGs or probes, whatever the retransmission timeout backs off to.
const MAX_SPACING: Duration = Duration::from_secs(1);

/// Doublings of the time between two PINGs; any cap is reached long before.
const MAX_BACKOFF: u32 = 10;

/// A peer heard within this time, or within four round trips, is alive whatever the network reports.
const SURELY_THERE: Duration = Duration::from_millis(100);

/// A silent peer is probed after this part of its timeout, whatever the retransmission timeout.
const PROBED_BEFORE_DEATH: u32 = 8;

/// Round trips for which a peer that sends packets may leave symbols unanswered: behind a queue of seconds it takes as
/// many to find the sizes that pass after the path has become too small for them.
const ROUNDS_WITHOUT_SYMBOLS: u32 = 16;

/// Packets that a probe timeout sends (RFC 9002 section 6.2.4): one with frames that have to arrive, and a symbol.
const PROBES: u8 = 2;

/// The connection's activity, which decides how long a silence may last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub(super) rtt: Duration,
    /// Longest time after which recovery sends something by itself: the limit of the timeout's backoff, or the probe
    /// timeout where a long queue makes that longer.
    pub(super) longest_timeout: Duration,
    /// Whether packets are in flight.
    pub(super) in_flight: bool,
    /// When the oldest packet in flight became the oldest.
    pub(super) oldest_since: Time,
    /// When the first unanswered symbol was sent, if any: no symbol has been acknowledged since.
    pub(super) unanswered: Option<Time>,
    /// A local flow is unfinished.
    pub(super) sending: bool,
    /// A flow of the peer is unfinished.
    pub(super) receiving: bool,
}

/// Returns the longest spacing of probes and PINGs: a timeout that backs off further must not outlast the connection.
pub(super) fn max_spacing(longest_timeout: Duration) -> Duration {
    longest_timeout.min(MAX_SPACING)
}

/// Watches for signs of life.
#[derive(Debug)]
pub(super) struct Liveness {
    dead_after: Duration,
    keep_alive: Duration,
    last_received: Time,
    /// When the last packet that asks for feedback was sent or queued, and when the last feedback arrived.
    last_asked: Time,
    last_feedback: Time,
    last_early_probe: Time,
    /// When the network reported the peer unreachable; ignored once a packet has arrived since.
    unreachable: Option<Time>,
    /// The peer is not known to have received anything under the new keys (RFC 9001 section 4.1.2: not confirmed).
    unconfirmed: bool,
    /// Nothing is outstanding but the peer's close.
    expects_close: bool,
    /// PINGs sent in a row without a report while a local flow was unfinished.
    send_pings: u32,
    /// PINGs sent in a row without a packet from the peer while a flow of the peer was unfinished.
    receive_pings: u32,
    /// Probes to send regardless of the window.
    probes: u8,
    pings: u64,
}

impl Liveness {
    /// Creates the state of a connection that begins.
    pub(super) const fn new(now: Time, limits: &ConnectionConfig) -> Self {
        Self {
            dead_after: limits.dead_after,
            keep_alive: limits.keep_alive,
            last_received: now,
            last_asked: now,
            last_feedback: now,
            last_early_probe: now,
            unreachable: None,
            unconfirmed: false,
            expects_close: false,
            send_pings: 0,
            receive_pings: 0,
            probes: 0,
            pings: 0,
        }
    }

    /// Handles the answer to the handshake. The peer sends nothing until it receives a packet under the new keys.
    pub(super) const fn on_handshake(&mut self, now: Time) {
        self.last_received = now;
        self.last_feedback = now;
        self.unconfirmed = true;
    }

    /// Notes that the peer is known to have received a packet, or that nothing depends on it any more.
    pub(super) const fn confirm(&mut self) {
        self.unconfirmed = false;
    }

    /// Returns whether the peer may still wait for our first packet.
    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }

    /// Handles an authentic, new packet.
    pub(super) const fn on_packet(&mut self, now: Time) {
        self.last_received = now;
        self.receive_pings = 0;
    }

    /// Handles feedback, with news or without.
    pub(super) const fn on_feedback(&mut self, now: Time) {
        self.last_feedback = now;
        self.confirm();
    }

    /// Returns when the last authentic, new packet arrived.
    pub(super) const fn last_received(&self) -> Time {
        self.last_received
    }

    /// Notes that a packet was sent that asks for feedback.
    pub(super) const fn on_packet_sent(&mut self, now: Time) {
        self.last_asked = now;
    }

    /// Notes that recovery has learned the outcome of packets.
    pub(super) const fn on_report(&mut self) {
        self.probes = 0;
        self.send_pings = 0;
    }

    /// Handles the expiry of the probe timeout.
    pub(super) const fn on_probe_timeout(&mut self) {
        self.probes = PROBES;
    }

    /// Notes that the program has nothing left to send or to learn: nothing is lost if the peer leaves without its
    /// close being received.
    pub(super) const fn expect_close(&mut self) {
        self.expects_close = true;
    }

    /// Handles the network's report that the peer is unreachable. It may be forged, so it leads to probes. Returns
    /// whether it is plausible: not if the peer was heard lately or an earlier hint is being checked.
    pub(super) fn on_unreachable(&mut self, now: Time, rtt: Duration) -> bool {
        let surely_there = if self.expects_close { rtt } else { (rtt * 4).max(SURELY_THERE) };
        if now < self.last_received + surely_there || self.unreachable_since().is_some() {
            return false;
        }
        self.unreachable = Some(now);
        self.probes = PROBES;
        true
    }

    /// Returns when the network reported the peer unreachable, if no packet has arrived since.
    fn unreachable_since(&self) -> Option<Time> {
        self.unreachable.filter(|at| self.last_received < *at)
    }

    /// Takes the next probe to send regardless of the window, and counts it as sent; true for the first of two.
    pub(super) const fn next_probe(&mut self) -> Option<bool> {
        if self.probes == 0 {
            return None;
        }
        self.probes -= 1;
        Some(self.probes > 0)
    }

    /// Returns when to give up the peer, reported gone or not, or a path that carries small packets and no symbols.
    pub(super) fn idle_deadline(&self, activity: &Activity) -> Time {
        let heard = self.last_received + self.dead_after;
        let patience_with_symbols = self.dead_after.max(activity.rtt * ROUNDS_WITHOUT_SYMBOLS);
        let dead = activity.unanswered.map_or(heard, |unanswered| heard.min(unanswered + patience_with_symbols));
        let patience = if self.expects_close { answer_time(activity.rtt) } else { patience(activity.rtt) };
        self.unreachable_since().map_or(dead, |at| dead.min(at + patience))
    }

    /// Returns when to probe while packets are in flight: the timeout that would send more may back off for longer than
    /// the connection lives (RFC 6298: to a minute and more). Such a probe declares nothing lost.
    pub(super) fn early_probe_deadline(&self, activity: &Activity) -> Option<Time> {
        let longest = self.dead_after / PROBED_BEFORE_DEATH;
        // A peer without a packet under the new keys waits for that alone.
        let patience = if self.unconfirmed { longest.min(MAX_SPACING) } else { longest };
        // Small packets may be answered all along; and recent packets, including probes, do not show how long the
        // silence has lasted.
        let first = activity.unanswered.unwrap_or(activity.oldest_since) + patience;
        // A retransmission timeout need not send a symbol: control frames go first.
        let bound = if activity.unanswered.is_some() { MAX_SPACING } else { patience };
        let outlasts = activity.longest_timeout > bound && activity.in_flight;
        outlasts.then(|| first.max(self.last_early_probe + MAX_SPACING))
    }

    /// Returns when to send a PING while a local flow is unfinished and nothing is in flight whose feedback would
    /// report its state: a grant of credit, or the completion of a block, may have been in lost feedback. A peer
    /// without a packet under the new keys waits for that, and forgets the connection otherwise: a retransmission
    /// timeout does not repeat a PING. If only the peer's close is missing, a PING shows whether it has left. Spaced
    /// like probes.
    pub(super) fn send_ping_deadline(&self, activity: &Activity) -> Option<Time> {
        let waits = self.expects_close || ((activity.sending || self.unconfirmed) && !activity.in_flight);
        // A program waits for the close, for a few seconds at most: PINGs are not spaced out.
        let pings = if self.expects_close { 0 } else { self.send_pings };
        let spacing = backed_off(answer_time(activity.rtt), pings);
        // Other packets, such as the peer's own PINGs, do not show what it waits for or has.
        let last = if self.expects_close { self.last_exchange() } else { self.last_asked.max(self.last_feedback) };
        waits.then(|| last + spacing.min(max_spacing(activity.longest_timeout)))
    }

    /// Returns when to send a PING while a flow of the peer is unfinished and nothing arrives: it may be sending to an
    /// address that we have left, and a PING shows it the new one. Spaced like probes.
    pub(super) fn receive_ping_deadline(&self, activity: &Activity) -> Option<Time> {
        let spacing = backed_off(activity.rtt * 4 + QUIET, self.receive_pings);
        activity.receiving.then(|| self.last_exchange() + spacing.min(max_spacing(activity.longest_timeout).max(QUIET)))
    }

    /// Returns when an idle connection sends a PING.
    pub(super) fn keep_alive_deadline(&self) -> Time {
        self.last_exchange() + self.keep_alive
    }

    fn last_exchange(&self) -> Time {
        self.last_asked.max(self.last_received)
    }

    /// Handles expired timers, which may not be liveness's own. Returns whether to send a PING.
    pub(super) fn on_timers(&mut self, now: Time, expired: Expired, activity: &Activity) -> bool {
        if expired.contains(Timer::EarlyProbe) {
            self.probes = PROBES;
            self.last_early_probe = now;
        }
        let pings = [Timer::SendPing, Timer::ReceivePing, Timer::KeepAlive];
        if !pings.into_iter().any(|timer| expired.contains(timer)) {
            return false;
        }
        self.send_pings += u32::from(self.send_ping_deadline(activity).is_some());
        self.receive_pings += u32::from(expired.contains(Timer::ReceivePing));
        self.last_asked = now;
        self.pings += 1;
        true
    }

    /// Returns the number of PINGs sent without a sign of life.
    pub(super) const fn pings(&self) -> u64 {
        self.pings
    }
}

/// After which a PING or probe that a peer received should have been answered.
fn answer_time(rtt: Duration) -> Duration {
    rtt * 2 + PING_SLACK
}

fn backed_off(spacing: Duration, pings: u32) -> Duration {
    spacing * (1 << pings.min(MAX_BACKOFF))
}

#[cfg(test)]
mod tests;
