//! Answered handshakes whose initiators have not yet proved that they take part: a first message can be a replay. They
//! are not connections, and are bounded in time and number. If there are too many, keys and then addresses share the
//! entries, so that one guest does not keep others out.

use super::shares::Shares;
use super::spent::Name;
use super::{AcceptOptions, KeyHandle};
use crate::connection::{AddressPair, Connection, ConnectionConfig, Parts};
use crate::secure::{Cipher, Opener, PacketKeys, Secrets};
use crate::time::Time;
use crate::wire::{ConnectionId, Message1, Parameters, RejectReason};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long an initiator may take, from its first message on, to send a packet under the agreed keys. Chosen: as long
/// as a connection outlasts silence by default. An answered initiator sends up to 30 packets in that time; with 80 %
/// loss, one of them arrives in 999 of 1,000 cases.
const PROOF_TIME: Duration = Duration::from_secs(30);

/// Answers to copies of one first message: more than an initiator sends in [`PROOF_TIME`].
const MAX_COPIES: u8 = 128;

/// An answered handshake.
#[derive(Debug)]
pub(super) struct HalfOpen {
    pub(super) since: Time,
    pub(super) name: Name,
    pub(super) key: KeyHandle,
    pub(super) options: Arc<AcceptOptions>,
    /// Those that the answer states.
    pub(super) limits: ConnectionConfig,
    pub(super) path: AddressPair,
    pub(super) peer: Parameters,
    pub(super) secrets: Secrets,
    /// The source of the connection's randomness.
    pub(super) seed: [u8; 32],
    pub(super) noise1: Vec<u8>,
    pub(super) noise2: Vec<u8>,
}

impl HalfOpen {
    /// Returns the opener of the initiator's packets.
    fn opener(&self) -> Opener {
        // The answer has the only one.
        let cipher = self.peer.ciphers.first().and_then(|number| Cipher::from_wire(*number));
        Opener::new(PacketKeys::new(&self.secrets.receive, cipher.unwrap_or_else(Cipher::preferred)))
    }
}

#[derive(Debug)]
struct Place {
    /// By which places are numbered.
    age: u64,
    handshake: HalfOpen,
    opener: Opener,
    copies: u8,
    /// Another address from which copies arrived.
    alternative: Option<SocketAddr>,
}

/// A handshake with a proved initiator.
#[derive(Debug)]
pub(super) struct Proved {
    handshake: HalfOpen,
    alternative: Option<SocketAddr>,
}

/// All such handshakes of an endpoint, by the connection ids that it has chosen for them.
#[derive(Debug, Default)]
pub(super) struct HalfOpens {
    places: BTreeMap<ConnectionId, Place>,
    by_name: BTreeMap<Name, ConnectionId>,
    by_age: BTreeMap<u64, ConnectionId>,
    keys: Shares<KeyHandle>,
    addresses: BTreeMap<KeyHandle, Shares<IpAddr>>,
    last: u64,
}

impl HalfOpens {
    /// Returns the Noise message that answered the first copy of this first message, and is the answer to this one too;
    /// `None` if the message is new.
    ///
    /// # Errors
    /// [`RejectReason::HandshakeReplayed`]: the initiator's id is authenticated, so another message with it is from another
    /// sender, or this is one copy too many.
    pub(super) fn on_copy(
        &mut self,
        from: SocketAddr,
        message: &Message1<'_>,
    ) -> Result<Option<Vec<u8>>, RejectReason> {
        let id = self.by_name.get(&(message.key, message.connection));
        let Some(place) = id.and_then(|id| self.places.get_mut(id)) else { return Ok(None) };
        if place.handshake.noise1 != message.noise || place.copies == MAX_COPIES {
            return Err(RejectReason::HandshakeReplayed);
        }
        place.copies += 1;
        if from != place.handshake.path.remote {
            place.alternative = Some(from);
        }
        Ok(Some(place.handshake.noise2.clone()))
    }

    /// Keeps a handshake under the connection id of this side, and `most` of them.
    pub(super) fn add(&mut self, id: ConnectionId, handshake: HalfOpen, most: usize) {
        self.last += 1;
        let (age, opener) = (self.last, handshake.opener());
        self.keys.add(handshake.key, age);
        self.addresses.entry(handshake.key).or_default().add(holder(handshake.path.remote), age);
        self.by_name.insert(handshake.name, id);
        self.by_age.insert(age, id);
        self.places.insert(id, Place { age, handshake, opener, copies: 1, alternative: None });
        while self.places.len() > most.max(1)
            && let Some(id) = self.first_to_go()
        {
            self.remove(id);
        }
    }

    /// Returns the oldest of the address that has the most, of the key that has the most.
    fn first_to_go(&self) -> Option<ConnectionId> {
        let (key, _) = self.keys.largest()?;
        let (_, age) = self.addresses.get(&key)?.largest()?;
        self.by_age.get(&age).copied()
    }

    /// Returns the opener of the packets to this connection id.
    pub(super) fn opener(&self, id: ConnectionId) -> Option<Opener> {
        self.places.get(&id).map(|place| place.opener.clone())
    }

    /// Takes out a handshake because a packet has opened.
    pub(super) fn prove(&mut self, id: ConnectionId) -> Option<Proved> {
        let Place { handshake, alternative, .. } = self.remove(id)?;
        Some(Proved { handshake, alternative })
    }

    fn remove(&mut self, id: ConnectionId) -> Option<Place> {
        let place = self.places.remove(&id)?;
        let HalfOpen { name, key, path, .. } = &place.handshake;
        self.by_name.remove(name);
        self.by_age.remove(&place.age);
        self.keys.remove(*key, place.age);
        if let Some(addresses) = self.addresses.get_mut(key) {
            addresses.remove(holder(path.remote), place.age);
            if addresses.is_empty() {
                self.addresses.remove(key);
            }
        }
        Some(place)
    }

    /// Returns when the oldest is forgotten.
    pub(super) fn deadline(&self) -> Option<Time> {
        let (_, id) = self.by_age.first_key_value()?;
        self.places.get(id).map(|place| place.handshake.since + PROOF_TIME)
    }

    /// Forgets the expired ones.
    pub(super) fn on_timer(&mut self, now: Time) {
        while self.deadline().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.by_age.first_key_value()
        {
            self.remove(*id);
        }
    }

    /// Returns whether a handshake was answered with this key.
    pub(super) fn has(&self, key: KeyHandle) -> bool {
        self.keys.has(key)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

impl Proved {
    /// Returns the key that has answered it.
    pub(super) const fn key(&self) -> KeyHandle {
        self.handshake.key
    }

    pub(super) const fn name(&self) -> Name {
        self.handshake.name
    }

    /// Opens the connection; its first packet has this many bytes of payload.
    pub(super) fn open(self, payload: usize) -> Connection {
        let Self { handshake, alternative } = self;
        let HalfOpen { since, options, limits, path, peer, secrets, seed, .. } = handshake;
        let (profile, qlog) = (options.profile.clone(), options.qlog);
        let parts = Parts { now: since, profile, limits, path, seed, qlog };
        Connection::respond(parts, &secrets, peer, alternative, payload)
    }
}

/// Returns the holder of an address, for the sharing of entries: of IPv6 64 bits, as a host may choose the others.
fn holder(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() & (u128::MAX << 64)).into(),
    }
}
