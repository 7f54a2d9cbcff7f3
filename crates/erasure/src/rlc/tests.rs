//! RLC against independently derived values, against elimination all at once, and under loss.

use super::coefficients::coefficients;
use super::{Density, Field, RepairId, WindowDecoder, WindowEncoder};
use crate::Progress;
use crate::kernel::{add_scaled, scale};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The coefficients made by swif-codec (IRTF network coding group, commit de8cd8e), and by a program written from the
/// text of both RFCs: field, DT, key, the first sixteen.
const DRAWN: [(Field, u8, u16, [u8; 16]); 14] = [
    (Field::Gf2, 0, 0, [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (Field::Gf2, 3, 2, [0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]),
    (Field::Gf2, 7, 65_535, [1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1]),
    (Field::Gf2, 14, 0, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1]),
    (Field::Gf2, 15, 255, [1; 16]),
    (Field::Gf256, 0, 65_535, [0, 0, 0, 0, 206, 248, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (Field::Gf256, 3, 1, [0, 177, 21, 0, 0, 0, 0, 0, 187, 0, 0, 0, 0, 99, 11, 0]),
    (Field::Gf256, 7, 0, [42, 0, 176, 0, 0, 0, 163, 172, 0, 0, 0, 0, 94, 0, 0, 104]),
    (Field::Gf256, 7, 4_095, [171, 13, 0, 0, 152, 0, 0, 232, 0, 0, 0, 0, 0, 0, 0, 0]),
    (Field::Gf256, 14, 2, [140, 88, 116, 112, 0, 142, 141, 20, 204, 78, 107, 202, 29, 56, 2, 237]),
    (Field::Gf256, 15, 0, [39, 42, 153, 208, 176, 219, 77, 72, 133, 163, 38, 172, 186, 127, 138, 236]),
    (Field::Gf256, 15, 1, [37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187, 62, 190, 104, 135]),
    (Field::Gf256, 15, 255, [151, 107, 181, 86, 2, 149, 33, 14, 108, 78, 67, 90, 157, 142, 230, 42]),
    (Field::Gf256, 15, 65_535, [52, 199, 76, 244, 208, 206, 112, 248, 248, 73, 120, 100, 85, 42, 243, 145]),
];

#[test]
fn coefficients_are_those_of_others() {
    for (field, threshold, key, expected) in DRAWN {
        let mut drawn = [0xff; 16];
        coefficients(field, Density::new(threshold).unwrap(), key, &mut drawn);
        assert_eq!(drawn, expected, "{field:?}, DT {threshold}, key {key}");
    }
    assert_eq!(Density::new(16), None);
}

/// Source symbol `id` of the vectors: octet j is 17 id + 5 j + 1.
fn vector_symbol(id: u64) -> [u8; 6] {
    [0, 1, 2, 3, 4, 5].map(|j| (17 * id + 5 * j + 1) as u8)
}

/// Repair symbols over the source symbols 7 to 18, from a program written from the text of the RFCs, GF(256) by shift
/// and add.
#[test]
fn repair_symbols_are_those_of_others() {
    for (field, threshold, key, expected) in [
        (Field::Gf256, 15, 1, [171, 216, 56, 88, 66, 194]),
        (Field::Gf256, 5, 300, [131, 226, 200, 153, 98, 236]),
        (Field::Gf2, 7, 9, [134, 190, 106, 74, 94, 102]),
        (Field::Gf2, 15, 4, [128, 212, 0, 84, 128, 204]),
    ] {
        let mut encoder = WindowEncoder::new(field, 6, 12);
        for id in 0..19 {
            assert_eq!(encoder.push(&vector_symbol(id)), id);
        }
        let (density, mut symbol) = (Density::new(threshold).unwrap(), [0; 6]);
        let repair = encoder.repair(key, density, &mut symbol);
        assert_eq!(repair, Some(RepairId { key, density, first: 7, symbols: 12 }));
        assert_eq!(symbol, expected, "{field:?}, DT {threshold}, key {key}");
    }
}

#[test]
fn rows_are_multiplied_octet_by_octet() {
    let octets: Vec<u8> = (0..=255).collect();
    for factor in [0, 1, 2, 0x80, 0xff] {
        let mut scaled = octets.clone();
        scale(&mut scaled, factor);
        for (octet, product) in octets.iter().zip(&scaled) {
            let slow = (0..8).rev().fold(0u8, |sum, bit| {
                (sum << 1) ^ (0x1d * (sum >> 7)) ^ if octet >> bit & 1 == 1 { factor } else { 0 }
            });
            assert_eq!(*product, slow, "{octet} * {factor}");
        }
        let mut sum = scaled.clone();
        add_scaled(&mut sum, &octets, factor);
        assert_eq!(sum, [0; 256], "a sum with itself");
    }
}

#[test]
fn windows_slide_and_shrink() {
    let mut encoder = WindowEncoder::new(Field::Gf256, 1, 4);
    let mut out = [9];
    assert_eq!(encoder.repair(0, Density::FULL, &mut out), None);
    (0..6).for_each(|octet| assert_eq!(encoder.push(&[octet]), octet.into()));
    assert_eq!(encoder.window(), 2..6);
    encoder.forget_below(4);
    encoder.forget_below(3);
    assert_eq!(encoder.window(), 4..6);
    encoder.forget_below(100);
    assert_eq!(encoder.window(), 6..6);
    assert_eq!(encoder.repair(0, Density::FULL, &mut out), None);
    encoder.restart(50);
    assert_eq!((encoder.push(&[1]), encoder.window()), (50, 50..51));
}

/// A later symbol repairs an earlier loss: two losses wait for the second repair, and are recovered with it.
#[test]
fn two_losses_follow_from_two_repair_symbols() {
    let mut encoder = WindowEncoder::new(Field::Gf256, 2, 8);
    let mut decoder = WindowDecoder::new(Field::Gf256, 2, 8);
    let repair = |encoder: &WindowEncoder, decoder: &mut WindowDecoder, key| {
        let mut symbol = [0; 2];
        let repair = encoder.repair(key, Density::FULL, &mut symbol).expect("not empty");
        decoder.repair(repair, &symbol)
    };
    for id in 0..5u8 {
        encoder.push(&[id, 7]);
        if id != 1 && id != 3 {
            assert_eq!(decoder.source(id.into(), &[id, 7]), Progress::Need(1));
        }
    }
    assert_eq!(repair(&encoder, &mut decoder, 1), Progress::Need(1));
    assert_eq!(repair(&encoder, &mut decoder, 1), Progress::Redundant, "the same again");
    assert_eq!(decoder.next_recovered(), None);
    assert_eq!(repair(&encoder, &mut decoder, 2), Progress::Ready);
    let mut found = BTreeMap::new();
    while let Some((id, symbol)) = decoder.next_recovered() {
        found.insert(id, symbol.to_vec());
    }
    assert_eq!(found, BTreeMap::from([(1, vec![1, 7]), (3, vec![3, 7])]));
    assert_eq!(decoder.source(1, &[1, 7]), Progress::Redundant, "known");
    assert_eq!(repair(&encoder, &mut decoder, 3), Progress::Redundant, "nothing is missing");
}

/// A symbol too old to be kept is lost permanently, and costs one equation. It is eliminated from the others.
#[test]
fn a_forgotten_symbol_costs_one_equation() {
    let (mut encoder, mut decoder) = (WindowEncoder::new(Field::Gf256, 1, 8), WindowDecoder::new(Field::Gf256, 1, 8));
    let mut old = None;
    for id in 0..24u8 {
        encoder.push(&[id]);
        if ![2, 8, 9, 18].contains(&id) {
            decoder.source(id.into(), &[id]);
        }
        if id == 9 {
            // Three are missing, with two equations.
            for key in [1, 2] {
                let mut symbol = [0];
                let repair = encoder.repair(key, Density::FULL, &mut symbol).expect("not empty");
                assert_eq!((repair.first, repair.symbols), (2, 8));
                assert_eq!(decoder.repair(repair, &symbol), Progress::Need(1));
                old = Some((repair, symbol));
            }
        }
        // 16 symbols are kept. 19 makes room for 18 too, which did not arrive: 2 is dropped.
        assert_eq!(decoder.buffers().1, [0, 2, 1][usize::from(id >= 9) + usize::from(id >= 19)], "{id}");
    }
    let (repair, symbol) = old.expect("made above");
    assert_eq!(decoder.repair(repair, &symbol), Progress::Redundant, "its window begins with a forgotten symbol");
    assert_eq!(decoder.source(9, &[9]), Progress::Ready);
    assert_eq!(decoder.next_recovered(), Some((8, &[8][..])));
    assert_eq!(decoder.next_recovered(), None);
}

/// One symbol of a case: whether it arrives, after how many others, and the repair symbols that follow it.
fn fates() -> impl Strategy<Value = Vec<(bool, u8, u8)>> {
    let fate = (
        prop::bool::weighted(0.7),
        prop_oneof![4 => Just(0u8), 1 => 0..12u8],
        prop_oneof![3 => Just(0u8), 1 => 1..4u8],
    );
    prop::collection::vec(fate, 1..120)
}

/// An arrival: a source symbol, or a repair symbol and its bytes.
#[derive(Clone, Debug)]
enum Arrival {
    Source(u64),
    Repair(RepairId, Vec<u8>),
}

fn octets(id: u64) -> Vec<u8> {
    (0..5u64).map(|at| (id * 5 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]).collect()
}

fn arrivals(field: Field, density: Density, window: u32, fates: &[(bool, u8, u8)]) -> Vec<Arrival> {
    let mut encoder = WindowEncoder::new(field, 5, window);
    let (mut arrivals, mut key) = (BTreeMap::new(), 0);
    for (at, (arrives, late, repairs)) in fates.iter().enumerate() {
        let id = encoder.push(&octets(at as u64));
        if *arrives {
            arrivals.insert((at + usize::from(*late), id, 0), Arrival::Source(id));
        }
        for _ in 0..*repairs {
            key += 1;
            let mut symbol = vec![0; 5];
            let repair = encoder.repair(key, density, &mut symbol).expect("not empty");
            arrivals.insert((at + usize::from(key as u8 % 3), id, key), Arrival::Repair(repair, symbol));
        }
    }
    arrivals.into_values().collect()
}

/// Returns the missing symbols that follow from everything together: elimination of all equations at once.
fn determined(field: Field, arrivals: &[Arrival], sent: u64) -> Vec<u64> {
    let known: Vec<u64> =
        arrivals.iter().filter_map(|a| if let Arrival::Source(id) = a { Some(*id) } else { None }).collect();
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for arrival in arrivals {
        if let Arrival::Repair(repair, _) = arrival {
            let mut factors = vec![0; repair.symbols.into()];
            coefficients(field, repair.density, repair.key, &mut factors);
            let mut row = vec![0; sent as usize];
            row[repair.first as usize..][..factors.len()].copy_from_slice(&factors);
            known.iter().for_each(|id| row[*id as usize] = 0);
            rows.push(row);
        }
    }
    let mut done = 0;
    for column in 0..sent as usize {
        let Some(at) = (done..rows.len()).find(|at| rows[*at][column] != 0) else { continue };
        rows.swap(done, at);
        let inverse = crate::field::inverse(rows[done][column]);
        scale(&mut rows[done], inverse);
        let pivot = rows[done].clone();
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if at != done && factor != 0 {
                add_scaled(row, &pivot, factor);
            }
        }
        done += 1;
    }
    let single = |row: &Vec<u8>| row.iter().filter(|factor| **factor != 0).count() == 1;
    let mut found: Vec<u64> = rows
        .iter()
        .filter(|row| single(row))
        .filter_map(|row| row.iter().position(|f| *f != 0))
        .map(|at| at as u64)
        .collect();
    found.sort_unstable();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever is lost, late or duplicated, nothing wrong is recovered; and if nothing is dropped, everything that
    /// follows is.
    #[test]
    fn rlc_any_loss_recovers_nothing_wrong(
        gf2 in any::<bool>(), threshold in prop_oneof![2 => Just(15u8), 1 => 2..15u8], window in 1..80u32, fates in fates(), again in 0..7usize,
    ) {
        let (field, density) = (if gf2 { Field::Gf2 } else { Field::Gf256 }, Density::new(threshold).unwrap());
        let arrivals = arrivals(field, density, window, &fates);
        let mut decoder = WindowDecoder::new(field, 5, window);
        let mut found = Vec::new();
        let mut repairs = 0;
        for (at, arrival) in arrivals.iter().enumerate() {
            // Some arrive twice, and some a second time much later.
            for arrival in [Some(arrival), (at % 7 == again).then(|| &arrivals[at / 2])].into_iter().flatten() {
                match arrival {
                    Arrival::Source(id) => decoder.source(*id, &octets(*id)),
                    Arrival::Repair(repair, symbol) => decoder.repair(*repair, symbol),
                };
            }
            repairs += usize::from(matches!(arrival, Arrival::Repair(..)));
            while let Some((id, symbol)) = decoder.next_recovered() {
                prop_assert_eq!(symbol, octets(id), "symbol {}", id);
                found.push(id);
            }
        }
        found.sort_unstable();
        prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "found twice: {:?}", found);
        let sent = fates.len() as u64;
        if sent + 12 <= 2 * u64::from(window) && repairs <= decoder.most_equations() {
            let arrived = |id: &u64| arrivals.iter().any(|a| matches!(a, Arrival::Source(source) if source == id));
            // A recovered symbol that arrives late is not missing.
            let found: Vec<u64> = found.into_iter().filter(|id| !arrived(id)).collect();
            prop_assert_eq!(found, determined(field, &arrivals, sent));
        }
    }

    /// Arbitrary repair symbols among true ones: no panic, and memory within its bounds.
    #[test]
    fn lies_cost_no_more_than_the_window(
        window in 1..20u32, lies in prop::collection::vec((any::<u16>(), 0..200u64, 0..30u16, any::<bool>()), 1..200),
    ) {
        let mut decoder = WindowDecoder::new(Field::Gf256, 3, window);
        for (key, first, symbols, source) in lies {
            let repair = RepairId { key, density: Density::FULL, first, symbols };
            let _ = if source { decoder.source(first, &key.to_be_bytes().repeat(2)[..3]) } else { decoder.repair(repair, &[1, 2, 3]) };
            let (buffers, equations) = decoder.buffers();
            prop_assert!(equations <= decoder.most_equations());
            prop_assert!(buffers + equations <= 2 * window as usize + decoder.most_equations(), "{} buffers", buffers);
        }
        while decoder.next_recovered().is_some() {}
    }

    #[test]
    fn noise_breaks_nothing(noise in prop::collection::vec(any::<u8>(), 0..900)) {
        super::fuzzing::fuzz_window(&noise);
    }
}

#[test]
fn the_corpus_passes() {
    hostile::replay("window", super::fuzzing::fuzz_window);
}

/// Ids end with 64 bits: a window up to the last is accepted, one beyond it is refused.
#[test]
fn the_last_possible_ids() {
    let mut decoder = WindowDecoder::new(Field::Gf256, 4, 3);
    let last = RepairId { key: 1, density: Density::FULL, first: u64::MAX - 3, symbols: 3 };
    assert_ne!(decoder.repair(last, &[0; 4]), Progress::Redundant);
    assert_eq!(decoder.repair(RepairId { first: u64::MAX - 1, ..last }, &[0; 4]), Progress::Redundant);
}
