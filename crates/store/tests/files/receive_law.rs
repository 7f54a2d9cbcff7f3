//! The law of a receiver: on any target tree, whatever a sender sends, nothing outside the receive request is created,
//! replaced, followed, chmodded or deleted. Drawing and oracle are those of the fuzz target `sink`.

use hostile::{check_random_case, fuzz_sink, replay};

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
    let (mut all, mut refused) = (0, 0);
    for seed in seeds {
        let result = std::panic::catch_unwind(|| check_random_case(seed));
        let Ok(openings) = result else {
            panic!("seed {seed}; again: {SEED}={seed} cargo test -p downpour-store --test files law");
        };
        (all, refused) = (all + openings.all, refused + openings.refused);
    }
    println!("{refused} of {all} targets were refused before a sender connected");
    // Such cases do not test the sender.
    assert!(all < 100 || refused * 4 < all, "{refused} of {all} targets were refused before a sender connected");
}

#[test]
fn sink_corpus_changes_nothing_outside_request() {
    replay("sink", fuzz_sink);
}
