//! How a stream ends (lt-tcp §3.2), and how its blocks are cut.

use super::super::{Pick, SendFlow};
use super::*;
use crate::flow::{BlockSizer, BlockSizing, FixedBlocks, PathEstimate, ScheduleConfig, SizingFactory, WindowedConfig};
use crate::settings::{Setting, Settings};
use crate::wire::{BlockStatus, FlowId};
use erasure::BlockCode;

const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

/// A sizing of another crate, whose sizer makes blocks of four symbols.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fours;

impl Settings for Fours {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

impl SizingFactory for Fours {
    const NAME: &'static str = "fours";

    fn of_streams(&self, _symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(100, BlockCode::ReedSolomon)
    }

    fn sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        Some(Box::new(FixedBlocks::alike(4, BlockCode::ReedSolomon)))
    }
}

/// A stream of blocks of at most 800 bytes.
fn stream() -> SendFlow {
    let code = BlockCode::ReedSolomon;
    let announcement =
        StreamAnnouncement { flow: FlowId(1), symbol_size: 100, tag: 0, k: 8, code: code.into(), short_code: code };
    SendFlow::stream(announcement, 100, ScheduleConfig::Windowed(WindowedConfig::default()).build())
}

/// Opens all blocks possible; returns for each from `first` on its bytes and whether it ends the stream.
fn open(stream: &mut SendFlow, first: u32) -> Vec<(u32, bool)> {
    while stream.open_stream_block(Time::ZERO, &PATH, 1_000, 1_000, &mut Pool::default()) {}
    let block = |number| stream.blocks().block(number).map(|block| StreamHeader::decode(block.symbol(0), 800));
    let headers = (first..).map_while(block).map(|header| header.expect("it makes sense"));
    headers.map(|header| (header.length, header.end)).collect()
}

#[test]
fn the_last_block_that_waits_is_the_one_that_ends_it() {
    let mut stream = stream();
    assert_eq!(stream.write(&[7; 1_000], 4 << 20), Some(1_000));
    stream.finish();
    assert_eq!(open(&mut stream, 0), [(795, false), (205, true)]);
}

#[test]
fn an_empty_block_ends_a_stream_without_outstanding_bytes() {
    let mut fresh = stream();
    fresh.finish();
    assert_eq!(open(&mut fresh, 0), [(0, true)], "nothing was ever written");
    let mut stream = stream();
    stream.write(&[7; 50], 4 << 20);
    assert_eq!(open(&mut stream, 0), [(50, false)]);
    let status = FlowStatus { flow: FlowId(1), done_below: 0, blocks: vec![BlockStatus { block: 0, need: 0 }] };
    assert_eq!(stream.on_status(&status, &mut Pool::default(), |_| ()), 50);
    stream.finish();
    assert_eq!(open(&mut stream, 1), [(0, true)]);
    assert!(!stream.newly_sent(), "the end has to arrive too");
}

/// Whether or not the symbols sent suffice to decode a block, its first symbol states its content.
#[test]
fn an_empty_block_follows_one_in_flight() {
    for sent in [1, 8] {
        let mut stream = stream();
        stream.write(&[7; 700], 4 << 20);
        assert_eq!(open(&mut stream, 0), [(700, false)]);
        for _ in 0..sent {
            assert!(matches!(stream.next(Time::ZERO, &PATH, false, true), Pick::Symbol(_)));
        }
        stream.finish();
        assert_eq!(open(&mut stream, 0), [(700, false), (0, true)], "after {sent} symbols");
    }
}

/// A stream whose profile changes midway follows with its next block, and never exceeds the announced limits.
#[test]
fn other_sizes_hold_from_the_next_block_on() {
    let mut stream = stream();
    stream.write(&[7; 10_000], 4 << 20);
    let mut next = |blocks: Option<BlockSizing>| {
        let number = stream.blocks().next_number();
        if let Some(blocks) = blocks {
            stream.resize_blocks(&blocks, 100, 1_000);
        }
        assert!(stream.open_stream_block(Time::ZERO, &PATH, 1_000, 1_000, &mut Pool::default()));
        stream.blocks().block(number).expect("it is open").k()
    };
    assert_eq!([next(None), next(None)], [8, 8]);
    let fixed = |k| Some(BlockSizing::Fixed(FixedBlocks { k, ..FixedBlocks::default() }));
    assert_eq!([next(fixed(3)), next(None)], [3, 3], "and open blocks are unchanged");
    assert_eq!(next(fixed(5)), 5);
    assert_eq!(next(Some(BlockSizing::custom(Fours))), 4);
    assert_eq!([next(fixed(100)), next(fixed(1_000))], [8, 8], "no larger than announced");
    let sizes: Vec<u32> = (0..8).map(|number| stream.blocks().block(number).expect("open").k()).collect();
    assert_eq!(sizes, [8, 8, 3, 3, 5, 4, 8, 8]);
}

/// Block numbers are never reused, and the largest is reserved. A stream that has used all others reports it.
#[test]
fn a_stream_without_block_numbers_reports_it() {
    let mut stream = stream();
    stream.blocks_mut().begin_at(u32::MAX - 3);
    stream.write(&[7; 795 * 3], 4 << 20);
    assert_eq!(open(&mut stream, u32::MAX - 3), [(795, false), (795, false)]);
    assert!(stream.is_exhausted(), "bytes wait for a third block");
    assert!(!stream.is_held_back(), "no credit will help");
}
