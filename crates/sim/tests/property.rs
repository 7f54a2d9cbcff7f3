//! Thousands of drawn scenarios end as they must. `SEED=n cargo test -p sim --test property -- --nocapture` runs one.

use sim::property::check;

/// Runs `count` seeds from `first` on, or the one that the environment names.
fn check_all(first: u64, count: u64) {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        println!("{:?}", check(seed));
        return;
    }
    let failures: Vec<String> = (first..first + count).filter_map(|seed| check(seed).err()).collect();
    assert!(failures.is_empty(), "{} of {count} seeds fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn seeds_0() {
    check_all(0, 600);
}
