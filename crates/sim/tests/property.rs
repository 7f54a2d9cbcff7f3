//! Checks the results of thousands of random scenarios. `SEED=n cargo test -p downpour-sim --test property objects --
//! --nocapture` runs a single scenario; the other families are `streams`, `documents` and `choices`.

use downpour_sim::property::{RunFigures, check, check_choices, check_documents, check_streams};
use std::ops::Range;

/// Runs these seeds, or the one in the environment. Returns their reports.
fn check_all(check: fn(u64) -> Result<RunFigures, String>, seeds: Range<u64>) -> Vec<RunFigures> {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        println!("{:#?}", check(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
        return Vec::new();
    }
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for seed in seeds.clone() {
        match check(seed) {
            Ok(report) => reports.push(report),
            Err(wrong) => failures.push(wrong),
        }
    }
    assert!(failures.is_empty(), "{} of seeds {seeds:?} fail:\n{}", failures.len(), failures.join("\n"));
    reports
}

/// Returns the number of scenarios that completed, which must be most of them.
fn alive(reports: &[RunFigures]) -> usize {
    let (alive, count) = (reports.iter().filter(|report| report.completed.is_some()).count(), reports.len());
    assert!(alive * 10 >= count * 8, "only {alive} of {count} scenarios ended: the drawing is wrong");
    alive
}

/// Objects, sent with profile `auto` or at fixed rates.
mod objects {
    use super::*;

    fn check_objects(seeds: Range<u64>) {
        let reports = check_all(check, seeds);
        let unheard = reports.iter().filter(|report| report.completed.is_some() && !report.close_heard).count();
        let alive = alive(&reports);
        // It is rare that a path dies after the last byte or loses every copy of the close.
        assert!(unheard * 20 <= alive, "{unheard} of {alive} closes were not received");
    }

    #[test]
    fn seeds_0_to_999() {
        check_objects(0..1_000);
    }

    #[test]
    fn seeds_1000_to_1999() {
        check_objects(1_000..2_000);
    }

    #[test]
    fn seeds_2000_to_2999() {
        check_objects(2_000..3_000);
    }

    #[test]
    fn seeds_3000_to_3999() {
        check_objects(3_000..4_000);
    }
}

/// Whatever the paths do, everything written is read in order, or the stream ends as one side requested.
mod streams {
    use super::*;

    #[test]
    fn seeds_0_to_499() {
        alive(&check_all(check_streams, 0..500));
    }

    #[test]
    fn seeds_500_to_999() {
        alive(&check_all(check_streams, 500..1_000));
    }
}

/// The systems of the documents must have the same properties as the engine.
mod documents {
    use super::*;

    #[test]
    fn seeds_0_to_499() {
        check_all(check_documents, 0..500);
    }

    #[test]
    fn seeds_500_to_999() {
        check_all(check_documents, 500..1_000);
    }
}

/// So must arq, lt-tcp and ttp with any other settings.
mod choices {
    use super::*;

    #[test]
    fn seeds_0_to_499() {
        check_all(check_choices, 0..500);
    }

    #[test]
    fn seeds_500_to_999() {
        check_all(check_choices, 500..1_000);
    }

    /// An object whose last block has a single short symbol, on a path that shrinks; probes that only carried
    /// announcements while no symbol arrived; keep-alives requested once in fifteen seconds over a path with bursts of
    /// losses; a side without data that did not repeat the confirmation of the handshake; symbols that arrived behind a
    /// gap and counted for nothing (two); bursts of repeats of which a short queue dropped the same symbols each time
    /// (two); receivers that reported every 1024 packets to senders of 25 a second (three); a search for the packet
    /// size whose probes were all lost; heartbeats that filled a slow path back; probes that a slow pacer owed (two).
    #[test]
    fn seeds_that_found_something() {
        let engine = [1_746, 7_238, 2_873, 5_962, 13_065, 9_842, 11_503, 38_204, 47_934, 25_546, 72_800, 79_954];
        for seed in engine.into_iter().chain([156_995, 512_707, 627_888, 719_808]) {
            check_all(check_choices, seed..seed + 1);
        }
    }
}
