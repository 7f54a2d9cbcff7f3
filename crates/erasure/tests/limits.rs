//! Numbers, names, limits and hostile input.

use downpour_erasure::tornado::CheckShare;
use downpour_erasure::{AnyCode, Block, BlockCode, CodeError, Progress, WindowCode};

#[test]
fn numbers_and_names_agree() {
    for number in 0..=255 {
        if let Some(code) = BlockCode::from_wire(number) {
            assert_eq!(code.wire(), number);
            assert_eq!(code.name().parse(), Ok(code));
            assert_eq!(code.to_string(), code.name());
        } else {
            assert!(number > 5 && !(64..128).contains(&number));
        }
    }
    assert_eq!(BlockCode::ALL.map(BlockCode::wire), [0, 1, 2, 3, 4, 5, 95, 127]);
    assert_eq!("tornado:64".parse(), Ok(BlockCode::Tornado(CheckShare::HALF)));
    for text in ["tornado:0", "tornado:65", "tornado:+5", "tornado:05", "Uncoded", ""] {
        assert!(text.parse::<BlockCode>().is_err(), "{text}");
    }
    assert_eq!(
        "tornado".parse::<BlockCode>().unwrap_err().to_string(),
        "unknown code \"tornado\": use uncoded, reed-solomon, raptorq, raptor, lt, precoded-lt or tornado:1 to tornado:64"
    );
}

#[test]
fn limits_are_checked_before_anything_is_made() {
    for code in BlockCode::ALL {
        let limit = code.max_source_symbols();
        for k in [0, limit + 1, u32::MAX] {
            assert_eq!(code.check(k, 2), Err(CodeError::SourceSymbols { code, k, limit }));
            assert!(code.encoder(k, 2).is_err() && code.decoder(k, 2).is_err());
            assert_eq!(code.symbol_limit(k), k);
        }
        assert_eq!(code.check(limit, 65_534), Ok(()));
        for size in [0, 65_536, usize::MAX] {
            assert_eq!(code.check(1, size), Err(CodeError::SymbolSize(size)));
        }
    }
    assert_eq!(BlockCode::ReedSolomon.check(128, 1407), Ok(()));
    assert_eq!(BlockCode::ReedSolomon.check(129, 1407), Err(CodeError::OddSymbolSize(1407)));
    assert_eq!(BlockCode::RaptorQ.check(1, 65_535), Ok(()));
}

#[test]
fn symbol_limits() {
    assert_eq!(BlockCode::Uncoded.symbol_limit(77), 77);
    for (k, limit) in [
        (1, 256),
        (65, 256),
        (128, 256),
        (129, 129 + 768),
        (1000, 1000 + 3072),
        (16_384, 65_536),
        (20_000, 20_000 + 32_768),
        (32_768, 65_536),
    ] {
        assert_eq!(BlockCode::ReedSolomon.symbol_limit(k), limit, "k {k}");
    }
    for (k, limit) in [(1, 2), (100, 139), (120, 165), (121, 172), (1000, 1369), (65_536, 87_717)] {
        assert_eq!(BlockCode::Tornado(CheckShare::QUARTER).symbol_limit(k), limit, "k {k}");
    }
    for code in [BlockCode::RaptorQ, BlockCode::Lt, BlockCode::PrecodedLt] {
        for k in [1, 10, 100, code.max_source_symbols()] {
            assert_eq!(code.symbol_limit(k), 1 << 24, "{code}, k {k}");
        }
    }
    for (k, limit) in [(1, 65_533), (3, 65_535), (4, 65_536), (8192, 65_536)] {
        assert_eq!(BlockCode::Raptor.symbol_limit(k), limit, "k {k}");
    }
}

#[test]
fn failure_follows_the_design_bound() {
    assert_eq!(BlockCode::ReedSolomon.failure_probability(100, 0), 0.0);
    for (extra, bound) in [(0, 1e-2), (1, 1e-4), (2, 1e-6)] {
        assert!((BlockCode::RaptorQ.failure_probability(1000, extra) / bound - 1.0).abs() < 1e-9);
    }
    assert_eq!(BlockCode::RaptorQ.failure_probability(1000, u32::MAX), 0.0);
}

/// The probability of failure decreases with each symbol, down to zero.
#[test]
fn failure_falls() {
    for code in BlockCode::ALL {
        for k in [1, 2, 10, 100, 1000, 8192] {
            let chances: Vec<f64> = (0..=3 * k + 100).map(|extra| code.failure_probability(k, extra)).collect();
            assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "{code}, k {k}");
            assert!(chances.is_sorted_by(|a, b| a >= b), "{code}, k {k}");
            assert!(chances.last() < Some(&1e-9), "{code}, k {k}: {:?}", chances.last());
        }
    }
}

#[test]
fn a_block_of_another_shape_is_useless() {
    for code in BlockCode::ALL {
        let mut decoder = code.decoder(10, 4).unwrap();
        // Before and after enough symbols for an attempt.
        for repairs in [0, 12] {
            for esi in 10..10 + repairs {
                decoder.push(&Block::new_missing(10, 4, Vec::new()), esi, &[esi as u8; 4]);
            }
            for mut other in [Block::new_missing(11, 4, Vec::new()), Block::new_missing(10, 6, Vec::new())] {
                assert_eq!(decoder.push(&other, 30, &[0; 4]), Progress::Redundant, "{code}");
                assert_ne!(decoder.recover(&mut other), Progress::Ready, "{code}");
            }
        }
    }
}

/// Memory is bounded by what an attempt can use: further symbols are dropped.
#[test]
fn a_flood_of_repair_symbols_is_not_kept() {
    for code in BlockCode::ALL.into_iter().filter(|&code| code != BlockCode::Uncoded) {
        let block = Block::new_missing(50, 2, Vec::new());
        let mut decoder = code.decoder(50, 2).unwrap();
        let limit = code.symbol_limit(50).min(10_000);
        let kept = (50..limit).filter(|&esi| decoder.push(&block, esi, &[1, 2]) != Progress::Redundant).count();
        assert_eq!(kept as u32, 50.min(limit - 50), "{code}");
    }
}

/// Forged symbols are refused before they reach the code. If one did, the result would be wrong bytes, not a panic.
#[test]
fn forged_symbols_do_not_panic() {
    for code in BlockCode::ALL.into_iter().filter(|&code| code != BlockCode::Uncoded) {
        for k in [1, 9, 60, 255, 300] {
            let mut block = Block::new_missing(k, 4, Vec::new());
            let mut decoder = code.decoder(k, 4).unwrap();
            for esi in 0..k / 2 {
                block.insert(esi, &[9; 4]);
            }
            for round in 0..4 * k {
                let esi = (code.symbol_limit(k) - 1).saturating_sub(round % 200 + 3 * (round / 200));
                decoder.push(&block, esi, &round.to_le_bytes());
                decoder.recover(&mut block);
            }
        }
    }
}

#[test]
fn the_corpus_of_the_decoder_passes() {
    hostile::replay("decoder", hostile::fuzz_decoder);
}

#[test]
fn window_codes_have_numbers_names_and_limits() {
    for code in WindowCode::ALL {
        let any = AnyCode::Window(code);
        assert_eq!((AnyCode::from_wire(code.wire()), any.to_string().parse()), (Some(any), Ok(any)));
        assert_eq!(code.name().parse(), Ok(code));
        assert_eq!(BlockCode::from_wire(code.wire()), None, "one set of numbers");
        let limit = code.max_window();
        assert_eq!((code.check(1, 65_535), code.check(limit, 1)), (Ok(()), Ok(())));
        for symbols in [0, limit + 1] {
            assert_eq!(any.check(symbols, 1), Err(CodeError::Window { code, symbols, limit }));
        }
        assert_eq!(any.check(1, 65_536), Err(CodeError::SymbolSize(65_536)));
    }
    for code in BlockCode::ALL {
        let any = AnyCode::from(code);
        assert_eq!((AnyCode::from_wire(code.wire()), code.name().parse()), (Some(any), Ok(any)));
        assert_eq!((any.wire(), any.check(0, 1)), (code.wire(), code.check(0, 1)));
    }
    assert_eq!((AnyCode::from_wire(255), "rlc2".parse::<AnyCode>().is_err()), (None, true));
}
