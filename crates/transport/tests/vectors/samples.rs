//! Samples of every frame, with descriptions. The vectors and corpora consist of them, and tests of the wire and of the
//! engine in the simulator vary them. The limits of every number follow from them too; those of a length or a count
//! only if the sample has the counted items. A test that includes this file needs `wire` in scope.

use super::wire::{
    Announcement, BlockMask, BlockStatus, Credit, EcnCounts, Feedback, FlowId, FlowStatus, Frame, PacketCount,
    PacketRanges, Plan, StreamAnnouncement, StreamSuccessor, Successor,
};
use erasure::{AnyCode, BlockCode, WindowCode};

/// A description of a frame, beginning with its name, and the frame.
type Sample = (&'static str, Frame<'static>);

macro_rules! samples {
    ($($variant:ident: $samples:expr,)+) => {
        /// Returns the samples of all frames.
        pub(crate) fn frames() -> Vec<Sample> {
            let mut frames = Vec::new();
            $(
                let samples: &[Sample] = &$samples;
                let is_of_variant = |(_, frame): &Sample| matches!(frame, Frame::$variant { .. });
                assert!(!samples.is_empty() && samples.iter().all(is_of_variant), stringify!($variant));
                frames.extend_from_slice(samples);
            )+
            frames
        }

        /// Without an entry for each variant, this does not compile.
        const _: fn(&Frame<'_>) = |frame| match frame {
            $(Frame::$variant { .. } => {})+
        };
    };
}

samples! {
    Ping: [("ping", Frame::Ping)],
    Feedback: feedbacks().map(|(says, feedback)| (says, Frame::Feedback(feedback))),
    FeedbackSeen: [("feedback seen: number 6, 50000 us", Frame::FeedbackSeen { number: 6, rtt_micros: 50_000 })],
    Control: [("control: offset 2^32, \"hello\"", Frame::Control { offset: 1 << 32, data: b"hello" })],
    Announce: [
        (
            "announce: flow 1, 10000000 bytes, T 1408, 1 symbol per packet, tag 0x0102030405060708, k 1024, RaptorQ",
            Frame::Announce(announcement()),
        ),
        (
            "announce: flow 6, 10000000 bytes, T 1024, 8 symbols per packet, tag 0x0102030405060708, k 977, pre-coded LT",
            Frame::Announce(several_per_packet()),
        ),
    ],
    Plan: [("plan: flow 1, plan 1 from block 6 and symbol 6144 on, k 959, Reed-Solomon", Frame::Plan(later_plan()))],
    Reset: [("reset: flow 2, code 7", Frame::Reset { flow: FlowId(2), code: 7 })],
    Stop: [("stop: flow 2, code 7", Frame::Stop { flow: FlowId(2), code: 7 })],
    Close: [("close: code 0, \"done\"", Frame::Close { code: 0, reason: b"done" })],
    PathChallenge: [("path challenge: 01 to 08", Frame::PathChallenge { data: [1, 2, 3, 4, 5, 6, 7, 8] })],
    PathResponse: [("path response: 01 to 08", Frame::PathResponse { data: [1, 2, 3, 4, 5, 6, 7, 8] })],
    StreamRead: [("stream read: flow 2, 1024 symbols", Frame::StreamRead { flow: FlowId(2), symbols: 1_024 })],
    AnnounceStream: [
        (
            "announce stream: flow 2, T 1408, tag 0x0102030405060708, k 256, RaptorQ, short blocks Reed-Solomon",
            Frame::AnnounceStream(stream_announcement()),
        ),
        (
            "announce stream: flow 5, T 1408, tag 0x0102030405060708, k 64, RLC, short blocks uncoded",
            Frame::AnnounceStream(window_stream()),
        ),
    ],
    Successor: [(
        "successor: flow 3 of T 1152 carries what is left of flow 1, announced as above",
        Frame::Successor(Successor { flow: FlowId(3), symbol_size: 1_152, object: announcement() }),
    )],
    StreamSuccessor: [(
        "stream successor: flow 4 of T 1152 carries what is left of stream 2, announced as above",
        Frame::StreamSuccessor(StreamSuccessor { flow: FlowId(4), symbol_size: 1_152, stream: stream_announcement() }),
    )],
}

fn feedbacks() -> [(&'static str, Feedback); 6] {
    let alternating = (1_000..1_040).rev().filter(|number| number % 2 == 0);
    let count = Some(PacketCount { largest: 1_000, delay_micros: 250, arrived: 900 });
    let mut done = [0; 32];
    (done[0], done[31]) = (0b1110_1000, 0b0000_0001);
    let masks = vec![BlockMask { flow: FlowId(1), done }];
    [
        ("feedback: number 7, credit 40960 symbols and 2^20 bytes of control", feedback(vec![])),
        (
            "feedback: packets 990-1000 and 100-900 after 250 us, ECT(0) 800, CE 12, flow 1 done below 4, its block 5 done, \
             its block 9 needs 300, flow 2 with nothing",
            full_feedback(),
        ),
        ("feedback: packets 200000-400000 and 0-100000, as runs", feedback(vec![(200_000, 400_000), (0, 100_000)])),
        (
            "feedback: the even packets 1000 to 1038, as a bitmap",
            feedback(alternating.map(|number| (number, number)).collect()),
        ),
        (
            "feedback: 900 packets up to 1000, the last one 250 us ago, blocks 0, 1, 2, 4 and 255 of flow 1 done",
            Feedback { count, masks, ..feedback(vec![]) },
        ),
        (
            "feedback: packets 0-700 in order, 900 packets up to 1000, the last one 250 us ago",
            Feedback { count, ..feedback(vec![(0, 700)]) },
        ),
    ]
}

fn feedback(ranges: Vec<(u64, u64)>) -> Feedback {
    let credit = Credit { symbols: 40_960, control: 1 << 20 };
    let packets = (!ranges.is_empty()).then_some(PacketRanges { delay_micros: 0, ranges });
    Feedback { number: 7, packets, credit, ..Feedback::default() }
}

fn full_feedback() -> Feedback {
    let blocks = vec![BlockStatus { block: 5, need: 0 }, BlockStatus { block: 9, need: 300 }];
    let flows = vec![
        FlowStatus { flow: FlowId(1), done_below: 4, blocks },
        FlowStatus { flow: FlowId(2), done_below: 0, blocks: vec![] },
    ];
    let packets = PacketRanges { delay_micros: 250, ranges: vec![(990, 1_000), (100, 900)] };
    let ecn = EcnCounts { ect0: 800, ect1: 0, ce: 12 };
    Feedback { packets: Some(packets), ecn: Some(ecn), flows, ..feedback(vec![]) }
}

fn announcement() -> Announcement {
    let plan = Plan { flow: FlowId(1), number: 0, first_block: 0, first_symbol: 0, k: 1_024, code: BlockCode::RaptorQ };
    Announcement {
        flow: FlowId(1),
        length: 10_000_000,
        symbol_size: 1_408,
        symbols_per_packet: 1,
        tag: 0x0102_0304_0506_0708,
        plan,
    }
}

fn later_plan() -> Plan {
    let code = BlockCode::ReedSolomon;
    Plan { number: 1, first_block: 6, first_symbol: 6_144, k: 959, code, ..announcement().plan }
}

fn several_per_packet() -> Announcement {
    let flow = FlowId(6);
    let plan = Plan { flow, k: 977, code: BlockCode::PrecodedLt, ..announcement().plan };
    Announcement { flow, symbol_size: 1_024, symbols_per_packet: 8, plan, ..announcement() }
}

fn stream_announcement() -> StreamAnnouncement {
    StreamAnnouncement {
        flow: FlowId(2),
        symbol_size: 1_408,
        tag: 0x0102_0304_0506_0708,
        k: 256,
        code: BlockCode::RaptorQ.into(),
        short_code: BlockCode::ReedSolomon,
    }
}

fn window_stream() -> StreamAnnouncement {
    let (code, short_code) = (AnyCode::Window(WindowCode::Rlc), BlockCode::Uncoded);
    StreamAnnouncement { flow: FlowId(5), k: 64, code, short_code, ..stream_announcement() }
}
