//! The initiator's handshake: the same first message in several copies and sizes, until one is answered.

use super::batch::Batch;
use crate::recovery::EcnCodepoint;
use crate::secure::{Established, Initiator, Prologue};
use crate::time::Time;
use crate::wire::{Message1, Message2, Refused, limits::MIN_MESSAGE1};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// When the first rounds of copies go out. Departs: design section 6 has only 0, 20, 60 and 250 ms. A copy costs nothing beside
/// a transfer, and at 10 % loss each way they make a wait of half a second a matter of one connection in a million.
const EARLY_ROUNDS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(100),
    Duration::from_millis(150),
    Duration::from_millis(200),
    Duration::from_millis(250),
];

/// Departs: design section 6 doubles for ever. Ten rounds in half a minute fail where most packets are lost each way; as
/// probes do, rounds back off to one a second.
const LATE_SPACING: Duration = Duration::from_secs(1);

/// A handshake that waits for its answer.
#[derive(Debug)]
pub(crate) struct Opening {
    initiator: Initiator,
    noise: Vec<u8>,
    prologue: Prologue,
    remotes: Vec<SocketAddr>,
    full_size: usize,
    started: Time,
    deadline: Time,
    /// Rounds begun.
    rounds: usize,
    /// When each copy went out.
    sent: Vec<Time>,
    /// Versions that somebody who answered speaks. Not authentic: it explains a failure and causes none.
    pub(super) versions: Option<Vec<u32>>,
    /// What the current round still has to send: to whom, in which size, as which copy.
    queue: VecDeque<(SocketAddr, usize, u8)>,
}

/// What the handshake found out about the path.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) established: Established,
    pub(super) remote: SocketAddr,
    /// Payload bytes of the largest datagram known to pass both ways.
    pub(super) payload: usize,
    pub(super) rtt: Option<Duration>,
}

impl Opening {
    pub(crate) fn new(
        now: Time,
        timeout: Duration,
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
            deadline: now + timeout,
            rounds: 0,
            sent: Vec::new(),
            versions: None,
            queue: VecDeque::new(),
        }
    }

    /// When the next round, or the end of patience, is due.
    pub(super) fn due(&self) -> Time {
        let last = EARLY_ROUNDS[EARLY_ROUNDS.len() - 1];
        let after = EARLY_ROUNDS.get(self.rounds).copied().unwrap_or_else(|| {
            // 500 ms, 1 s, 2 s, 3 s, ...
            match (self.rounds - EARLY_ROUNDS.len()) as u32 {
                0 => last * 2,
                later => LATE_SPACING * later,
            }
        });
        (self.started + after).min(self.deadline)
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// The next copy for the next address, when it is due.
    pub(super) fn poll_transmit(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.queue.is_empty() && now >= self.due() && !self.is_over(now) {
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

    /// Departs: design section 6 sends one full-size copy, then small ones. From the third round on both sizes go out
    /// together, so that random loss does not cost the packet size of the whole connection.
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

    /// An answer came in a datagram of `size` bytes. One that is not authentic changes nothing.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        message: &Message2<'_>,
        size: usize,
    ) -> Result<Opened, Refused> {
        // A copy of the answer that somebody sends from elsewhere must not decide where the peer is.
        if !self.remotes.iter().any(|asked| is_same(*asked, from)) {
            return Err(Refused::Unacceptable);
        }
        let established = self.initiator.finish(message.noise)?;
        let rtt = self.sent.get(usize::from(message.copy)).map(|sent| now.since(*sent));
        Ok(Opened { established, remote: from, payload: size.max(MIN_MESSAGE1), rtt })
    }
}

/// The same port of the same address, however written; who asks the unspecified address asks any of this host's.
fn is_same(asked: SocketAddr, from: SocketAddr) -> bool {
    let (ip, other) = (asked.ip().to_canonical(), from.ip().to_canonical());
    asked.port() == from.port() && (ip == other || ip.is_unspecified())
}
