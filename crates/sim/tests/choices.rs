//! arq, lt-tcp and ttp have the property that the engine has to have, whatever else is chosen.
//! `SEED=n cargo test -p sim --test choices -- --nocapture` runs one drawn scenario.

use sim::property::check_choices;

fn check_all(first: u64, count: u64) {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        return println!("{:#?}", check_choices(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let failures: Vec<String> = (first..first + count).filter_map(|seed| check_choices(seed).err()).collect();
    assert!(failures.is_empty(), "{} of {count} seeds fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn seeds_0_to_499() {
    check_all(0, 500);
}

#[test]
fn seeds_500_to_999() {
    check_all(500, 500);
}
