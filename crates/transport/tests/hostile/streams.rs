//! Peers that hold the key and break the rules of streams, or try to make this side buffer more than it allowed.

use crate::rogue::{Rogue, announcement, parameters};
use downpour_transport::wire::{
    ConnectionId, Credit, Feedback, FlowId, FlowStatus, Frame, PacketRanges, RejectReason, StreamAnnouncement,
    StreamLimits, SymbolId,
};
use downpour_transport::{ConnectionConfig, ConnectionError, EndpointConfig, Event, FlowError, ObjectOptions};
use erasure::BlockCode;
use std::time::Duration;

pub(crate) const FLOW: FlowId = FlowId(1);
const SIZE: usize = 100;

pub(crate) fn rogue() -> Rogue {
    let limits =
        ConnectionConfig { streams: StreamLimits { count: 3, window: 20, shared: 50 }, ..ConnectionConfig::default() };
    Rogue::with(EndpointConfig { limits, ..EndpointConfig::default() }, parameters(ConnectionId([1; 8])))
}

pub(crate) fn stream(flow: u16) -> StreamAnnouncement {
    let (code, short_code) = (BlockCode::RaptorQ.into(), BlockCode::ReedSolomon);
    StreamAnnouncement { flow: FlowId(flow), symbol_size: SIZE as u16, tag: 5, k: 10, code, short_code }
}

/// Returns the first symbol of a block with this header.
pub(crate) fn beginning(length: u32, flags: u8) -> Vec<u8> {
    let mut symbol = [&length.to_be_bytes()[..], &[flags]].concat();
    symbol.resize(SIZE, b'x');
    symbol
}

fn symbol(block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FLOW, block, esi }
}

/// Sends a block of one symbol (plan 1).
fn send_short(rogue: &mut Rogue, block: u32, length: u32, flags: u8) {
    rogue.send_symbol(symbol(block, 0), 1, &beginning(length, flags));
}

pub(crate) fn read(rogue: &mut Rogue) -> Vec<u8> {
    let (mut out, now) = (Vec::new(), rogue.now);
    rogue.connection().read_stream(now, FLOW, &mut out, usize::MAX);
    out
}

#[test]
fn a_stream_is_read_in_order_and_ends() {
    let mut rogue = rogue();
    send_short(&mut rogue, 2, 0, 1);
    rogue.send(&[Frame::AnnounceStream(stream(1)), Frame::AnnounceStream(stream(1))]);
    assert_eq!(rogue.events(), [Event::StreamAnnounced { flow: FLOW, tag: 5 }], "the end is early, and not all");
    send_short(&mut rogue, 1, 3, 0);
    assert_eq!((rogue.events(), read(&mut rogue)), (vec![], vec![]), "block 0 is missing");
    send_short(&mut rogue, 0, 2, 0);
    assert_eq!(rogue.events(), [Event::StreamReadable { flow: FLOW }]);
    assert_eq!(read(&mut rogue), b"xxxxx");
    assert_eq!(rogue.events(), [Event::StreamFinished { flow: FLOW }]);
    send_short(&mut rogue, 1, 3, 0);
    assert_eq!((rogue.events(), read(&mut rogue)), (vec![], vec![]), "a repeated symbol is not new");
}

#[test]
fn bytes_are_read_before_their_block_is_whole() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    rogue.send_symbol(symbol(0, 1), 0, &[b'y'; SIZE]);
    assert_eq!(read(&mut rogue), b"");
    rogue.send_symbol(symbol(0, 0), 0, &beginning(990, 0));
    assert_eq!(read(&mut rogue).len(), 2 * SIZE - 5);
    rogue.send_symbol(symbol(0, 3), 0, &[b'z'; SIZE]);
    assert_eq!(read(&mut rogue), b"", "symbol 2 is missing");
    assert_eq!(rogue.connection().refused().total(), 0);
}

#[test]
fn blocks_that_contradict_themselves_end_the_connection() {
    // More than a symbol holds, an empty block other than the end, an undefined flag.
    for (length, flags) in [(96, 0), (0, 0), (5, 2), (u32::MAX, 1)] {
        let mut rogue = rogue();
        rogue.send(&[Frame::AnnounceStream(stream(1))]);
        send_short(&mut rogue, 0, length, flags);
        rogue.assert_violation("invalid block");
    }
    // The beginning of a longer block is enough.
    let mut early = rogue();
    early.send(&[Frame::AnnounceStream(stream(1))]);
    early.send_symbol(symbol(0, 0), 0, &beginning(996, 0));
    early.assert_violation("invalid block");
    // Two ends, and bytes behind the end.
    for (first, second) in [((3, 1), (1, 1)), ((3, 0), (1, 1))] {
        let mut rogue = rogue();
        rogue.send(&[Frame::AnnounceStream(stream(1))]);
        send_short(&mut rogue, first.0, 1, first.1);
        send_short(&mut rogue, second.0, 1, second.1);
        rogue.assert_violation("invalid block");
    }
}

#[test]
fn symbols_beyond_the_credit_and_the_end_are_refused() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1)), Frame::AnnounceStream(stream(2))]);
    for block in 0..100 {
        rogue.send_symbol(symbol(block, 5), 0, &[0; SIZE]);
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 93, "20 symbols and 50: 7 blocks of 10");
    // The shared credit is used up, but each stream keeps its own.
    for block in 0..100 {
        rogue.send_symbol(SymbolId { flow: FlowId(2), block, esi: 5 }, 0, &[0; SIZE]);
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 93 + 98);
    // A reset stream returns its part of the shared credit.
    rogue.send(&[Frame::Reset { flow: FLOW, code: 3 }, Frame::AnnounceStream(stream(3))]);
    for block in 0..100 {
        rogue.send_symbol(SymbolId { flow: FlowId(3), block, esi: 5 }, 0, &[0; SIZE]);
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 93 + 98 + 93);
    let mut ended = self::rogue();
    ended.send(&[Frame::AnnounceStream(stream(1))]);
    send_short(&mut ended, 1, 5, 1);
    send_short(&mut ended, 2, 5, 0);
    ended.send_symbol(symbol(0, 0), 200, &beginning(5, 0));
    assert_eq!(ended.connection().refused().get(RejectReason::Unacceptable), 2, "behind the end, and an unknown plan");
}

#[test]
fn impossible_announcements_end_the_connection() {
    let impossible =
        [StreamAnnouncement { k: 8_193, ..stream(1) }, StreamAnnouncement { symbol_size: 1_410, ..stream(1) }];
    for announcement in impossible {
        let mut rogue = rogue();
        rogue.send(&[Frame::AnnounceStream(announcement)]);
        rogue.assert_violation("invalid stream");
    }
    let twice = [
        [Frame::AnnounceStream(stream(1)), Frame::AnnounceStream(StreamAnnouncement { tag: 6, ..stream(1) })],
        [Frame::AnnounceStream(stream(1)), Frame::Announce(announcement(1, 100))],
        [Frame::Announce(announcement(1, 100)), Frame::AnnounceStream(stream(1))],
    ];
    for frames in twice {
        let mut rogue = rogue();
        rogue.send(&frames);
        rogue.assert_violation("announced a flow twice");
    }
    let mut rogue = rogue();
    (1..=3).for_each(|flow| rogue.send(&[Frame::AnnounceStream(stream(flow))]));
    assert!(!rogue.connection().is_closed());
    rogue.send(&[Frame::AnnounceStream(stream(4))]);
    rogue.assert_violation("too many streams");
}

#[test]
fn a_reset_or_stop_of_no_stream_ends_the_connection() {
    let (flow, code, symbols) = (FLOW, 0, 1);
    for frame in [Frame::Stop { flow, code }, Frame::StreamRead { flow, symbols }] {
        let mut never = rogue();
        never.send(std::slice::from_ref(&frame));
        never.assert_violation("other than a stream");
        let mut object = rogue();
        let now = object.now;
        let options = ObjectOptions { length: 100, tag: 0, digest: false };
        assert_eq!(object.connection().send_object(now, options), Ok(FLOW));
        object.send(&[frame]);
        object.assert_violation("other than a stream");
    }
    let mut object = rogue();
    object.send(&[Frame::Announce(announcement(1, 100)), Frame::Reset { flow, code }]);
    object.assert_violation("reset an object");
}

#[test]
fn a_reset_before_its_announcement_is_the_end_of_the_stream() {
    let mut rogue = rogue();
    send_short(&mut rogue, 0, 5, 0);
    rogue.send(&[Frame::Reset { flow: FLOW, code: 1 }]);
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    send_short(&mut rogue, 1, 5, 0);
    assert_eq!(rogue.events(), []);
    // None of them is open: three more may be announced.
    (2..=4).for_each(|flow| rogue.send(&[Frame::AnnounceStream(stream(flow))]));
    assert!(!rogue.connection().is_closed());
}

#[test]
fn claims_of_read_symbols_grant_no_more_than_the_started_ones() {
    let mut rogue = Rogue::with(EndpointConfig::default(), parameters(ConnectionId([1; 8])));
    let now = rogue.now;
    let flow = rogue.connection().open_stream(now, 0).expect("it takes four");
    let written = rogue.connection().write_stream(now, flow, &vec![1; 8 << 20]).expect("open");
    assert_eq!(written, 4 << 20, "no more than this is kept");
    rogue.send(&[Frame::StreamRead { flow, symbols: u64::MAX }]);
    rogue.send(&[Frame::StreamRead { flow, symbols: 1_000_000 }]);
    assert_eq!(rogue.events(), []);
    assert!(!rogue.connection().is_closed());
    let now = rogue.now;
    rogue.connection().reset_stream(now, flow, 9);
    assert_eq!(rogue.connection().write_stream(now, flow, b"more"), Err(FlowError::UnknownStream));
    rogue.send(&[Frame::Stop { flow, code: 1 }]);
    assert_eq!(rogue.events(), [], "reset before it was stopped");
}

#[test]
fn a_peer_that_takes_no_streams_gets_none() {
    let takes_none =
        downpour_transport::wire::Parameters { streams: StreamLimits::default(), ..parameters(ConnectionId([1; 8])) };
    let mut rogue = Rogue::with(EndpointConfig::default(), takes_none);
    let now = rogue.now;
    assert_eq!(rogue.connection().open_stream(now, 0), Err(FlowError::NoStreams));
}

/// If such a flow were announced nevertheless, the peer would close for a violation, and neither user would learn why.
#[test]
fn a_peer_that_takes_smaller_symbols_only_is_offered_none() {
    let takes = downpour_transport::wire::Parameters { max_symbol_size: 1_000, ..parameters(ConnectionId([1; 8])) };
    let mut rogue = Rogue::with(EndpointConfig::default(), takes);
    let now = rogue.now;
    let wanted = FlowError::SymbolsTooLarge { smallest: 1_152, most: 1_000 };
    let object = downpour_transport::ObjectOptions { length: 5_000, tag: 0, digest: false };
    assert_eq!(rogue.connection().send_object(now, object), Err(wanted));
    assert_eq!(rogue.connection().open_stream(now, 0), Err(wanted));
    assert!(wanted.to_string().ends_with("choose symbols=1000"), "{wanted}");
}

/// Pings every 5 s for 40 s while time passes for the victim. Returns whether it has given up.
fn is_given_up(rogue: &mut Rogue) -> bool {
    for _ in 0..8 {
        rogue.now += Duration::from_secs(5);
        let now = rogue.now;
        rogue.connection().handle_timeout(now);
        rogue.listen();
        if rogue.connection().is_closed() {
            assert!(rogue.events().contains(&Event::Closed(ConnectionError::TimedOut)));
            return true;
        }
        rogue.send(&[Frame::Ping]);
    }
    false
}

/// A peer that answers but accepts no data is given up; a peer that has received everything need not report packets.
#[test]
fn a_peer_that_answers_but_accepts_no_symbol_is_given_up() {
    for (done, given_up) in [(false, true), (true, false)] {
        let mut rogue = Rogue::with(EndpointConfig::default(), parameters(ConnectionId([1; 8])));
        assert!(!is_given_up(&mut rogue), "nothing is sent");
        let now = rogue.now;
        let flow = rogue.connection().open_stream(now, 0).expect("it takes four");
        rogue.connection().write_stream(now, flow, b"a block").expect("open");
        rogue.listen();
        if done {
            let flows = vec![FlowStatus { flow, done_below: 1, blocks: Vec::new() }];
            let credit = Credit { symbols: 1_000, control: 100_000 };
            rogue.send(&[Frame::Feedback(Feedback { number: 1, flows, credit, ..Feedback::default() })]);
        }
        assert_eq!(is_given_up(&mut rogue), given_up, "done: {done}");
    }
}

#[test]
fn data_acknowledged_with_the_close_has_arrived() {
    let mut rogue = rogue();
    let now = rogue.now;
    let connection = rogue.connection();
    let flow = connection.open_stream(now, 1).expect("connected");
    connection.finish_stream(now, flow).expect("open");
    rogue.listen();
    let last = *rogue.numbers.last().expect("a block of the end");
    let flows = vec![FlowStatus { flow, done_below: 1, blocks: Vec::new() }];
    let packets = Some(PacketRanges { delay_micros: 0, ranges: vec![(last, last)] });
    let feedback = Feedback { number: 1, flows, packets, ..Feedback::default() };
    rogue.send(&[Frame::Feedback(feedback), Frame::Close { code: 0, reason: b"" }]);
    let closed = Event::Closed(ConnectionError::ClosedByPeer { code: 0, reason: String::new() });
    assert_eq!(rogue.events(), [Event::StreamDelivered { flow }, closed]);
}
