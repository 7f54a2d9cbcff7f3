use super::*;
use crate::inactivation::terms_of;
use crate::systematic::Systematic as _;
use crate::testing::octets;
use crate::{Decoder as _, Encoder as _};

fn fnv1a64(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Hashes of the first 50 repair symbols of 1280 bytes, on which two independent implementations of RFC 6330 agree.
#[test]
fn repair_symbols_are_those_of_rfc_6330() {
    let vectors: [(u32, u64); 5] = [
        (10, 0x8d2e_1974_b625_fe86),
        (100, 0x9a0a_3219_c112_335d),
        (1000, 0xd894_aedc_3441_5e02),
        (1234, 0xf63c_af7a_6b66_58f5),
        (10_000, 0x3673_8f0e_d734_18fe),
    ];
    for (k, expected) in vectors {
        let block = Block::new_complete(k, 1280, octets(12345, k as usize * 1280));
        let mut encoder = encoder(k, 1280);
        let mut symbol = vec![0; 1280];
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for esi in k..k + 50 {
            encoder.write_repair(&block, esi, &mut symbol);
            hash = fnv1a64(hash, &symbol);
        }
        assert_eq!(hash, expected, "k {k}: {hash:016x}");
    }
}

/// Runs a decoder with `lost` source symbols replaced by as many repair symbols, and more on demand; returns the
/// recovered bytes and the number of symbols.
fn decode(solver: Solver, k: u32, symbol_size: usize, lost: &[u32]) -> (Block, u32) {
    let source = Block::new_complete(k, symbol_size, octets(u64::from(k) + 1, k as usize * symbol_size));
    let mut encoder = encoder(k, symbol_size);
    let mut decoder = Decoder::with_solver(k, symbol_size, solver);
    let mut block = Block::new_missing(k, symbol_size, vec![0xbb; k as usize * symbol_size]);
    for esi in (0..k).filter(|esi| !lost.contains(esi)) {
        block.insert(esi, source.symbol(esi).unwrap());
    }
    let mut symbol = vec![0; symbol_size];
    let mut esi = k;
    while let Progress::Need(_) = decoder.recover(&mut block) {
        encoder.write_repair(&source, esi, &mut symbol);
        decoder.push(&block, esi, &symbol);
        esi += 1;
    }
    assert_eq!(block, source, "{solver:?}, k {k}, size {symbol_size}, lost {lost:?}");
    (block, esi - k)
}

/// Both solvers solve the same equations, so they succeed on the same symbols, except for the pauses after a failure.
#[test]
fn both_solvers_recover_the_same() {
    for (k, symbol_size) in [(1, 1), (5, 3), (10, 64), (26, 7), (101, 130), (240, 31), (300, 5), (700, 2)] {
        for count in [1, 2, 9, 63, 64, 65, 128, k / 2, k] {
            let count = count.min(k);
            let lost: Vec<u32> = (0..count).map(|i| (i * (k / count) + i % 3 * (k / count / 3)) % k).collect();
            let (by_syndrome, taken) = decode(Solver::Syndrome, k, symbol_size, &lost);
            let (by_inactivation, needed) = decode(Solver::Inactivation, k, symbol_size, &lost);
            assert_eq!(by_syndrome, by_inactivation);
            assert!((taken..=taken + 2).contains(&needed), "k {k}, {count} lost: {taken} and {needed} repair symbols");
        }
    }
}

/// A failed attempt is continued: with more repair symbols, and with source symbols that arrive late.
#[test]
fn elimination_continues_after_a_failure() {
    let (k, size) = (30, 9);
    let source = Block::new_complete(k, size, octets(7, k as usize * size));
    let mut failed = 0;
    for first in 0..3000 {
        let mut encoder = encoder(k, size);
        let mut decoder = Decoder::with_solver(k, size, Solver::Syndrome);
        let mut block = Block::new_missing(k, size, Vec::new());
        for esi in 4..k {
            block.insert(esi, source.symbol(esi).unwrap());
        }
        let mut symbol = vec![0; size];
        for esi in k + first * 4..k + first * 4 + 4 {
            encoder.write_repair(&source, esi, &mut symbol);
            decoder.push(&block, esi, &symbol);
        }
        let Progress::Need(more) = decoder.recover(&mut block) else {
            continue;
        };
        failed += 1;
        assert_eq!(decoder.recover(&mut block), Progress::Need(more), "no symbol arrived");
        if first % 2 == 0 {
            // More symbols than needed in the end: the block is complete from the equations, not from them.
            block.insert(0, source.symbol(0).unwrap());
            block.insert(1, source.symbol(1).unwrap());
        }
        let mut esi = 200_000;
        while let Progress::Need(_) = decoder.recover(&mut block) {
            encoder.write_repair(&source, esi, &mut symbol);
            decoder.push(&block, esi, &symbol);
            esi += 1;
        }
        assert_eq!(block, source, "first repair symbol {}", k + first * 4);
        assert!(esi <= 200_003, "first repair symbol {}: {} more", k + first * 4, esi - 200_000);
    }
    assert!((2..60).contains(&failed), "{failed} of 3000 attempts failed; theory predicts 1 in 256");
}

/// The cost of a block's plan: a change here is a change of speed. A plain count, of inactive symbols and of additions
/// per symbol.
#[test]
fn plans_are_short() {
    for (k, most_inactive, most_additions) in [(101, 26, 7.9), (1002, 68, 9.3), (10_017, 205, 9.1)] {
        let (inactive, additions) = RaptorqSystem::new(k).encoding_plan().cost();
        let additions = additions as f64 / f64::from(k);
        assert!(inactive <= most_inactive && additions <= most_additions, "k {k}: {inactive}, {additions}");
        assert!(inactive > most_inactive / 2 && additions > most_additions / 2.0, "k {k}: {inactive}, {additions}");
    }
}

/// A peer that sends linearly dependent symbols does not make a decoder hold more of them.
#[test]
fn redundant_symbols_are_dropped() {
    let unit = Block::new_complete(1, 1, vec![1]);
    let mut encoder = encoder(1, 1);
    let mut symbol = [1];
    let nothing: Vec<u32> = (1..200_000)
        .filter(|&esi| {
            encoder.write_repair(&unit, esi, &mut symbol);
            symbol == [0]
        })
        .collect();
    assert!(nothing.len() > 300, "{} of 200,000 repair symbols are 0 whatever the block", nothing.len());
    // Over the whole block a symbol may contain other unknowns; they are 27.
    for (solver, most) in [(Solver::Syndrome, 1), (Solver::Inactivation, 28)] {
        let mut decoder = Decoder::with_solver(1, 1, solver);
        let mut block = Block::new_missing(1, 1, Vec::new());
        for &esi in &nothing {
            assert_eq!(decoder.push(&block, esi, &[0]), Progress::Ready);
            assert_eq!(decoder.recover(&mut block), Progress::Need(1));
            assert!(decoder.repairs.count() <= most, "{solver:?}: {} held", decoder.repairs.count());
        }
    }
}

/// Ids of high degree make every unknown inactive, at a cubic cost of elimination: they are not kept, and others may
/// follow.
#[test]
fn entangled_symbols_are_dropped() {
    let (k, size) = (3000, 1);
    let system = RaptorqSystem::new(k);
    let source = Block::new_complete(k, size, octets(3, k as usize));
    let mut encoder = encoder(k, size);
    let mut decoder = Decoder::with_solver(k, size, Solver::Inactivation);
    let mut block = Block::new_missing(k, size, Vec::new());
    let dense = (k..SYMBOL_LIMIT).filter(|&esi| terms_of(&system, esi).len() > 25);
    let mut symbol = [0];
    for esi in dense.take(k as usize) {
        encoder.write_repair(&source, esi, &mut symbol);
        assert_ne!(decoder.push(&block, esi, &symbol), Progress::Redundant);
    }
    assert_eq!(decoder.recover(&mut block), Progress::Need(k));
    assert_eq!(decoder.repairs.count(), 0);
    let mut esi = k;
    while let Progress::Need(more) = decoder.recover(&mut block) {
        for esi in esi..esi + more {
            encoder.write_repair(&source, esi, &mut symbol);
            decoder.push(&block, esi, &symbol);
        }
        esi += more;
    }
    assert!(block == source && esi < 2 * k + 3, "{esi}");
}
