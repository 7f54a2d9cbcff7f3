//! Packets with several symbols: packets with unannounced or impossible symbols are refused as a whole and not
//! acknowledged.

use crate::rogue::{Rogue, announcement};
use crate::streams;
use downpour_transport::wire::{Announcement, Feedback, FlowId, Frame, Frames, RejectReason, SymbolId};
use downpour_transport::{Event, WorkRequest};

const SIZE: usize = 100;

fn symbol(flow: u16, block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FlowId(flow), block, esi }
}

/// Announces 50 symbols in 5 blocks, four to a packet.
fn four() -> Announcement {
    Announcement { symbols_per_packet: 4, ..announcement(1, 5_000) }
}

/// Returns whether the victim acknowledges this packet in its current feedback.
fn is_named(rogue: &mut Rogue, number: u64) -> bool {
    rogue.listen();
    let last = rogue.plaintexts.last().cloned().unwrap_or_default();
    Frames::new(&last).flatten().any(|frame| match frame {
        Frame::Feedback(Feedback { packets: Some(packets), .. }) => {
            packets.ranges.iter().any(|(low, high)| (*low..=*high).contains(&number))
        }
        _ => false,
    })
}

#[test]
fn a_packet_carries_as_many_symbols_as_were_announced_and_no_more() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(four())]);
    let cases = [
        // A whole block in three packets of four, four and two symbols.
        (symbol(1, 0, 0), 4 * SIZE, true),
        (symbol(1, 0, 4), 4 * SIZE, true),
        (symbol(1, 0, 8), 2 * SIZE, true),
        // From source into repair symbols.
        (symbol(1, 1, 8), 4 * SIZE, true),
        (symbol(1, 2, 0), 5 * SIZE, false),
        (symbol(1, 2, 0), 255 * SIZE, false),
        (symbol(1, 2, 0), 3 * SIZE + 1, false),
        (symbol(1, 2, 0), SIZE - 1, false),
        (symbol(1, 2, 0), 0, false),
        // Beyond the largest ESI on the wire.
        (symbol(1, 2, (1 << 24) - 2), 3 * SIZE, false),
        // A block that does not exist.
        (symbol(1, 5, 0), 4 * SIZE, false),
    ];
    let mut refused = 0;
    for (id, length, taken) in cases {
        let number = rogue.number;
        rogue.send_symbol(id, 0, &vec![7; length]);
        refused += u64::from(!taken);
        assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), refused, "{id:?} of {length} bytes");
        assert_eq!(is_named(&mut rogue, number), taken, "{id:?} of {length} bytes");
    }
    let now = rogue.now;
    rogue.connection().accept_flow(now, FlowId(1), false);
    let written: Vec<u32> = std::iter::from_fn(|| rogue.connection().poll_request())
        .map(|request| if let WorkRequest::Write { block, .. } = request { block } else { panic!("{request:?}") })
        .collect();
    assert_eq!(written, [0]);
}

/// If the packet with the last symbol that a block needs has more symbols of it, those are surplus.
#[test]
fn symbols_beyond_the_block_are_surplus() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(four())]);
    for esi in [0, 4, 8] {
        rogue.send_symbol(symbol(1, 0, esi), 0, &[7; 4 * SIZE]);
    }
    assert_eq!(rogue.connection().stats().symbols.surplus, 2);
    assert_eq!(rogue.connection().refused().total(), 0);
}

#[test]
fn packets_before_their_announcement_are_bounded_in_bytes() {
    let mut rogue = Rogue::new();
    for esi in [0, 4, 8] {
        rogue.send_symbol(symbol(1, 0, esi), 0, &vec![7; if esi == 8 { 2 } else { 4 } * SIZE]);
    }
    // 512 symbols of the largest size: 720,896 bytes in all.
    for block in 0..20 {
        rogue.send_symbol(symbol(9, block, 0), 0, &vec![7; 60_000]);
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 9, "eleven fit");
    rogue.send(&[Frame::Announce(four())]);
    assert_eq!(rogue.events(), [Event::ObjectAnnounced { flow: FlowId(1), length: 5_000, tag: 0 }]);
    let now = rogue.now;
    rogue.connection().accept_flow(now, FlowId(1), false);
    let writes = std::iter::from_fn(|| rogue.connection().poll_request()).count();
    assert_eq!(writes, 1, "the early block is written");
}

#[test]
fn streams_have_one_symbol_in_a_packet() {
    let mut rogue = streams::rogue();
    rogue.send(&[Frame::AnnounceStream(streams::stream(1))]);
    let two = [streams::beginning(10, 0), streams::beginning(10, 0)].concat();
    rogue.send_symbol(symbol(1, 0, 0), 0, &two);
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 1);
}
