//! A hand-made peer: it has the key, completes the handshake and then sends anything that a test wants.

use downpour_transport::secure::{Cipher, Established, Initiator, Opener, PacketKeys, Prologue, Psk, Sealer};
use downpour_transport::wire::{
    Announcement, ConnectionId, Credit, Datagram, FeedbackConfig, FeedbackTiming, FlowId, Frame, Frames, HEADER,
    Message1, PacketHeader, PacketKind, Parameters, Plan, StreamLimits, SymbolHeader, SymbolId, TAG,
};
use downpour_transport::{
    AcceptOptions, Batch, Connection, ConnectionError, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent,
    Event, Profile, Rate, ReceivedEcn, Time,
};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const KEY: [u8; 32] = [9; 32];
const ROGUE_ID: ConnectionId = ConnectionId([0xee; 8]);

pub(crate) fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 4_000))
}

/// Creates an endpoint that answers holders of [`KEY`].
pub(crate) fn victim(config: EndpointConfig) -> Endpoint {
    let mut endpoint = Endpoint::new(config, [1; 32]);
    // With a fixed rate, it sends a whole window before the first feedback.
    let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(1_000_000_000));
    endpoint.add_key(KEY, None, AcceptOptions::default().profile(profile));
    endpoint
}

pub(crate) fn deliver(endpoint: &mut Endpoint, now: Time, from: SocketAddr, mut datagram: Vec<u8>) {
    let stride = datagram.len();
    endpoint.handle_datagrams(now, from, None, ReceivedEcn::NotEct, &mut datagram, stride);
}

pub(crate) fn parameters(connection: ConnectionId) -> Parameters {
    Parameters {
        connection,
        ciphers: vec![Cipher::ChaCha20Poly1305.wire()],
        credit: Credit { symbols: 1_000, control: 100_000 },
        max_k: 8_192,
        max_symbol_size: 1_408,
        max_per_packet: 1,
        counts_on: true,
        short_symbols: true,
        feedback: FeedbackConfig::everything(FeedbackTiming::EveryPacket),
        streams: StreamLimits { count: 4, window: 100, shared: 1_000 },
        application: Vec::new(),
    }
}

/// Returns the bytes of a first message for [`KEY`], and the handshake that waits for its answer.
pub(crate) fn message1(offer: &Parameters, seed: u8, size: usize) -> (Initiator, Vec<u8>) {
    message1_for(KEY, offer, seed, size)
}

/// The same for any key.
pub(crate) fn message1_for(key: [u8; 32], offer: &Parameters, seed: u8, size: usize) -> (Initiator, Vec<u8>) {
    let psk = Psk::new(key);
    let prologue = Prologue { key: psk.id(), connection: offer.connection };
    let payload = offer.encode(7).expect("small parameters");
    let (initiator, noise) = Initiator::new(&psk, prologue, &payload, [seed; 32]).expect("it fits");
    let message = Message1 { key: psk.id(), connection: offer.connection, copy: 0, noise: &noise };
    let mut datagram = Vec::new();
    message.encode(size, &mut datagram).expect("it fits");
    (initiator, datagram)
}

/// Returns a packet of this kind, to this connection, with this number, as on the wire.
pub(crate) fn seal(
    sealer: &Sealer,
    (kind, connection, number): (PacketKind, ConnectionId, u64),
    plaintext: &[u8],
) -> Vec<u8> {
    let header = PacketHeader { kind, connection, number };
    let mut packet = [&header.encode(), plaintext, &[0; TAG]].concat();
    sealer.seal(&mut packet).expect("of the first epoch");
    packet
}

/// Completes a handshake with this answer to its first message. Returns the content of the answer and the first packet
/// under the agreed keys, a ping: it proves that the first message is no replay.
pub(crate) fn proof(initiator: &mut Initiator, answer: &[u8]) -> (Parameters, Vec<u8>) {
    let (reply, sealer, _) = finish(initiator, answer);
    let ping = seal(&sealer, (PacketKind::Control, reply.connection, 0), &[1]);
    (reply, ping)
}

fn finish(initiator: &mut Initiator, answer: &[u8]) -> (Parameters, Sealer, Opener) {
    let Ok(Datagram::Message2(message)) = Datagram::classify(answer) else { panic!("not a message 2") };
    let Established { payload, secrets } = initiator.finish(message.noise).expect("authentic");
    let reply = Parameters::decode(&payload).expect("parameters");
    let cipher = Cipher::from_wire(reply.ciphers[0]).expect("an offered one");
    let [sealer, opener] = [&secrets.send, &secrets.receive].map(|secret| PacketKeys::new(secret, cipher));
    (reply, Sealer::new(sealer), Opener::new(opener))
}

/// The rogue, connected to its victim.
pub(crate) struct Rogue {
    pub(crate) victim: Endpoint,
    pub(crate) handle: ConnectionHandle,
    pub(crate) now: Time,
    pub(crate) number: u64,
    destination: ConnectionId,
    sealer: Sealer,
    opener: Opener,
    /// Numbers of the victim's packets, in order of arrival.
    pub(crate) numbers: Vec<u64>,
    /// Plaintexts of the victim's control packets, in order of arrival.
    pub(crate) plaintexts: Vec<Vec<u8>>,
}

impl Rogue {
    pub(crate) fn new() -> Self {
        Self::with(EndpointConfig::default(), parameters(ROGUE_ID))
    }

    pub(crate) fn with(config: EndpointConfig, offer: Parameters) -> Self {
        let (mut victim, now) = (victim(config), Time::ZERO);
        let (mut initiator, datagram) = message1(&offer, 3, 1_451);
        deliver(&mut victim, now, address(66), datagram);
        let answer = victim.poll_answer().expect("a holder of the key is answered");
        let (reply, sealer, opener) = finish(&mut initiator, &answer.bytes);
        let now = now + Duration::from_micros(100);
        deliver(&mut victim, now, address(66), seal(&sealer, (PacketKind::Control, reply.connection, 0), &[1]));
        let Some(EndpointEvent::Accepted { handle, .. }) = victim.poll_event() else { panic!("not accepted") };
        let mut rogue = Self {
            victim,
            handle,
            now,
            number: 1,
            destination: reply.connection,
            sealer,
            opener,
            numbers: Vec::new(),
            plaintexts: Vec::new(),
        };
        assert_eq!(rogue.events(), [Event::Connected]);
        rogue
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        self.victim.connection(self.handle).expect("not removed")
    }

    /// Returns a sealed packet as on the wire.
    pub(crate) fn seal(&mut self, kind: PacketKind, plaintext: &[u8]) -> Vec<u8> {
        self.number += 1;
        seal(&self.sealer, (kind, self.destination, self.number - 1), plaintext)
    }

    pub(crate) fn send_plaintext(&mut self, kind: PacketKind, plaintext: &[u8]) {
        let packet = self.seal(kind, plaintext);
        self.now += Duration::from_micros(100);
        deliver(&mut self.victim, self.now, address(66), packet);
    }

    pub(crate) fn send(&mut self, frames: &[Frame<'_>]) {
        let mut plaintext = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut plaintext));
        self.send_plaintext(PacketKind::Control, &plaintext);
    }

    pub(crate) fn send_symbol(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) {
        let plaintext = [&SymbolHeader { id, plan }.encode(), symbol].concat();
        self.send_plaintext(PacketKind::Symbol, &plaintext);
    }

    /// Receives everything that the victim sends now.
    pub(crate) fn listen(&mut self) {
        let mut batch = Batch::new();
        let opener = self.opener.clone();
        while self.victim.connection(self.handle).is_some_and(|c| c.poll_transmit(self.now, &mut batch)) {
            batch.seal();
            for packet in batch.bytes().chunks(batch.segment_size()) {
                let mut packet = packet.to_vec();
                let opened = opener.open(&mut packet).expect("sealed for us");
                self.numbers.push(opened.number);
                if opened.kind == PacketKind::Control {
                    self.plaintexts.push(opened.plaintext.to_vec());
                }
            }
        }
    }

    /// Returns the code of the last close frame that the victim sent.
    pub(crate) fn close_heard(&self) -> Option<u32> {
        let frames = self.plaintexts.iter().flat_map(|plaintext| Frames::new(plaintext)).flatten();
        frames.filter_map(|frame| if let Frame::Close { code, .. } = frame { Some(code) } else { None }).last()
    }

    /// Returns the events for the victim's program.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let connection = self.connection();
        std::iter::from_fn(|| connection.poll_event()).collect()
    }

    /// Panics unless the victim has closed because of a violation and reports it.
    #[track_caller]
    pub(crate) fn assert_violation(&mut self, words: &str) {
        let events = self.events();
        let said = events
            .iter()
            .any(|event| matches!(event, Event::Closed(ConnectionError::Violation(what)) if what.contains(words)));
        assert!(said, "no violation about '{words}' in {events:?}");
        self.listen();
        assert_eq!(self.close_heard(), Some(1), "the close frame reports a violation");
        assert_eq!(self.connection().bytes_in_flight(), 0);
    }
}

/// Announces a flow with blocks of 10 uncoded symbols of 100 bytes.
pub(crate) fn announcement(flow: u16, length: u64) -> Announcement {
    let flow = FlowId(flow);
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k: 10, code: erasure::BlockCode::ReedSolomon };
    Announcement { flow, length, symbol_size: 100, symbols_per_packet: 1, tag: 0, plan }
}

/// Length of an empty sealed packet.
pub(crate) const EMPTY: usize = HEADER + TAG;
