use super::*;
use crate::Block;
use crate::testing::octets;
use crate::{Decoder as _, Encoder as _, Progress};

/// Asserts that the crate `raptor-code` makes the same repair symbols of a block of `k`.
fn compare(k: u32, esis: impl IntoIterator<Item = u32>) {
    let size = 4;
    let block = Block::new_complete(k, size, octets(u64::from(k), k as usize * size));
    let mut theirs = raptor_code::SourceBlockEncoder::new(block.bytes(), k as usize).expect("K is in the table");
    assert_eq!(theirs.nb_source_symbols(), k);
    let mut encoder = encoder(k, size);
    let mut symbol = vec![0; size];
    for esi in esis {
        encoder.write_repair(&block, esi, &mut symbol);
        assert_eq!(symbol, theirs.fountain(esi), "k {k}, esi {esi}");
    }
}

/// Ids next to the source symbols, far from them, and around the modulus of the triple generator.
fn spread(k: u32) -> impl Iterator<Item = u32> {
    (k..k + 12).chain([20_000, 40_001, 65_519, 65_520, 65_521, 65_535])
}

#[test]
fn repair_symbols_are_those_of_raptor_code() {
    for k in 4..=300 {
        compare(k, spread(k));
    }
    for k in [301, 399, 400, 511, 777, 1000, 1024, 1999, 2500, MAX_SOURCE_SYMBOLS] {
        compare(k, spread(k));
    }
}

/// A block of 1 to 3 symbols is one of 4 whose last ones are zero and not sent.
#[test]
fn short_blocks_are_padded() {
    for k in 1..4_u32 {
        let (padding, size) = (4 - k, 5);
        let source = Block::new_complete(k, size, octets(9, k as usize * size));
        let mut padded = source.bytes().to_vec();
        padded.resize(4 * size, 0);
        let padded = Block::new_complete(4, size, padded);
        let (mut encoder, mut of_four) = (encoder(k, size), encoder(4, size));
        let (mut found, mut expected) = (vec![0; size], vec![0; size]);
        for esi in (k..k + 30).chain([symbol_limit(k) - 1]) {
            encoder.write_repair(&source, esi, &mut found);
            of_four.write_repair(&padded, esi + padding, &mut expected);
            assert_eq!(found, expected, "k {k}, esi {esi}");
        }
        assert_eq!(symbol_limit(k) + padding, 1 << 16);
    }
}

/// Decodes from repair symbols alone and from the extreme ids, at the ends of the table of K.
#[test]
fn the_smallest_and_the_largest_block_decode() {
    for k in [1, 2, 3, 4, 5, 8191, MAX_SOURCE_SYMBOLS] {
        let size = 3;
        let source = Block::new_complete(k, size, octets(u64::from(k), k as usize * size));
        let (mut encoder, mut decoder) = (encoder(k, size), decoder(k, size));
        let mut block = Block::new_missing(k, size, vec![0x77; k as usize * size]);
        let mut symbol = vec![0; size];
        let mut esi = symbol_limit(k);
        while let Progress::Need(_) = decoder.recover(&mut block) {
            esi -= 1;
            encoder.write_repair(&source, esi, &mut symbol);
            decoder.push(&block, esi, &symbol);
        }
        assert_eq!(block, source, "k {k}");
        assert!(symbol_limit(k) - esi < k + 40, "k {k}: {} symbols", symbol_limit(k) - esi);
    }
}
