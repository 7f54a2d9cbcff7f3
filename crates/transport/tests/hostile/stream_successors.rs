//! Peers that continue streams in invalid ways, or use two flows to get more than one flow's share.

use crate::rogue::{Rogue, announcement};
use crate::streams::{FLOW, beginning, read, rogue, stream};
use downpour_transport::Event;
use downpour_transport::wire::{FlowId, Frame, Frames, RejectReason, StreamAnnouncement, StreamSuccessor, SymbolId};

fn successor(flow: u16, symbol_size: u16, stream: StreamAnnouncement) -> Frame<'static> {
    Frame::StreamSuccessor(StreamSuccessor { flow: FlowId(flow), symbol_size, stream })
}

/// Sends a symbol of `size` bytes; the header of a block's first symbol has the number of bytes that belong to the
/// stream.
fn send(rogue: &mut Rogue, flow: u16, (block, esi, plan): (u32, u32, u8), size: usize, header: Option<(u32, u8)>) {
    let mut symbol = header.map_or_else(Vec::new, |(length, flags)| beginning(length, flags));
    symbol.resize(size, b'0' + esi as u8);
    rogue.send_symbol(SymbolId { flow: FlowId(flow), block, esi }, plan, &symbol);
}

#[test]
fn successors_that_contradict_themselves_end_the_connection() {
    let other = StreamAnnouncement { tag: 6, ..stream(1) };
    let object = announcement(1, 5_000);
    // Short blocks of 128 symbols become blocks of 171, and Reed-Solomon has no blocks of odd size.
    let large = StreamAnnouncement { k: 128, ..stream(1) };
    let cases: [(&str, Vec<Frame<'static>>); 8] = [
        ("too small", vec![Frame::AnnounceStream(stream(1)), successor(2, 48, stream(1))]),
        ("unsuited to the code of short blocks", vec![successor(2, 75, large)]),
        ("another stream", vec![Frame::AnnounceStream(stream(1)), successor(2, 80, other)]),
        ("twice, of another size", vec![successor(2, 80, stream(1)), successor(2, 60, stream(1))]),
        ("a stream of its own", vec![Frame::AnnounceStream(stream(2)), successor(2, 80, stream(1))]),
        ("an object", vec![Frame::Announce(announcement(2, 9)), successor(2, 80, stream(1))]),
        ("of an object", vec![Frame::Announce(object), successor(2, 80, stream(1))]),
        ("of a successor", vec![successor(2, 80, stream(1)), successor(3, 60, stream(2))]),
    ];
    for (what, frames) in cases {
        let mut rogue = rogue();
        frames.iter().for_each(|frame| rogue.send(std::slice::from_ref(frame)));
        let events = rogue.events();
        let ended = events
            .iter()
            .any(|event| matches!(event, Event::Closed(downpour_transport::ConnectionError::Violation(_))));
        assert!(ended, "{what}: {events:?}");
    }
}

/// The program learns of one stream, whichever flows carry it and in whatever order they are announced. A cycle of
/// successors is refused.
#[test]
fn a_stream_is_announced_once() {
    let first = Frame::AnnounceStream(stream(1));
    let orders: [Vec<Frame<'static>>; 4] = [
        vec![first.clone(), successor(2, 80, stream(1)), successor(3, 60, stream(1)), successor(2, 80, stream(1))],
        vec![successor(3, 60, stream(1)), successor(2, 80, stream(1)), first.clone()],
        vec![successor(2, 80, stream(1)), first, successor(3, 60, stream(1)), successor(3, 60, stream(1))],
        vec![successor(2, 80, stream(1)), successor(3, 60, stream(1)), successor(1, 56, stream(2))],
    ];
    for frames in orders {
        let mut rogue = rogue();
        frames.iter().for_each(|frame| rogue.send(std::slice::from_ref(frame)));
        assert_eq!(rogue.events(), [Event::StreamAnnounced { flow: FLOW, tag: 5 }], "{frames:?}");
        // Only the last flow carries it now: symbols of the others are surplus.
        for (flow, size) in [(1, 100), (2, 80), (3, 60)] {
            send(&mut rogue, flow, (0, 0, 1), size, Some((40, 0)));
        }
        assert_eq!(rogue.connection().stats().symbols.surplus, 2, "{frames:?}");
        assert_eq!(rogue.connection().refused().total(), 0);
        assert_eq!(read(&mut rogue).len(), 40);
    }
}

#[test]
fn read_bytes_of_a_block_are_not_read_again() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    // 1000 bytes, 995 of them of the stream. Two of the ten symbols are read; then the block begins anew, with
    // thirteen.
    send(&mut rogue, 1, (0, 0, 0), 100, Some((995, 0)));
    send(&mut rogue, 1, (0, 1, 0), 100, None);
    assert_eq!(read(&mut rogue).len(), 195);
    rogue.send(&[successor(2, 80, stream(1))]);
    send(&mut rogue, 2, (0, 0, 0), 80, Some((995, 0)));
    send(&mut rogue, 2, (0, 1, 0), 80, None);
    assert_eq!(read(&mut rogue), b"", "160 of 200 read bytes");
    send(&mut rogue, 2, (0, 2, 0), 80, None);
    assert_eq!(read(&mut rogue), [b'2'; 40]);
    (3..13).for_each(|esi| send(&mut rogue, 2, (0, esi, 0), 80, None));
    assert_eq!(read(&mut rogue).len(), 995 - 195 - 40);
    // A done block does not complete again, and the next one ends the stream.
    send(&mut rogue, 2, (0, 0, 0), 80, Some((995, 0)));
    assert_eq!(read(&mut rogue), b"");
    send(&mut rogue, 2, (1, 0, 1), 80, Some((3, 1)));
    send(&mut rogue, 2, (1, 1, 1), 80, None);
    assert_eq!(read(&mut rogue).len(), 3);
    assert!(rogue.events().contains(&Event::StreamFinished { flow: FLOW }));
    assert_eq!(rogue.connection().refused().total(), 0);
}

/// A block completed by the first flow has that flow's symbols, and is read from them.
#[test]
fn a_block_that_was_done_before_is_read_after() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    send(&mut rogue, 1, (1, 0, 2), 100, Some((195, 1)));
    send(&mut rogue, 1, (1, 1, 2), 100, None);
    rogue.send(&[successor(2, 80, stream(1))]);
    send(&mut rogue, 2, (0, 1, 1), 80, None);
    assert_eq!(read(&mut rogue), b"", "block 0 has not begun");
    send(&mut rogue, 2, (0, 0, 1), 80, Some((95, 0)));
    let expected = [&[b'x'; 75][..], &[b'1'; 20], &[b'x'; 95], &[b'1'; 100]].concat();
    assert_eq!(read(&mut rogue), expected);
    assert!(rogue.events().contains(&Event::StreamFinished { flow: FLOW }));
}

/// A block of plan p has the same number of bytes for any symbol size: 995 fit the ten symbols of 100 bytes, not the
/// extra 40 bytes of the thirteenth.
#[test]
fn a_block_holds_no_more_than_before() {
    let mut rogue = rogue();
    rogue.send(&[successor(2, 80, stream(1))]);
    send(&mut rogue, 2, (0, 0, 0), 80, Some((996, 0)));
    rogue.assert_violation("invalid block");
}

/// Blocks cost the credit that they cost in the first flow, in whichever flow they begin, and only once.
#[test]
fn a_successor_brings_no_more_credit() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    (0..3).for_each(|block| send(&mut rogue, 1, (block, 5, 0), 100, None));
    rogue.send(&[successor(2, 80, stream(1))]);
    (0..100).for_each(|block| send(&mut rogue, 2, (block, 5, 0), 80, None));
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 93, "20 symbols and 50: 7 blocks of 10");
}

#[test]
fn endings_name_the_stream_and_not_the_flow_that_carries_it() {
    let mut rogue = rogue();
    rogue.send(&[successor(2, 80, stream(1)), Frame::Reset { flow: FLOW, code: 3 }]);
    rogue.send(&[successor(3, 60, stream(1)), Frame::AnnounceStream(stream(1))]);
    let (announced, reset) =
        (Event::StreamAnnounced { flow: FLOW, tag: 5 }, Event::StreamReset { flow: FLOW, code: 3 });
    assert_eq!(rogue.events(), [announced, reset]);
    let mut never = self::rogue();
    never.send(&[Frame::Reset { flow: FLOW, code: 3 }, successor(2, 80, stream(1))]);
    assert_eq!(never.events(), [], "reset before its announcement");
    let mut later = self::rogue();
    later.send(&[successor(2, 80, stream(1)), Frame::Reset { flow: FlowId(2), code: 3 }]);
    later.assert_violation("reset a successor");
}

/// However many flows carry it, it is one of the three streams that may be open. The credit for its reads is sent under
/// its first flow id.
#[test]
fn a_chain_of_successors_is_one_stream() {
    let mut rogue = rogue();
    (2..=21).for_each(|flow| rogue.send(&[successor(flow, 100 - 2 * flow, stream(1))]));
    (30..=31).for_each(|flow| rogue.send(&[successor(flow + 100, 80, stream(flow))]));
    assert!(!rogue.connection().is_closed());
    for block in 0..2 {
        (0..18).for_each(|esi| send(&mut rogue, 21, (block, esi, 0), 58, (esi == 0).then_some((995, 0))));
    }
    assert_eq!(read(&mut rogue).len(), 2 * 995);
    rogue.listen();
    let frames = rogue.plaintexts.iter().flat_map(|plaintext| Frames::new(plaintext)).flatten();
    let reported: Vec<_> = frames.filter(|frame| matches!(frame, Frame::StreamRead { .. })).collect();
    assert!(reported.contains(&Frame::StreamRead { flow: FLOW, symbols: 20 }), "{reported:?}");
    rogue.send(&[successor(200, 80, stream(99))]);
    rogue.assert_violation("too many streams");
}
