//! Thousands of drawn scenarios end as they must. `SEED=n cargo test -p sim --test property -- --nocapture` runs one.

use sim::property::check;

/// Runs the `count` seeds from `first` on, or the one that the environment names.
fn check_all(first: u64, count: u64) {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        return println!("{:#?}", check(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let (mut failures, mut alive, mut unheard) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        match check(seed) {
            Ok(report) if report.completed.is_some() => {
                alive += 1;
                unheard += u64::from(!report.close_heard);
            }
            Ok(_) => {}
            Err(wrong) => failures.push(wrong),
        }
    }
    assert!(failures.is_empty(), "{} of {count} seeds fail:\n{}", failures.len(), failures.join("\n"));
    // A path that dies after the last byte, or loses every copy of the close, is rare.
    assert!(unheard * 20 <= alive, "{unheard} of {alive} closes were not heard");
    assert!(alive * 10 >= count * 8, "only {alive} of {count} scenarios came to their end: the drawing is wrong");
}

#[test]
fn seeds_0_to_999() {
    check_all(0, 1_000);
}

#[test]
fn seeds_1000_to_1999() {
    check_all(1_000, 1_000);
}

#[test]
fn seeds_2000_to_2999() {
    check_all(2_000, 1_000);
}

#[test]
fn seeds_3000_to_3999() {
    check_all(3_000, 1_000);
}
