//! The location of the peer: the path in use, and the addresses to which the peer seems to have moved (RFC 9000
//! sections 8.2 and 9).
//!
//! An authentic packet proves that the peer made it, but not that the peer sent it from its source address: an on-path
//! attacker can send a copy from another one. So a new address is challenged, is sent at most three times the bytes
//! received from it, and becomes the path when it answers, unless something newer has arrived over the path in use.

use crate::time::Time;
use crate::wire::{HEADER, TAG};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Addresses under challenge at once. Beyond that, the one with the oldest packet is dropped.
const MAX_CANDIDATES: usize = 4;

/// Bytes sent to an unvalidated address for each byte received from it (RFC 9000 section 8).
const AMPLIFICATION: u64 = 3;

/// An address is challenged for at least this long (RFC 9000 section 8.2.4: three probe timeouts of 1 s).
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(3);

/// Time that an answer may take beyond two round trips of the path in use.
const SLACK: Duration = Duration::from_millis(25);

/// Longest time between two challenges to one address.
const MAX_SPACING: Duration = Duration::from_secs(1);

/// Shortest and longest time between two restarts of our congestion control caused by challenges. The interval doubles
/// while challenges continue, since an attacker that replays packets from other addresses can make the peer send
/// challenges indefinitely.
const RESTART_SPACING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));

/// The interval returns to the shortest after this many intervals without a restart.
const RESTARTS_END: u32 = 8;

/// A silence that no round trip explains: feedback withheld, a block being written, a busy machine.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// Bytes of a PATH_CHALLENGE or PATH_RESPONSE frame.
pub(super) const PATH_FRAME: usize = 9;

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressPair {
    /// The peer's address, as seen by this side.
    pub(crate) remote: SocketAddr,
    /// The local address at which the peer's packets arrive, if known: answers are sent from there.
    pub(crate) local: Option<IpAddr>,
}

impl AddressPair {
    /// Returns the bytes that IP and UDP add to a payload on this path.
    pub(super) fn datagram_overhead(&self) -> u32 {
        let v4 = match self.remote.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
        };
        if v4 { 28 } else { 48 }
    }
}

/// A packet that has just been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedPacket {
    pub(super) path: AddressPair,
    pub(super) number: u64,
    pub(super) ip_bytes: u64,
}

/// The content of a path probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathFrame {
    Challenge([u8; 8]),
    Response([u8; 8]),
}

/// A packet with only a path frame, perhaps to an address other than the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathProbe {
    pub(super) to: AddressPair,
    pub(super) frame: PathFrame,
    pub(super) ip_bytes: u32,
}

/// An address to which the peer may have moved.
#[derive(Debug)]
struct Candidate {
    path: AddressPair,
    data: [u8; 8],
    /// Highest packet number received from it.
    highest: u64,
    /// IP bytes received from it and sent to it.
    received: u64,
    sent: u64,
    /// When it was first challenged, and how often since.
    first_sent: Option<Time>,
    copies: u32,
    next: Time,
    spacing: Duration,
    expires: Time,
}

impl Candidate {
    /// Returns the time until the next challenge, up to a quarter longer than the spacing: the peer's probes of a
    /// second could otherwise fill a short queue just before each response, permanently. The challenge's bytes are
    /// random.
    fn uneven_spacing(&self) -> Duration {
        let nth = self.copies as usize % self.data.len();
        self.spacing + self.spacing * u32::from(self.data[nth]) / 1024
    }

    const fn affords(&self, bytes: u64) -> bool {
        self.sent + bytes <= AMPLIFICATION * self.received
    }
}

/// The result of a response to a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    /// The peer has moved: the path in use is the one on which it answered.
    Migrated {
        /// The round-trip time of the new path, if only one challenge was sent, so that it is clear which one was
        /// answered.
        rtt: Option<Duration>,
    },
    /// It validates an address that the peer has left again, or once more the one in use.
    Ignored,
    /// No challenge carried this data.
    Unsolicited,
}

/// The path of a packet that arrives at a closing connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastPath {
    /// The one in use.
    Same,
    /// Another one, which is in use from now on.
    Changed,
    /// Another one, that a newer packet has left. It gets no answer: that would go to an address which has not been
    /// validated and did not send this packet (RFC 9000 section 10.2.1).
    Left,
}

/// Validates the addresses of a peer.
#[derive(Debug)]
pub(super) struct PathValidator {
    active: AddressPair,
    /// Highest packet number received over the path in use.
    highest: Option<u64>,
    /// When the last packet arrived over it.
    last_received: Time,
    /// The peer's address is validated. Before that, only path probes are sent.
    validated: bool,
    /// The first message arrived from several addresses, so a packet from one of them does not validate it.
    contested: bool,
    candidates: Vec<Candidate>,
    /// The response to send.
    response: Option<(AddressPair, [u8; 8])>,
    /// The last answered challenge, and when a challenge last restarted the path.
    last_challenge: Option<[u8; 8]>,
    last_restart: Option<Time>,
    restart_spacing: Duration,
    /// The challenge that the path in use has answered.
    answered: Option<[u8; 8]>,
    migrations: u64,
}

impl PathValidator {
    /// Creates the state for `path`, over which nothing has arrived yet.
    pub(super) const fn new(now: Time, path: AddressPair) -> Self {
        Self {
            active: path,
            highest: None,
            last_received: now,
            validated: false,
            contested: false,
            candidates: Vec::new(),
            response: None,
            last_challenge: None,
            last_restart: None,
            restart_spacing: RESTART_SPACING.0,
            answered: None,
            migrations: 0,
        }
    }

    /// Returns the path in use.
    pub(super) const fn active(&self) -> AddressPair {
        self.active
    }

    /// Returns whether the address to which packets are sent is validated.
    pub(super) const fn is_validated(&self) -> bool {
        self.validated
    }

    /// Returns whether the peer may have left the path in use.
    pub(super) const fn is_validating(&self) -> bool {
        !self.validated || !self.candidates.is_empty()
    }

    /// Returns how often the peer was found to have moved.
    pub(super) const fn migrations(&self) -> u64 {
        self.migrations
    }

    /// Notes that the handshake was answered from `remote`, which validates that address.
    pub(super) const fn on_handshake(&mut self, remote: SocketAddr) {
        self.active.remote = remote;
        self.validated = true;
    }

    /// Notes that a copy of the first message arrived from this address.
    pub(super) fn on_first_message(&mut self, remote: SocketAddr) {
        self.contested |= remote != self.active.remote;
    }

    /// Handles an authentic, new packet. Answers to a challenge are expected after `rtt`; `data` draws the bytes of
    /// one.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        packet: ReceivedPacket,
        rtt: Duration,
        data: impl FnOnce() -> [u8; 8],
    ) {
        if self.is_from_active(packet) {
            return self.on_active_packet(now, packet);
        }
        let ReceivedPacket { path, number, ip_bytes } = packet;
        if let Some(known) = self.candidates.iter_mut().find(|known| known.path.remote == path.remote) {
            known.path = path;
            known.highest = known.highest.max(number);
            known.received += ip_bytes;
            // If challenges and responses are lost, the peer counts as present at an address while its packets arrive
            // only from it: an answer to an earlier challenge counts too.
            if Some(number) > self.highest {
                known.expires = now + validation_timeout(rtt);
            }
            return;
        }
        // The newest packet of all shows where the peer may be now.
        if !self.is_newest(number) {
            return;
        }
        if self.candidates.len() == MAX_CANDIDATES
            && let Some(oldest) = (0..MAX_CANDIDATES).min_by_key(|at| self.candidates[*at].highest)
        {
            self.candidates.swap_remove(oldest);
        }
        self.candidates.push(Candidate {
            path,
            data: data(),
            highest: number,
            received: ip_bytes,
            sent: 0,
            first_sent: None,
            copies: 0,
            next: now,
            spacing: rtt * 2 + SLACK,
            expires: now + validation_timeout(rtt),
        });
    }

    /// Handles an authentic, new packet on a closing connection, which does not validate another address, as each
    /// packet gets one answer at most.
    pub(super) fn on_packet_while_closing(&mut self, now: Time, packet: ReceivedPacket) -> LastPath {
        let moved = !self.is_from_active(packet);
        if moved && !self.is_newest(packet.number) {
            return LastPath::Left;
        }
        self.active.remote = packet.path.remote;
        self.on_active_packet(now, packet);
        if moved { LastPath::Changed } else { LastPath::Same }
    }

    fn is_from_active(&self, packet: ReceivedPacket) -> bool {
        packet.path.remote == self.active.remote && (self.validated || !self.contested)
    }

    fn on_active_packet(&mut self, now: Time, packet: ReceivedPacket) {
        self.active.local = packet.path.local;
        self.highest = self.highest.max(Some(packet.number));
        self.last_received = now;
        self.validated = true;
    }

    /// Returns whether packet `number` was sent after all that have arrived so far.
    fn is_newest(&self, number: u64) -> bool {
        let highest = self.candidates.iter().map(|candidate| candidate.highest).max().max(self.highest);
        highest.is_none_or(|highest| number > highest)
    }

    /// Handles a challenge, which is answered on its own path. `alone`: its packet has no other content, so it checks
    /// our address and does not test packet sizes. Returns true if it shows that the peer sees us at another address
    /// than before, so that our packets take another path too. A challenge from an address other than the peer's does
    /// not show that: either the peer itself moved, or an attacker whose address the peer challenges relayed it (RFC
    /// 9000 section 9.3.3).
    pub(super) fn on_challenge(&mut self, now: Time, path: AddressPair, data: [u8; 8], alone: bool) -> bool {
        self.response = Some((path, data));
        let repeated = || self.last_challenge == Some(data);
        if !alone || path.remote != self.active.remote || repeated() {
            return false;
        }
        self.last_challenge = Some(data);
        self.may_restart(now)
    }

    /// Returns whether a challenge may restart congestion control now, and records the restart.
    fn may_restart(&mut self, now: Time) -> bool {
        let (shortest, longest) = RESTART_SPACING;
        if let Some(last) = self.last_restart {
            let passed = now.since(last);
            if passed < self.restart_spacing {
                return false;
            }
            let over = passed >= self.restart_spacing * RESTARTS_END;
            self.restart_spacing = if over { shortest } else { longest.min(self.restart_spacing * 2) };
        }
        self.last_restart = Some(now);
        true
    }

    /// Handles a response. It counts only from the address that was challenged: from another one the peer may be
    /// answering a challenge that an attacker at that address has relayed.
    pub(super) fn on_response(&mut self, now: Time, path: AddressPair, data: [u8; 8]) -> Validation {
        let challenged = |candidate: &Candidate| candidate.data == data && candidate.copies > 0;
        let Some(at) = self.candidates.iter().position(challenged) else {
            return if self.answered == Some(data) { Validation::Ignored } else { Validation::Unsolicited };
        };
        if self.candidates[at].path.remote != path.remote {
            return Validation::Ignored;
        }
        let candidate = self.candidates.swap_remove(at);
        if self.highest.is_some_and(|highest| highest > candidate.highest) {
            return Validation::Ignored;
        }
        self.active = candidate.path;
        self.highest = Some(candidate.highest);
        self.last_received = now;
        self.validated = true;
        self.answered = Some(data);
        self.migrations += 1;
        let first = candidate.first_sent.filter(|_| candidate.copies == 1);
        Validation::Migrated { rtt: first.map(|first| now.since(first)) }
    }

    /// Takes the next probe to send, and counts it as sent.
    pub(super) fn poll_probe(&mut self, now: Time) -> Option<PathProbe> {
        let ip_bytes = self.probe_bytes();
        let (to, frame) = match self.response.take() {
            Some((to, data)) => (to, PathFrame::Response(data)),
            None => self.poll_challenge(now)?,
        };
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.path.remote == to.remote) {
            candidate.sent += u64::from(ip_bytes);
        }
        Some(PathProbe { to, frame, ip_bytes })
    }

    fn poll_challenge(&mut self, now: Time) -> Option<(AddressPair, PathFrame)> {
        let bytes = self.probe_bytes().into();
        let due = |candidate: &&mut Candidate| candidate.next <= now && candidate.affords(bytes);
        let candidate = self.candidates.iter_mut().find(due)?;
        candidate.first_sent.get_or_insert(now);
        candidate.next = now + candidate.uneven_spacing();
        candidate.copies += 1;
        candidate.spacing = (candidate.spacing * 2).min(MAX_SPACING);
        Some((candidate.path, PathFrame::Challenge(candidate.data)))
    }

    /// Returns the IP bytes of a path probe.
    fn probe_bytes(&self) -> u32 {
        (HEADER + PATH_FRAME + TAG) as u32 + self.active.datagram_overhead()
    }

    /// Returns when to send a probe or give up a candidate.
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.response.is_some() {
            return Some(Time::ZERO);
        }
        let bytes = self.probe_bytes().into();
        let due = |candidate: &Candidate| {
            if candidate.affords(bytes) { candidate.next.min(candidate.expires) } else { candidate.expires }
        };
        self.candidates.iter().map(due).min()
    }

    /// Drops addresses that have not answered in time. If the peer sends from one again, it is challenged again.
    pub(super) fn on_timer(&mut self, now: Time) {
        self.candidates.retain(|candidate| candidate.expires > now);
    }

    /// Returns whether the peer sends from another address and the path in use has been silent for longer than three
    /// round trips: only probes are worth sending over it.
    pub(super) fn is_in_doubt(&self, now: Time, rtt: Duration) -> bool {
        let newer = |candidate: &Candidate| Some(candidate.highest) > self.highest;
        now.since(self.last_received) > rtt * 3 + QUIET && self.candidates.iter().any(newer)
    }
}

/// Returns for how long an address is challenged that sends nothing more.
fn validation_timeout(rtt: Duration) -> Duration {
    VALIDATION_TIMEOUT.max(rtt * 6)
}

#[cfg(test)]
mod tests;
