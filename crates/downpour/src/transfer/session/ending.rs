//! The end of a session: the last messages, the close, and the summary.

use std::time::{Duration, Instant};

use net::Stats;
use transport::{ConnectingSide, transfer_floor};

use super::{Session, TICK};
use crate::error::{Closing, Error};
use crate::ticket::Role;
use crate::transfer::TransferEvent;
use crate::transfer::connection_figures::{ConnectionFigures, counted, path_share, share};
use crate::transfer::input::{Input, SideInput};
use crate::transfer::summary::{Attempts, Summary};
use crate::transfer::totals::Totals;

/// How long a side waits for the last messages while the peer is silent: the receiver for the sender's close, either
/// side for its own to be sent.
const LINGER: Duration = Duration::from_secs(3);

/// The limit while the peer sends: over a bad path the receiver's confirmation may take several attempts.
const LONGEST_LINGER: Duration = Duration::from_secs(30);

impl Session {
    /// Stops the clock: everything is verified. The sender takes the time on its host before the receiver's
    /// confirmation. It closes next, and has nothing to report.
    pub(in crate::transfer) fn complete(&mut self) {
        self.stopwatch.stop(runtime::now());
        // A complete transfer does not fail because of its peer's silence.
        let (is_news, _) = self.take_stats();
        if is_news && self.config.role == Role::Receiver {
            self.send_pressure();
        }
    }

    /// Closes the connection and creates the summary.
    ///
    /// # Errors
    /// The error with which the session ended.
    pub(in crate::transfer) fn conclude(&mut self, result: Result<Totals, Error>) -> Result<Summary, Error> {
        self.say_goodbye(result.as_ref().err());
        self.path.restore(self.stats.as_ref().map(|stats| &stats.connection));
        if result.is_err() {
            // A final progress report.
            self.report_progress();
            if let Some(why) = self.recording.lost() {
                self.events.emit(TransferEvent::UserNote(why));
            }
        }
        result.and_then(|done| self.summary(done))
    }

    /// Closes the connection, once the last messages have arrived or the peer is silent.
    fn say_goodbye(&mut self, error: Option<&Error>) {
        let since = runtime::now();
        // A process that was started by the local login ends with it, and has no user who needs the result.
        let leaves = error.is_none() && !self.config.by_ticket() && self.config.has_connected();
        // The sender has the receiver's confirmation; the receiver first waits until its confirmation has arrived.
        let mut may_close = error.is_some() || self.config.sends();
        if leaves {
            self.connection.leave();
        } else if !may_close {
            self.connection.expect_close();
        }
        let reads = self.peer.reads_causes();
        let closing = error.map_or_else(Closing::done, |error| Closing::of(error, reads));
        while !self.is_closed {
            if !leaves && (may_close || self.control.has_arrived()) {
                may_close = false;
                closing.clone().close(&self.connection);
            }
            // A stalled peer cannot prolong the wait by sending more.
            let heard = self.liveness.heard().filter(|_| !self.headway.has_stalled());
            let deadline = lingers_until(since, heard);
            match runtime::recv_timeout(&self.inputs, deadline.saturating_duration_since(runtime::now()).min(TICK)) {
                // Later events do not change the result.
                Ok(Input::Step(SideInput::Network(event))) => drop(self.on_network(event)),
                Ok(_) => {}
                Err(_) => {
                    // The summary needs the counters, and the deadline depends on when the peer last sent.
                    drop(self.take_stats());
                    if runtime::now() >= deadline {
                        // Close in any case, so that the peer learns how the session ended rather than that a program
                        // exited.
                        closing.close(&self.connection);
                        break;
                    }
                }
            }
        }
    }

    /// Returns cost and results of this attempt, if a peer was found.
    pub(in crate::transfer) fn attempt(&self) -> Attempts {
        let Some(stats) = self.stats.as_ref().filter(|_| self.peer.address().is_some()) else {
            return Attempts::default();
        };
        let connection = &stats.connection;
        let wire_bytes = match self.config.role {
            Role::Sender => connection.packets.bytes_sent,
            Role::Receiver | Role::Tunnel | Role::Streams => connection.packets.bytes_received,
        };
        Attempts {
            since: Some(self.stopwatch.started()),
            present: self.monitor.bytes_present(),
            wire_bytes,
            refused: stats.refused,
            overflowed: self.overflowed(stats).unwrap_or(0),
            memory: self.strains.ticks(),
        }
    }

    /// Returns the datagrams that the kernel of the receiver of the files has dropped; `None` if this side does not
    /// know.
    fn overflowed(&self, stats: &Stats) -> Option<u64> {
        match self.config.role {
            Role::Receiver | Role::Tunnel | Role::Streams => stats.socket_drops,
            Role::Sender => self.peer.counts_overflow().then_some(self.strains.of_both().1.overflowed),
        }
    }

    fn summary(&self, done: Totals) -> Result<Summary, Error> {
        let (Some(stats), Some(peer)) = (&self.stats, self.peer.address()) else {
            return Err(Error::Internal("a complete transfer without a connection"));
        };
        let elapsed = self.stopwatch.total(runtime::now());
        // Data that was present before was not transferred.
        let crossed = done.bytes.total.saturating_sub(done.bytes.present);
        let (sent, received) = (stats.connection.packets.bytes_sent, stats.connection.packets.bytes_received);
        Ok(Summary {
            role: self.config.role,
            peer,
            into: done.into,
            names: done.names,
            bytes: done.bytes,
            elapsed,
            failures: done.failures,
            wire_bytes: if self.config.sends() { sent } else { received },
            connection: self.connection_figures(stats, crossed, elapsed),
            trace_lost: self.recording.lost(),
        })
    }

    /// Returns the figures of a transfer of this many bytes of files.
    fn connection_figures(&self, stats: &Stats, crossed: u64, elapsed: Duration) -> ConnectionFigures {
        let connection = &stats.connection;
        let sends = self.config.sends();
        // The actual loss, not the engine's forecast.
        let lost = connection.packets.lost as f64 / connection.packets.sent.max(1) as f64;
        let connector = if self.config.has_connected() { ConnectingSide::Sender } else { ConnectingSide::Receiver };
        // Only the sender knows the loss and the configured rate.
        let fixed = self.config.fixed_rate().zip(connection.path.min_rtt).filter(|_| sends);
        let least = fixed.map(|(rate, rtt)| transfer_floor(crossed, rate, rtt, lost.clamp(0.0, 0.99), connector));
        let symbols = connection.symbols.source + connection.symbols.resent + connection.symbols.repair;
        ConnectionFigures {
            repair_share: share(connection.symbols.repair, symbols).filter(|_| sends),
            rtt: connection.path.rtt,
            loss: share(connection.packets.lost, connection.packets.sent).filter(|_| sends),
            refused: stats.refused.total(),
            refused_for: counted(&stats.refused),
            path_share: least.and_then(|least| path_share(least, elapsed)),
            remembered: self.path.remembered(),
            memory_bound: self.strains.ticks().bound(),
            overflowed: self.overflowed(stats),
        }
    }
}

/// Returns until when a side that is done at `since` waits for the last messages, if the peer last sent at `heard`.
fn lingers_until(since: Instant, heard: Option<Instant>) -> Instant {
    (since.max(heard.unwrap_or(since)) + LINGER).min(since + LONGEST_LINGER)
}

#[cfg(test)]
mod tests {
    use net::PIPE_PEER;

    use super::*;
    use crate::transfer::mailbox::Mailbox;
    use crate::transfer::peer_progress::ProgressTimeouts;
    use crate::transfer::session::config::{Acquaintance, Origin, SessionConfig};
    use crate::transfer::session::peer::{Peer, application};
    use crate::transfer::summary::NameCounts;
    use crate::transfer::{Transfer, TransferOptions};

    /// Slow feedback keeps the receiver from leaving before its confirmation has arrived; a peer that has closed does
    /// not.
    #[test]
    fn close_lingers_while_peer_active() {
        let since = Instant::now();
        let after = |heard: Option<u64>| {
            let heard = heard.map(|seconds| since + Duration::from_secs(seconds));
            (lingers_until(since, heard) - since).as_secs()
        };
        assert_eq!([None, Some(0), Some(2), Some(20), Some(29)].map(after), [3, 3, 5, 23, 30]);
        assert_eq!(lingers_until(since, since.checked_sub(Duration::from_secs(9))), since + LINGER);
    }

    /// The sender may have closed before its confirmation arrived. A transfer shorter than a tick has not requested
    /// counters by then.
    #[test]
    fn close_without_confirmation_succeeds() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (read, write) = (ours.try_clone().unwrap().into(), ours.into());
        let endpoint = net::Endpoint::builder().over_pipes(read, write).unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let options = transport::ConnectOptions::new(vec![PIPE_PEER]);
        let connection = endpoint.connect(([1; 32], options)).events(mailbox.events()).start();
        let config = SessionConfig {
            role: Role::Receiver,
            origin: Origin::Accepted,
            options: TransferOptions::default(),
            trace: None,
            acquaintance: Acquaintance::Ticket(ProgressTimeouts::default()),
        };
        let (events, _transfer) = Transfer::new();
        let mut session = Session::new(connection, events, config, inputs, Instant::now()).unwrap();
        session.peer = Peer::new(PIPE_PEER, &application(Role::Sender, false, false), Role::Receiver).unwrap();
        session.control.on_written(1);
        let summary = session
            .conclude(Ok(Totals { names: NameCounts { files: 1, ..NameCounts::default() }, ..Totals::default() }))
            .unwrap();
        assert_eq!(summary.names.files, 1);
    }
}
