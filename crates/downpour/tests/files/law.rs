//! The law of a receiver: on any target tree, whatever a sender says, nothing outside the receive request is created,
//! replaced, followed, chmodded or deleted. Drawing and oracle are those of the fuzz target `sink`.

use downpour::files::fuzzing::check_random_case;

/// Number of cases in the test suite. [`CASES`] runs more, [`SEED`] a single one.
const QUICK: u64 = 1_500;
const CASES: &str = "DOWNPOUR_LAW_CASES";
const SEED: &str = "DOWNPOUR_LAW_SEED";

#[test]
fn nothing_outside_the_request_changes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(CASES).unwrap_or(QUICK),
    };
    for seed in seeds {
        let result = std::panic::catch_unwind(|| check_random_case(seed));
        assert!(result.is_ok(), "seed {seed}; again: {SEED}={seed} cargo test -p downpour --test files law");
    }
}
