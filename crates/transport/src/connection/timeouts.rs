//! The passing of time: expired timers and their consequences.

use super::control::ReliableFrame;
use super::liveness::{Activity, max_spacing};
use super::path_mtu::ProbeTimes;
use super::timer::{Expired, Timer, TimerTable};
use super::{Connection, ConnectionError, ConnectionState};
use crate::recovery::{Cause, Timeout};
use crate::time::Time;
use crate::trace::TraceEvent;
use std::net::SocketAddr;

/// Timers of liveness that send something.
const SILENCE: [Timer; 4] = [Timer::EarlyProbe, Timer::SendPing, Timer::ReceivePing, Timer::KeepAlive];

/// Timers that only wake the connection.
const SENDING: [Timer; 6] =
    [Timer::Feedback, Timer::FeedbackSeen, Timer::BlackHole, Timer::MtuSearch, Timer::Pacer, Timer::Schedule];

impl Connection {
    /// Returns when to call [`Connection::handle_timeout`], if nothing else happens before; then poll for packets too.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers().earliest()
    }

    /// Handles all timers due by `now`; call it at [`Connection::poll_timeout`] or later.
    pub fn handle_timeout(&mut self, now: Time) {
        let mut table = self.timers();
        if table.earliest().is_none_or(|at| at > now) {
            return;
        }
        self.on_ends(now, &table);
        if !matches!(self.phase, ConnectionState::Open) {
            return;
        }
        if self.on_loss_detection_timer(now, &table) {
            // Packets in flight decide whether the peer has to be probed.
            table = self.timers();
        }
        self.on_liveness_timers(now, &table);
        // The next `poll_transmit` handles the others.
        if self.expire(now, &table, &SENDING).contains(Timer::MtuSearch)
            && let Some(shrunk) = self.mtu.on_timer(now, self.probe_times())
        {
            self.shrink(now, shrunk);
        }
    }

    /// Returns every deadline of the connection, by its owner.
    fn timers(&self) -> TimerTable {
        let mut table = TimerTable::default();
        match &self.phase {
            ConnectionState::Handshake(handshake) => table.set(Timer::Handshake, handshake.deadline()),
            ConnectionState::Closing(closing) => table.set(Timer::Close, closing.due()),
            ConnectionState::Open => self.set_open_timers(&mut table),
            ConnectionState::Drained => {}
        }
        table
    }

    fn set_open_timers(&self, table: &mut TimerTable) {
        let (activity, times) = (self.activity(), self.probe_times());
        table.set(Timer::Idle, self.liveness.idle_deadline(&activity));
        table.set(Timer::PathValidation, self.paths.deadline());
        // Only path probes are sent to an unvalidated address.
        if !self.paths.is_validated() {
            return;
        }
        table.set(Timer::LossDetection, self.recovery.next_timeout());
        table.set(Timer::EarlyProbe, self.liveness.early_probe_deadline(&activity));
        table.set(Timer::SendPing, self.liveness.send_ping_deadline(&activity));
        table.set(Timer::ReceivePing, self.liveness.receive_ping_deadline(&activity));
        table.set(Timer::KeepAlive, self.liveness.keep_alive_deadline());
        table.set(Timer::Feedback, self.feedback_due());
        table.set(Timer::FeedbackSeen, self.seen.deadline(self.recovery.rtt().smoothed()));
        table.set(Timer::BlackHole, self.mtu.black_hole_deadline(times));
        table.set(Timer::MtuSearch, self.mtu.search_deadline(times));
        table.set(Timer::Pacer, self.pause.pacer_deadline());
        table.set(Timer::Schedule, self.pause.schedule_deadline());
    }

    /// Returns the input of liveness from the other components.
    fn activity(&self) -> Activity {
        Activity {
            rtt: self.known_rtt(),
            // Behind a queue of seconds the probe timeout exceeds the profile's limit.
            longest_timeout: self.profile.recovery.timeout.longest().max(self.recovery.probe_timeout()),
            in_flight: self.recovery.packets_in_flight() > 0,
            oldest_since: self.recovery.oldest_since(),
            unanswered: self.send_flows.unanswered(),
            sending: self.send_flows.has_unfinished() || self.control.backlog() > 0,
            receiving: self.recv_flows.has_unfinished(),
        }
    }

    /// Returns the input of path MTU discovery from the other components.
    pub(super) fn probe_times(&self) -> ProbeTimes {
        ProbeTimes {
            rtt: self.known_rtt(),
            pto: self.recovery.probe_timeout(),
            max_spacing: max_spacing(self.profile.recovery.timeout.longest()),
            in_flight: self.recovery.packets_in_flight() > 0,
        }
    }

    /// Returns which of these timers have expired. Each is counted and recorded.
    fn expire(&mut self, now: Time, table: &TimerTable, timers: &[Timer]) -> Expired {
        let expired = table.expired(now, timers);
        for timer in expired.iter() {
            self.counters.timers_expired += 1;
            // Loss detection itself records the expired timer more precisely.
            if timer != Timer::LossDetection {
                self.trace.record(now, TraceEvent::TimerExpired { timer: timer.name() });
            }
        }
        expired
    }

    /// Handles ends: of the connection, or of the validation of an address.
    fn on_ends(&mut self, now: Time, table: &TimerTable) {
        let expired = self.expire(now, table, &[Timer::Handshake, Timer::Close, Timer::Idle, Timer::PathValidation]);
        match &mut self.phase {
            ConnectionState::Handshake(handshake) => {
                if let Some(closed) = handshake.failure(now) {
                    self.end(closed);
                }
            }
            ConnectionState::Closing(closing) if closing.is_over(now) => self.phase = ConnectionState::Drained,
            ConnectionState::Open if expired.contains(Timer::Idle) => {
                self.recovery.close(now);
                self.end(ConnectionError::TimedOut);
            }
            ConnectionState::Open => self.paths.on_timer(now),
            ConnectionState::Closing(_) | ConnectionState::Drained => {}
        }
    }

    /// Handles the loss detection timer; returns whether it had expired.
    fn on_loss_detection_timer(&mut self, now: Time, table: &TimerTable) -> bool {
        if self.expire(now, table, &[Timer::LossDetection]).is_empty() {
            return false;
        }
        let timeout = self.recovery.on_timeout(now);
        let timer = match timeout {
            Timeout::Probe => "pto",
            Timeout::Lost if self.recovery.report().cause == Cause::Timeout => "rto",
            Timeout::Lost | Timeout::None => Timer::LossDetection.name(),
        };
        self.trace.record(now, TraceEvent::TimerExpired { timer });
        match timeout {
            Timeout::None => {}
            Timeout::Lost => {
                self.spread_report();
                self.update_path_mtu(now);
            }
            Timeout::Probe => self.liveness.on_probe_timeout(),
        }
        true
    }

    fn on_liveness_timers(&mut self, now: Time, table: &TimerTable) {
        let expired = self.expire(now, table, &SILENCE);
        if expired.is_empty() {
            return;
        }
        let activity = self.activity();
        if self.liveness.on_timers(now, expired, &activity) {
            self.control.push(ReliableFrame::Ping);
        }
    }

    /// Handles the network's report that nothing listens at the peer's address (ICMP port unreachable). It may be
    /// forged, so it ends nothing by itself: a peer not heard lately is probed twice at once, and given up before
    /// `dead_after` if nothing authentic arrives for 3 s or six round trips, or for two after
    /// [`Connection::expect_close`]. Further hints do not change that. During the handshake hints are ignored, as the
    /// peer may not be listening yet, unless it is known to ([`ConnectOptions::peer_listens`]). Poll for packets and
    /// timeouts afterwards. Returns whether the peer may be at `remote`.
    ///
    /// [`ConnectOptions::peer_listens`]: crate::ConnectOptions::peer_listens
    pub fn on_port_unreachable(&mut self, now: Time, remote: SocketAddr) -> bool {
        if let ConnectionState::Handshake(handshake) = &mut self.phase {
            return handshake.on_unreachable(now, remote);
        }
        let is_remote = self.remote() == remote;
        if is_remote
            && matches!(self.phase, ConnectionState::Open)
            && self.liveness.on_unreachable(now, self.known_rtt())
        {
            self.trace.record(now, TraceEvent::UnreachableHint);
        }
        is_remote
    }
}
