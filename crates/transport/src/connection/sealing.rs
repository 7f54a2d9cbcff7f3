//! Where a connection's packets go and under which ids, numbers and keys.

use super::batch::Batch;
use crate::recovery::EcnCodepoint;
use crate::secure::{Cipher, Opener, PacketKeys, ReplayWindow, Sealer, Secrets, epoch_of};
use crate::wire::{ConnectionId, PacketHeader, PacketKind, Parameters};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Packet numbers skipped are so many apart on average: whoever acknowledges what was never sent is soon convicted.
const SKIP_EVERY: u32 = 512;

/// Keys, numbers and addresses of one connection.
#[derive(Debug)]
pub(crate) struct Sealing {
    remote: SocketAddr,
    source: Option<IpAddr>,
    remote_id: ConnectionId,
    keys: Option<Keys>,
    next_number: u64,
    skip_at: u64,
    random: ChaCha20Rng,
    replay: ReplayWindow,
}

#[derive(Debug)]
struct Keys {
    sealer: Sealer,
    opener: Opener,
}

impl Sealing {
    /// Nothing is known yet but where the peer is; `seed` decides which numbers are skipped.
    pub(crate) fn new(remote: SocketAddr, seed: [u8; 32]) -> Self {
        let mut random = ChaCha20Rng::from_seed(seed);
        let skip_at = 1 + u64::from(random.next_u32() % SKIP_EVERY);
        Self {
            remote,
            source: None,
            remote_id: ConnectionId([0; 8]),
            keys: None,
            next_number: 0,
            skip_at,
            random,
            replay: ReplayWindow::default(),
        }
    }

    pub(super) fn establish(&mut self, secrets: &Secrets, peer: &Parameters) {
        // The responder names the one cipher it chose; the endpoint has checked that it is known.
        let cipher = peer.ciphers.first().and_then(|number| Cipher::from_wire(*number)).unwrap_or(Cipher::preferred());
        self.remote_id = peer.connection;
        self.keys = Some(Keys {
            sealer: Sealer::new(Arc::new(PacketKeys::new(&secrets.send, cipher))),
            opener: Opener::new(Arc::new(PacketKeys::new(&secrets.receive, cipher))),
        });
    }

    pub(super) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) const fn set_remote(&mut self, remote: SocketAddr) {
        self.remote = remote;
    }

    pub(crate) const fn set_source(&mut self, source: Option<IpAddr>) {
        self.source = source;
    }

    /// Bytes that IP and UDP add to a payload.
    pub(super) fn datagram_overhead(&self) -> u32 {
        let v4 = match self.remote.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
        };
        if v4 { 28 } else { 48 }
    }

    pub(super) fn begin(&self, batch: &mut Batch, ecn: EcnCodepoint) {
        self.begin_to(batch, self.remote, self.source, ecn);
    }

    /// As [`Sealing::begin`], for another address than the one in use.
    pub(super) fn begin_to(&self, batch: &mut Batch, to: SocketAddr, source: Option<IpAddr>, ecn: EcnCodepoint) {
        batch.begin(to, source, ecn, self.keys.as_ref().map(|keys| keys.sealer.clone()));
    }

    /// Bytes that nobody can guess.
    pub(super) fn random_bytes(&mut self) -> [u8; 8] {
        self.random.next_u64().to_be_bytes()
    }

    /// The number of the next packet, and the one before it if that is to be skipped. Keys follow the number.
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
            keys.sealer = Sealer::new(Arc::new(advanced));
        }
        (PacketHeader { kind, connection: self.remote_id, number }, skipped)
    }

    /// Opens packets for this connection; `None` before the handshake is done. Pure: may be used on any thread.
    pub(super) fn opener(&self) -> Option<Opener> {
        self.keys.as_ref().map(|keys| keys.opener.clone())
    }

    /// An authentic packet came: whether it is new.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        if !self.replay.check_and_set(number) {
            return false;
        }
        if let Some(keys) = &mut self.keys
            && let Some(advanced) = keys.opener.keys().advanced_to(epoch_of(number))
        {
            keys.opener = Opener::new(Arc::new(advanced));
        }
        true
    }
}
