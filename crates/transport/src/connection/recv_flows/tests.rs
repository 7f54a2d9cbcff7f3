//! Flows of a peer, without a connection: objects and streams of symbols of 100 bytes, uncoded, two symbols in a block.

use super::*;
use crate::wire::{Announcement, DoneConfig, ReceivedConfig, StreamAnnouncement};
use erasure::{AnyCode, BlockCode};

const SIZE: u16 = 100;

fn flows() -> RecvFlows {
    RecvFlows::new(&ConnectionConfig::default(), Some(BlockFeedback::Needs))
}

fn object(flow: u16, length: u64) -> FlowAnnouncement {
    let flow = FlowId(flow);
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k: 2, code: BlockCode::Uncoded };
    FlowAnnouncement::Object(Announcement { flow, length, symbol_size: SIZE, symbols_per_packet: 1, tag: 7, plan })
}

fn stream(flow: u16) -> FlowAnnouncement {
    let (code, short_code) = (AnyCode::Block(BlockCode::Uncoded), BlockCode::Uncoded);
    FlowAnnouncement::Stream(StreamAnnouncement {
        flow: FlowId(flow),
        symbol_size: SIZE,
        tag: 8,
        k: 2,
        code,
        short_code,
    })
}

fn id(flow: u16, block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FlowId(flow), block, esi }
}

/// A block of a stream of one symbol, with `length` bytes; plan 1.
fn short_block(length: u8, end: bool) -> Vec<u8> {
    let mut block = vec![b'x'; usize::from(SIZE)];
    block[..5].copy_from_slice(&[0, 0, 0, length, u8::from(end)]);
    block
}

fn events(flows: &mut RecvFlows) -> Vec<Event> {
    flows.collect(&mut Vec::new(), |_, _| {});
    std::iter::from_fn(|| flows.poll_event()).collect()
}

#[test]
fn an_object_is_announced_filled_written_and_forgotten() {
    let mut flows = flows();
    assert_eq!([flows.on_announcement(object(1, 300)), flows.on_announcement(object(1, 300))], [Ok(()); 2]);
    assert_eq!(events(&mut flows), [Event::ObjectAnnounced { flow: FlowId(1), length: 300, tag: 7 }], "once");
    assert!(flows.has_unfinished() && !flows.awaits_more());
    for (block, esi) in [(0, 0), (1, 0), (0, 1)] {
        assert_eq!(flows.on_symbols(id(1, block, esi), 0, &[5; 100]), Ok(id(1, block, esi).into()));
    }
    let complete = RecvProgress { block_done: true, complete: true, ..RecvProgress::default() };
    assert_eq!((flows.take_progress(), flows.take_progress()), (complete, RecvProgress::default()));
    assert_eq!(flows.on_symbols(id(1, 0, 0), 0, &[5; 100]), Ok(id(1, 0, 0).into()), "again");
    assert_eq!((flows.surplus(), flows.has_unfinished()), (1, false));
    flows.accept(FlowId(1), false);
    let granted = flows.granted();
    for block in 0..2 {
        flows.on_reply(WorkReply::Written { flow: FlowId(1), block });
    }
    assert_eq!((flows.bytes_written(), flows.granted()), (300, granted + 3));
    assert!(flows.take_progress().written);
    assert_eq!(events(&mut flows), [Event::ObjectReceived { flow: FlowId(1) }]);
    let over = FlowStatus { flow: FlowId(1), done_below: 2, blocks: vec![] };
    assert_eq!(flows.statuses(1).0, [over]);
    flows.on_seen(1);
    assert_eq!(flows.statuses(2).0, []);
    flows.on_symbols(id(1, 0, 0), 0, &[5; 100]).expect("it may arrive again");
    let again = FlowStatus { flow: FlowId(1), done_below: u32::MAX, blocks: vec![] };
    assert_eq!(flows.statuses(3).0, [again], "a sender that continues does not know");
    assert_eq!(flows.on_announcement(object(1, 300)), Ok(()));
    assert_eq!(events(&mut flows), []);
}

#[test]
fn a_stream_is_announced_read_and_forgotten() {
    let mut flows = flows();
    flows.on_announcement(stream(1)).expect("a stream");
    flows.on_symbols(id(1, 1, 0), 1, &short_block(20, true)).expect("the end, early");
    assert!(!flows.take_progress().complete && flows.awaits_more());
    flows.on_symbols(id(1, 0, 0), 1, &short_block(30, false)).expect("the beginning");
    let all_here = RecvProgress { caught_up: true, block_done: true, complete: true, ..RecvProgress::default() };
    assert_eq!(flows.take_progress(), all_here);
    let announced = Event::StreamAnnounced { flow: FlowId(1), tag: 8 };
    assert_eq!(events(&mut flows), [announced, Event::StreamReadable { flow: FlowId(1) }]);
    let mut out = Vec::new();
    assert_eq!((flows.read(FlowId(1), &mut out, 10), flows.read(FlowId(1), &mut out, 99)), (10, 40));
    assert_eq!(out, [b'x'; 50]);
    assert_eq!(events(&mut flows), [Event::StreamFinished { flow: FlowId(1) }]);
    let over = FlowStatus { flow: FlowId(1), done_below: u32::MAX, blocks: vec![] };
    assert_eq!(flows.statuses(1).0, [over]);
    flows.on_seen(1);
    assert_eq!(flows.statuses(2).0, []);
}

/// Flows of either kind continue in smaller symbols under the id that the program knows; done blocks stay done.
#[test]
fn flows_are_succeeded_alike() {
    for announcement in [object(1, 400), stream(1)] {
        let mut flows = flows();
        flows.on_announcement(announcement).expect("a flow");
        let block = [short_block(90, false), vec![b'x'; 100]];
        for (esi, symbol) in (0..).zip(&block) {
            flows.on_symbols(id(1, 0, esi), 0, symbol).expect("block 0");
        }
        flows.on_symbols(id(1, 1, 0), 0, &short_block(90, true)).expect("a part of block 1");
        flows.on_successor(FlowId(2), 80, announcement).expect("smaller");
        assert_eq!(flows.on_successor(FlowId(2), 80, announcement), Ok(()), "repeated");
        assert_eq!(flows.on_symbols(id(1, 1, 0), 0, &[5; 100]), Ok(id(1, 1, 0).into()), "late");
        assert_eq!((flows.surplus(), flows.gap(FlowId(1)), flows.gap(FlowId(2))), (1, None, Some((1, 0))));
        let status = flows.statuses(1).0;
        assert_eq!((status[0].flow, status[0].done_below), (FlowId(2), 1));
        assert_eq!(flows.on_successor(FlowId(3), 90, announcement), Ok(()), "overtaken by its own successor");
        assert_eq!(flows.gap(FlowId(3)), None);
        assert_eq!(flows.on_successor(FlowId(4), 30, announcement), Err(Violation("sent an invalid successor")));
    }
}

/// A successor of an unannounced flow announces it.
#[test]
fn a_successor_announces_its_predecessor() {
    let mut flows = flows();
    flows.on_successor(FlowId(2), 80, object(1, 300)).expect("an object");
    assert_eq!(events(&mut flows), [Event::ObjectAnnounced { flow: FlowId(1), length: 300, tag: 7 }]);
    assert_eq!(flows.on_symbols(id(2, 0, 0), 0, &[5; 80]), Ok(id(2, 0, 0).into()));
    let violations = [
        flows.on_successor(FlowId(3), 70, object(1, 400)),
        flows.on_successor(FlowId(2), 70, object(1, 300)),
        flows.on_reset(FlowId(1), 0),
        flows.on_reset(FlowId(2), 0),
    ];
    let texts = ["sent a successor of another object", "announced a flow twice", "reset an object", "reset an object"];
    assert_eq!(violations, texts.map(|text| Err(Violation(text))));
}

#[test]
fn an_id_is_of_one_kind() {
    let mut flows = flows();
    flows.on_announcement(object(1, 300)).expect("an object");
    flows.on_announcement(stream(2)).expect("a stream");
    let violations = [flows.on_announcement(stream(1)), flows.on_announcement(object(2, 300))];
    assert_eq!(violations, [Err(Violation("announced a flow twice")); 2]);
    assert_eq!((flows.stop(FlowId(1)), flows.stop(FlowId(2)), flows.stop(FlowId(2))), (false, true, false));
}

#[test]
fn a_reset_stream_returns_its_credit() {
    let mut flows = flows();
    let shared = flows.credit.shared;
    flows.on_announcement(stream(1)).expect("a stream");
    for block in 0..200 {
        flows.on_symbols(id(1, block, 0), 0, &short_block(90, false)).expect("within the credit");
    }
    assert_eq!(flows.credit.shared, shared - (400 - 128), "128 symbols are its own");
    flows.on_successor(FlowId(2), 80, stream(1)).expect("smaller");
    assert_eq!(flows.on_reset(FlowId(2), 9), Err(Violation("reset a successor")));
    assert_eq!([flows.on_reset(FlowId(1), 9), flows.on_reset(FlowId(1), 9)], [Ok(()); 2]);
    assert_eq!(flows.credit.shared, shared);
    let announced = Event::StreamAnnounced { flow: FlowId(1), tag: 8 };
    assert_eq!(events(&mut flows), [announced, Event::StreamReset { flow: FlowId(1), code: 9 }]);
    assert_eq!(flows.on_symbols(id(2, 0, 0), 0, &[5; 80]), Ok(id(2, 0, 0).into()), "surplus");
}

#[test]
fn symbols_and_plans_that_overtake_their_announcement_wait() {
    let mut flows = flows();
    let plan = Plan { flow: FlowId(1), number: 1, first_block: 1, first_symbol: 2, k: 1, code: BlockCode::Uncoded };
    assert_eq!(flows.on_symbols(id(1, 1, 0), 1, &[5; 100]), Ok(id(1, 1, 0).into()));
    assert_eq!(flows.on_plan(plan), Ok(()));
    assert_eq!(flows.take_progress(), RecvProgress::default());
    flows.on_announcement(object(1, 300)).expect("an object");
    assert!(flows.take_progress().block_done, "block 1 is one symbol by plan 1");
    assert_eq!(flows.on_plan(Plan { k: 2, ..plan }), Err(Violation("sent an invalid plan")));
}

#[test]
fn each_kind_has_its_bound() {
    let mut flows = flows();
    (1..=64).for_each(|flow| assert_eq!(flows.on_announcement(object(flow, 300)), Ok(())));
    (1..=1_024).for_each(|flow| assert_eq!(flows.on_announcement(stream(100 + flow)), Ok(())));
    assert_eq!(flows.on_announcement(object(65, 300)), Err(Violation("announced too many flows")));
    assert_eq!(flows.on_announcement(stream(1_125)), Err(Violation("announced too many streams")));
    (0..2).for_each(|esi| flows.on_symbols(id(1, 0, esi), 0, &[5; 100]).map(drop).expect("block 0"));
    flows.on_symbols(id(1, 1, 0), 0, &[5; 100]).expect("block 1");
    assert_eq!(flows.on_announcement(object(65, 300)), Ok(()), "one is complete");
}

/// The sender's choice for blocks decides which events are urgent and which are reported.
#[test]
fn blocks_are_reported_as_the_sender_asked() {
    let choices = [
        None,
        Some(BlockFeedback::Mask),
        Some(BlockFeedback::Done(DoneConfig { epsilon: 0 })),
        Some(BlockFeedback::Received(ReceivedConfig { epsilon: 0 })),
    ];
    let found = choices.map(|choice| {
        let mut flows = RecvFlows::new(&ConnectionConfig::default(), choice);
        flows.on_announcement(object(1, 300)).expect("an object");
        flows.on_symbols(id(1, 0, 0), 0, &[5; 100]).expect("half a block");
        assert_eq!(flows.take_progress(), RecvProgress::default());
        flows.on_symbols(id(1, 0, 1), 0, &[5; 100]).expect("a block");
        let (statuses, masks) = flows.statuses(1);
        (flows.take_progress().complete, statuses.len(), masks.len())
    });
    assert_eq!(found, [(false, 0, 0), (false, 0, 1), (false, 1, 0), (true, 1, 0)]);
}
