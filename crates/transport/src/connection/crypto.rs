//! Packet protection: the packet numbers, keys and replay window of one connection.

use crate::secure::{Cipher, Opener, PacketKeys, ReplayWindow, Sealer, Secrets, epoch_of};
use crate::wire::limits::MAX_PACKET_NUMBER;
use crate::wire::{ConnectionId, PacketHeader, PacketKind, Parameters};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// On average one packet number in this many is skipped, so that a peer which acknowledges packets it has not received
/// is soon caught (RFC 9000 section 21.4).
const SKIP_EVERY: u32 = 512;

/// Packet numbers reserved for closing the connection, more than closing can use.
const KEPT_FOR_CLOSING: u64 = 1 << 32;

/// Protects and numbers packets.
#[derive(Debug)]
pub(super) struct Crypto {
    remote_id: ConnectionId,
    keys: Option<Keys>,
    next_number: u64,
    skip_at: u64,
    salt: u64,
    random: ChaCha20Rng,
    replay: ReplayWindow,
    /// Packets that failed authentication.
    forgeries: u64,
}

#[derive(Debug)]
struct Keys {
    sealer: Sealer,
    opener: Opener,
}

impl Keys {
    /// Returns how many packets may fail authentication.
    fn integrity_limit(&self) -> u64 {
        self.opener.keys().cipher().integrity_limit()
    }
}

impl Crypto {
    /// Returns a number that differs from connection to connection.
    pub(super) const fn salt(&self) -> u64 {
        self.salt
    }

    /// Creates the state without keys. All randomness of the connection derives from `seed`.
    pub(super) fn new(seed: [u8; 32]) -> Self {
        let mut random = ChaCha20Rng::from_seed(seed);
        // Of another stream, so that it reveals no secret.
        random.set_stream(1);
        let salt = random.next_u64();
        random.set_stream(0);
        random.set_word_pos(0);
        let skip_at = 1 + u64::from(random.next_u32() % SKIP_EVERY);
        Self {
            remote_id: ConnectionId([0; 8]),
            keys: None,
            next_number: 0,
            skip_at,
            salt,
            random,
            replay: ReplayWindow::default(),
            forgeries: 0,
        }
    }

    /// Installs the `secrets` that the handshake has agreed on.
    pub(super) fn on_handshake(&mut self, secrets: &Secrets, peer: &Parameters) {
        // The responder sends only the cipher that it chose; the endpoint has checked that it is known.
        let cipher = peer.ciphers.first().and_then(|number| Cipher::from_wire(*number)).unwrap_or(Cipher::preferred());
        self.remote_id = peer.connection;
        self.keys = Some(Keys {
            sealer: Sealer::new(PacketKeys::new(&secrets.send, cipher)),
            opener: Opener::new(PacketKeys::new(&secrets.receive, cipher)),
        });
    }

    /// Returns unpredictable bytes.
    pub(super) fn random_bytes(&mut self) -> [u8; 8] {
        self.random.next_u64().to_be_bytes()
    }

    /// Returns the header of the next packet, and the preceding packet number if it is skipped. Updates the keys to the
    /// packet number.
    pub(super) fn next_header(&mut self, kind: PacketKind) -> (PacketHeader, Option<u64>) {
        let skipped = (self.next_number == self.skip_at).then_some(self.next_number);
        if skipped.is_some() {
            self.next_number += 1;
            self.skip_at = self.next_number + 1 + u64::from(self.random.next_u32() % (2 * SKIP_EVERY));
        }
        let number = self.next_number;
        self.next_number += 1;
        if let Some(keys) = &mut self.keys
            && let Some(advanced) = keys.sealer.keys().advanced_to(epoch_of(number))
        {
            keys.sealer = Sealer::new(advanced);
        }
        (PacketHeader { kind, connection: self.remote_id, number }, skipped)
    }

    /// Returns whether only the packet numbers reserved for closing are left.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.next_number > MAX_PACKET_NUMBER - KEPT_FOR_CLOSING
    }

    /// Returns the sealer of this connection's packets; `None` before the handshake is done.
    pub(super) fn sealer(&self) -> Option<Sealer> {
        self.keys.as_ref().map(|keys| keys.sealer.clone())
    }

    /// Returns the opener of this connection's packets; `None` before the handshake is done and after the integrity
    /// limit of the cipher. It is pure and may be used on any thread.
    pub(super) fn opener(&self) -> Option<Opener> {
        self.keys.as_ref().filter(|keys| self.forgeries < keys.integrity_limit()).map(|keys| keys.opener.clone())
    }

    /// Counts a packet that failed authentication. Returns whether that reaches the integrity limit.
    pub(super) fn on_forgery(&mut self) -> bool {
        self.forgeries += 1;
        self.keys.as_ref().is_some_and(|keys| self.forgeries == keys.integrity_limit())
    }

    /// Continues as if `forgeries` packets had failed authentication.
    #[cfg(test)]
    pub(super) const fn begin_after_forgeries(&mut self, forgeries: u64) {
        self.forgeries = forgeries;
    }

    /// Continues with packet number `number` in both directions.
    #[cfg(test)]
    pub(super) fn begin_at(&mut self, number: u64) {
        self.next_number = number;
        self.skip_at = number + u64::from(SKIP_EVERY);
        self.keys = self.keys.take().map(|Keys { sealer, opener }| Keys {
            sealer: Sealer::new(sealer.keys().relabelled(epoch_of(number))),
            opener: Opener::new(opener.keys().relabelled(epoch_of(number))),
        });
    }

    /// Returns whether an authentic packet is new, and not a replay.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        if !self.replay.check_and_set(number) {
            return false;
        }
        if let Some(keys) = &mut self.keys
            && let Some(advanced) = keys.opener.keys().advanced_to(epoch_of(number))
        {
            keys.opener = Opener::new(advanced);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_number_is_used_or_skipped_once_and_about_one_in_512_is_skipped() {
        let mut crypto = Crypto::new([7; 32]);
        let (mut expected, mut skips) = (0, 0);
        for _ in 0..100_000 {
            let (header, skipped) = crypto.next_header(PacketKind::Control);
            if let Some(skipped) = skipped {
                assert_eq!(skipped, expected);
                expected += 1;
                skips += 1;
            }
            assert_eq!(header.number, expected);
            expected += 1;
        }
        assert!((100_000 / 512 - 40..100_000 / 512 + 40).contains(&skips), "{skips}");
    }

    #[test]
    fn another_seed_skips_other_numbers_and_the_same_one_the_same() {
        let skipped = |seed| {
            let mut crypto = Crypto::new([seed; 32]);
            (0..10_000).filter_map(|_| crypto.next_header(PacketKind::Symbol).1).collect::<Vec<_>>()
        };
        assert_eq!(skipped(1), skipped(1));
        assert_ne!(skipped(1), skipped(2));
    }

    #[test]
    fn a_number_is_new_once() {
        let mut crypto = Crypto::new([7; 32]);
        assert!(crypto.is_new(5));
        assert!(!crypto.is_new(5), "a replay");
        assert!(crypto.is_new(4), "reordered");
        assert!(!crypto.is_new(4));
    }

    #[test]
    fn there_is_nothing_to_seal_or_open_with_before_the_handshake() {
        let crypto = Crypto::new([7; 32]);
        assert!(crypto.sealer().is_none());
        assert!(crypto.opener().is_none());
    }
}
