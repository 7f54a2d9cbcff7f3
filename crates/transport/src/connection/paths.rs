//! Where the peer is: the address in use, and those it seems to have moved to (RFC 9000 sections 8.2 and 9).
//!
//! A packet that opens proves that the peer made it, not that the peer is where it came from: anybody on its way can send a copy
//! from elsewhere. So a new address is challenged, gets at most three times the bytes that came from it, and becomes the path when
//! the answer comes from it, and nothing newer from the address in use.

use crate::time::Time;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Addresses under challenge at once. Of more, the one with the oldest packet is forgotten.
const MAX_CANDIDATES: usize = 4;

/// Bytes sent to an address for each byte received from it before it has answered (RFC 9000 section 8).
const AMPLIFICATION: u64 = 3;

/// An address is challenged for at least so long (RFC 9000 section 8.2.4: three probe timeouts of 1 s).
const PATIENCE: Duration = Duration::from_secs(3);

/// What an answer may take beyond two round trips of the path in use.
const SLACK: Duration = Duration::from_millis(25);

/// Where a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The peer's address, as it looks from here.
    pub(super) from: SocketAddr,
    /// The local address that was hit, if known: answers leave from there.
    pub(super) local: Option<IpAddr>,
}

/// A frame for an address that is not, or need not be, the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errand {
    pub(super) to: Origin,
    pub(super) data: [u8; 8],
}

/// An address that the peer may have moved to.
#[derive(Debug)]
struct Candidate {
    origin: Origin,
    data: [u8; 8],
    /// Highest packet number that came from it.
    highest: u64,
    /// IP bytes from and to it.
    received: u64,
    sent: u64,
    /// When it was challenged first, and how often since.
    first: Option<Time>,
    copies: u32,
    next: Time,
    spacing: Duration,
    until: Time,
}

/// An address that has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) to: Origin,
    /// Its round-trip time, where one challenge was sent and so one answered.
    pub(super) rtt: Option<Duration>,
}

/// What a response to a challenge leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The peer is there now.
    Moved(Moved),
    /// It answers for an address that it has left again, or again for the one in use.
    Nothing,
    /// Nobody asked for it.
    Unasked,
}

/// The addresses of a peer.
#[derive(Debug)]
pub(super) struct Paths {
    /// Highest packet number that came from the address in use.
    highest: Option<u64>,
    /// When the last packet came from there.
    heard: Time,
    /// The peer is there: before that is known, nothing is sent.
    proven: bool,
    /// The first message came from several addresses: a packet from one of them proves nothing of the address.
    contested: bool,
    candidates: Vec<Candidate>,
    response: Option<Errand>,
    /// The last challenge answered, and when one last made us begin anew.
    answered: Option<[u8; 8]>,
    began: Option<Time>,
    /// The challenge that the address in use has answered.
    validated: Option<[u8; 8]>,
    /// Times that nothing came and we asked why.
    pub(super) asked: u32,
    pub(super) changes: u64,
}

impl Paths {
    /// Of a peer of which nothing has come yet.
    pub(super) const fn new(now: Time) -> Self {
        Self {
            highest: None,
            heard: now,
            proven: false,
            contested: false,
            candidates: Vec::new(),
            response: None,
            answered: None,
            began: None,
            validated: None,
            asked: 0,
            changes: 0,
        }
    }

    /// The peer has proved to be where packets are sent to.
    pub(super) const fn prove(&mut self) {
        self.proven = true;
    }

    /// The first message came from another address too.
    pub(super) const fn contest(&mut self) {
        self.contested = true;
    }

    /// A packet from the address in use is one from the peer's address.
    pub(super) const fn is_trusted(&self) -> bool {
        self.proven || !self.contested
    }

    pub(super) const fn has_candidates(&self) -> bool {
        !self.candidates.is_empty()
    }

    pub(super) const fn is_proven(&self) -> bool {
        self.proven
    }

    /// A packet came from the address in use.
    pub(super) fn on_packet_here(&mut self, now: Time, number: u64) {
        self.highest = self.highest.max(Some(number));
        self.heard = now;
        self.proven = true;
        self.asked = 0;
    }

    /// A packet of `bytes` IP bytes came from another address. The newest of all tells where the peer may be now; `data` makes a
    /// challenge, answers to which are expected after `rtt`.
    pub(super) fn on_packet_elsewhere(
        &mut self,
        now: Time,
        origin: Origin,
        (number, bytes): (u64, u64),
        rtt: Duration,
        data: impl FnOnce() -> [u8; 8],
    ) {
        self.asked = 0;
        if let Some(known) = self.candidates.iter_mut().find(|candidate| candidate.origin.from == origin.from) {
            known.origin = origin;
            known.highest = known.highest.max(number);
            known.received += bytes;
            return;
        }
        if !self.is_newest(number) {
            return;
        }
        if self.candidates.len() == MAX_CANDIDATES
            && let Some(oldest) = (0..MAX_CANDIDATES).min_by_key(|at| self.candidates[*at].highest)
        {
            self.candidates.swap_remove(oldest);
        }
        self.candidates.push(Candidate {
            origin,
            data: data(),
            highest: number,
            received: bytes,
            sent: 0,
            first: None,
            copies: 0,
            next: now,
            spacing: rtt * 2 + SLACK,
            until: now + PATIENCE.max(rtt * 6),
        });
    }

    /// No packet that came before was sent after packet `number`.
    pub(super) fn is_newest(&self, number: u64) -> bool {
        let highest = self.candidates.iter().map(|candidate| candidate.highest).max().max(self.highest);
        highest.is_none_or(|highest| number > highest)
    }

    /// A challenge is to be answered.
    pub(super) const fn respond(&mut self, to: Origin, data: [u8; 8]) {
        self.response = Some(Errand { to, data });
    }

    /// A challenge came. True when it shows that the peer sees us at another address than before, so that our packets take
    /// another path too; at most once a second, whatever a peer sends.
    pub(super) fn on_challenge(&mut self, now: Time, origin: Origin, data: [u8; 8]) -> bool {
        self.respond(origin, data);
        let again = self.answered.replace(data) == Some(data);
        let lately = self.began.is_some_and(|at| now.since(at) < Duration::from_secs(1));
        if again || lately {
            return false;
        }
        self.began = Some(now);
        true
    }

    /// A response came. It counts only from the address that was challenged: from elsewhere the peer may be answering a
    /// challenge that somebody at that address has passed on.
    pub(super) fn on_response(&mut self, now: Time, origin: Origin, data: [u8; 8]) -> Verdict {
        let asked = |candidate: &Candidate| candidate.data == data && candidate.copies > 0;
        let Some(at) = self.candidates.iter().position(asked) else {
            return if self.validated == Some(data) { Verdict::Nothing } else { Verdict::Unasked };
        };
        if self.candidates[at].origin.from != origin.from {
            return Verdict::Nothing;
        }
        let candidate = self.candidates.swap_remove(at);
        if self.highest.is_some_and(|highest| highest > candidate.highest) {
            return Verdict::Nothing;
        }
        self.highest = Some(candidate.highest);
        self.heard = now;
        self.proven = true;
        self.validated = Some(data);
        self.changes += 1;
        let first = candidate.first.filter(|_| candidate.copies == 1);
        Verdict::Moved(Moved { to: candidate.origin, rtt: first.map(|first| now.since(first)) })
    }

    /// The next response to send.
    pub(super) fn take_response(&mut self) -> Option<Errand> {
        self.response.take()
    }

    /// The next challenge to send, in a packet of `bytes` IP bytes.
    pub(super) fn take_challenge(&mut self, now: Time, bytes: u64) -> Option<Errand> {
        let due = |candidate: &&mut Candidate| candidate.next <= now && candidate.affords(bytes);
        let candidate = self.candidates.iter_mut().find(due)?;
        candidate.first.get_or_insert(now);
        candidate.copies += 1;
        candidate.next = now + candidate.spacing;
        candidate.spacing = (candidate.spacing * 2).min(Duration::from_secs(1));
        Some(Errand { to: candidate.origin, data: candidate.data })
    }

    /// `bytes` IP bytes went to this address.
    pub(super) fn on_sent(&mut self, to: SocketAddr, bytes: u64) {
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.origin.from == to) {
            candidate.sent += bytes;
        }
    }

    /// Forgets addresses that have not answered. Where the peer speaks from one again, it is challenged again.
    pub(super) fn expire(&mut self, now: Time) {
        self.candidates.retain(|candidate| candidate.until > now);
    }

    /// The peer speaks from elsewhere and the address in use has been silent for `patience`: nothing but probes goes there.
    pub(super) fn doubts(&self, now: Time, patience: Duration) -> bool {
        let newer = |candidate: &Candidate| Some(candidate.highest) > self.highest;
        now.since(self.heard) > patience && self.candidates.iter().any(newer)
    }

    /// When a challenge is to be sent, or given up.
    pub(super) fn due(&self, bytes: u64) -> Option<Time> {
        let due = |candidate: &Candidate| {
            if candidate.affords(bytes) { candidate.next.min(candidate.until) } else { candidate.until }
        };
        let first = self.candidates.iter().map(due).min();
        if self.response.is_some() { Some(Time::ZERO) } else { first }
    }
}

impl Candidate {
    const fn affords(&self, bytes: u64) -> bool {
        self.sent + bytes <= AMPLIFICATION * self.received
    }
}
