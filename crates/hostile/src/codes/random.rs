//! Generates random cases, for many more runs than a test has time for.

use erasure::BlockCode;
use fastrand::Rng;

use super::Case;

/// Generates a code, a block, losses, and an order in which source symbols, repair symbols, duplicates and surplus
/// arrive, with attempts to recover between them: the decoder must produce the right bytes or report its need.
/// Everything follows from the seed.
///
/// # Panics
///
/// If the decoder is wrong.
pub fn check_random_code(seed: u64) {
    let mut dice = Rng::with_seed(seed);
    let code = BlockCode::ALL[dice.usize(..BlockCode::ALL.len())];
    let least = 1 + match dice.u32(..20) {
        0..14 => dice.u32(..60),
        14..19 => dice.u32(..500),
        _ => dice.u32(..3000),
    };
    // Some codes require a few symbols, or even sizes.
    let shape = |k: u32, size: usize| code.check(k, size).is_ok().then_some((k, size));
    let size = dice.usize(1..=16);
    let (k, symbol_size) =
        (least..least + 10).find_map(|k| shape(k, size).or_else(|| shape(k, size + 1))).expect("a shape the code has");
    let mut case = Case::new(code, k, symbol_size, seed as u8);
    for (arrival, hinders) in arrivals(&mut dice, k, case.encoder.symbol_limit()) {
        case.arrive(arrival);
        match hinders {
            0 => case.arrive(arrival),
            1 | 2 => case.recover(),
            3 => case.refuse(u32::MAX - arrival, case.symbol.len()),
            4 => case.refuse(k + arrival, case.symbol.len() + 1),
            _ => {}
        }
    }
    // With everything that has arrived; the rest of the source arrives while the decoder waits for more.
    case.finish();
}

impl Case {
    fn arrive(&mut self, esi: u32) {
        if esi < self.source.k() { self.insert(esi) } else { self.push(esi) }
    }
}

/// Returns ids in order of arrival, some twice, each with a number below 40 that selects other operations.
fn arrivals(dice: &mut Rng, k: u32, limit: u32) -> Vec<(u32, u32)> {
    // From nothing lost to everything.
    let percent = [0, 1, 10, 50, 100][dice.usize(..5)];
    let mut ids: Vec<u32> = (0..k).filter(|_| dice.u32(..100) >= percent).collect();
    let lost = k - ids.len() as u32;
    // Repair symbols from the beginning, from all over the code, or from its end.
    let repairs = limit - k;
    let reach = repairs.min([2 * k, 1 << 16, u32::MAX][dice.usize(..3)]);
    let first = if dice.u32(..4) == 0 { limit - reach } else { k };
    // Too few, about enough, or too many.
    let count = [lost / 2, lost, lost + lost / 4 + 3, 2 * lost + 10][dice.usize(..4)];
    if reach > 0 {
        ids.extend((0..count).map(|_| first + dice.u32(..reach)));
    }
    dice.shuffle(&mut ids);
    ids.into_iter().map(|id| (id, dice.u32(..40))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask soak codes` continues from here.
    #[test]
    fn random_codes_decode_correctly() {
        for seed in 0..600 {
            println!("seed {seed}");
            check_random_code(seed);
        }
    }

    #[test]
    fn random_arrivals_cover_all_kinds() {
        let mut dice = Rng::with_seed(7);
        let all: Vec<_> = (0..400).map(|_| arrivals(&mut dice, 20, 1 << 24)).collect();
        let source = |ids: &[(u32, u32)]| ids.iter().filter(|(id, _)| *id < 20).count();
        assert!(all.iter().any(|ids| source(ids) == 0) && all.iter().any(|ids| source(ids) == 20));
        assert!(all.iter().any(|ids| ids.len() < 20) && all.iter().any(|ids| ids.len() > 40));
        assert!(all.iter().flatten().any(|&(id, _)| id > (1 << 24) - 50));
        assert!((0..40).all(|number| all.iter().flatten().any(|&(_, hinders)| hinders == number)));
        assert!(arrivals(&mut dice, 20, 20).iter().all(|&(id, _)| id < 20), "a code without repair symbols");
    }
}
