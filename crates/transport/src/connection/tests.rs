//! Numbers on the wire at their limits: each test starts just below one (docs/design/counters.md). Also short symbols
//! of streams.

use super::*;
use crate::secure::{Cipher, Initiator, Prologue, Psk, Secret, respond};
use crate::wire::limits::MAX_PACKET_NUMBER;
use crate::wire::{
    ConnectionId, Credit, Datagram, FeedbackConfig, FeedbackTiming, Message2, RejectReason, StreamLimits,
};

/// One-way delay of datagrams, and time between turns.
const TRAVEL: Duration = Duration::from_millis(5);

/// Size of the object in bytes.
const LENGTH: u64 = 3_000_000;

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, side as u8 + 1], 4_000))
}

/// Returns byte `at` of every object.
const fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// Two connections to each other in virtual time.
struct Pair {
    ends: [Connection; 2],
    now: Time,
    events: [Vec<Event>; 2],
    /// The object as received by the second connection.
    written: Vec<u8>,
    /// Symbol packets sent; every `lose_every`th is lost.
    symbols: u64,
    /// Their bytes.
    symbol_bytes: usize,
    lose_every: u64,
    /// Larger datagrams are dropped.
    largest: usize,
}

impl Pair {
    /// Creates two open connections. `change` adapts the parameters that both receive.
    fn new(change: impl Fn(&mut Parameters)) -> Self {
        let secrets = [Secret::new([1; 32]), Secret::new([2; 32])];
        let ends = [0, 1].map(|side: usize| {
            let peer = 1 - side;
            let mut parameters = parameters();
            change(&mut parameters);
            let path = AddressPair { remote: address(peer), local: None };
            let (profile, limits) = (Profile::auto(), ConnectionConfig::default());
            let parts = Parts { now: Time::ZERO, profile, limits, path, seed: [side as u8; 32], qlog: false };
            let secrets = Secrets { send: secrets[side].clone(), receive: secrets[peer].clone() };
            let mut connection = Connection::respond(parts, &secrets, parameters, None, 1_451);
            connection.events.clear();
            connection.paths.on_handshake(address(peer));
            connection.recovery.set_rtt_from_handshake(Time::ZERO, TRAVEL * 2);
            connection
        });
        let (events, written) = (Default::default(), vec![0; LENGTH as usize]);
        Self {
            ends,
            now: Time::ZERO,
            events,
            written,
            symbols: 0,
            symbol_bytes: 0,
            lose_every: u64::MAX,
            largest: usize::MAX,
        }
    }

    fn send_object(&mut self) -> Result<FlowId, FlowError> {
        self.ends[0].send_object(self.now, ObjectOptions { length: LENGTH, tag: 0, digest: false })
    }

    /// Answers a request of one side.
    fn answer(&mut self, side: usize, request: WorkRequest) {
        let reply = match request {
            WorkRequest::Read { flow, block, offset, length, mut buffer } => {
                buffer.clear();
                buffer.extend((offset..offset + length as u64).map(byte));
                WorkReply::Read { flow, block, buffer }
            }
            WorkRequest::Write { flow, block, offset, length, data } => {
                self.written[offset as usize..][..length].copy_from_slice(&data.bytes()[..length]);
                WorkReply::Written { flow, block }
            }
            request => request.run_pure().expect("no digests are wanted"),
        };
        self.ends[side].handle_reply(self.now, reply);
    }

    /// Runs a turn of one side and delivers its packets.
    fn turn(&mut self, side: usize) {
        self.now += TRAVEL;
        let now = self.now;
        if self.ends[side].poll_timeout().is_some_and(|at| at <= now) {
            self.ends[side].handle_timeout(now);
        }
        let mut batch = Batch::new();
        loop {
            while let Some(request) = self.ends[side].poll_request() {
                self.answer(side, request);
            }
            if !self.ends[side].poll_transmit(now, &mut batch) {
                break;
            }
            batch.seal();
            let size = batch.segment_size();
            for packet in batch.bytes().to_vec().chunks_mut(size) {
                self.symbols += u64::from(packet[0] == 0x10);
                self.symbol_bytes += if packet[0] == 0x10 { packet.len() } else { 0 };
                let lost = packet[0] == 0x10 && self.symbols.is_multiple_of(self.lose_every);
                if !lost && packet.len() <= self.largest {
                    self.deliver(1 - side, packet);
                }
            }
        }
        while let Some(event) = self.ends[side].poll_event() {
            if let Event::ObjectAnnounced { flow, .. } = event {
                self.ends[side].accept_flow(now, flow, false);
            }
            self.events[side].push(event);
        }
    }

    fn deliver(&mut self, side: usize, packet: &mut [u8]) {
        let Some(opener) = self.ends[side].opener() else { return };
        let mut opened = [opener.open(packet).expect("sealed by its peer")];
        self.ends[side].handle_packets(self.now, address(1 - side), None, ReceivedEcn::NotEct, &mut opened);
    }

    /// Runs turns until `done` returns true. Panics after `most` turns.
    #[track_caller]
    fn run(&mut self, most: usize, done: impl Fn(&Self) -> bool) {
        for turn in 0..most {
            self.turn(turn % 2);
            if done(self) {
                return;
            }
        }
        panic!("not done after {most} turns: {:?}", self.ends.each_ref().map(Connection::stats));
    }

    /// Runs turns until the object has arrived and both sides know it.
    #[track_caller]
    fn run_object(&mut self, flow: FlowId) {
        self.run(2_000, |pair| {
            pair.events[0].contains(&Event::ObjectDelivered { flow })
                && pair.events[1].contains(&Event::ObjectReceived { flow })
        });
        assert!(self.written.iter().enumerate().all(|(at, written)| *written == byte(at as u64)));
    }

    /// Runs turns until `side` has closed because of `reason` and the peer has been notified.
    #[track_caller]
    fn run_to_exhaustion(&mut self, side: usize, reason: &'static str) {
        let is_notified = |events: &Vec<Event>| matches!(events.last(), Some(Event::Closed(_)));
        self.run(2_000, |pair| pair.events.iter().all(is_notified));
        assert_eq!(self.events[side].last(), Some(&Event::Closed(ConnectionError::Exhausted(reason))));
        let received = ConnectionError::ClosedByPeer { code: CloseCode::Exhausted as u32, reason: reason.to_owned() };
        assert_eq!(self.events[1 - side].last(), Some(&Event::Closed(received)));
        self.run(2_000, |pair| pair.ends.iter().all(Connection::is_drained));
    }
}

fn parameters() -> Parameters {
    Parameters {
        connection: ConnectionId([7; 8]),
        ciphers: vec![Cipher::ChaCha20Poly1305.wire()],
        credit: Credit { symbols: 24_000, control: 1 << 20 },
        max_k: 8_192,
        max_symbol_size: 1_408,
        max_per_packet: 1,
        feedback: FeedbackConfig::everything(FeedbackTiming::EveryPacket),
        counts_on: true,
        short_symbols: true,
        streams: StreamLimits { count: 4, window: 64, shared: 1_000 },
        application: Vec::new(),
    }
}

/// Blocks are acknowledged by feedback on a lossy path, before and after the feedback number exceeds 32 bits.
#[test]
fn a_transfer_continues_across_two_to_the_32_feedbacks() {
    let mut pair = Pair::new(|_| ());
    pair.lose_every = 20;
    // It takes all loss for congestion, so that there are many feedbacks.
    pair.ends[0].set(pair.now, "congestion", "cubic").expect("a valid choice");
    pair.ends[1].feedback.begin_after((1 << 32) - 100);
    let flow = pair.send_object().expect("open");
    pair.run_object(flow);
    let last = pair.ends[1].feedback.last();
    assert!(last > (1 << 32) + 100, "the border was crossed: {last}");
    let (sent, needed) = (pair.symbols, LENGTH.div_ceil(1_408));
    assert!(sent < needed * 5 / 4, "{sent} symbols for {needed}");
}

/// An older sender mistakes feedback beyond 32 bits for old feedback.
#[test]
fn a_connection_to_a_peer_that_does_not_count_on_ends_before_the_border() {
    let mut pair = Pair::new(|parameters| parameters.counts_on = false);
    pair.ends[1].feedback.begin_after((1 << 32) - 5);
    pair.send_object().expect("open");
    pair.run_to_exhaustion(1, "the peer's version cannot number more feedback");
    assert_eq!(pair.ends[1].feedback.last(), (1 << 32) - 1);
}

#[test]
fn a_connection_ends_before_its_packet_numbers_do() {
    let mut pair = Pair::new(|_| ());
    let first = MAX_PACKET_NUMBER - (1 << 32) - 1_000;
    for end in &mut pair.ends {
        end.crypto.begin_at(first);
        end.recovery.on_untracked(first - 1, 0);
    }
    pair.send_object().expect("open");
    pair.run_to_exhaustion(0, "no packet numbers left");
}

#[test]
fn the_last_flow_number_is_as_good_as_the_first() {
    let mut pair = Pair::new(|_| ());
    pair.ends[0].next_flow = u16::MAX - 1;
    let flow = pair.send_object().expect("one is left");
    assert_eq!(flow, FlowId(u16::MAX - 1));
    pair.run_object(flow);
    assert_eq!(pair.send_object(), Err(FlowError::Exhausted));
    assert!(!pair.ends[0].is_closed(), "flows in progress are not touched");
}

/// Continuing with smaller packets takes new flow numbers.
#[test]
fn a_connection_ends_that_has_no_flow_number_for_smaller_packets() {
    let mut pair = Pair::new(|_| ());
    pair.ends[0].next_flow = u16::MAX - 1;
    pair.send_object().expect("one is left");
    pair.run(100, |pair| pair.symbols > 100);
    pair.largest = 1_300;
    pair.run_to_exhaustion(0, "no flow numbers left for smaller packets");
}

#[test]
fn a_connection_ends_when_a_stream_has_no_block_numbers_left() {
    let mut pair = Pair::new(|_| ());
    let flow = pair.ends[0].open_stream(pair.now, 0).expect("open");
    pair.ends[0].send_flows.named_mut(flow).expect("opened").blocks_mut().begin_at(u32::MAX - 3);
    for _ in 0..3 {
        pair.ends[0].write_stream(pair.now, flow, &[7; 10]).expect("open");
        pair.turn(0);
    }
    pair.run_to_exhaustion(0, "no block numbers left in a stream");
}

/// Writes this to a stream, loses each `lose_every`th packet, and returns the bytes of all of its packets once it is read.
fn bytes_of_stream(pair: &mut Pair, written: &[u8], lose_every: u64) -> usize {
    pair.lose_every = lose_every;
    let flow = pair.ends[0].open_stream(pair.now, 0).expect("open");
    // The announcement goes first.
    (0..4).for_each(|turn| pair.turn(turn % 2));
    assert_eq!(pair.ends[0].write_stream(pair.now, flow, written).expect("open"), written.len());
    pair.ends[0].finish_stream(pair.now, flow).expect("open");
    let before = pair.symbol_bytes;
    pair.run(200, |pair| pair.events[0].contains(&Event::StreamDelivered { flow }));
    let mut read = Vec::new();
    pair.ends[1].read_stream(pair.now, flow, &mut read, usize::MAX);
    assert_eq!(read, written);
    pair.symbol_bytes - before
}

/// Header and tag are 43 bytes, the beginning of a block 5. Bytes written and finished at once are one block.
#[test]
fn symbols_of_streams_go_without_padding_to_a_peer_that_accepts_that() {
    for (streams, written, bytes) in [
        ("blocks", &[7][..], 43 + 5 + 1),
        // The zeros are the program's.
        ("blocks", &[7, 0, 0, 0], 43 + 5 + 4),
        ("blocks", &[1; 1_500], 43 + 1_408 + 43 + 97),
        // The first symbol of a window is followed by repair.
        ("window", &[7], 2 * (43 + 5 + 1)),
    ] {
        let bytes_to = |accepts: bool| {
            let mut pair = Pair::new(|parameters| parameters.short_symbols = accepts);
            pair.ends[0].set(pair.now, "streams", streams).expect("a valid choice");
            bytes_of_stream(&mut pair, written, u64::MAX)
        };
        assert_eq!(bytes_to(true), bytes, "{written:?} {streams}");
        let full = bytes_to(false);
        assert!(full >= 43 + 1_408 && full.is_multiple_of(43 + 1_408), "{written:?} {streams}: {full}");
    }
}

/// Whichever packet is lost, repair as short as the written bytes replaces it.
#[test]
fn short_symbols_are_recovered_from_repair() {
    for streams in ["blocks", "window"] {
        let mut pair = Pair::new(|_| ());
        pair.ends[0].set(pair.now, "streams", streams).expect("a valid choice");
        for (round, length) in [1, 3, 100, 1_402, 1_403, 1_404, 2_811, 2_812, 30_000].into_iter().enumerate() {
            let written: Vec<u8> = (0..length).map(|at| byte(at as u64 + 1)).collect();
            let bytes = bytes_of_stream(&mut pair, &written, 2 + round as u64 % 3);
            assert!(bytes <= 8 * (length + 60), "{streams}: {bytes} bytes for {length}");
        }
    }
}

/// From the 256th on, all copies carry the same number, so an answer to one of them does not measure the round trip.
#[test]
fn an_answer_to_one_of_the_last_copies_of_a_first_message_measures_nothing() {
    let psk = Psk::new([9; 32]);
    let prologue = Prologue { key: psk.id(), connection: ConnectionId([7; 8]) };
    let (initiator, noise) = Initiator::new(&psk, prologue, &[], [1; 32]).expect("short");
    let wait = Duration::from_secs(600);
    let started = (initiator, noise.clone());
    let mut handshake = Initiation::new(Time::ZERO, (wait, false), started, prologue, vec![address(1)], 1_451);
    let (mut batch, mut copies) = (Batch::new(), Vec::new());
    while copies.len() < 300 {
        let now = handshake.deadline();
        while handshake.poll_transmit(now, &mut batch) {
            let Ok(Datagram::Message1(message)) = Datagram::classify(batch.bytes()) else { panic!("a first message") };
            copies.push((now, message.copy));
        }
    }
    assert_eq!((copies[254].1, copies[255].1, copies[299].1), (254, 255, 255));
    let (_, noise) = respond(&psk, prologue, &noise, [2; 32], |_| Ok(Vec::new())).expect("authentic");
    let answer = |copy| Message2 { destination: prologue.connection, copy, noise: &noise };
    let now = copies[299].0 + TRAVEL;
    let answered = handshake.on_answer(now, address(1), &answer(255), 1_200).expect("authentic");
    assert_eq!(answered.rtt, None);
}

/// RFC 9001 section 6.6: after too many failed attempts, a successful forgery becomes too likely.
#[test]
fn a_connection_ends_at_the_integrity_limit_of_its_cipher() {
    for (cipher, limit) in [(Cipher::Aes256Gcm, 1 << 52), (Cipher::ChaCha20Poly1305, 1 << 36)] {
        let mut pair = Pair::new(|parameters| parameters.ciphers = vec![cipher.wire()]);
        let flow = pair.send_object().expect("open");
        pair.ends[1].crypto.begin_after_forgeries(limit - 2);
        pair.ends[1].refuse(pair.now, RejectReason::AuthenticationFailed);
        pair.ends[1].refuse(pair.now, RejectReason::Replayed);
        pair.run_object(flow);
        pair.ends[1].refuse(pair.now, RejectReason::AuthenticationFailed);
        assert!(pair.ends[1].opener().is_none(), "{cipher}: not one packet more is opened");
        pair.turn(1);
        let closed = ConnectionError::Exhausted("too many forged packets for its keys");
        assert_eq!(pair.events[1].last(), Some(&Event::Closed(closed)), "{cipher}");
        pair.turn(0);
        let heard = matches!(pair.events[0].last(), Some(Event::Closed(ConnectionError::ClosedByPeer { code: 3, .. })));
        assert!(heard, "{cipher}: {:?}", pair.events[0]);
    }
}

/// Where nothing is answered, the window has room for one packet.
#[test]
fn a_retransmission_timeout_sends_data_rather_than_a_ping() {
    let mut pair = Pair::new(|_| ());
    for (key, choice) in [("congestion", "cubic"), ("timeout", "rto:max=1s")] {
        pair.ends[0].set(pair.now, key, choice).expect("a valid choice");
    }
    pair.send_object().expect("few flows are open");
    pair.run(2_000, |pair| pair.symbols > 100);
    pair.largest = 0;
    let cut = pair.now;
    pair.run(4_000, |pair| pair.now >= cut + Duration::from_secs(10));
    let before = pair.symbols;
    pair.run(4_000, |pair| pair.now >= cut + Duration::from_secs(20));
    assert!((9..=11).contains(&(pair.symbols - before)), "{} in ten seconds", pair.symbols - before);
}

/// Packets prove a size until the peer has received one. The path may have shrunk since the handshake.
#[test]
fn an_early_close_is_small() {
    let mut pair = Pair::new(|_| ());
    pair.ends[0].liveness.on_handshake(pair.now);
    pair.largest = 1_200;
    pair.ends[0].close(pair.now, 0, "");
    pair.run(100, |pair| {
        pair.events[1].iter().any(|event| matches!(event, Event::Closed(ConnectionError::ClosedByPeer { .. })))
    });
}
