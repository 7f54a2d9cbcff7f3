//! Senders with every form of feedback: the feedback they get, and abuse that must fail.

use crate::rogue::{Rogue, announcement, parameters};
use downpour_transport::wire::{
    Announcement, BlockFeedback, BlockMask, BlockStatus, ConnectionId, DoneConfig, Feedback, FeedbackConfig,
    FeedbackTiming, FlowId, FlowStatus, Frame, Frames, Heartbeat, PacketCount, PacketFeedback, Parameters, Plan,
    ReceivedConfig, Successor, SymbolId,
};
use downpour_transport::{ConnectionError, EndpointConfig, Event, WorkReply, WorkRequest};
use erasure::BlockCode;
use std::time::Duration;

const FLOW: FlowId = FlowId(1);

fn rogue(choice: FeedbackConfig) -> Rogue {
    let offer = Parameters { feedback: choice, ..parameters(ConnectionId([0xee; 8])) };
    Rogue::with(EndpointConfig::default(), offer)
}

fn with_block_feedback(blocks: BlockFeedback) -> Rogue {
    rogue(FeedbackConfig { blocks: Some(blocks), ..FeedbackConfig::everything(FeedbackTiming::EveryPacket) })
}

/// Returns the feedback frames that the victim sends now.
fn feedbacks(rogue: &mut Rogue) -> Vec<Feedback> {
    rogue.plaintexts.clear();
    rogue.listen();
    let frames = rogue.plaintexts.iter().flat_map(|plaintext| Frames::new(plaintext)).flatten();
    frames.filter_map(|frame| if let Frame::Feedback(feedback) = frame { Some(feedback) } else { None }).collect()
}

fn feedback(rogue: &mut Rogue) -> Feedback {
    feedbacks(rogue).pop().expect("every packet is answered")
}

fn symbol(block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FLOW, block, esi }
}

/// Announces a flow with 100 symbols of 100 bytes per block.
fn large_block(code: BlockCode) -> Announcement {
    let plan = Plan { flow: FLOW, number: 0, first_block: 0, first_symbol: 0, k: 100, code };
    Announcement { plan, ..announcement(1, 20_000) }
}

#[test]
fn packets_are_named_in_the_order_of_their_symbols() {
    let choice =
        FeedbackConfig { packets: PacketFeedback::InOrder, ..FeedbackConfig::everything(FeedbackTiming::EveryPacket) };
    let mut rogue = rogue(choice);
    let named = |rogue: &mut Rogue, id: SymbolId| {
        rogue.send_symbol(id, 0, &[7; 100]);
        let Feedback { packets, count, .. } = feedback(rogue);
        let PacketCount { largest, arrived, .. } = count.expect("how many, with the names");
        assert_eq!((largest, arrived), (rogue.number - 1, rogue.number), "all of them arrived");
        packets.expect("the first was named").ranges
    };
    // Packet 0 was a ping. Symbols of unannounced flows have no order.
    assert_eq!(named(&mut rogue, symbol(0, 0)), [(0, 1)]);
    rogue.send(&[Frame::Announce(announcement(1, 5_000))]);
    assert_eq!(named(&mut rogue, symbol(0, 2)), [(0, 2)], "packet 3 waits");
    assert_eq!(named(&mut rogue, symbol(0, 3)), [(0, 2)]);
    assert_eq!(named(&mut rogue, symbol(1, 0)), [(0, 2)]);
    assert_eq!(named(&mut rogue, symbol(0, 1)), [(6, 6), (0, 4)], "the gap is closed, packet 5 is of the next block");
    assert_eq!(named(&mut rogue, symbol(0, 1)), [(6, 7), (0, 4)], "known arrivals are reported at once");
    for esi in 4..9 {
        named(&mut rogue, symbol(0, esi));
    }
    assert_eq!(named(&mut rogue, symbol(0, 9)), [(0, 13)]);
    assert_eq!(named(&mut rogue, symbol(2, 5)), [(0, 13)], "packet 14 waits");
    // A flow that continues as another leaves nothing behind.
    let object = announcement(1, 5_000);
    rogue.send(&[Frame::Successor(Successor { flow: FlowId(2), symbol_size: 50, object })]);
    assert_eq!(feedback(&mut rogue).packets.expect("named").ranges, [(0, 15)]);
}

#[test]
fn blocks_are_reported_as_a_mask_if_it_holds_them() {
    let mut rogue = with_block_feedback(BlockFeedback::Mask);
    rogue.send(&[Frame::Announce(announcement(1, 3_000)), Frame::Announce(announcement(2, 256_001))]);
    for flow in [FlowId(1), FlowId(2)] {
        for esi in 0..10 {
            rogue.send_symbol(SymbolId { flow, block: 1, esi }, 0, &[7; 100]);
        }
        rogue.send_symbol(SymbolId { flow, block: 2, esi: 0 }, 0, &[7; 100]);
    }
    let decoded = feedback(&mut rogue);
    let mut done = [0; 32];
    done[0] = 0b0100_0000;
    assert_eq!(decoded.masks, [BlockMask { flow: FLOW, done }]);
    let blocks = vec![BlockStatus { block: 1, need: 0 }];
    assert_eq!(decoded.flows, [FlowStatus { flow: FlowId(2), done_below: 0, blocks }], "257 blocks, and no needs");
    for (block, esi) in [0, 2].into_iter().flat_map(|block| (0..10).map(move |esi| (block, esi))) {
        rogue.send_symbol(symbol(block, esi), 0, &[7; 100]);
    }
    let decoded = feedback(&mut rogue);
    assert_eq!(
        (decoded.masks, decoded.flows[0].done_below),
        (vec![], 3),
        "complete flows are reported until that is seen"
    );
}

/// Sends repair symbols of block 0 with arbitrary content.
fn send_repair(rogue: &mut Rogue, esis: std::ops::Range<u32>) {
    esis.for_each(|esi| rogue.send_symbol(symbol(0, esi), 0, &[7; 100]));
}

/// Runs the pending decoding request, if any.
fn decode(rogue: &mut Rogue) -> Option<WorkReply> {
    let request = rogue.connection().poll_request()?;
    assert!(matches!(request, WorkRequest::Decode(_)), "{request:?}");
    Some(request.run_pure().expect("decoding"))
}

#[test]
fn received_feedback_reports_a_block_at_its_threshold() {
    for early in [true, false] {
        let epsilon = 70_001;
        let blocks = if early {
            BlockFeedback::Received(ReceivedConfig { epsilon })
        } else {
            BlockFeedback::Done(DoneConfig { epsilon })
        };
        let mut rogue = with_block_feedback(blocks);
        rogue.send(&[Frame::Announce(large_block(BlockCode::RaptorQ))]);
        send_repair(&mut rogue, 100..207);
        assert!(decode(&mut rogue).is_none(), "107 symbols are less than 1.070001 times 100");
        assert_eq!(feedback(&mut rogue).flows[0].blocks, []);
        send_repair(&mut rogue, 207..208);
        let done = vec![BlockStatus { block: 0, need: 0 }];
        assert_eq!(feedback(&mut rogue).flows[0].blocks, if early { done } else { vec![] });
        let reply = decode(&mut rogue).expect("108 are enough");
        let now = rogue.now;
        rogue.connection().handle_reply(now, reply);
        assert_eq!(feedback(&mut rogue).flows[0].done_below, 1);
        assert!(!rogue.connection().is_closed());
    }
}

#[track_caller]
fn assert_undecodable(rogue: &mut Rogue) {
    let events = rogue.events();
    assert_eq!(events.last(), Some(&Event::Closed(ConnectionError::Undecodable)), "{events:?}");
    rogue.listen();
    assert_eq!((rogue.close_heard(), rogue.connection().stats().symbols.undecodable_blocks), (Some(2), 1));
    assert_eq!(rogue.connection().bytes_in_flight(), 0);
}

/// rc-udp as documented: an acknowledged block that cannot be decoded is lost, and reported as lost.
#[test]
fn received_feedback_undecodable_closes() {
    let mut rogue = with_block_feedback(BlockFeedback::Received(ReceivedConfig { epsilon: 0 }));
    rogue.send(&[Frame::Announce(large_block(BlockCode::Lt))]);
    send_repair(&mut rogue, 100..200);
    let reply = decode(&mut rogue).expect("as many as k");
    assert!(matches!(reply, WorkReply::Decoded(_, erasure::Progress::Need(_))), "no rank to decode from: {reply:?}");
    let now = rogue.now;
    rogue.connection().handle_reply(now, reply);
    assert_undecodable(&mut rogue);
}

#[test]
fn acknowledged_blocks_do_not_continue_in_smaller_symbols() {
    let mut rogue = with_block_feedback(BlockFeedback::Received(ReceivedConfig::default()));
    let object = large_block(BlockCode::RaptorQ);
    rogue.send(&[Frame::Announce(object)]);
    send_repair(&mut rogue, 100..201);
    rogue.send(&[Frame::Successor(Successor { flow: FlowId(2), symbol_size: 50, object })]);
    assert_undecodable(&mut rogue);
}

/// Lets time pass for this long, serving the victim's timers. Returns the number of feedback frames that it sends.
fn wait(rogue: &mut Rogue, span: Duration) -> usize {
    let (end, mut received) = (rogue.now + span, 0);
    while let Some(next) = rogue.connection().poll_timeout().filter(|next| *next <= end) {
        rogue.now = rogue.now.max(next);
        let now = rogue.now;
        rogue.connection().handle_timeout(now);
        received += feedbacks(rogue).len();
    }
    rogue.now = end;
    received
}

#[test]
fn a_heartbeat_repeats_feedback_that_may_be_lost() {
    let timing = FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(100) });
    let mut rogue = rogue(FeedbackConfig::everything(timing));
    let second = Duration::from_secs(1);
    rogue.send(&[Frame::Announce(announcement(1, 2_000))]);
    feedbacks(&mut rogue);
    assert_eq!(wait(&mut rogue, second), 0, "no data has arrived");
    rogue.send_symbol(symbol(0, 0), 0, &[7; 100]);
    assert_eq!(wait(&mut rogue, second), 11, "the answer to the symbol, and ten beats");
    (1..10).for_each(|esi| rogue.send_symbol(symbol(0, esi), 0, &[7; 100]));
    assert_eq!(feedback(&mut rogue).flows[0].done_below, 1, "at once when a block is done");
    (0..10).for_each(|esi| rogue.send_symbol(symbol(1, esi), 0, &[7; 100]));
    assert_eq!(feedback(&mut rogue).flows[0].done_below, 2, "and when all are");
    assert_eq!(wait(&mut rogue, second), 0, "nothing is unfinished");
}

/// A peer that requests heartbeats and vanishes gets them only until the connection times out.
#[test]
fn a_heart_stops() {
    let timing = FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(1) });
    let mut rogue = rogue(FeedbackConfig::everything(timing));
    rogue.send(&[Frame::Announce(announcement(1, 2_000))]);
    rogue.send_symbol(symbol(0, 0), 0, &[7; 100]);
    let received = wait(&mut rogue, Duration::from_secs(100));
    // One each millisecond for a round trip, then one in eight.
    assert!((3_500..=3_800).contains(&received), "{received} heartbeats");
    assert!(rogue.events().contains(&Event::Closed(ConnectionError::TimedOut)));
}
