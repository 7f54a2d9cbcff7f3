//! Properties: anything written reads back, and no bytes break the reader.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::super::fuzzing::fuzz_wire;
use super::samples::frames;
use super::varied::varied;
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

/// The bytes of any frame: a varied sample. Varied feedback has only the ranges of its samples, generated feedback has
/// any.
fn made() -> impl Strategy<Value = Vec<u8>> {
    let varied = (any::<prop::sample::Index>(), any::<bool>(), vec(any::<u64>(), 1..40)).prop_map(
        |(sample, careful, numbers)| {
            let mut numbers = numbers.into_iter().cycle();
            let mut draw = |below| numbers.next().unwrap_or_default() % below;
            varied(&sample.get(&frames()).1, careful, &mut draw)
        },
    );
    prop_oneof![3 => varied, 1 => feedback().prop_map(|feedback| bytes_of(&Frame::Feedback(feedback)))]
}

proptest! {
    #[test]
    fn frames_read_back(made in vec((made(), 0..4_usize), 0..12)) {
        let mut bytes = Vec::new();
        for (frame, padding) in &made {
            bytes.resize(bytes.len() + padding, 0);
            bytes.extend_from_slice(frame);
        }
        let read: Result<Vec<_>, _> = Frames::new(&bytes).collect();
        let alone: Result<Vec<_>, _> = made.iter().map(|(frame, _)| read_one(frame)).collect();
        prop_assert_eq!(&read, &alone);
        prop_assert_eq!(Frames::check_all(&bytes), Ok(()));
        for (frame, (bytes, _)) in read.unwrap().iter().zip(&made) {
            let written = bytes_of(frame);
            prop_assert_eq!(read_one(&written), Ok(frame.clone()));
            // Of the forms of its packets section, feedback is written in the smaller one. A frame that became shorter
            // is padded.
            prop_assert!(matches!(frame, Frame::Feedback(_)) || bytes.starts_with(&written), "{frame:?}: {bytes:?}");
        }
    }

    #[test]
    fn feedback_reads_back(feedback in feedback()) {
        let frame = Frame::Feedback(feedback);
        let bytes = bytes_of(&frame);
        prop_assert_eq!(read_one(&bytes), Ok(frame));
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
            let decoded = PacketRanges::decode(&mut super::super::bytes::Reader::new(&bytes)).unwrap();
            let largest = whole.ranges[0].1;
            let lowest = decoded.ranges.last().unwrap().0;
            let expected: Vec<_> = whole.ranges.iter().filter(|range| range.1 >= lowest)
                .map(|&(low, high)| (low.max(lowest), high)).collect();
            prop_assert_eq!(&decoded.ranges, &expected);
            let complete = decoded.ranges == whole.ranges;
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
    fn changed_bytes_are_safe(
        made in vec(made(), 1..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = made.concat();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fuzz_wire(&bytes);
        fuzz_wire(&bytes[..end.index(bytes.len())]);
    }
}
