//! Peers that hold the key and break the protocol.

use crate::rogue::{Rogue, announcement, parameters};
use downpour_transport::wire::{
    BlockMask, BlockStatus, ConnectionId, Credit, EcnCounts, Feedback, FlowId, FlowStatus, Frame, PacketKind,
    PacketRanges, Plan, RejectReason, SymbolId,
};
use downpour_transport::{Batch, ConnectionConfig, EndpointConfig, Event, ObjectOptions, WorkRequest};
use erasure::BlockCode;

fn acknowledging(number: u32, ranges: Vec<(u64, u64)>) -> Frame<'static> {
    let packets = Some(PacketRanges { delay_micros: 0, ranges });
    Frame::Feedback(Feedback { number, packets, ..Feedback::default() })
}

fn symbol(flow: u16, block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FlowId(flow), block, esi }
}

#[test]
fn acknowledging_a_packet_never_sent_ends_the_connection() {
    let mut rogue = Rogue::new();
    rogue.listen();
    let last = *rogue.numbers.last().expect("the ping is answered");
    rogue.send(&[acknowledging(1, vec![(0, last)])]);
    assert_eq!(rogue.events(), [], "sent packets may be acknowledged");
    rogue.send(&[acknowledging(2, vec![(last + 1_000, last + 1_000)])]);
    rogue.assert_violation("never sent");
}

#[test]
fn acknowledging_a_skipped_number_ends_the_connection() {
    let mut rogue = Rogue::new();
    let gap = loop {
        rogue.send(&[Frame::Ping]);
        rogue.listen();
        if let Some(pair) = rogue.numbers.windows(2).find(|pair| pair[1] > pair[0] + 1) {
            break pair[0] + 1;
        }
        assert!(rogue.numbers.len() < 2_000, "numbers are skipped at least every 1,024");
    };
    let last = *rogue.numbers.last().expect("some");
    rogue.send(&[acknowledging(1, vec![(gap + 1, last), (0, gap - 1)])]);
    assert_eq!(rogue.events(), [], "all but the skipped number");
    rogue.send(&[acknowledging(2, vec![(gap - 1, last)])]);
    rogue.assert_violation("never sent");
}

#[test]
fn symbols_out_of_range_are_refused_and_not_acknowledged() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(announcement(1, 5_000))]);
    // 50 symbols in 5 blocks. Reed-Solomon over 2^16 ends before the largest ESI on the wire.
    let wrong = [
        (symbol(1, 5, 0), 0, 100),
        (symbol(1, u32::MAX, 0), 0, 100),
        (symbol(1, 0, (1 << 24) - 1), 0, 100),
        (symbol(1, 0, 0), 0, 99),
        (symbol(1, 0, 0), 0, 101),
        (symbol(1, 0, 0), 0, 0),
        (symbol(1, 0, 0), 0, 200),
        (symbol(9, 0, 0), 0, 0),
    ];
    for (nth, (id, plan, length)) in (1..).zip(wrong) {
        let number = rogue.number;
        rogue.send_symbol(id, plan, &vec![0; length]);
        assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), nth, "{id:?} of {length} bytes");
        rogue.listen();
        let last = rogue.plaintexts.last().cloned().unwrap_or_default();
        let named = downpour_transport::wire::Frames::new(&last).flatten().any(|frame| match frame {
            Frame::Feedback(Feedback { packets: Some(packets), .. }) => {
                packets.ranges.iter().any(|(low, high)| (*low..=*high).contains(&number))
            }
            _ => false,
        });
        assert!(!named, "{id:?} of {length} bytes was acknowledged");
    }
    let requests = std::iter::from_fn(|| rogue.connection().poll_request()).count();
    assert_eq!(requests, 0, "nothing was stored");
}

#[test]
fn symbols_without_a_flow_or_plan_are_bounded() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(announcement(1, 5_000))]);
    for block in 0..2_000 {
        rogue.send_symbol(symbol(7, block, 0), 0, &[0; 100]);
        rogue.send_symbol(symbol(1, 0, 0), 200, &[0; 100]);
    }
    let refused = rogue.connection().refused().get(RejectReason::Unacceptable);
    assert_eq!(refused, 4_000 - 512, "512 symbols wait for their announcement");
}

#[test]
fn blocks_beyond_the_credit_are_refused() {
    let credit = Credit { symbols: 100, control: 1_000 };
    let limits = ConnectionConfig { credit, most_symbols: 100, ..ConnectionConfig::default() };
    let mut rogue =
        Rogue::with(EndpointConfig { limits, ..EndpointConfig::default() }, parameters(ConnectionId([1; 8])));
    rogue.send(&[Frame::Announce(announcement(1, 1 << 40))]);
    for block in 0..1_000 {
        rogue.send_symbol(symbol(1, block * 4, 3), 0, &[0; 100]);
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 990, "credit for 10 blocks of 10 symbols");
}

#[test]
fn control_data_beyond_its_credit_ends_the_connection() {
    let limits = ConnectionConfig { credit: Credit { symbols: 100, control: 5_000 }, ..ConnectionConfig::default() };
    let mut rogue =
        Rogue::with(EndpointConfig { limits, ..EndpointConfig::default() }, parameters(ConnectionId([1; 8])));
    for offset in 0..5 {
        rogue.send(&[Frame::Control { offset: offset * 1_000, data: &[7; 1_000] }]);
    }
    assert_eq!(rogue.events(), vec![Event::ControlReadable; 5], "all of it is within the credit");
    rogue.send(&[Frame::Control { offset: 4_999, data: &[7; 2] }]);
    rogue.assert_violation("control data");
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Control { offset: u64::MAX - 2, data: &[7; 2] }]);
    rogue.assert_violation("control data");
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Control { offset: u64::MAX, data: &[7; 2] }]);
    assert_eq!(rogue.connection().refused().get(RejectReason::Malformed), 1, "a stream has no byte 2^64");
}

#[test]
fn an_announcement_that_changes_ends_the_connection() {
    let first = announcement(1, 5_000);
    let changed = [
        downpour_transport::wire::Announcement { length: 5_001, ..first },
        downpour_transport::wire::Announcement { symbol_size: 98, ..first },
        downpour_transport::wire::Announcement { symbols_per_packet: 2, ..first },
        downpour_transport::wire::Announcement { plan: Plan { k: 11, ..first.plan }, ..first },
        downpour_transport::wire::Announcement { plan: Plan { code: BlockCode::RaptorQ, ..first.plan }, ..first },
    ];
    for second in changed {
        let mut rogue = Rogue::new();
        rogue.send(&[Frame::Announce(first), Frame::Announce(first)]);
        assert_eq!(
            rogue.events(),
            [Event::ObjectAnnounced { flow: FlowId(1), length: 5_000, tag: 0 }],
            "a copy is no news"
        );
        rogue.send(&[Frame::Announce(second)]);
        rogue.assert_violation("announced a flow twice");
    }
}

#[test]
fn impossible_flows_and_plans_end_the_connection() {
    let fits = announcement(1, 5_000);
    let with = |change: &dyn Fn(&mut downpour_transport::wire::Announcement)| {
        let mut announcement = fits;
        change(&mut announcement);
        announcement
    };
    let impossible = [
        with(&|a| (a.flow, a.plan.flow) = (FlowId(0), FlowId(0))),
        with(&|a| a.symbol_size = 0),
        with(&|a| a.symbol_size = 1_410),
        with(&|a| a.symbols_per_packet = 65),
        with(&|a| a.plan.k = 0),
        with(&|a| a.plan.k = 8_193),
        with(&|a| a.plan.k = u32::MAX),
        // 2^64 bytes in blocks of 10 symbols of 100 bytes: more blocks than 32 bits can count.
        with(&|a| a.length = u64::MAX),
    ];
    for announcement in impossible {
        let mut rogue = Rogue::new();
        rogue.send(&[Frame::Announce(announcement)]);
        let events = rogue.events();
        let refused = rogue.connection().refused().total();
        assert!(refused > 0 || matches!(events[..], [Event::Closed(_)]), "{announcement:?}: {events:?}");
    }
    let plan = Plan { number: 1, first_block: 3, first_symbol: 30, ..fits.plan };
    let plans = [
        Plan { first_symbol: 31, ..plan },
        Plan { first_block: 0, first_symbol: 0, ..plan },
        Plan { k: u32::MAX, ..plan },
        Plan { first_block: 6, first_symbol: 60, ..plan },
    ];
    for plan in plans {
        let mut rogue = Rogue::new();
        rogue.send(&[Frame::Announce(fits), Frame::Plan(plan)]);
        let refused = rogue.connection().refused().total();
        let events = rogue.events();
        assert!(refused > 0 || matches!(events.last(), Some(Event::Closed(_))), "{plan:?}: {events:?}");
    }
}

#[test]
fn plans_wait_for_those_before_them_and_are_bounded() {
    let fits = announcement(1, 5_000);
    let plan =
        |number: u8| Plan { number, first_block: number.into(), first_symbol: u64::from(number) * 10, ..fits.plan };
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Plan(plan(2)), Frame::Plan(plan(2)), Frame::Announce(fits), Frame::Plan(plan(3))]);
    assert_eq!(rogue.events(), [Event::ObjectAnnounced { flow: FlowId(1), length: 5_000, tag: 0 }], "they wait");
    rogue.send(&[Frame::Plan(Plan { k: 9, ..plan(1) })]);
    rogue.assert_violation("sent an invalid plan");
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Plan(plan(2)), Frame::Plan(Plan { k: 9, ..plan(2) })]);
    rogue.assert_violation("sent an invalid plan");
    let mut rogue = Rogue::new();
    for flow in 2..258 {
        rogue.send(&[Frame::Plan(Plan { flow: FlowId(flow), ..plan(1) })]);
    }
    assert_eq!(rogue.events(), [], "256 wait");
    rogue.send(&[Frame::Plan(Plan { flow: FlowId(258), ..plan(1) })]);
    rogue.assert_violation("sent an invalid plan");
}

#[test]
fn absurd_feedback_neither_breaks_nor_stops_the_sender() {
    absurd_feedback_for(3_000_000);
}

#[test]
fn absurd_feedback_neither_breaks_nor_stops_the_tail() {
    absurd_feedback_for(1_000_000);
    absurd_feedback_for(300_000);
    absurd_feedback_for(5_000);
}

fn absurd_feedback_for(length: u64) {
    let mut rogue = Rogue::new();
    let options = ObjectOptions { length, tag: 0, digest: false };
    let now = rogue.now;
    let flow = rogue.connection().send_object(now, options).expect("connected");
    serve_reads(&mut rogue);
    rogue.listen();
    let statuses = |flow, done_below, blocks: &[(u32, u32)]| {
        let blocks = blocks.iter().map(|(block, need)| BlockStatus { block: *block, need: *need }).collect();
        vec![FlowStatus { flow, done_below, blocks }]
    };
    let credit = Credit { symbols: u64::MAX, control: u64::MAX };
    let absurd = [
        Feedback { number: 1, credit, ..Feedback::default() },
        Feedback { number: 2, flows: statuses(FlowId(999), 5, &[]), ..Feedback::default() },
        Feedback { number: 3, flows: statuses(flow, 0, &[(7, u32::MAX), (u32::MAX, 3)]), ..Feedback::default() },
        Feedback { number: 4, flows: statuses(flow, 0, &[(0, u32::MAX), (1, u32::MAX)]), ..Feedback::default() },
        Feedback {
            number: 5,
            ecn: Some(EcnCounts { ect0: u64::MAX, ect1: u64::MAX, ce: u64::MAX }),
            ..Feedback::default()
        },
        Feedback { number: 6, ecn: Some(EcnCounts::default()), ..Feedback::default() },
        Feedback {
            number: 7,
            packets: Some(PacketRanges { delay_micros: u32::MAX, ranges: vec![(0, 0)] }),
            ..Feedback::default()
        },
        Feedback { number: 8, masks: vec![BlockMask { flow: FlowId(999), done: [0xff; 32] }], ..Feedback::default() },
        Feedback { number: 9, masks: vec![BlockMask { flow, done: [0x55; 32] }], ..Feedback::default() },
        Feedback { number: u32::MAX, flows: statuses(flow, 0, &[(0, 0)]), ..Feedback::default() },
        Feedback { number: 3, flows: statuses(flow, u32::MAX, &[]), ..Feedback::default() },
    ];
    for feedback in absurd {
        rogue
            .send(&[Frame::Feedback(feedback.clone()), Frame::FeedbackSeen { number: u32::MAX, rtt_micros: u32::MAX }]);
        for _ in 0..50 {
            serve_reads(&mut rogue);
            rogue.now += std::time::Duration::from_millis(10);
            let now = rogue.now;
            rogue.connection().handle_timeout(now);
            rogue.listen();
        }
        assert!(!rogue.connection().is_closed(), "{feedback:?}: {:?}", rogue.events());
    }
    let window = rogue.connection().stats().congestion.window;
    assert!(rogue.connection().bytes_in_flight() <= window + 200 * 1_479, "window {window} and probes");
}

/// Answers the sender's read requests with zeros.
fn serve_reads(rogue: &mut Rogue) {
    let now = rogue.now;
    while let Some(request) = rogue.connection().poll_request() {
        let reply = match request.run_pure() {
            Ok(reply) => reply,
            Err(WorkRequest::Read { flow, block, length, mut buffer, .. }) => {
                buffer.resize(length, 0);
                downpour_transport::WorkReply::Read { flow, block, buffer }
            }
            Err(other) => panic!("{other:?}"),
        };
        rogue.connection().handle_reply(now, reply);
    }
}

#[test]
fn frames_against_the_layout_are_refused_as_a_whole_packet() {
    let mut rogue = Rogue::new();
    let mut announce = Vec::new();
    Frame::Announce(announcement(1, 5_000)).encode(&mut announce);
    let malformed: [&[u8]; 5] = [
        &[&announce[..], &[0x7f]].concat(),
        &[&announce[..], &announce[..announce.len() - 1]].concat(),
        &vec![1; 257],
        // A close whose reason exceeds the maximum length.
        &[&[9, 0, 0, 0, 0, 1, 1][..], &[b'x'; 257]].concat(),
        &[],
    ];
    for (nth, plaintext) in (1..).zip(malformed) {
        rogue.send_plaintext(PacketKind::Control, plaintext);
        if plaintext.is_empty() {
            continue;
        }
        assert_eq!(rogue.connection().refused().get(RejectReason::Malformed), nth, "{plaintext:?}");
    }
    assert_eq!(rogue.events(), [], "no frame of a malformed packet has any effect");
    let reason = [b'x'; 256];
    rogue.send(&[Frame::Close { code: 5, reason: &reason }]);
    let events = rogue.events();
    let [Event::Closed(downpour_transport::ConnectionError::ClosedByPeer { code: 5, reason })] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(reason.len(), 256);
}

#[test]
fn a_close_with_invalid_text_is_shown_as_text() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Close { code: 5, reason: &[0xff, 0xfe, b'a'] }]);
    let events = rogue.events();
    let [Event::Closed(downpour_transport::ConnectionError::ClosedByPeer { reason, .. })] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(reason, "\u{fffd}\u{fffd}a");
}

#[test]
fn a_close_that_crosses_one_not_yet_sent_is_answered() {
    let mut rogue = Rogue::new();
    let now = rogue.now;
    rogue.connection().close(now, 7, "done");
    rogue.send(&[Frame::Close { code: 0, reason: &[] }]);
    rogue.listen();
    assert_eq!(rogue.close_heard(), Some(7), "or the peer repeats its own until a timeout");
    assert!(!rogue.connection().is_drained(), "the answer may be lost");
}

#[test]
fn a_crossing_close_ends_both() {
    let mut rogue = Rogue::new();
    let now = rogue.now;
    rogue.connection().close(now, 7, "done");
    rogue.listen();
    assert_eq!(rogue.close_heard(), Some(7));
    rogue.send(&[Frame::Close { code: 0, reason: &[] }]);
    assert!(rogue.connection().is_drained());
}

#[test]
fn a_peer_that_pings_without_end_gets_at_most_its_share() {
    let mut rogue = Rogue::new();
    rogue.listen();
    rogue.numbers.clear();
    // All at the same instant: packets that arrive together are answered together.
    let now = rogue.now;
    for _ in 0..1_000 {
        rogue.send(&[Frame::Ping]);
        rogue.now = now;
    }
    rogue.listen();
    assert!(rogue.numbers.len() <= 2, "{} answers to one burst", rogue.numbers.len());
    let mut batch = Batch::new();
    assert!(!rogue.connection().poll_transmit(now, &mut batch));
}
