//! Layouts of packets and frames.

use erasure::{AnyCode, BlockCode, WindowCode};

use super::super::limits::{MAX_FRAMES, MAX_PACKET_NUMBER, MAX_REASON};
use super::*;

#[test]
fn a_symbol_packet_is_43_bytes_more_than_its_symbols() {
    assert_eq!(SYMBOL_OVERHEAD, 43);
    assert_eq!((HEADER, TAG), (17, 16));
    assert_eq!(HEADER + SYMBOL_HEADER + TAG, SYMBOL_OVERHEAD);
}

#[test]
fn packet_header_layout() {
    let header = PacketHeader {
        kind: PacketKind::Symbol,
        connection: ConnectionId([1, 2, 3, 4, 5, 6, 7, 8]),
        number: 0x1112_1314_1516_1718,
    };
    let bytes = [0x10, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    assert_eq!(header.encode(), bytes);
    assert_eq!(PacketHeader::decode(&bytes), Ok(header));
    assert_eq!(PacketHeader::decode(&bytes[..16]), Err(WireError::Truncated));
    assert_eq!(PacketHeader { kind: PacketKind::Control, ..header }.encode()[0], 0x11);
    let highest = PacketHeader { number: MAX_PACKET_NUMBER, ..header };
    assert_eq!(PacketHeader::decode(&highest.encode()), Ok(highest));
    let mut beyond = highest.encode();
    beyond[16] = 0xff;
    assert_eq!(PacketHeader::decode(&beyond), Err(WireError::Malformed("packet number")));
    assert!(PacketHeader::decode(&[0x12; 17]).is_err());
}

#[test]
fn symbol_header_layout() {
    let id = SymbolId { flow: FlowId(0x0102), block: 0x0304_0506, esi: 0x07_0809 };
    let header = SymbolHeader { id, plan: 0x0a };
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xee, 0xff];
    assert_eq!(header.encode(), bytes[..10]);
    assert_eq!(SymbolHeader::decode(&bytes), Ok((header, &[0xee, 0xff][..])));
    assert_eq!(SymbolHeader::decode(&bytes[..9]), Err(WireError::Truncated));
    assert_eq!(SymbolHeader::decode(&[0; 10]), Err(WireError::Malformed("flow of a symbol")));
}

#[test]
fn short_frames() {
    assert_layout(&Frame::Ping, &[1]);
    let seen = Frame::FeedbackSeen { number: 0x0102_0304, rtt_micros: 50_000 };
    assert_layout(&seen, &[3, 1, 2, 3, 4, 0, 0, 0xc3, 0x50]);
    let data = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_layout(&Frame::PathChallenge { data }, &[10, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_layout(&Frame::PathResponse { data }, &[11, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_layout(&Frame::Close { code: 1, reason: b"bye" }, &[9, 0, 0, 0, 1, 0, 3, b'b', b'y', b'e']);
    assert_layout(&Frame::Close { code: 0, reason: b"" }, &[9, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn control_layout() {
    let frame = Frame::Control { offset: 0x0102_0304_0506_0708, data: b"hello" };
    assert_layout(&frame, &[4, 1, 2, 3, 4, 5, 6, 7, 8, 0, 5, b'h', b'e', b'l', b'l', b'o']);
    assert_eq!(Frame::Control { offset: 0, data: &[] }.encoded_len(), CONTROL_FRAME_HEADER);
}

#[test]
fn announcement_and_plan_layouts() {
    let plan =
        Plan { flow: FlowId(2), number: 0, first_block: 0, first_symbol: 0, k: 0x0400, code: BlockCode::RaptorQ };
    let announcement = Announcement {
        flow: FlowId(2),
        length: 0x0102_0304_0506_0708,
        symbol_size: 1408,
        symbols_per_packet: 1,
        tag: 0x1112_1314_1516_1718,
        plan,
    };
    let bytes = [
        5, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0x05, 0x80, 1, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 4, 0, 2,
        0,
    ];
    assert_layout(&Frame::Announce(announcement), &bytes);
    let succeeding = [&[15, 0, 9, 0x04, 0x80], &bytes[1..]].concat();
    let successor = Successor { flow: FlowId(9), symbol_size: 1152, object: announcement };
    assert_layout(&Frame::Successor(successor), &succeeding);
    for (at, byte, reason) in [(2, 2, "flow that succeeds itself"), (3, 0x05, "symbol size of a successor")] {
        let bytes = with(&Frame::Successor(successor), at, byte);
        assert_eq!(read_one(&bytes), Err(WireError::Malformed(reason)));
    }
    let later = Plan { number: 3, first_block: 0x0506_0708, first_symbol: 9, code: BlockCode::ReedSolomon, ..plan };
    let bytes = [6, 0, 2, 3, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 4, 0, 1, 0];
    assert_layout(&Frame::Plan(later), &bytes);
}

#[test]
fn frames_of_streams() {
    let flow = FlowId(0x0102);
    assert_layout(&Frame::Reset { flow, code: 0x0304_0506 }, &[7, 1, 2, 3, 4, 5, 6]);
    assert_layout(&Frame::Stop { flow, code: 0x0304_0506 }, &[8, 1, 2, 3, 4, 5, 6]);
    assert_layout(&Frame::StreamRead { flow, symbols: 0x0a0b }, &[13, 1, 2, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b]);
    let announcement = stream_announcement();
    let bytes = [14, 1, 2, 0x05, 0x80, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 1, 0, 2, 0, 1];
    assert_layout(&Frame::AnnounceStream(announcement), &bytes);
    let succeeding = [&[16, 0, 9, 0x04, 0x80], &bytes[1..]].concat();
    let successor =
        |flow, symbol_size| Frame::StreamSuccessor(StreamSuccessor { flow, symbol_size, stream: announcement });
    assert_layout(&successor(FlowId(9), 1152), &succeeding);
    for (frame, reason) in [
        (successor(flow, 1152), "flow that succeeds itself"),
        (successor(FlowId(9), 1408), "symbol size of a successor"),
    ] {
        assert_eq!(read_one(&bytes_of(&frame)), Err(WireError::Malformed(reason)));
    }
}

fn stream_announcement() -> StreamAnnouncement {
    StreamAnnouncement {
        flow: FlowId(0x0102),
        symbol_size: 1_408,
        tag: 0x1112_1314_1516_1718,
        k: 256,
        code: BlockCode::RaptorQ.into(),
        short_code: BlockCode::ReedSolomon,
    }
}

#[test]
fn streams_that_make_no_sense() {
    let refused = |bytes: Vec<u8>| read_one(&bytes).expect_err("refused");
    let odd = |code| {
        let code = AnyCode::Block(code);
        Frame::AnnounceStream(StreamAnnouncement { symbol_size: 1_409, code, ..stream_announcement() })
    };
    assert_eq!(read_one(&bytes_of(&odd(BlockCode::RaptorQ))), Ok(odd(BlockCode::RaptorQ)), "short blocks may be odd");
    assert_eq!(refused(bytes_of(&odd(BlockCode::ReedSolomon))), WireError::Malformed("symbol size"), "k 256");
    let code = AnyCode::Window(WindowCode::Rlc);
    let short = StreamAnnouncement { code, short_code: BlockCode::RaptorQ, ..stream_announcement() };
    assert_eq!(refused(bytes_of(&Frame::AnnounceStream(short))), WireError::Malformed("code of short blocks"));
}

/// Returns a frame's bytes with one byte replaced.
fn with(frame: &Frame<'_>, at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes_of(frame);
    bytes[at] = byte;
    bytes
}

#[test]
fn announcements_that_make_no_sense() {
    let plan = Plan { flow: FlowId(1), number: 0, first_block: 0, first_symbol: 0, k: 4, code: BlockCode::ReedSolomon };
    let announcement = Announcement { flow: FlowId(1), length: 9, symbol_size: 3, symbols_per_packet: 1, tag: 0, plan };
    assert!(read_one(&bytes_of(&Frame::Announce(announcement))).is_ok(), "odd, with Reed-Solomon and k 4");
    let larger = bytes_of(&Frame::Announce(Announcement { plan: Plan { k: 129, ..plan }, ..announcement }));
    assert_eq!(read_one(&larger), Err(WireError::Malformed("symbol size")), "odd, with Reed-Solomon and k 129");
}

#[test]
fn padding_is_skipped_and_unknown_frames_are_not() {
    let mut frames = Frames::new(&[0, 0, 1, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0]);
    assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
    assert_eq!(frames.next(), Some(Ok(Frame::FeedbackSeen { number: 1, rtt_micros: 2 })));
    assert_eq!(frames.next(), None);
    assert_eq!(Frames::check_all(&[]), Ok(()));
    assert_eq!(Frames::check_all(&[0; 1500]), Ok(()));
    let known: Vec<u8> = samples::frames().iter().map(|(_, frame)| bytes_of(frame)[0]).collect();
    for unknown in (1..=0xff).filter(|kind| !known.contains(kind)) {
        assert_eq!(read_one(&[unknown, 1, 1]), Err(WireError::UnknownFrame(unknown)));
        assert_eq!(Frames::check_all(&[1, 0, unknown]), Err(WireError::UnknownFrame(unknown)));
    }
}

/// The limits of the contents of frames are in `docs/vectors/limits.json`.
#[test]
fn limits_of_packets_and_of_encoding() {
    assert_eq!(Frames::check_all(&[1; MAX_FRAMES]), Ok(()));
    assert_eq!(Frames::check_all(&[1; MAX_FRAMES + 1]), Err(WireError::Limit("frames")));
    let reason = [b'y'; MAX_REASON + 50];
    let cut = bytes_of(&Frame::Close { code: 2, reason: &reason });
    assert_eq!(read_one(&cut), Ok(Frame::Close { code: 2, reason: &reason[..MAX_REASON] }));
}
