//! Peers that continue flows in invalid ways.

use crate::rogue::{Rogue, announcement};
use downpour_transport::Event;
use downpour_transport::wire::{Announcement, FlowId, Frame, Plan, Successor, SymbolId};

fn successor(flow: u16, symbol_size: u16, object: Announcement) -> Frame<'static> {
    Frame::Successor(Successor { flow: FlowId(flow), symbol_size, object })
}

#[test]
fn successors_that_contradict_themselves_end_the_connection() {
    let object = announcement(1, 5_000);
    let other = Announcement { length: 6_000, ..object };
    // A block of 100 symbols becomes one of 134, and Reed-Solomon has no blocks of odd size.
    let large = Announcement { plan: Plan { k: 100, ..object.plan }, ..object };
    let cases: [(&str, Vec<Frame<'static>>); 5] = [
        ("too small", vec![Frame::Announce(object), successor(2, 48, object)]),
        ("unsuited to its code", vec![Frame::Announce(large), successor(2, 75, large)]),
        ("of another length", vec![Frame::Announce(object), successor(2, 80, other)]),
        ("announced otherwise", vec![successor(2, 80, object), successor(2, 60, object)]),
        (
            "a flow of its own",
            vec![Frame::Announce(object), Frame::Announce(announcement(2, 9)), successor(2, 80, object)],
        ),
    ];
    for (what, frames) in cases {
        let mut rogue = Rogue::new();
        frames.iter().for_each(|frame| rogue.send(std::slice::from_ref(frame)));
        let events = rogue.events();
        let ended = events
            .iter()
            .any(|event| matches!(event, Event::Closed(downpour_transport::ConnectionError::Violation(_))));
        assert!(ended, "{what}: {events:?}");
    }
}

/// The program learns of one object, whichever flows carry it and in whatever order they are announced.
#[test]
fn an_object_is_announced_once() {
    let object = announcement(1, 5_000);
    let orders: [Vec<Frame<'static>>; 3] = [
        vec![Frame::Announce(object), successor(2, 80, object), successor(3, 60, object), successor(2, 80, object)],
        vec![successor(3, 60, object), successor(2, 80, object), Frame::Announce(object)],
        vec![successor(2, 80, object), Frame::Announce(object), successor(3, 60, object), successor(3, 60, object)],
    ];
    for frames in orders {
        let mut rogue = Rogue::new();
        frames.iter().for_each(|frame| rogue.send(std::slice::from_ref(frame)));
        assert_eq!(rogue.events(), [Event::ObjectAnnounced { flow: FlowId(1), length: 5_000, tag: 0 }], "{frames:?}");
        // Only the last flow carries it now: symbols of the others are surplus.
        for (flow, size) in [(1, 100), (2, 80), (3, 60)] {
            rogue.send_symbol(SymbolId { flow: FlowId(flow), block: 0, esi: 0 }, 0, &vec![7; size]);
        }
        assert_eq!(rogue.connection().stats().symbols.surplus, 2, "{frames:?}");
        assert_eq!(rogue.connection().refused().total(), 0);
    }
}

/// A chain of successors leaves a bounded number of flows, whatever its length.
#[test]
fn a_flood_of_successors_opens_no_more_flows_than_are_allowed() {
    let mut rogue = Rogue::new();
    for flow in 1..=2_000u16 {
        rogue.send(&[successor(10_000 + flow, 80, announcement(flow, 1 << 30))]);
    }
    rogue.assert_violation("too many flows");
}
