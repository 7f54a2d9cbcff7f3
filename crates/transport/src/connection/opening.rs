//! The initiator's handshake: the same first message in several copies and sizes, until one is answered.

use super::batch::Batch;
use crate::recovery::EcnCodepoint;
use crate::secure::{Established, Initiator, Prologue};
use crate::time::Time;
use crate::wire::{Message1, Message2, Refused, limits::MIN_MESSAGE1};
use std::net::SocketAddr;
use std::time::Duration;

/// When the first copies go out (design section 6); each later one after twice the time of the one before.
const EARLY_COPIES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(20), Duration::from_millis(60), Duration::from_millis(250)];

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
    /// When each copy went out.
    sent: Vec<Time>,
    /// The copy that is going out now has gone to so many of the remotes.
    told: usize,
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
            sent: Vec::new(),
            told: 0,
        }
    }

    /// When the next copy, or the end of patience, is due.
    pub(super) fn due(&self) -> Time {
        let copy = self.sent.len();
        let after = EARLY_COPIES.get(copy).copied().unwrap_or_else(|| {
            let doublings = u32::try_from(copy - EARLY_COPIES.len() + 1).unwrap_or(u32::MAX).min(16);
            EARLY_COPIES[EARLY_COPIES.len() - 1] * (1 << doublings)
        });
        (self.started + after).min(self.deadline)
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// The next copy for the next address, when it is due.
    pub(super) fn poll_transmit(&mut self, now: Time, batch: &mut Batch) -> bool {
        if now < self.due() || self.is_over(now) {
            return false;
        }
        let Some(remote) = self.remotes.get(self.told).copied() else {
            return false;
        };
        // Departs: design section 6 sends one full-size copy. Every other copy is full-size, so that one random loss does
        // not cost the whole connection its packet size.
        let copy = self.sent.len();
        let size = if copy.is_multiple_of(2) { self.full_size } else { MIN_MESSAGE1 };
        let copy_number = u8::try_from(copy).unwrap_or(u8::MAX);
        let Prologue { key, connection } = self.prologue;
        let message = Message1 { key, connection, copy: copy_number, noise: &self.noise };
        batch.begin(remote, None, EcnCodepoint::NotEct, None);
        // The sizes are within the limits and the parameters were checked when the message was made.
        batch.push_datagram(|out| _ = message.encode(size, out));
        self.told += 1;
        if self.told == self.remotes.len() {
            self.told = 0;
            self.sent.push(now);
        }
        true
    }

    /// An answer came in a datagram of `size` bytes. One that is not authentic changes nothing.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        message: &Message2<'_>,
        size: usize,
    ) -> Result<Opened, Refused> {
        let established = self.initiator.finish(message.noise)?;
        let rtt = self.sent.get(usize::from(message.copy)).map(|sent| now.since(*sent));
        Ok(Opened { established, remote: from, payload: size.max(MIN_MESSAGE1), rtt })
    }
}
