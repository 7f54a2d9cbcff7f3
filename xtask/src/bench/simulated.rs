//! Completion times over simulated links against the floor of the design: [`sim::reference`], with its targets.

use sim::reference::{self, Reference, Row};

use xtask::failure::Failure;
use xtask::measuring::{Tally, heading};

/// No seed of any case may take longer than this many floors.
const WORST: f64 = 1.7;

pub(super) fn run(quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let seeds = if quick { 8 } else { 40 };
    heading(format_args!("simulated: fixed rate 100 Mbit/s, queue 256 KB, loss both ways, {seeds} seeds a case"));
    println!("  median and worst in floors; IP bytes sent until, and after, completion per byte of the object");
    println!(
        "  {:24} {:>7}   {:<19}   {:<19}   {:<21}   {:>6}",
        "case", "floor s", "median", "worst", "sent until", "after"
    );
    let mut failed = 0;
    for case in reference::cases() {
        let row = case.run(seeds);
        let median = row.target.map_or_else(
            || format!("{:.3}", row.median_factor()),
            |target| judge(tally, &row, "median", row.median_factor(), target),
        );
        let worst = judge(tally, &row, "worst", row.worst_factor(), WORST);
        let wire = wire_target(&case)
            .map_or_else(|| format!("{:.3}", row.wire), |target| judge(tally, &row, "sent", row.wire, target));
        println!("  {:24} {:7.3}   {median:<19}   {worst:<19}   {wire:<21}   {:6.4}", row.name, row.floor, row.after);
        failed += row.failed;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::new(format_args!("{failed} runs did not end with identical bytes"))) }
}

/// IP bytes sent until completion per byte of the object, at most; small objects are not judged by it.
fn wire_target(reference: &Reference) -> Option<f64> {
    let case = &reference.case;
    (case.size >= 10_000_000).then(|| 1.06 / (1.0 - case.link.forward.loss.mean()) + 0.02)
}

/// `1.012 <= 1.050 pass`.
fn judge(tally: &mut Tally, row: &Row, what: &str, number: f64, target: f64) -> String {
    let mark = tally.at_most(format_args!("simulated, {}, {what}", row.name), number, target);
    format!("{number:.3} <= {target:.3} {mark}")
}
