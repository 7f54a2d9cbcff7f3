use super::cascade::Cascade;
use super::graph::degrees;
use super::*;
use crate::kernel::add_many;
use crate::splitmix::SplitMix64;
use crate::{Block, Progress};

/// Orders of arrival and losses.
struct Dice(SplitMix64);

impl Dice {
    fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last as usize, self.0.below_u32(last + 1) as usize);
        }
        order
    }
}

fn rate(of_128: u8) -> CheckShare {
    CheckShare::new(of_128).expect("1 to 64")
}

fn source(k: u32, symbol_size: usize) -> Block {
    Block::new_complete(
        k,
        symbol_size,
        (0..k as usize * symbol_size).map(|j| (j * 167 + (j >> 8) * 59) as u8).collect(),
    )
}

/// Returns every repair symbol of a block, one after another.
fn repairs(design: TornadoCode, source: &Block) -> Vec<Vec<u8>> {
    let mut encoder = design.encoder(source.k(), source.symbol_size()).unwrap();
    let make = |esi| {
        let mut symbol = vec![0xcc; source.symbol_size()];
        encoder.write_repair(source, esi, &mut symbol);
        symbol
    };
    (source.k()..design.symbol_limit(source.k())).map(make).collect()
}

#[test]
fn cascades_shrink_to_an_end_that_fits_its_code() {
    for rate in CheckShare::all() {
        for k in (1..2000).chain([9999, 10_000, 50_000, MAX_SOURCE_SYMBOLS]) {
            let cascade = Cascade::new(k, rate);
            let mut lefts = 0..k;
            for level in &cascade.levels {
                assert_eq!(level.lefts, lefts);
                assert_eq!(level.checks.start, lefts.end);
                assert!(level.checks.len() < lefts.len());
                lefts = level.checks.clone();
            }
            assert_eq!((&cascade.end, cascade.repairs.start), (&lefts, lefts.end));
            assert!(cascade.end.len() <= 120 && !cascade.repairs.is_empty());
            assert!(cascade.end.len() + cascade.repairs.len() <= 256, "{rate:?}, k {k}");
            // The rate's own share, and no more than a few square roots in addition.
            let share = f64::from(k * u32::from(rate.of_128())) / f64::from(128 - rate.of_128());
            let checks = f64::from(cascade.symbol_limit() - k);
            assert!(
                checks >= share && checks <= share + 4.0 * f64::from(k).sqrt() + 3.0,
                "{rate:?}, k {k}: {checks}, {share}"
            );
        }
    }
}

#[test]
fn left_degrees_have_a_heavy_tail() {
    let degrees: Vec<u32> = degrees(1000, 20).collect();
    assert_eq!(degrees.len(), 1000);
    assert!(degrees.is_sorted());
    let count = |degree| degrees.iter().filter(|&&other| other == degree).count();
    // 1000 x 21/20 / (i (i - 1)): 525, 175, 87.5, 52.5, .. 2.5.
    assert_eq!((count(1), count(2), count(3), count(4), count(5), count(21), count(22)), (0, 525, 175, 87, 53, 3, 0));
}

#[test]
fn edges_are_single_and_small_cycles_avoided() {
    for (k, of_128) in [(1000, 32), (10_000, 8), (50_000, 64), (300, 48)] {
        let graph = Graph::of(TornadoCode::new(rate(of_128)), k);
        for level in &graph.cascade.levels {
            let first_guard = level.checks.end - k - level.checks.len().isqrt() as u32;
            let mut pairs = std::collections::BTreeSet::new();
            let mut shared = 0;
            for left in level.lefts.clone() {
                let own = (left >= k).then(|| left - k);
                let checks: Vec<u32> = graph.equations_of(left).filter(|&equation| Some(equation) != own).collect();
                let (ordinary, guards): (Vec<u32>, Vec<u32>) = checks.iter().partition(|&&check| check < first_guard);
                assert!(ordinary.len() >= 2 && ordinary.len() <= 21);
                assert_eq!(guards.len(), usize::from(ordinary.len() == 2));
                for (at, check) in checks.iter().enumerate() {
                    assert!(!checks[..at].contains(check), "left {left} twice in check {check}");
                    assert!(graph.lefts(*check).contains(&left));
                    for other in checks[..at].iter().filter(|_| !guards.is_empty()) {
                        shared += usize::from(!pairs.insert((*check, *other)) || !pairs.insert((*other, *check)));
                    }
                }
            }
            // The lower levels of low rates have too few checks to distinguish their lefts.
            assert!(
                shared * 100 <= level.lefts.len() || level.lefts.start > 0,
                "k {k}: {shared} of {} share two checks",
                level.lefts.len()
            );
        }
    }
}

/// As docs/PROTOCOL.md, section 6.4, specifies for other implementations.
#[test]
fn graphs_are_those_of_the_protocol() {
    let design = TornadoCode::new(rate(32));
    let graph = Graph::of(design, 1000);
    let checks: Vec<_> = graph.cascade.levels.iter().map(|level| level.checks.clone()).collect();
    assert_eq!((checks, graph.cascade.repairs.clone()), (vec![1000..1265, 1265..1340], 1340..1369));
    let checks_of = |left| graph.equations_of(left).map(|equation| 1000 + equation).collect::<Vec<_>>();
    assert_eq!(checks_of(0), [1155, 1203, 1258]);
    assert_eq!(checks_of(999), [1090, 1058, 1250]);
    assert_eq!(graph.lefts(0), [110, 151, 187, 377, 397, 441, 486, 501, 631, 705, 714, 984]);
    let fnv = repairs(design, &source(1000, 8))[..340]
        .iter()
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(fnv, 0xfaa9_e079_d549_e195);
}

/// Each check symbol is the exclusive or of its lefts, and the last ones are Reed-Solomon symbols of the last level.
#[test]
fn check_symbols_are_sums_and_the_end_is_reed_solomon() {
    for (k, of_128) in [(50, 20), (121, 1), (700, 40), (1500, 64)] {
        let design = TornadoCode::new(rate(of_128));
        let (source, graph) = (source(k, 6), Graph::of(design, k));
        let repairs = repairs(design, &source);
        let symbol = |esi: u32| source.symbol(esi).unwrap_or_else(|| &repairs[(esi - k) as usize]);
        for equation in graph.equations() {
            let mut sum = symbol(k + equation).to_vec();
            add_many(&mut sum, &graph.lefts(equation).iter().map(|&left| symbol(left)).collect::<Vec<_>>());
            assert_eq!(sum, [0; 6], "k {k}, equation {equation}");
        }
        let cascade = &graph.cascade;
        let count = cascade.end.len() as u32;
        let end = Block::new_complete(count, 6, cascade.end.clone().flat_map(|esi| symbol(esi).to_vec()).collect());
        let mut code = BlockCode::ReedSolomon.encoder(count, 6).unwrap();
        for (index, esi) in cascade.repairs.clone().enumerate() {
            let mut repair = [0; 6];
            code.write_repair(&end, count + index as u32, &mut repair);
            assert_eq!(symbol(esi), repair, "k {k}, repair symbol {index} of the end");
        }
    }
}

/// Requested from the last to the first, also of levels with unrequested lefts.
#[test]
fn check_symbols_come_in_any_order() {
    for (k, of_128) in [(50, 20), (1500, 40)] {
        let design = TornadoCode::new(rate(of_128));
        let (source, mut symbol) = (source(k, 2), [0; 2]);
        let expected = repairs(design, &source);
        // The first level has 488 checks, the second 163.
        for first in [1499, 500, 1] {
            let mut encoder = design.encoder(k, 2).unwrap();
            for (index, expected) in expected.iter().enumerate().take(first + 1).rev() {
                encoder.write_repair(&source, k + index as u32, &mut symbol);
                assert_eq!(symbol[..], expected[..], "k {k}, repair symbol {index} after {first}");
            }
        }
    }
}

/// Blocks of several levels, losses around the code's limit, `recover` whenever it may: the right bytes as soon as
/// peeling completes.
#[test]
fn decodes_when_peeling_completes_and_to_the_right_bytes() {
    let mut dice = Dice(SplitMix64::new(0x5eed_0001));
    for (k, of_128) in [(130, 64), (400, 16), (1000, 32), (2500, 64), (60, 32)] {
        let design = TornadoCode::new(rate(of_128));
        let sent = source(k, 4);
        let repairs = repairs(design, &sent);
        for round in 0..20 {
            let order = dice.shuffled(design.symbol_limit(k));
            let needed = design.needed(k, order.iter().copied()).unwrap();
            let mut received = Block::new_missing(k, 4, vec![0xee; sent.bytes().len()]);
            let mut decoder = design.decoder(k, 4).unwrap();
            let mut arrived = 0;
            let mut useful = 0;
            while !received.is_complete() {
                let esi = order[arrived];
                arrived += 1;
                useful += u32::from(match sent.symbol(esi) {
                    Some(symbol) => received.insert(esi, symbol),
                    None => decoder.push(&received, esi, &repairs[(esi - k) as usize]) != Progress::Redundant,
                });
                let progress = decoder.recover(&mut received);
                assert_eq!(progress == Progress::Ready, received.is_complete(), "k {k}, round {round}");
            }
            assert_eq!(received, sent, "k {k}, round {round}");
            assert!(arrived >= needed && useful as usize <= arrived, "k {k}, round {round}: {arrived} before {needed}");
            // It asks for a 32nd of the unknown symbols at a time, or a 256th of the repair symbols.
            assert!(arrived <= needed + k as usize / 32 + 5, "k {k}, round {round}: {arrived} long after {needed}");
        }
    }
}

/// With all of the source but a few symbols, only these are computed, and a late source symbol is used as it arrives.
#[test]
fn late_symbols_of_both_kinds_are_used() {
    let design = TornadoCode::new(rate(32));
    let sent = source(1000, 2);
    let repairs = repairs(design, &sent);
    let mut received = Block::new_missing(1000, 2, Vec::new());
    let mut decoder = design.decoder(1000, 2).unwrap();
    for esi in (0..1000).filter(|esi| esi % 4 != 0) {
        received.insert(esi, sent.symbol(esi).unwrap());
    }
    for esi in 1000..1265 {
        decoder.push(&received, esi, &repairs[esi as usize - 1000]);
    }
    let Progress::Need(more) = decoder.recover(&mut received) else { panic!("265 checks are too few for 250 lost") };
    assert!((1..=8).contains(&more), "{more}");
    assert_eq!(decoder.recover(&mut received), Progress::Need(more), "no symbol has arrived");
    for esi in (0..500).step_by(4) {
        assert!(received.insert(esi, sent.symbol(esi).unwrap()));
    }
    assert_eq!(decoder.recover(&mut received), Progress::Ready);
    assert_eq!(received, sent);
}

/// In violation of the contract, the block has lost symbols between two calls: no panic, no wrong bytes, and later
/// symbols are used.
#[test]
fn a_block_that_loses_symbols_is_not_filled_with_wrong_bytes() {
    let design = TornadoCode::new(rate(64));
    let sent = source(500, 2);
    let repairs = repairs(design, &sent);
    let mut received = Block::new_missing(500, 2, Vec::new());
    let mut decoder = design.decoder(500, 2).unwrap();
    for esi in 250..500 {
        received.insert(esi, sent.symbol(esi).unwrap());
    }
    for esi in 500..750 {
        decoder.push(&received, esi, &repairs[esi as usize - 500]);
    }
    assert!(matches!(decoder.recover(&mut received), Progress::Need(_)));
    // With the symbols seen, all is known; but half of them are dropped.
    let mut other = Block::new_missing(500, 2, vec![0xee; 1000]);
    for esi in 0..245 {
        other.insert(esi, sent.symbol(esi).unwrap());
    }
    for esi in 750..790 {
        decoder.push(&other, esi, &repairs[esi as usize - 500]);
        assert!(matches!(decoder.recover(&mut other), Progress::Need(_)), "{esi}");
    }
    for esi in 0..500 {
        other.insert(esi, sent.symbol(esi).unwrap());
    }
    assert_eq!(decoder.recover(&mut other), Progress::Ready);
    assert_eq!(other, sent);
}

/// Reception overhead in random order: the computed probability of failure is not below the observed one, nor far above
/// it.
#[test]
fn failure_is_as_seldom_as_predicted() {
    for (k, of_128, trials) in [(100, 32, 50), (200, 64, 400), (1000, 8, 400), (1000, 32, 400), (5000, 32, 100)] {
        let design = TornadoCode::new(rate(of_128));
        let mut dice = Dice(SplitMix64::new(u64::from(k) << 8 | u64::from(of_128)));
        let limit = design.symbol_limit(k);
        let mut extras: Vec<u32> =
            (0..trials).map(|_| design.needed(k, dice.shuffled(limit)).unwrap() as u32 - k).collect();
        extras.sort_unstable();
        for percent in [50, 90, 98] {
            let extra = extras[trials * percent / 100 - 1];
            let (predicted, seen) = (rate(of_128).failure(k, extra), 1.0 - percent as f64 / 100.0);
            let error = 3.0 * (seen * (1.0 - seen) / trials as f64).sqrt();
            assert!(
                predicted >= seen - error || k == 100,
                "k {k}, {of_128}: {predicted} predicted, {seen} seen at {extra}"
            );
            assert!(k <= 120 || extra as f64 > 0.2 * (0.1 * f64::from(limit - k)), "k {k}: {extra} is no overhead");
            assert!(k > 120 || extra == 0, "the end alone decodes from any k");
        }
    }
    assert_eq!(
        CheckShare::HALF.failure(1000, TornadoCode::new(CheckShare::HALF).symbol_limit(1000) - 1000),
        0.0,
        "all symbols have arrived"
    );
}

/// The rate for a loss tolerates it in 99 of 100 cases; with 300 trials, 12 failures have a probability of 1e-4. Half
/// the check symbols do not.
#[test]
fn a_rate_for_a_loss_bears_it() {
    for (k, loss) in [(1000, 0.02), (1000, 0.1), (300, 0.2), (5000, 0.1)] {
        let chosen = CheckShare::for_loss(k, loss, 0.0).unwrap();
        let mut dice = Dice(SplitMix64::new(u64::from(k)));
        let mut failures = |rate: CheckShare| {
            let design = TornadoCode::new(rate);
            let limit = design.symbol_limit(k);
            let lost = |dice: &mut Dice| f64::from(dice.0.below_u32(1 << 20)) < loss * f64::from(1 << 20);
            (0..300)
                .filter(|_| {
                    let arrived: Vec<u32> = (0..limit).filter(|_| !lost(&mut dice)).collect();
                    design.needed(k, arrived).is_none()
                })
                .count()
        };
        let (with, without) = (failures(chosen), failures(rate(chosen.of_128() / 2)));
        assert!(with < 12, "k {k}, loss {loss}: {with} of 300 fail at {chosen:?}");
        assert!(without > 100, "k {k}, loss {loss}: only {without} of 300 fail at half of {chosen:?}");
        let careful = CheckShare::for_loss(k, loss, 0.25).unwrap();
        assert!(f64::from(TornadoCode::new(careful).symbol_limit(k)) * (1.0 - loss) >= 1.25 * f64::from(k));
    }
    assert_eq!(CheckShare::for_loss(1000, 0.6, 0.0), None, "half of the symbols cannot represent 60 %");
    assert_eq!((CheckShare::new(0), CheckShare::new(65)), (None, None));
}

/// A tail as long as the left symbols allow reduces the asymptotic overhead, and is another code.
#[test]
fn other_tails_are_other_codes() {
    let short = TornadoCode::new(rate(32)).with_longest_tail(3);
    assert_eq!((short.longest_tail, short.with_longest_tail(0).longest_tail), (3, 1));
    let mut dice = Dice(SplitMix64::new(77));
    let mut mean = |design: TornadoCode| {
        (0..20).map(|_| design.needed(5000, dice.shuffled(design.symbol_limit(5000))).unwrap()).sum::<usize>() / 20
            - 5000
    };
    let (short, standard) = (mean(short), mean(TornadoCode::new(rate(32))));
    assert!(short > 2 * standard, "{short} with D = 3, {standard} with D = 20");
}
