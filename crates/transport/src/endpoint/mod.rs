//! The connections of one UDP socket: their ids, the keys that open them, first messages and their replays, version
//! negotiation.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod half_open;
mod shares;
mod spent;

use crate::connection::{AddressPair, Connection, ConnectionConfig, Initiation, Parts, ReceivedEcn};
use crate::profile::Profile;
use crate::secure::{Cipher, Initiator, OpenedPacket, Prologue, Psk, SecretRng, respond, with_clean_stack};
use crate::time::Time;
use crate::wire::{
    ConnectionId, Datagram, KeyId, Message1, Parameters, RejectCounts, RejectReason, SYMBOL_OVERHEAD, VersionAnswer,
};
use half_open::{HalfOpen, HalfOpens};
use spent::Spent;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Answers to first messages that may wait to be sent. Further ones are dropped, and the initiators repeat their
/// messages.
const MAX_ANSWERS: usize = 64;

/// Identifies a connection of one endpoint. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(u64);

/// Identifies a key that an endpoint accepts, from [`Endpoint::add_key`] on. Never used twice, also for the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHandle(u64);

/// The configuration of all connections of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The limits that each connection sets to its peer.
    pub limits: ConnectionConfig,
    /// The most connections at once. A closed one makes room for one of a peer once its events have been polled.
    pub max_connections: usize,
    /// The most answered first messages whose senders have not proved yet that these are no replays. If more arrive,
    /// keys and then addresses (of IPv6, networks of 64 bits) share the entries: the oldest message of the largest
    /// holder is forgotten.
    pub max_half_open: usize,
    /// The cipher to use if the peer supports it too.
    pub cipher: Cipher,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            limits: ConnectionConfig::default(),
            max_connections: 1_024,
            // Chosen: as many as keep a processor busy for several tenths of a second, so that an initiator far away is not
            // forgotten before it can prove itself even where thousands of addresses send; and 16 MB at most.
            max_half_open: 4_096,
            cipher: Cipher::preferred(),
        }
    }
}

/// How to open a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// How this side sends.
    pub profile: Profile,
    /// The application's bytes for the peer, encrypted in the first message; at most
    /// [`crate::wire::limits::MAX_APPLICATION`].
    pub application: Vec<u8>,
    /// Addresses of the peer: all are tried, and the first to answer is kept.
    pub remotes: Vec<SocketAddr>,
    /// How long to wait for an answer.
    pub handshake_timeout: Duration,
    /// Whether the peer is known to listen already. Then reports from the network that nothing listens (ICMP port
    /// unreachable) at any of the addresses end the handshake; otherwise they mean nothing, and may be forged.
    pub peer_listens: bool,
    /// Whether to record qlog.
    pub qlog: bool,
}

impl ConnectOptions {
    /// Creates the default options: the `auto` profile, 10 s for the handshake, no application bytes and no qlog.
    pub fn new(remotes: Vec<SocketAddr>) -> Self {
        let handshake_timeout = Duration::from_secs(10);
        Self {
            profile: Profile::auto(),
            application: Vec::new(),
            remotes,
            handshake_timeout,
            peer_listens: false,
            qlog: false,
        }
    }

    /// Sends by this profile.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sends these bytes in the first message, encrypted.
    #[must_use]
    pub fn application(self, application: impl Into<Vec<u8>>) -> Self {
        Self { application: application.into(), ..self }
    }

    /// Waits this long for an answer.
    #[must_use]
    pub fn handshake_timeout(self, handshake_timeout: Duration) -> Self {
        Self { handshake_timeout, ..self }
    }

    /// Whether the peer is known to listen already.
    #[must_use]
    pub fn peer_listens(self, peer_listens: bool) -> Self {
        Self { peer_listens, ..self }
    }

    /// Whether to record qlog.
    #[must_use]
    pub fn qlog(self, qlog: bool) -> Self {
        Self { qlog, ..self }
    }
}

/// How to accept connections with a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcceptOptions {
    /// How this side sends.
    pub profile: Profile,
    /// The application's bytes for the peer, encrypted in the second message.
    pub application: Vec<u8>,
    /// Whether to record qlog.
    pub qlog: bool,
}

impl Default for AcceptOptions {
    /// The `auto` profile, no application bytes and no qlog.
    fn default() -> Self {
        Self { profile: Profile::auto(), application: Vec::new(), qlog: false }
    }
}

impl AcceptOptions {
    /// Sends by this profile.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sends these bytes in the second message, encrypted.
    #[must_use]
    pub fn application(self, application: impl Into<Vec<u8>>) -> Self {
        Self { application: application.into(), ..self }
    }

    /// Whether to record qlog.
    #[must_use]
    pub fn qlog(self, qlog: bool) -> Self {
        Self { qlog, ..self }
    }
}

/// The reason why a connection cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No address to connect to was given.
    #[error("no address to connect to")]
    NoAddress,
    /// The endpoint has reached its limit of connections.
    #[error("too many connections")]
    Busy,
    /// The application's bytes do not fit the first message.
    #[error("the application's bytes do not fit the handshake")]
    TooLong,
}

/// An event of the endpoint rather than one of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A peer has opened a connection with one of our keys, and has proved that its first message is no replay.
    /// [`crate::Event::Connected`] is the connection's first event.
    Accepted {
        /// The connection.
        handle: ConnectionHandle,
        /// The key, which may have expired or been removed since the first message was answered.
        key: KeyHandle,
    },
}

/// A datagram to send as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The address to send to.
    pub destination: SocketAddr,
    /// The local address that received the request.
    pub source: Option<IpAddr>,
    /// The datagram.
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
struct Key {
    handle: KeyHandle,
    psk: Psk,
    expires: Option<Time>,
    options: Arc<AcceptOptions>,
}

impl Key {
    /// Returns whether the key is valid at this time. A stranger cannot distinguish an expired key from an unknown one.
    fn is_live(&self, now: Time) -> bool {
        self.expires.is_none_or(|at| now < at)
    }
}

/// The time and address from which a datagram arrived.
#[derive(Clone, Copy, Debug)]
struct DatagramOrigin {
    now: Time,
    from: SocketAddr,
    local: Option<IpAddr>,
}

/// The engine of one socket with any number of connections.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    random: SecretRng,
    keys: BTreeMap<KeyId, Key>,
    connections: BTreeMap<ConnectionHandle, (ConnectionId, Connection)>,
    by_id: BTreeMap<ConnectionId, ConnectionHandle>,
    half_open: HalfOpens,
    spent: Spent,
    next_handle: u64,
    next_key: u64,
    answers: VecDeque<Transmit>,
    events: VecDeque<EndpointEvent>,
    refused: RejectCounts,
}

impl Endpoint {
    /// Creates an endpoint without connections. It draws all its randomness from `seed`, which has to be secret and
    /// never used before.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        Self {
            config,
            random: SecretRng::new(seed),
            keys: BTreeMap::new(),
            connections: BTreeMap::new(),
            by_id: BTreeMap::new(),
            half_open: HalfOpens::default(),
            spent: Spent::default(),
            next_handle: 0,
            next_key: 0,
            answers: VecDeque::new(),
            events: VecDeque::new(),
            refused: RejectCounts::default(),
        }
    }

    /// Accepts connections with `key` until it expires or is removed. The options replace those of an earlier call with
    /// the same key for first messages that arrive from now on.
    pub fn add_key(&mut self, key: [u8; 32], expires: Option<Time>, options: AcceptOptions) -> KeyHandle {
        let psk = with_clean_stack(|| Psk::new(key));
        let handle = KeyHandle(self.next_key);
        self.next_key += 1;
        self.keys.insert(psk.id(), Key { handle, psk, expires, options: Arc::new(options) });
        handle
    }

    /// Ignores first messages with this key from now on. Answered initiators may still open a connection
    /// ([`Endpoint::awaits`]), and connections opened with it stay.
    pub fn remove_key(&mut self, key: KeyHandle) {
        self.keys.retain(|_, known| known.handle != key);
    }

    /// Returns whether a first message with this key was answered whose sender may still open a connection.
    pub fn awaits(&self, key: KeyHandle) -> bool {
        self.half_open.has(key)
    }

    /// Returns the number of answered first messages whose senders may still open a connection.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Opens a connection to the holder of `key` at one of the addresses.
    ///
    /// # Errors
    /// [`ConnectError::NoAddress`], [`ConnectError::Busy`], or [`ConnectError::TooLong`] for the application's bytes.
    pub fn connect(
        &mut self,
        now: Time,
        key: [u8; 32],
        options: ConnectOptions,
    ) -> Result<ConnectionHandle, ConnectError> {
        let first = *options.remotes.first().ok_or(ConnectError::NoAddress)?;
        if self.connections.len() >= self.config.max_connections {
            return Err(ConnectError::Busy);
        }
        let psk = with_clean_stack(|| Psk::new(key));
        let id = self.fresh_id();
        let offer = self.parameters(id, self.config.cipher.offer(), &options.profile, options.application);
        let payload = offer.encode(self.grease()).map_err(|_| ConnectError::TooLong)?;
        let prologue = Prologue { key: psk.id(), connection: id };
        let start = || Initiator::new(&psk, prologue, &payload, self.random.draw());
        let started = with_clean_stack(start).map_err(|_| ConnectError::TooLong)?;
        let largest = options.profile.symbols.largest();
        let opening = Initiation::new(
            now,
            (options.handshake_timeout, options.peer_listens),
            started,
            prologue,
            options.remotes,
            usize::from(largest) + SYMBOL_OVERHEAD,
        );
        let path = AddressPair { remote: first, local: None };
        let parts = self.parts(now, options.profile, path, options.qlog);
        Ok(self.insert(id, Connection::initiate(parts, opening)))
    }

    /// Processes datagrams of `stride` bytes (the last may be shorter) that arrived together from one address with one
    /// ECN mark. They are decrypted in place.
    pub fn handle_datagrams(
        &mut self,
        now: Time,
        from: SocketAddr,
        local: Option<IpAddr>,
        ecn: ReceivedEcn,
        data: &mut [u8],
        stride: usize,
    ) {
        let arrival = DatagramOrigin { now, from, local };
        let mut datagrams = data.chunks_mut(stride.max(1)).peekable();
        let mut opened: Vec<OpenedPacket<'_>> = Vec::with_capacity(datagrams.len());
        while let Some(datagram) = datagrams.next() {
            let packet = match Datagram::classify(datagram) {
                Ok(Datagram::Packet(header)) => header,
                Ok(_) => {
                    self.handle_cleartext(arrival, datagram);
                    continue;
                }
                Err(reason) => {
                    self.refused.add(reason);
                    continue;
                }
            };
            opened.extend(self.open_packet(now, packet.connection, datagram));
            // Consecutive packets of one connection are handled together.
            let same = |next: &&mut [u8]| matches!(Datagram::classify(next), Ok(Datagram::Packet(header)) if header.connection == packet.connection);
            if !datagrams.peek().is_some_and(same)
                && let Some(connection) = self.connection_by_id(packet.connection)
            {
                connection.handle_packets(now, from, local, ecn, &mut opened);
                opened.clear();
            }
        }
    }

    /// Opens a packet to this connection id, or counts why it cannot be opened.
    fn open_packet<'a>(&mut self, now: Time, id: ConnectionId, datagram: &'a mut [u8]) -> Option<OpenedPacket<'a>> {
        let Some(connection) = self.connection_by_id(id) else {
            return self.open_half(now, id, datagram).map_err(|reason| self.refused.add(reason)).ok();
        };
        match connection.opener().map(|opener| opener.open(datagram)) {
            Some(Ok(packet)) => return Some(packet),
            Some(Err(reason)) => connection.refuse(now, reason),
            None => connection.refuse(now, RejectReason::UnknownConnection),
        }
        None
    }

    /// Opens a packet that belongs to no connection: if it can be opened, it proves that the initiator of a handshake
    /// takes part, which makes that a connection.
    fn open_half<'a>(
        &mut self,
        now: Time,
        id: ConnectionId,
        datagram: &'a mut [u8],
    ) -> Result<OpenedPacket<'a>, RejectReason> {
        self.half_open.on_timer(now);
        let size = datagram.len();
        // Packets that fail to open need not be counted: far fewer can arrive in time than the limits of the ciphers
        // permit.
        let packet = self.half_open.opener(id).ok_or(RejectReason::UnknownConnection)?.open(datagram)?;
        if !self.make_room() {
            return Err(RejectReason::Busy);
        }
        let proved = self.half_open.prove(id).ok_or(RejectReason::UnknownConnection)?;
        let (key, name) = (proved.key(), proved.name());
        let handle = self.insert(id, proved.open(size));
        self.spent.on_open(handle, name);
        self.events.push_back(EndpointEvent::Accepted { handle, key });
        Ok(packet)
    }

    /// Handles the network's report that nothing listens at `remote`; see [`Connection::on_port_unreachable`]. Returns
    /// false when no connection has its peer at that address.
    pub fn hint_unreachable(&mut self, now: Time, remote: SocketAddr) -> bool {
        let mut any = false;
        for (_, connection) in self.connections.values_mut() {
            any |= connection.on_port_unreachable(now, remote);
        }
        any
    }

    fn handle_cleartext(&mut self, arrival: DatagramOrigin, datagram: &[u8]) {
        let handled = match Datagram::classify(datagram) {
            Ok(Datagram::Message1(message)) => self.handle_message1(arrival, &message, datagram.len()),
            Ok(Datagram::OtherVersion { key, connection, .. }) => self.answer_version(arrival, key, connection),
            Ok(Datagram::Message2(message)) => match self.connection_by_id(message.destination) {
                Some(connection) => connection.handle_answer(arrival.now, arrival.from, &message, datagram.len()),
                None => Err(RejectReason::UnknownConnection),
            },
            Ok(Datagram::Versions(answer)) => match self.connection_by_id(answer.destination) {
                Some(connection) => connection.handle_versions(&answer),
                None => Err(RejectReason::UnknownConnection),
            },
            Ok(Datagram::Packet(_)) => Ok(()),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = handled {
            self.refused.add(reason);
        }
    }

    fn handle_message1(
        &mut self,
        arrival: DatagramOrigin,
        message: &Message1<'_>,
        size: usize,
    ) -> Result<(), RejectReason> {
        let key = self.keys.get(&message.key).filter(|key| key.is_live(arrival.now)).ok_or(RejectReason::UnknownKey)?;
        let (psk, handle, options) = (key.psk.clone(), key.handle, Arc::clone(&key.options));
        self.half_open.on_timer(arrival.now);
        if let Some(reply) = self.half_open.on_copy(arrival.from, message)? {
            return self.answer(arrival, message, &reply, size);
        }
        let name = (message.key, message.connection);
        if self.spent.contains(name) {
            return Err(RejectReason::HandshakeReplayed);
        }
        if !self.has_room() || self.answers.len() >= MAX_ANSWERS {
            return Err(RejectReason::Busy);
        }
        let prologue = Prologue { key: message.key, connection: message.connection };
        let (id, grease) = (self.fresh_id(), self.grease());
        let limits = self.limits_with(1);
        let mut reply = self.parameters(id, Vec::new(), &options.profile, options.application.clone());
        let mut peer = None;
        let preferred = self.config.cipher;
        let answer = |payload: &[u8]| {
            let mut offer = Parameters::decode(payload)?;
            if offer.connection != message.connection {
                return Err(RejectReason::Malformed);
            }
            let cipher = Cipher::choose(&offer.ciphers, preferred).ok_or(RejectReason::Unacceptable)?;
            reply.ciphers = vec![cipher.wire()];
            offer.ciphers = reply.ciphers.clone();
            peer = Some(offer);
            Ok(reply.encode(grease)?)
        };
        let answered = with_clean_stack(|| respond(&psk, prologue, message.noise, self.random.draw(), answer));
        let (established, noise) = answered.map_err(|_| RejectReason::HandshakeFailed)?;
        let Some(peer) = peer else {
            return Err(RejectReason::HandshakeFailed);
        };
        let handshake = HalfOpen {
            since: arrival.now,
            name,
            key: handle,
            options,
            limits,
            path: AddressPair { remote: arrival.from, local: arrival.local },
            peer,
            secrets: established.secrets,
            seed: self.random.draw(),
            noise1: message.noise.to_vec(),
            noise2: noise.clone(),
        };
        self.half_open.add(id, handshake, self.config.max_half_open);
        self.answer(arrival, message, &noise, size)
    }

    /// Sends the cached second message, padded to the size of the copy that it answers: never more than was received.
    fn answer(
        &mut self,
        arrival: DatagramOrigin,
        message: &Message1<'_>,
        noise: &[u8],
        size: usize,
    ) -> Result<(), RejectReason> {
        let reply = crate::wire::Message2 { destination: message.connection, copy: message.copy, noise };
        let mut bytes = Vec::with_capacity(size);
        reply.encode(size, &mut bytes).map_err(|_| RejectReason::Amplification)?;
        self.push_answer(arrival, bytes)
    }

    fn answer_version(
        &mut self,
        arrival: DatagramOrigin,
        key: KeyId,
        connection: ConnectionId,
    ) -> Result<(), RejectReason> {
        if self.keys.get(&key).is_some_and(|key| key.is_live(arrival.now)) {
            let mut bytes = Vec::new();
            VersionAnswer::encode(connection, self.grease(), &mut bytes);
            self.push_answer(arrival, bytes)?;
        }
        Err(RejectReason::BadVersion)
    }

    fn push_answer(&mut self, arrival: DatagramOrigin, bytes: Vec<u8>) -> Result<(), RejectReason> {
        if self.answers.len() >= MAX_ANSWERS {
            return Err(RejectReason::Busy);
        }
        self.answers.push_back(Transmit { destination: arrival.from, source: arrival.local, bytes });
        Ok(())
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Returns the next datagram to send that belongs to no open connection.
    pub fn poll_answer(&mut self) -> Option<Transmit> {
        self.answers.pop_front()
    }

    /// Returns the connection with this handle, until it is removed or replaced ([`EndpointConfig::max_connections`]).
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle).map(|(_, connection)| connection)
    }

    /// Returns when to call [`Endpoint::handle_timeout`] or the [`Connection::handle_timeout`] of a connection.
    pub fn poll_timeout(&self) -> Option<Time> {
        let connections = self.connections.values().filter_map(|(_, connection)| connection.poll_timeout());
        connections.chain(self.half_open.deadline()).min()
    }

    /// Forgets first messages whose senders have not opened a connection in time, with the agreed keys. Connections
    /// have timers of their own ([`Connection::handle_timeout`]).
    pub fn handle_timeout(&mut self, now: Time) {
        self.half_open.on_timer(now);
    }

    /// Iterates over the handles of all connections.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.connections.keys().copied()
    }

    /// Removes a connection, drained or not.
    pub fn remove(&mut self, handle: ConnectionHandle) {
        if let Some((id, _)) = self.connections.remove(&handle) {
            self.by_id.remove(&id);
            self.spent.on_end(handle);
            self.share_memory();
        }
    }

    /// Returns the number of refused datagrams that belong to no connection, by reason.
    pub const fn refused(&self) -> &RejectCounts {
        &self.refused
    }

    /// Returns whether another connection of a peer has room, or room can be made.
    fn has_room(&self) -> bool {
        self.connections.len() < self.config.max_connections || self.oldest_over().is_some()
    }

    /// Returns the oldest connection of a peer that is over and only repeats its close. The program removes those that
    /// it opened itself.
    fn oldest_over(&self) -> Option<ConnectionHandle> {
        let mut all = self.connections.iter();
        all.find(|(handle, (_, connection))| connection.is_over() && self.spent.has_opened(**handle))
            .map(|(handle, _)| *handle)
    }

    /// Makes room for another connection of a peer, if necessary in place of the oldest that is over: repeatedly
    /// rejected guests must not keep others out.
    fn make_room(&mut self) -> bool {
        if self.connections.len() < self.config.max_connections {
            return true;
        }
        let oldest = self.oldest_over();
        oldest.iter().for_each(|handle| self.remove(*handle));
        oldest.is_some()
    }

    fn connection_by_id(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let handle = self.by_id.get(&id)?;
        self.connections.get_mut(handle).map(|(_, connection)| connection)
    }

    fn parameters(
        &self,
        connection: ConnectionId,
        ciphers: Vec<u8>,
        profile: &Profile,
        application: Vec<u8>,
    ) -> Parameters {
        let limits = &self.limits_with(1);
        Parameters {
            connection,
            ciphers,
            credit: limits.first_credit(),
            max_k: limits.flows.largest_k,
            max_symbol_size: limits.flows.largest_symbol,
            max_per_packet: limits.flows.most_per_packet,
            feedback: profile.feedback,
            counts_on: true,
            short_symbols: true,
            streams: limits.streams,
            application,
        }
    }

    fn parts(&mut self, now: Time, profile: Profile, path: AddressPair, qlog: bool) -> Parts {
        let limits = self.limits_with(1);
        Parts { now, profile, limits, path, seed: self.random.draw(), qlog }
    }

    /// Returns the limits of a connection for `more` connections than now: many must not take more than one may. Each
    /// may buffer a block and another being written, so that none hangs.
    fn limits_with(&self, more: u64) -> ConnectionConfig {
        let limits = self.config.limits;
        let share = limits.most_symbols / (self.connections.len() as u64 + more).max(1);
        let least = limits.most_symbols.min(2 * u64::from(limits.flows.largest_k));
        ConnectionConfig { most_symbols: share.max(least), ..limits }
    }

    /// Divides the bound on memory among the connections.
    fn share_memory(&mut self) {
        let most = self.limits_with(0).most_symbols;
        self.connections.values_mut().for_each(|(_, connection)| connection.set_most_symbols(most));
    }

    fn insert(&mut self, id: ConnectionId, connection: Connection) -> ConnectionHandle {
        let handle = ConnectionHandle(self.next_handle);
        self.next_handle += 1;
        self.connections.insert(handle, (id, connection));
        self.by_id.insert(id, handle);
        self.share_memory();
        handle
    }

    fn fresh_id(&mut self) -> ConnectionId {
        ConnectionId(self.random.draw())
    }

    /// Returns a random value for a field that the peer must ignore.
    fn grease(&mut self) -> u32 {
        u32::from_be_bytes(self.random.draw())
    }
}
