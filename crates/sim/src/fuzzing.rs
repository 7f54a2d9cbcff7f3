//! The connection's fuzz target, a plain function: a peer that holds the keys and sends packets made from the input.

#[cfg(test)]
mod tests;

use erasure::WindowCode;
use std::net::SocketAddr;
use std::time::Duration;
use transport::secure::{Cipher, Initiator, PacketKeys, Prologue, Psk, Sealer};
use transport::wire::{
    ConnectionId, Credit, Datagram, FeedbackConfig, FeedbackTiming, Message1, PacketHeader, PacketKind, Parameters,
    StreamLimits, TAG,
};
use transport::{
    AcceptOptions, Batch, Connection, ConnectionConfig, ConnectionHandle, Endpoint, EndpointConfig, Event, FlowId,
    ObjectOptions, Rate, ReceivedEcn, Time, WorkReply, WorkRequest,
};

const KEY: [u8; 32] = [4; 32];
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4_000);

/// Bounds the cost of an input.
const MAX_OPERATIONS: usize = 400;

/// Symbols that a victim lets its peer start: few, so that inputs reach the limit.
const CREDIT: u64 = 10;

/// Performs the handshake as a peer would, then reads `data` as operations on the connection; panics if the engine is
/// wrong.
///
/// An operation is a byte and its arguments: its low 3 bits choose a control packet (a length byte, then frames), a
/// symbol packet (flow, block, esi and plan of one byte each; the plan's top bit makes it repair of a window), time
/// passing, the victim's own objects and control bytes, acceptance of flows and use of streams, a skipped packet
/// number, a raw datagram, or a repeated packet.
pub fn fuzz_connection(data: &[u8]) {
    let Some((profile, operations)) = data.split_first() else { return };
    let mut case = Case::new(*profile);
    let mut rest = operations;
    for _ in 0..MAX_OPERATIONS {
        let Some((operation, arguments)) = rest.split_first() else { break };
        rest = case.apply(*operation, arguments);
        case.serve();
    }
    case.finish();
}

struct Case {
    victim: Endpoint,
    handle: ConnectionHandle,
    destination: ConnectionId,
    sealer: Sealer,
    number: u64,
    now: Time,
    last: Vec<u8>,
    /// Bytes of blocks submitted to be written, which this case answers only at the end.
    storing: u64,
    writes: Vec<WorkReply>,
    /// The stream that the victim opened last.
    own: FlowId,
}

impl Case {
    fn new(profile: u8) -> Self {
        let windows = profile % 6 > 2;
        let profile = match profile % 3 {
            0 => systems::auto(),
            1 => systems::auto().with_fixed_rate(Rate::from_bits_per_second(50_000_000)),
            _ => systems::arq::profile(),
        };
        let profile = if windows { profile.with_window_code(WindowCode::Rlc) } else { profile };
        let streams = StreamLimits { count: 3, window: 12, shared: 20 };
        let credit = Credit { symbols: CREDIT, control: 2_000 };
        let limits = ConnectionConfig { credit, most_symbols: CREDIT, streams, ..ConnectionConfig::default() };
        let mut victim = Endpoint::new(EndpointConfig { limits, ..EndpointConfig::default() }, [1; 32]);
        victim.add_key(KEY, None, AcceptOptions::default().profile(profile));
        let offer = Parameters {
            counts_on: true,
            short_symbols: true,
            connection: ConnectionId([2; 8]),
            ciphers: vec![Cipher::ChaCha20Poly1305.wire()],
            credit: Credit { symbols: 5_000, control: 5_000 },
            max_k: 1_024,
            max_symbol_size: 1_408,
            max_per_packet: 1,
            feedback: FeedbackConfig::everything(FeedbackTiming::EveryPacket),
            streams: StreamLimits { count: 4, window: 100, shared: 1_000 },
            application: Vec::new(),
        };
        let psk = Psk::new(KEY);
        let prologue = Prologue { key: psk.id(), connection: offer.connection };
        let payload = offer.encode(0).expect("small parameters");
        let (mut initiator, noise) = Initiator::new(&psk, prologue, &payload, [3; 32]).expect("they fit");
        let message = Message1 { key: psk.id(), connection: offer.connection, copy: 0, noise: &noise };
        let mut datagram = Vec::new();
        message.encode(1_451, &mut datagram).expect("it fits");
        victim.handle_datagrams(Time::ZERO, PEER, None, ReceivedEcn::NotEct, &mut datagram, 1_451);
        let answer = victim.poll_answer().expect("a holder of the key is answered");
        let Ok(Datagram::Message2(answer)) = Datagram::classify(&answer.bytes) else { panic!("not a message 2") };
        let established = initiator.finish(answer.noise).expect("authentic");
        let reply = Parameters::decode(&established.payload).expect("the engine's own parameters");
        let cipher = Cipher::from_wire(reply.ciphers[0]).expect("the one offered");
        let sealer = Sealer::new(PacketKeys::new(&established.secrets.send, cipher));
        // A ping proves that the first message is no replay.
        let header = PacketHeader { kind: PacketKind::Control, connection: reply.connection, number: 0 };
        let mut ping = [&header.encode()[..], &[1], &[0; TAG]].concat();
        sealer.seal(&mut ping).expect("of the first epoch");
        let stride = ping.len();
        victim.handle_datagrams(Time::ZERO, PEER, None, ReceivedEcn::NotEct, &mut ping, stride);
        let handle = victim.handles().next().expect("accepted");
        Self {
            victim,
            handle,
            destination: reply.connection,
            sealer,
            number: 1,
            now: Time::ZERO,
            last: Vec::new(),
            storing: 0,
            writes: Vec::new(),
            own: FlowId(0),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        self.victim.connection(self.handle).expect("never removed")
    }

    fn apply<'a>(&mut self, operation: u8, arguments: &'a [u8]) -> &'a [u8] {
        let argument = usize::from(operation >> 3);
        let take = |count: usize| arguments.split_at(count.min(arguments.len()));
        match operation & 7 {
            0 => {
                let Some((length, rest)) = arguments.split_first() else { return &[] };
                let (frames, rest) = rest.split_at(usize::from(*length).min(rest.len()));
                self.send(PacketKind::Control, frames);
                rest
            }
            1 => {
                let (id, rest) = take(4);
                let at = |index: usize| id.get(index).copied().unwrap_or_default();
                // The top bit of the plan: repair of a window of one to four symbols.
                let (window, plan) = if at(3) & 0x80 > 0 { ((1 + at(2) % 4) << 4, at(3) & 0x7f) } else { (0, at(3)) };
                let header = [0, at(0), 0, 0, 0, at(1), 0, window, at(2), plan];
                // The symbol sizes that the corpus announces.
                let size = [100, 1_408, 64, 2][argument % 4];
                let mut symbol = vec![at(2); size];
                if argument & 4 > 0 && size > 5 {
                    // The header of a stream's block.
                    symbol[..5].copy_from_slice(&[0, 0, 0, at(1).wrapping_add(1), u8::from(argument & 8 > 0)]);
                }
                self.send(PacketKind::Symbol, &[&header[..], &symbol].concat());
                rest
            }
            2 => {
                self.now += Duration::from_millis(1 << (argument % 16));
                let now = self.now;
                self.connection().handle_timeout(now);
                arguments
            }
            3 => {
                let now = self.now;
                let length = [0, 1, 1_000, 20_000, 400_000][argument % 5];
                // Refused once the connection is over.
                let _ = self.connection().send_object(now, ObjectOptions { length, tag: 0, digest: argument > 15 });
                self.connection().write_control(&vec![7; argument * 10]);
                arguments
            }
            4 if argument >= 16 => {
                self.use_streams(argument as u16 - 16);
                arguments
            }
            4 => {
                let now = self.now;
                let flow = FlowId(argument as u16 % 8);
                self.connection().accept_flow(now, flow, argument / 8 % 2 == 1);
                arguments
            }
            5 => {
                self.number += 1 << argument.min(20);
                arguments
            }
            6 => {
                let (raw, rest) = take(argument);
                self.deliver(raw.to_vec());
                rest
            }
            _ => {
                self.deliver(self.last.clone());
                arguments
            }
        }
    }

    /// Uses streams as the victim's program would.
    fn use_streams(&mut self, operation: u16) {
        let (now, own) = (self.now, self.own);
        let connection = self.connection();
        match operation {
            0..8 => {
                let mut out = Vec::new();
                let read = connection.read_stream(now, FlowId(operation + 1), &mut out, 30);
                assert!(read == out.len() && read <= 30, "{read} bytes and {}", out.len());
            }
            8 => self.own = connection.open_stream(now, 0).unwrap_or(own),
            // Fails for an unknown stream.
            9..12 => _ = connection.write_stream(now, own, &vec![5; 3_000 * usize::from(operation - 8)]),
            12 => _ = connection.finish_stream(now, own),
            13 => connection.reset_stream(now, own, 1),
            _ => connection.stop_stream(now, FlowId(operation - 9), 1),
        }
    }

    fn send(&mut self, kind: PacketKind, plaintext: &[u8]) {
        let header = PacketHeader { kind, connection: self.destination, number: self.number };
        self.number += 1;
        let mut packet = [&header.encode(), plaintext, &[0; TAG]].concat();
        if self.sealer.seal(&mut packet).is_ok() {
            self.last.clone_from(&packet);
            self.deliver(packet);
        }
    }

    fn deliver(&mut self, mut datagram: Vec<u8>) {
        let stride = datagram.len();
        self.victim.handle_datagrams(self.now, PEER, None, ReceivedEcn::Ect0, &mut datagram, stride);
    }

    /// Acts as a driver, with writes held back: the credit must bound them.
    fn serve(&mut self) {
        let now = self.now;
        let mut batch = Batch::new();
        loop {
            if let Some(request) = self.connection().poll_request() {
                self.answer(request);
            } else if !self.connection().poll_transmit(now, &mut batch) {
                break;
            } else {
                batch.seal();
            }
        }
        while let Some(event) = self.connection().poll_event() {
            if let Event::ControlReadable = event {
                self.connection().read_control(&mut Vec::new());
            }
        }
        let most = CREDIT * u64::from(ConnectionConfig::default().flows.largest_symbol);
        assert!(self.storing <= most, "{} bytes are held for a credit of {CREDIT} symbols", self.storing);
        let over = self.connection().is_closed();
        assert!(over || self.connection().poll_timeout().is_some(), "an open connection waits for something");
    }

    fn answer(&mut self, request: WorkRequest) {
        let reply = match request.run_pure() {
            Ok(reply) => reply,
            Err(WorkRequest::Read { flow, block, length, mut buffer, .. }) => {
                buffer.resize(length, 1);
                WorkReply::Read { flow, block, buffer }
            }
            Err(WorkRequest::Write { flow, block, length, .. }) => {
                self.storing += length as u64;
                return self.writes.push(WorkReply::Written { flow, block });
            }
            Err(WorkRequest::Digest { key, block, .. }) => WorkReply::Digested { key, block },
            Err(WorkRequest::Encode(_) | WorkRequest::Decode(_)) => return,
        };
        let now = self.now;
        self.connection().handle_reply(now, reply);
    }

    /// Completes all writes, then waits: the connection must close.
    fn finish(mut self) {
        let now = self.now;
        for reply in std::mem::take(&mut self.writes) {
            self.connection().handle_reply(now, reply);
        }
        self.storing = 0;
        for _ in 0..10_000 {
            self.serve();
            let Some(at) = self.connection().poll_timeout() else { break };
            self.now = self.now.max(at);
            let now = self.now;
            self.connection().handle_timeout(now);
        }
        assert!(self.connection().is_drained(), "alone, it ends at last: {:?}", self.connection());
        assert_eq!(self.connection().bytes_in_flight(), 0);
    }
}
