//! Sent flows, without a connection and over a path that loses nothing: symbols of 100 bytes, uncoded.

use super::*;
use crate::flow::PathEstimate;
use crate::recovery::SentPacket;
use crate::wire::{Announcement, BlockStatus, Plan, StreamAnnouncement};
use erasure::{AnyCode, BlockCode};

const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

/// A peer that accepts two streams with four symbols of their own each.
fn flows() -> (SendFlows, ControlStream) {
    let mut flows = SendFlows::new();
    flows.grant(1_000);
    flows.allow_streams(StreamLimits { count: 2, window: 4, shared: 100 }, false);
    (flows, ControlStream::new(1_000))
}

fn object(flow: u16, symbols: u64) -> SendFlow {
    let flow = FlowId(flow);
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k: 2, code: BlockCode::Uncoded };
    let object = Announcement { flow, length: symbols * 100, symbol_size: 100, symbols_per_packet: 1, tag: 0, plan };
    SendFlow::object(object, &[], ScheduleConfig::Arq.build(), false).expect("an object")
}

fn stream(flow: u16) -> SendFlow {
    let (code, short_code) = (AnyCode::Block(BlockCode::Uncoded), BlockCode::Uncoded);
    let stream = StreamAnnouncement { flow: FlowId(flow), symbol_size: 100, tag: 0, k: 2, code, short_code };
    SendFlow::stream(stream, 4, ScheduleConfig::Arq.build())
}

/// The pending frames: their kind, and the flow.
fn frames(flows: &SendFlows, control: &mut ControlStream) -> Vec<(&'static str, u16)> {
    let mut out = Vec::new();
    control.take_frames(10_000, &mut out, |frame| flows.frame(frame));
    let named = crate::wire::Frames::new(&out).map(|frame| match frame.expect("it is whole") {
        Frame::Announce(object) => ("object", object.flow.0),
        Frame::AnnounceStream(stream) => ("stream", stream.flow.0),
        Frame::Successor(successor) => ("successor", successor.flow.0),
        Frame::StreamSuccessor(successor) => ("successor", successor.flow.0),
        Frame::Reset { flow, .. } => ("reset", flow.0),
        other => panic!("{other:?}"),
    });
    named.collect()
}

/// Opens blocks, reads them, and sends `most` symbols; returns flow, block and esi of each.
fn send(flows: &mut SendFlows, control: &mut ControlStream, most: usize) -> Vec<(u16, u32, u32)> {
    let mut requests = Vec::new();
    flows.open_blocks(Time::ZERO, &PATH, 1_000, control, &mut requests);
    for request in requests.drain(..) {
        let WorkRequest::Read { flow, block, length, .. } = request else { panic!("{request:?}") };
        assert!(flows.on_reply(WorkReply::Read { flow, block, buffer: vec![flow.0 as u8; length] }).is_none());
    }
    let picked = (0..most).map_while(|_| flows.next_symbol(Time::ZERO, &PATH, &mut requests));
    picked.map(|picked| (picked.id.flow.0, picked.id.block, picked.id.esi)).collect()
}

fn status(flow: u16, done: &[u32]) -> FlowStatus {
    let blocks = done.iter().map(|block| BlockStatus { block: *block, need: 0 }).collect();
    FlowStatus { flow: FlowId(flow), done_below: 0, blocks }
}

/// Reports one symbol as delivered, spurious, outlived or lost; returns the time of an unanswered symbol, if one is
/// left.
fn report(at: usize) -> Option<Time> {
    let id = SymbolId { flow: FlowId(1), block: 0, esi: 0 };
    let sent = [SentPacket { number: 1, time: Time::ZERO, bytes: 1_000, content: Content::Symbols(id.into()) }];
    let of = |nth: usize| if nth == at { &sent[..] } else { &[] };
    let mut flows = SendFlows::new();
    flows.unanswered = Some(Time::ZERO);
    flows.on_report(&Report {
        delivered: of(0),
        spurious: of(1),
        outlived: of(2),
        lost: of(3),
        ..Report::empty(Time::ZERO)
    });
    flows.unanswered()
}

#[test]
fn a_symbol_acknowledged_late_is_an_answer_too() {
    assert_eq!([0, 1, 2, 3].map(report), [None, None, None, Some(Time::ZERO)]);
}

#[test]
fn a_symbol_that_arrived_behind_a_gap_is_an_answer() {
    let mut flows = SendFlows::new();
    flows.unanswered = Some(Time::ZERO);
    flows.on_report(&Report { withheld: 1, ..Report::empty(Time::ZERO) });
    assert_eq!(flows.unanswered(), None);
}

#[test]
fn objects_go_out_in_order_and_take_turns_with_each_stream() {
    let (mut flows, mut control) = flows();
    flows.open_object(object(1, 3), &mut control);
    flows.open_stream(stream(2), Priority::Bulk, &mut control);
    flows.open_object(object(3, 9), &mut control);
    assert_eq!(frames(&flows, &mut control), [("object", 1), ("stream", 2), ("object", 3)]);
    flows.wake(FlowId(2)).expect("it is open").write(&[7; 1_000], 4 << 20);
    let sent = send(&mut flows, &mut control, 16);
    let order: Vec<u16> = sent.iter().map(|(flow, ..)| *flow).collect();
    assert_eq!(order, [1, 1, 1, 3, 2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2]);
    assert_eq!(sent[2..4], [(1, 1, 0), (3, 0, 0)]);
}

/// Interactive streams send before bulk ones, whichever was first; then a stream without data is not polled.
#[test]
fn interactive_streams_go_first_and_those_at_rest_have_no_turn() {
    let (mut flows, mut control) = flows();
    flows.open_stream(stream(1), Priority::Bulk, &mut control);
    flows.open_stream(stream(2), Priority::Interactive, &mut control);
    frames(&flows, &mut control);
    [1, 2].iter().for_each(|flow| flows.on_frame_delivered(&ReliableFrame::Announce(FlowId(*flow))));
    flows.wake(FlowId(1)).expect("it is open").write(&[7; 1_000], 4 << 20);
    assert_eq!(send(&mut flows, &mut control, 2), [(1, 0, 0), (1, 0, 1)]);
    flows.wake(FlowId(2)).expect("it is open").write(&[7; 250], 4 << 20);
    assert_eq!(send(&mut flows, &mut control, 4), [(2, 0, 0), (2, 0, 1), (2, 1, 0), (1, 1, 0)]);
    assert_eq!(flows.take_events(&mut control), []);
    assert_eq!(flows.turns.awake().count(), 2, "it is not known to have arrived");
    flows.on_statuses(1, &[status(2, &[0, 1])], |_, _| ());
    flows.take_events(&mut control);
    assert_eq!(flows.turns.awake().collect::<Vec<_>>(), [FlowId(1)]);
    flows.wake(FlowId(2)).expect("it is open").write(&[7; 50], 4 << 20);
    assert_eq!(send(&mut flows, &mut control, 1), [(2, 2, 0)]);
}

/// A receiver that has granted credit and reports no block as done stops such a sender; while its own bytes are not
/// read, it stops itself.
#[test]
fn open_blocks_limit_as_the_receivers_only_once_read() {
    let (mut flows, mut control) = flows();
    flows.open_object(object(1, 9), &mut control);
    frames(&flows, &mut control);
    let mut requests = Vec::new();
    flows.open_blocks(Time::ZERO, &PATH, 4, &mut control, &mut requests);
    let seen = |flows: &SendFlows| (flows.reading(), flows.is_full(4), flows.is_full(5), flows.is_credit_limited());
    assert_eq!((requests.len(), seen(&flows)), (2, (2, false, false, false)));
    for request in requests.drain(..) {
        assert!(!flows.is_full(4));
        let WorkRequest::Read { flow, block, length, .. } = request else { panic!("{request:?}") };
        assert!(flows.on_reply(WorkReply::Read { flow, block, buffer: vec![1; length] }).is_none());
    }
    let sent = (0..9).map_while(|_| flows.next_symbol(Time::ZERO, &PATH, &mut requests)).count();
    assert_eq!((sent, seen(&flows)), (4, (0, true, false, false)));
    flows.on_statuses(1, &[status(1, &[0])], |_, _| ());
    assert_eq!(seen(&flows), (0, false, false, false));
}

#[test]
fn flows_wait_until_the_peer_takes_them() {
    let (mut flows, mut control) = flows();
    (1..=3).for_each(|flow| flows.open_stream(stream(flow), Priority::Bulk, &mut control));
    assert_eq!(frames(&flows, &mut control), [("stream", 1), ("stream", 2)]);
    assert_eq!(flows.wake(FlowId(3)).expect("it waits").write(&[7; 50], 4 << 20), Some(50));
    assert_eq!(send(&mut flows, &mut control, 9), []);
    assert!(flows.reset(FlowId(1), 5, &mut control));
    flows.on_frame_delivered(&ReliableFrame::Reset(FlowId(1)));
    assert_eq!(flows.take_events(&mut control), []);
    assert_eq!(frames(&flows, &mut control), [("stream", 3)], "nothing more is sent of a reset stream");
    assert_eq!(send(&mut flows, &mut control, 9), [(3, 0, 0)]);
}

/// A reset before the announcement would mean nothing to a peer that waits for the stream.
#[test]
fn an_awaited_stream_is_announced_before_its_reset() {
    let (mut flows, mut control) = flows();
    for number in 1..=3 {
        let mut awaited = stream(number);
        awaited.set_awaited(true);
        flows.open_stream(awaited, Priority::Bulk, &mut control);
    }
    assert!([1, 3].iter().all(|flow| flows.reset(FlowId(*flow), 5, &mut control)));
    assert_eq!(frames(&flows, &mut control), [("stream", 1), ("stream", 2)]);
    flows.on_frame_delivered(&ReliableFrame::Announce(FlowId(1)));
    assert_eq!(flows.take_events(&mut control), []);
    assert_eq!(frames(&flows, &mut control), [("reset", 1)]);
    flows.on_frame_delivered(&ReliableFrame::Reset(FlowId(1)));
    assert_eq!(flows.take_events(&mut control), []);
    assert_eq!(frames(&flows, &mut control), [("stream", 3)], "the peer has room for it now");
    flows.on_frame_delivered(&ReliableFrame::Announce(FlowId(3)));
    assert_eq!(flows.take_events(&mut control), []);
    assert_eq!(frames(&flows, &mut control), [("reset", 3)]);
}

#[test]
fn a_stream_is_reset_once_and_an_object_never() {
    let (mut flows, mut control) = flows();
    flows.open_object(object(1, 3), &mut control);
    (2..=4).for_each(|flow| flows.open_stream(stream(flow), Priority::Bulk, &mut control));
    frames(&flows, &mut control);
    let mut reset = |flow| flows.reset(FlowId(flow), 5, &mut control);
    assert_eq!([1, 2, 2, 4, 4, 9].map(&mut reset), [false, true, false, true, false, false]);
    assert_eq!(frames(&flows, &mut control), [("reset", 2)], "the peer does not know 4");
}

/// Flows of both kinds continue in smaller symbols: objects first, and waiting ones too.
#[test]
fn all_flows_are_succeeded_at_once() {
    let (mut flows, mut control) = flows();
    flows.open_stream(stream(1), Priority::Bulk, &mut control);
    flows.open_object(object(2, 4), &mut control);
    flows.open_stream(stream(3), Priority::Bulk, &mut control);
    flows.open_stream(stream(4), Priority::Bulk, &mut control);
    flows.reset(FlowId(3), 5, &mut control);
    frames(&flows, &mut control);
    assert_eq!(send(&mut flows, &mut control, 2), [(2, 0, 0), (2, 0, 1)]);
    assert!(flows.can_shrink(80) && !flows.can_shrink(100));
    assert!(flows.can_be_numbered(5) && !flows.can_be_numbered(u16::MAX - 2));
    assert_eq!(flows.shrink(80, 5, &mut control), 8);
    assert_eq!(frames(&flows, &mut control), [("successor", 5), ("successor", 6)]);
    assert!(flows.is_object(FlowId(2)) && flows.is_object(FlowId(5)) && !flows.is_object(FlowId(6)));
    flows.wake(FlowId(4)).expect("it waits").write(&[7; 50], 4 << 20);
    assert_eq!(send(&mut flows, &mut control, 3), [(5, 0, 0), (5, 0, 1), (5, 0, 2)], "from the beginning");
    flows.on_statuses(1, &[status(2, &[0]), status(5, &[1])], |_, _| ());
    assert_eq!(flows.bytes_acknowledged(), 200, "only the present id counts");
}

#[test]
fn delivered_streams_are_reported_and_forgotten() {
    let (mut flows, mut control) = flows();
    flows.open_object(object(1, 3), &mut control);
    flows.open_stream(stream(2), Priority::Bulk, &mut control);
    let stream = flows.wake(FlowId(2)).expect("it is open");
    stream.write(&[7; 50], 4 << 20);
    assert!(stream.finish());
    send(&mut flows, &mut control, 9);
    [1, 2].iter().for_each(|flow| flows.on_frame_delivered(&ReliableFrame::Announce(FlowId(*flow))));
    assert_eq!((flows.take_events(&mut control), flows.has_unfinished()), (vec![], true));
    flows.on_statuses(2, &[status(1, &[0, 1]), status(2, &[0])], |_, _| ());
    flows.on_statuses(1, &[status(1, &[0])], |_, _| ());
    assert_eq!(flows.bytes_acknowledged(), 350);
    let sent = [Event::ObjectDelivered { flow: FlowId(1) }, Event::StreamDelivered { flow: FlowId(2) }];
    assert_eq!((flows.take_events(&mut control), flows.has_unfinished()), (sent.to_vec(), false));
    assert!(flows.flows.get(FlowId(1)).is_none() && flows.flows.get(FlowId(2)).is_some(), "the stream is not read yet");
    let read = FlowStatus { flow: FlowId(2), done_below: u32::MAX, blocks: vec![] };
    flows.on_statuses(3, &[read], |_, _| ());
    assert_eq!(flows.take_events(&mut control), []);
    assert!(flows.flows.get(FlowId(2)).is_none());
}
