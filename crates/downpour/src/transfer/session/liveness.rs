//! Whether the peer is alive: when it last sent, and the proof that is required of it when another peer requests its
//! place.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::transfer::input::OnAlive;

/// How long a peer may be silent while it owes a response, if another one requests its place: long enough for several
/// probes.
const PROOF_OF_LIFE: Duration = Duration::from_secs(2);

/// Another peer that requests the place of this one.
struct Takeover {
    /// When this peer was probed, and the bytes received by then.
    asked: Option<(Instant, u64)>,
    on_alive: OnAlive,
}

/// When the peer last sent, and the request for its place.
#[derive(Default)]
pub(in crate::transfer) struct Liveness {
    heard: Option<Instant>,
    /// Bytes received from the peer.
    bytes: u64,
    takeover: Option<Takeover>,
}

impl Liveness {
    /// Handles the peer's first authenticated message.
    pub(super) const fn on_connected(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Handles the total number of bytes received.
    pub(super) const fn on_bytes(&mut self, now: Instant, bytes: u64) {
        if bytes > self.bytes {
            (self.heard, self.bytes) = (Some(now), bytes);
        }
    }

    /// Handles another peer that requests the place of this one: `on_alive` is called when this one has sent again.
    /// Further requests give this peer no more time, and are answered with the first.
    pub(super) fn on_takeover(&mut self, on_alive: OnAlive) {
        self.takeover.get_or_insert(Takeover { asked: None, on_alive });
    }

    /// Returns when something was last received from the peer.
    pub(in crate::transfer) const fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Returns whether another peer requests the place of this one.
    pub(super) const fn is_contested(&self) -> bool {
        self.takeover.is_some()
    }

    /// Checks whether this peer is still alive when another one requests its place. Returns whether to probe it.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if it was probed and has not sent anything since.
    pub(super) fn check(&mut self, now: Instant, in_flight: u64) -> Result<bool, Error> {
        let Some(takeover) = &mut self.takeover else { return Ok(false) };
        match takeover.asked {
            None => {
                takeover.asked = Some((now, self.bytes));
                return Ok(true);
            }
            Some((_, before)) if self.bytes > before => {
                self.takeover.take().into_iter().for_each(|takeover| (takeover.on_alive)())
            }
            // Only while something is in flight does the peer owe a response.
            Some((since, _)) if in_flight > 0 && now.saturating_duration_since(since) >= PROOF_OF_LIFE => {
                return Err(Error::ConnectionLost);
            }
            Some(_) => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn contested_peer_probed_once_two_seconds() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut liveness = Liveness::default();
        assert!(!liveness.check(at(0), 1).unwrap(), "no other peer requests its place");
        let (alive, proofs) = channel();
        liveness.on_takeover(Box::new(move || alive.send(()).unwrap()));
        liveness.on_bytes(at(0), 100);
        assert!(liveness.is_contested() && liveness.check(at(0), 1).unwrap());
        assert!(!liveness.check(at(1_999), 1).unwrap());
        assert!(!liveness.check(at(3_000), 0).unwrap(), "it owes nothing");
        assert!(matches!(liveness.check(at(3_000), 1), Err(Error::ConnectionLost)));
        assert!(proofs.try_recv().is_err());
        liveness.on_bytes(at(3_000), 101);
        assert!(!liveness.check(at(3_000), 1).unwrap() && !liveness.is_contested());
        assert!(proofs.try_recv().is_ok());
    }

    #[test]
    fn a_peer_is_heard_by_new_bytes() {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        assert_eq!(liveness.heard(), None);
        liveness.on_connected(start);
        let later = start + Duration::from_secs(1);
        liveness.on_bytes(later, 0);
        assert_eq!(liveness.heard(), Some(start));
        liveness.on_bytes(later, 1);
        assert_eq!(liveness.heard(), Some(later));
    }
}
