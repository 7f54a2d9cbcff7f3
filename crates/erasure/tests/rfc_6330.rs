//! RaptorQ compared with another implementation of RFC 6330, crate `raptorq`, for every K' of its Table 2.

use std::ops::Range;

use downpour_erasure::{Block, BlockCode};
use raptorq::{ObjectTransmissionInformation, SourceBlockEncoder, extended_source_block_symbols};

const SYMBOL_SIZE: usize = 3;

/// Returns every K' in a range.
fn padded_sizes(range: Range<u32>) -> Vec<u32> {
    let mut sizes: Vec<u32> = range.map(extended_source_block_symbols).collect();
    sizes.dedup();
    sizes
}

/// Returns octets that differ for each k.
fn source(k: u32) -> Vec<u8> {
    (0..k as usize * SYMBOL_SIZE)
        .map(|i| (i as u32).wrapping_mul(0x9e37_79b1).wrapping_add(k) as u8 ^ (i >> 7) as u8)
        .collect()
}

/// Compares the first repair symbols, some arbitrary ones, and the last one that both can number.
fn compare(k: u32) {
    let bytes = source(k);
    let information = ObjectTransmissionInformation::new(0, SYMBOL_SIZE as u16, 1, 1, 1);
    let other = SourceBlockEncoder::new(0, &information, &bytes);
    let block = Block::new_complete(k, SYMBOL_SIZE, bytes);
    let mut encoder = BlockCode::RaptorQ.encoder(k, SYMBOL_SIZE).expect("within the limits");
    let padding = extended_source_block_symbols(k) - k;
    for (first, count) in [(k, 3), (k + 1000, 1), (k + 99_991, 1), ((1 << 24) - padding - 2, 2)] {
        let mut symbols = vec![0; count as usize * SYMBOL_SIZE];
        encoder.repairs(&block, first, &mut symbols);
        for ((symbol, packet), esi) in
            symbols.chunks_exact(SYMBOL_SIZE).zip(other.repair_packets(first - k, count)).zip(first..)
        {
            assert_eq!(packet.payload_id().encoding_symbol_id(), esi);
            assert_eq!(symbol, packet.data(), "k {k}, esi {esi}");
        }
    }
}

#[test]
fn every_block_without_padding_up_to_5000() {
    let sizes = padded_sizes(1..5001);
    assert_eq!((sizes.len(), sizes[0]), (245, 10));
    sizes.into_iter().for_each(compare);
}

#[test]
fn every_block_without_padding_up_to_20_000() {
    padded_sizes(5001..20_001).into_iter().skip(1).for_each(compare);
}

#[test]
fn every_block_without_padding_up_to_40_000() {
    padded_sizes(20_001..40_001).into_iter().for_each(compare);
}

#[test]
fn every_block_without_padding_up_to_the_largest() {
    let sizes = padded_sizes(40_001..56_404);
    assert_eq!(sizes.last(), Some(&56_403));
    sizes.into_iter().for_each(compare);
}

#[test]
fn all_in_all_there_are_477() {
    assert_eq!(padded_sizes(1..56_404).len(), 477);
}

#[test]
fn blocks_with_padding() {
    (1..130).chain([150, 255, 256, 1000, 1234, 4000]).for_each(compare);
}
