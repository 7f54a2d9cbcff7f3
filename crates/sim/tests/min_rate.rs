//! `--min-rate`: a rate that the path is known to carry, in place of the search.

use downpour_sim::Case;

/// Returns the seconds that an object takes over 100 Mbit/s and 200 ms with 2 % loss.
fn seconds(size: u64, controller: &str) -> f64 {
    let mut profile = systems::auto();
    profile.set("congestion", controller).expect("a controller");
    let link = "rate=100M,delay=100ms,queue=256KB,loss=2%".parse().expect("a link");
    let outcome = Case { profile, size, ..Case::new(link) }.run(1);
    assert!(outcome.is_identical(), "{controller}: {:?}", outcome.ending);
    outcome.completed_secs()
}

#[test]
fn the_search_is_skipped() {
    // Three round trips of search, for a megabyte that fits into one.
    let (searched, minimum) = (seconds(1_000_000, "auto"), seconds(1_000_000, "auto:min-rate=90M"));
    assert!(searched > 0.7 && minimum < 0.50, "{searched} and {minimum} s");
}

#[test]
fn a_rate_that_the_path_does_not_carry_costs_little() {
    let searched = seconds(20_000_000, "auto");
    for (rate, most) in [("1M", 2.0), ("1G", 1.5)] {
        let wrong = seconds(20_000_000, &format!("auto:min-rate={rate}"));
        println!("{rate}: {searched} and {wrong} s");
        assert!(wrong < most * searched, "{rate}: {searched} and {wrong} s");
    }
}
