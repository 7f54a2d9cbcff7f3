//! Streams over drawn paths: whatever these do, what was written is read, in order, or the stream ends as one side wished.
//! `SEED=n cargo test -p sim --test streams -- --nocapture` runs one.

use sim::property::check_streams;

fn check_all(first: u64, count: u64) {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        return println!("{:#?}", check_streams(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let (mut failures, mut alive) = (Vec::new(), 0);
    for seed in first..first + count {
        match check_streams(seed) {
            Ok(report) => alive += u64::from(report.completed.is_some()),
            Err(wrong) => failures.push(wrong),
        }
    }
    assert!(failures.is_empty(), "{} of {count} seeds fail:\n{}", failures.len(), failures.join("\n"));
    assert!(alive * 10 >= count * 8, "only {alive} of {count} scenarios came to their end: the drawing is wrong");
}

#[test]
fn seeds_0_to_499() {
    check_all(0, 500);
}

#[test]
fn seeds_500_to_999() {
    check_all(500, 500);
}
