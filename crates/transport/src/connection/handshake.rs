//! The initiator's handshake: it sends the same first message in several copies and sizes until one is answered. The
//! responder's is the endpoint's until the initiator has proved that it takes part.

use super::batch::Batch;
use super::event::ConnectionError;
use crate::recovery::EcnCodepoint;
use crate::secure::{Established, Initiator, Prologue};
use crate::time::Time;
use crate::wire::{Message1, Message2, RejectReason, VERSION, VersionAnswer, limits::MIN_MESSAGE1};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// When the first rounds of copies are sent (docs/design/handshake.md). A copy costs nothing compared with a transfer,
/// and at 10 % loss each way they limit waits of half a second to one connection in a million.
const EARLY_ROUNDS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(100),
    Duration::from_millis(150),
    Duration::from_millis(200),
    Duration::from_millis(250),
];

/// Later rounds back off to one a second, as probes do. Doubling without limit, ten rounds in half a minute, would fail
/// where most packets are lost each way.
const LATE_SPACING: Duration = Duration::from_secs(1);

/// First messages that await an answer.
#[derive(Debug)]
pub(crate) struct Initiation {
    initiator: Initiator,
    noise: Vec<u8>,
    prologue: Prologue,
    remotes: Vec<SocketAddr>,
    full_size: usize,
    started: Time,
    gives_up: Time,
    /// Whether the peer should be listening already.
    peer_listens: bool,
    /// Addresses at which nothing listens, as reported by the network.
    closed: Vec<SocketAddr>,
    /// Rounds begun.
    rounds: usize,
    /// When each copy was sent.
    sent: Vec<Time>,
    /// Versions that some answer offered. Not authentic: it explains a failure and causes none.
    versions: Option<Vec<u32>>,
    /// Datagrams that the current round has yet to send: destination, size, number of the copy.
    queue: VecDeque<(SocketAddr, usize, u8)>,
}

/// The result of an answer.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) established: Established,
    pub(super) remote: SocketAddr,
    /// Payload bytes of the largest datagram known to pass in both directions.
    pub(super) payload: usize,
    pub(super) rtt: Option<Duration>,
}

impl Initiation {
    pub(crate) fn new(
        now: Time,
        (timeout, peer_listens): (Duration, bool),
        (initiator, noise): (Initiator, Vec<u8>),
        prologue: Prologue,
        remotes: Vec<SocketAddr>,
        full_size: usize,
    ) -> Self {
        let full_size = full_size.max(MIN_MESSAGE1);
        Self {
            initiator,
            noise,
            prologue,
            remotes,
            full_size,
            started: now,
            gives_up: now + timeout,
            peer_listens,
            closed: Vec::new(),
            rounds: 0,
            sent: Vec::new(),
            versions: None,
            queue: VecDeque::new(),
        }
    }

    /// Returns when the next round, or the end of the wait, is due.
    pub(super) fn deadline(&self) -> Time {
        let last = EARLY_ROUNDS[EARLY_ROUNDS.len() - 1];
        let after = EARLY_ROUNDS.get(self.rounds).copied().unwrap_or_else(|| {
            // 500 ms, 1 s, 2 s, 3 s, ...
            match (self.rounds - EARLY_ROUNDS.len()) as u32 {
                0 => last * 2,
                later => LATE_SPACING * later,
            }
        });
        (self.started + after).min(self.gives_up)
    }

    /// Handles the network's report that nothing listens at `remote`; returns whether messages went to it. If the peer
    /// should be listening, and is at none of its addresses, the wait ends.
    pub(super) fn on_unreachable(&mut self, now: Time, remote: SocketAddr) -> bool {
        let closed: Vec<SocketAddr> = self.remotes.iter().copied().filter(|asked| is_same(*asked, remote)).collect();
        if closed.is_empty() {
            return false;
        }
        for asked in closed {
            if !self.closed.contains(&asked) {
                self.closed.push(asked);
            }
        }
        if self.peer_listens && self.remotes.iter().all(|asked| self.closed.contains(asked)) {
            self.gives_up = self.gives_up.min(now);
        }
        true
    }

    /// Handles a claim that the peer supports other versions only. It may be forged: the handshake continues until its
    /// time is up.
    pub(super) fn on_versions(&mut self, answer: &VersionAnswer<'_>) -> Result<(), RejectReason> {
        let offered: Vec<u32> = answer.versions().filter(|version| version & 0x0f0f_0f0f != 0x0a0a_0a0a).collect();
        if offered.contains(&VERSION) {
            return Err(RejectReason::BadVersion);
        }
        self.versions = Some(offered);
        Ok(())
    }

    /// Returns why the handshake has failed, if its time is up.
    pub(super) fn failure(&self, now: Time) -> Option<ConnectionError> {
        let failure = || {
            self.versions
                .clone()
                .map_or(ConnectionError::HandshakeTimeout, |offered| ConnectionError::VersionMismatch { offered })
        };
        self.is_over(now).then(failure)
    }

    fn is_over(&self, now: Time) -> bool {
        now >= self.gives_up
    }

    /// Writes the next copy for the next address, when it is due.
    pub(super) fn poll_transmit(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.queue.is_empty() && now >= self.deadline() && !self.is_over(now) {
            self.begin_round(now);
        }
        let Some((remote, size, copy)) = self.queue.pop_front() else { return false };
        let Prologue { key, connection } = self.prologue;
        let message = Message1 { key, connection, copy, noise: &self.noise };
        batch.begin(remote, None, EcnCodepoint::NotEct, None);
        // The sizes are within the limits and the parameters were checked when the message was made.
        batch.push_datagram(|out| _ = message.encode(size, out));
        true
    }

    /// Begins a round. From the third round on both sizes are sent together, so that random loss does not reduce the
    /// packet size of the whole connection (docs/design/handshake.md).
    fn begin_round(&mut self, now: Time) {
        let sizes: &[usize] = match self.rounds {
            0 => &[self.full_size],
            1 => &[MIN_MESSAGE1],
            _ => &[self.full_size, MIN_MESSAGE1],
        };
        for size in sizes {
            let copy = u8::try_from(self.sent.len()).unwrap_or(u8::MAX);
            self.queue.extend(self.remotes.iter().map(|remote| (*remote, *size, copy)));
            self.sent.push(now);
        }
        self.rounds += 1;
    }

    /// Handles an answer in a datagram of `size` bytes. A forged one changes nothing.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        message: &Message2<'_>,
        size: usize,
    ) -> Result<Answered, RejectReason> {
        // A copy of the answer from another address must not decide the peer's address.
        if !self.remotes.iter().any(|asked| is_same(*asked, from)) {
            return Err(RejectReason::Unacceptable);
        }
        let established = self.initiator.finish(message.noise)?;
        // From the 256th on, all copies carry the largest number.
        let copy = Some(usize::from(message.copy)).filter(|_| message.copy < u8::MAX);
        let rtt = copy.and_then(|copy| self.sent.get(copy)).map(|sent| now.since(*sent));
        Ok(Answered { established, remote: from, payload: size.max(MIN_MESSAGE1), rtt })
    }
}

/// Returns whether both are the same port of the same address, however written. The unspecified address matches any of
/// this host's.
fn is_same(asked: SocketAddr, from: SocketAddr) -> bool {
    let (ip, other) = (asked.ip().to_canonical(), from.ip().to_canonical());
    asked.port() == from.port() && (ip == other || ip.is_unspecified())
}

#[cfg(test)]
mod tests;
