//! Properties: anything written reads back, and no bytes break the reader.

use erasure::BlockCode;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::super::fuzzing::fuzz_wire;
use super::*;

fn flow() -> impl Strategy<Value = FlowId> {
    (1..=u16::MAX).prop_map(FlowId)
}

/// Ranges from alternating lengths of received and missing packets, some of them long.
fn ranges() -> impl Strategy<Value = PacketRanges> {
    let length = || prop_oneof![8 => 1..20_u64, 2 => 1..3_000_u64, 1 => 60_000..200_000_u64];
    (0..1_u64 << 40, any::<u32>(), vec((length(), length()), 1..60)).prop_map(|(lowest, delay_micros, lengths)| {
        let mut next = lowest;
        let mut ranges = Vec::new();
        for (received, missing) in lengths {
            ranges.insert(0, (next, next + received - 1));
            next += received + missing;
        }
        PacketRanges { delay_micros, ranges }
    })
}

fn status() -> impl Strategy<Value = FlowStatus> {
    (flow(), any::<u32>(), btree_set(0..500_u32, 0..40), vec(0..=65_535_u32, 40)).prop_map(
        |(flow, done_below, blocks, needs)| {
            let blocks = blocks.into_iter().map(|block| done_below.saturating_add(block));
            let mut blocks: Vec<_> = blocks.zip(needs).map(|(block, need)| BlockStatus { block, need }).collect();
            blocks.dedup_by_key(|status| status.block);
            FlowStatus { flow, done_below, blocks }
        },
    )
}

fn feedback() -> impl Strategy<Value = Feedback> {
    let ecn = any::<(u64, u64, u64)>().prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
    let credit = any::<(u64, u64)>().prop_map(|(symbols, control)| Credit { symbols, control });
    let count = (0..1_u64 << 40, any::<u32>(), 1..1_u64 << 40).prop_map(|(missing, delay_micros, arrived)| {
        PacketCount { largest: missing + arrived - 1, delay_micros, arrived }
    });
    let mask = (flow(), any::<[u8; 32]>()).prop_map(|(flow, done)| BlockMask { flow, done });
    let packets = (prop::option::of(ranges()), prop::option::of(ecn), prop::option::of(count));
    (any::<u32>(), packets, vec(status(), 0..5), vec(mask, 0..5), credit).prop_map(
        |(number, (packets, ecn, count), flows, masks, credit)| Feedback {
            number,
            packets,
            ecn,
            count,
            flows,
            masks,
            credit,
        },
    )
}

fn code() -> impl Strategy<Value = (u32, BlockCode)> {
    prop::sample::select(BlockCode::ALL.to_vec()).prop_flat_map(|code| (1..=code.max_source_symbols(), Just(code)))
}

fn plan() -> impl Strategy<Value = Plan> {
    (flow(), 1..=u8::MAX, any::<u32>(), any::<u64>(), code()).prop_map(
        |(flow, number, first_block, first_symbol, (k, code))| Plan {
            flow,
            number,
            first_block,
            first_symbol,
            k,
            code,
        },
    )
}

fn announcement() -> impl Strategy<Value = Announcement> {
    (plan(), any::<u64>(), 1..=32_767_u16, 1..=u8::MAX, any::<u64>()).prop_map(
        |(plan, length, half, symbols_per_packet, tag)| {
            let plan = Plan { number: 0, first_block: 0, first_symbol: 0, ..plan };
            Announcement { flow: plan.flow, length, symbol_size: 2 * half, symbols_per_packet, tag, plan }
        },
    )
}

fn stream_announcement() -> impl Strategy<Value = StreamAnnouncement> {
    (flow(), 3..=32_767_u16, any::<u64>(), code(), prop::sample::select(BlockCode::ALL.to_vec())).prop_map(
        |(flow, half, tag, (k, code), short_code)| {
            let symbol_size = 2 * half;
            StreamAnnouncement { flow, symbol_size, tag, k, code: code.into(), short_code }
        },
    )
}

/// A successor of either kind: another flow, of smaller symbols.
fn successor() -> impl Strategy<Value = Frame<'static>> {
    let object = (announcement(), any::<u16>()).prop_map(|(object, below)| {
        let (flow, symbol_size) = (FlowId((object.flow.0 ^ 1).max(2)), below % object.symbol_size);
        Frame::Successor(Successor { flow, symbol_size, object })
    });
    let stream = (stream_announcement(), any::<u16>()).prop_map(|(stream, below)| {
        let (flow, symbol_size) = (FlowId((stream.flow.0 ^ 1).max(2)), below % stream.symbol_size);
        Frame::StreamSuccessor(StreamSuccessor { flow, symbol_size, stream })
    });
    prop_oneof![object, stream]
}

/// A frame, and the bytes that it borrows.
#[derive(Clone, Debug)]
enum Made {
    Frame(Frame<'static>),
    Control(u64, Vec<u8>),
    Close(u32, Vec<u8>),
}

impl Made {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Frame(frame) => frame.clone(),
            Self::Control(offset, data) => Frame::Control { offset: *offset, data },
            Self::Close(code, reason) => Frame::Close { code: *code, reason },
        }
    }
}

fn made() -> impl Strategy<Value = Made> {
    let seen = |(number, rtt_micros)| Made::Frame(Frame::FeedbackSeen { number, rtt_micros });
    prop_oneof![
        Just(Made::Frame(Frame::Ping)),
        feedback().prop_map(|feedback| Made::Frame(Frame::Feedback(feedback))),
        any::<(u32, u32)>().prop_map(seen),
        (0..u64::MAX / 2, vec(any::<u8>(), 0..1500)).prop_map(|(offset, data)| Made::Control(offset, data)),
        announcement().prop_map(|announcement| Made::Frame(Frame::Announce(announcement))),
        plan().prop_map(|plan| Made::Frame(Frame::Plan(plan))),
        stream_announcement().prop_map(|announcement| Made::Frame(Frame::AnnounceStream(announcement))),
        successor().prop_map(Made::Frame),
        (flow(), any::<u64>()).prop_map(|(flow, symbols)| Made::Frame(Frame::StreamRead { flow, symbols })),
        (flow(), any::<u32>()).prop_map(|(flow, code)| Made::Frame(Frame::Reset { flow, code })),
        (flow(), any::<u32>()).prop_map(|(flow, code)| Made::Frame(Frame::Stop { flow, code })),
        (any::<u32>(), vec(any::<u8>(), 0..256)).prop_map(|(code, reason)| Made::Close(code, reason)),
    ]
}

proptest! {
    #[test]
    fn frames_read_back(made in vec((made(), 0..4_usize), 0..12)) {
        let mut bytes = Vec::new();
        for (made, padding) in &made {
            bytes.resize(bytes.len() + padding, 0);
            bytes.extend_from_slice(&bytes_of(&made.frame()));
        }
        let read: Result<Vec<_>, _> = Frames::new(&bytes).collect();
        prop_assert_eq!(read, Ok(made.iter().map(|(made, _)| made.frame()).collect()));
        prop_assert_eq!(Frames::check_all(&bytes), Ok(()));
    }

    /// The ranges reported within a budget are the newest, and no other form of the same size would report more.
    #[test]
    fn ranges_within_a_budget_are_the_newest(whole in ranges(), budget in 0..600_usize) {
        let mut bytes = Vec::new();
        let written = whole.encode_within(budget, &mut bytes);
        prop_assert_eq!(written, bytes.len());
        prop_assert!(written <= budget);
        prop_assert_eq!(written == 0, budget < 17);
        if written > 0 {
            let told = PacketRanges::decode(&mut super::super::bytes::Reader::new(&bytes)).unwrap();
            let largest = whole.ranges[0].1;
            let lowest = told.ranges.last().unwrap().0;
            let expected: Vec<_> = whole.ranges.iter().filter(|range| range.1 >= lowest)
                .map(|&(low, high)| (low.max(lowest), high)).collect();
            prop_assert_eq!(&told.ranges, &expected);
            let complete = told.ranges == whole.ranges;
            let bits = (8 * (budget.min(4_111) - 15)) as u64;
            let bitmap_reach = whole.ranges.iter().filter(|range| range.1 + bits > largest)
                .map(|range| range.0.max((largest + 1).saturating_sub(bits))).min().unwrap();
            prop_assert!(complete || lowest <= bitmap_reach);
        }
    }

    #[test]
    fn any_bytes_are_safe(bytes in vec(any::<u8>(), 0..300)) {
        fuzz_wire(&bytes);
    }

    /// Nearly valid bytes reach deeper than random ones.
    #[test]
    fn changed_bytes_are_safe(made in vec(made(), 1..4), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let mut bytes: Vec<u8> = made.iter().flat_map(|made| bytes_of(&made.frame())).collect();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fuzz_wire(&bytes);
    }
}
