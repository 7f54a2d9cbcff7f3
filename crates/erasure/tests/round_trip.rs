//! Every code, with any loss, order, duplicates and surplus: recovers the right bytes, or returns the true number of
//! symbols needed.

use downpour_erasure::tornado::CheckShare;
use downpour_erasure::{Block, BlockCode, Decoder, Encoder, Progress};
use proptest::prelude::*;
use proptest::sample::Index;

const CODED: [BlockCode; 7] = [
    BlockCode::ReedSolomon,
    BlockCode::RaptorQ,
    BlockCode::Raptor,
    BlockCode::Lt,
    BlockCode::PrecodedLt,
    BlockCode::Tornado(CheckShare::QUARTER),
    BlockCode::Tornado(CheckShare::HALF),
];

/// Returns octets without a pattern (splitmix64).
fn octets(seed: u64, length: usize) -> Vec<u8> {
    let octet = |i: u64| {
        let mut z = (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u8
    };
    (0..length as u64).map(octet).collect()
}

/// A sender's block, and the encoder and decoder of a code for it.
struct Ends {
    sent: Block,
    encoder: Box<dyn Encoder>,
    received: Block,
    decoder: Box<dyn Decoder>,
}

impl Ends {
    fn new(code: BlockCode, k: u32, symbol_size: usize, seed: u64) -> Self {
        let length = k as usize * symbol_size;
        Self {
            sent: Block::new_complete(k, symbol_size, octets(seed, length)),
            encoder: code.encoder(k, symbol_size).expect("within the limits"),
            received: Block::new_missing(k, symbol_size, vec![0xee; length]),
            decoder: code.decoder(k, symbol_size).expect("within the limits"),
        }
    }

    fn symbol(&mut self, esi: u32) -> Vec<u8> {
        if let Some(symbol) = self.sent.symbol(esi) {
            return symbol.to_vec();
        }
        let mut symbol = vec![0; self.sent.symbol_size()];
        self.encoder.write_repair(&self.sent, esi, &mut symbol);
        symbol
    }

    /// Delivers one symbol. Returns whether it was useful.
    fn arrive(&mut self, esi: u32) -> bool {
        let symbol = self.symbol(esi);
        if esi < self.sent.k() {
            self.received.insert(esi, &symbol)
        } else {
            self.decoder.push(&self.received, esi, &symbol) != Progress::Redundant
        }
    }

    fn recover(&mut self) -> Progress {
        let progress = self.decoder.recover(&mut self.received);
        assert_eq!(progress == Progress::Ready, self.received.is_complete());
        if progress == Progress::Ready {
            assert!(self.received == self.sent, "recovered other bytes");
        }
        progress
    }
}

fn shape() -> impl Strategy<Value = (BlockCode, u32, usize)> {
    (
        prop::sample::select(BlockCode::ALL.to_vec()),
        prop_oneof![1_u32..20, 1_u32..300],
        prop_oneof![Just(1_usize), 1_usize..150],
    )
        .prop_map(|(code, k, size)| {
            let fits = code.check(k, size).is_ok();
            (code, k, if fits { size } else { size.next_multiple_of(2) })
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Symbols arrive in any order, some twice, some never, from anywhere in the code, and `recover` is called at any
    /// time.
    #[test]
    fn any_arrivals_end_in_the_right_bytes(
        (code, k, symbol_size) in shape(),
        seed in any::<u32>(),
        loss in 0.0..1.0_f64,
        reach in 0..3000_u32,
        arrivals in prop::collection::vec((any::<Index>(), any::<bool>(), 0..12_u8), 0..700),
    ) {
        let mut ends = Ends::new(code, k, symbol_size, u64::from(seed));
        let limit = ends.encoder.symbol_limit();
        prop_assert_eq!(limit, code.symbol_limit(k));
        let survives = |esi: u32| f64::from(esi.wrapping_mul(0x9e37_79b1) ^ seed) / f64::from(u32::MAX) >= loss;
        let repairs = (limit - k).min(reach + 1);
        let mut useful = 0;
        for (index, is_source, dice) in arrivals {
            let esi = if is_source || repairs == 0 { index.index(k as usize) as u32 } else { k + index.index(repairs as usize) as u32 };
            if esi < k && !survives(esi) {
                continue;
            }
            useful += u32::from(ends.arrive(esi));
            if dice == 0 {
                prop_assert!(!ends.arrive(esi), "{} twice", esi);
            }
            if dice < 3 && ends.recover() == Progress::Ready {
                prop_assert!(useful >= k);
                return Ok(());
            }
        }
        // The rest arrives in order, repair symbols first, until the block is recovered.
        for esi in (k..k + repairs).chain(0..k) {
            if let Progress::Need(more) = ends.recover() {
                prop_assert!(more > 0 && more <= k);
                ends.arrive(esi);
            }
        }
        prop_assert_eq!(ends.recover(), Progress::Ready);
    }
}

/// With exactly `k` symbols a code either decodes or returns its need, and continues once they arrive.
#[test]
fn decoding_continues_once_the_need_is_met() {
    for code in [BlockCode::ReedSolomon, BlockCode::RaptorQ] {
        for seed in 0..150_u64 {
            let k = 1 + (seed as u32 * 7) % 120;
            let mut ends = Ends::new(code, k, 6, seed);
            let lost = |esi: u32| octets(seed, k as usize)[esi as usize].is_multiple_of(3);
            for esi in (0..k).filter(|&esi| !lost(esi)) {
                ends.arrive(esi);
            }
            let mut next = k + seed as u32 % (code.symbol_limit(k) - 2 * k);
            let mut attempts = 0;
            while let Progress::Need(more) = ends.recover() {
                for _ in 0..more {
                    assert!(ends.arrive(next), "{code}, seed {seed}: a requested symbol is useful");
                    next += 1;
                }
                attempts += 1;
                // Symbols of an LT code are redundant if they are sums of source symbols that have arrived.
                let bound = if matches!(code, BlockCode::Lt | BlockCode::PrecodedLt) { 300 } else { 20 };
                assert!(attempts < bound, "{code}, seed {seed}: does not end");
            }
        }
    }
}

/// Any `k` symbols of Reed-Solomon decode, whichever they are and however many repair symbols the encoder created.
#[test]
fn reed_solomon_is_maximum_distance_separable() {
    for seed in 0..300_u64 {
        let k = 1 + (seed as u32 * 31) % 257;
        let mut ends = Ends::new(BlockCode::ReedSolomon, k, 2, seed);
        let limit = ends.encoder.symbol_limit();
        let mut order: Vec<(u8, u8, u32)> = octets(seed, limit as usize)
            .into_iter()
            .zip(octets(seed + 1000, limit as usize))
            .zip(0..limit)
            .map(|((a, b), esi)| (a, b, esi))
            .collect();
        order.sort_unstable();
        for &(_, _, esi) in &order[..k as usize] {
            assert!(ends.arrive(esi), "seed {seed}, esi {esi}");
        }
        assert_eq!(ends.recover(), Progress::Ready, "seed {seed}, k {k}: any k symbols decode");
    }
}

/// A repair symbol is the same whenever it is requested.
#[test]
fn a_repair_symbol_depends_on_its_id_alone() {
    for code in CODED {
        for k in [1, 2, 50, 64, 65, 130] {
            let ids: Vec<u32> = (k..code.symbol_limit(k).min(k + 300)).collect();
            let mut up = Ends::new(code, k, 34, 1);
            let ascending: Vec<_> = ids.iter().map(|&esi| up.symbol(esi)).collect();
            let mut down = Ends::new(code, k, 34, 1);
            let descending: Vec<_> = ids.iter().rev().map(|&esi| down.symbol(esi)).collect();
            assert!(ascending.iter().eq(descending.iter().rev()), "{code}, k {k}");
            let all = ids.len();
            for (first, count) in [(0, all), (1.min(all - 1), 1), (all - 7.min(all), 7.min(all))] {
                let mut ends = Ends::new(code, k, 34, 1);
                let mut together = vec![0; count * 34];
                ends.encoder.repairs(&ends.sent, ids[first], &mut together);
                assert_eq!(
                    together,
                    ascending[first..first + count].concat(),
                    "{code}, k {k}: {count} from {first} at once"
                );
            }
        }
    }
}

/// RFC 6330 promises at most one failure in 100 with `k` symbols, theory predicts 1 in 256; more than 10 in 400 trials
/// have a probability below 1e-5.
#[test]
fn raptorq_fails_as_seldom_as_it_should() {
    let (k, trials) = (100, 400);
    let mut failures = [0; 3];
    for trial in 0..trials {
        let mut ends = Ends::new(BlockCode::RaptorQ, k, 1, trial);
        let dice = octets(trial + 5000, k as usize);
        for esi in (0..k).filter(|&esi| dice[esi as usize] >= 51) {
            ends.arrive(esi);
        }
        let first = k + (trial as u32) * 100;
        for esi in first..first + (k - ends.received.present_count()) {
            ends.arrive(esi);
        }
        for (extra, failures) in failures.iter_mut().enumerate() {
            if ends.recover() == Progress::Ready {
                break;
            }
            *failures += 1;
            ends.arrive(first + k + extra as u32);
        }
    }
    assert!(failures[0] <= 10, "{failures:?} of {trials} failed with 0, 1, 2 extra symbols");
    assert_eq!(failures[2], 0, "{failures:?} of {trials} failed with 0, 1, 2 extra symbols");
}

/// Without loss the decoder is never called, and answers at once if it is.
#[test]
fn a_block_without_loss_needs_no_decoder() {
    for code in BlockCode::ALL {
        let mut ends = Ends::new(code, 90, 4, 3);
        for esi in 0..90 {
            assert!(ends.arrive(esi), "{code}");
        }
        assert_eq!(ends.recover(), Progress::Ready, "{code}");
        if code != BlockCode::Uncoded {
            assert!(!ends.arrive(90), "{code}: a repair symbol after completion is useless");
        }
    }
}

/// The largest blocks of the codes, at the limits of their ids.
#[test]
fn largest_blocks() {
    for (code, k) in [(BlockCode::ReedSolomon, 32_768), (BlockCode::RaptorQ, 56_403)] {
        let mut ends = Ends::new(code, k, 2, 9);
        for esi in 3..k {
            ends.arrive(esi);
        }
        let limit = ends.encoder.symbol_limit();
        for esi in [k, limit - 1, limit - 2, limit - 3, k + 1, k + 2] {
            ends.arrive(esi);
            if ends.recover() == Progress::Ready {
                break;
            }
        }
        assert!(ends.received.is_complete(), "{code}");
    }
}

/// A decoder set to wait for more than k symbols keeps all of them and tries with all of them; a code that decodes from
/// any k accepts no more.
#[test]
fn a_first_attempt_waits_for_the_set_number_of_symbols() {
    for code in CODED {
        let (k, wanted) = (200, 230);
        let mut ends = Ends::new(code, k, 16, 5);
        ends.decoder.wait_for(wanted);
        // A quarter of the source; the rest is repair.
        let limit = code.symbol_limit(k).min(k + 1000);
        let esis: Vec<u32> = (0..50).chain(k..limit).collect();
        let of_use = esis.iter().take_while(|esi| ends.arrive(**esi)).count() as u32;
        let expected = if code == BlockCode::ReedSolomon { k } else { wanted.min(esis.len() as u32) };
        assert_eq!(of_use, expected, "{code}");
    }
    let mut ends = Ends::new(BlockCode::Lt, 200, 16, 5);
    ends.decoder.wait_for(230);
    assert!((200..429).all(|esi| ends.arrive(esi)));
    assert_eq!(ends.recover(), Progress::Need(1), "no solve before that");
    assert!(ends.arrive(429));
    assert_eq!(ends.recover(), Progress::Ready, "with 230 of 200, where 200 do not do");
    let mut ends = Ends::new(BlockCode::Lt, 200, 16, 5);
    assert!((200..400).all(|esi| ends.arrive(esi)));
    assert_ne!(ends.recover(), Progress::Ready);
}
