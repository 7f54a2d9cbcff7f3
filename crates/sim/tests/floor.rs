//! The reference cases: upper bounds for the engine, and a snapshot of its actual times, so that every change of speed
//! is a readable diff. `cargo run --release -p downpour-sim --example floor` prints the table only; to update the snapshot, run
//! the tests with `INSTA_UPDATE=always`.

use downpour_sim::reference::{self, Reference, Row};

/// No run of a reference case may take more floors than this.
const WORST: f64 = 1.75;

fn table(cases: &[Reference], seeds: u64) -> (Vec<Row>, String) {
    let rows: Vec<Row> = cases.iter().map(|reference| reference.run(seeds)).collect();
    let lines: Vec<String> = std::iter::once(Row::HEADER.to_owned()).chain(rows.iter().map(Row::to_string)).collect();
    (rows, lines.join("\n"))
}

#[test]
fn reference_cases_meet_their_targets() {
    let cases = reference::cases();
    let (rows, table) = table(&cases, 40);
    for (row, reference) in rows.iter().zip(&cases) {
        assert!(row.is_met(), "above its target:\n{}\n{row}", Row::HEADER);
        assert!(row.worst_factor() <= WORST, "a run took more than {WORST} floors:\n{}\n{row}", Row::HEADER);
        if reference.case.size == 10_000_000 {
            let most = 1.06 / (1.0 - reference.case.link.forward.loss.mean()) + 0.02;
            assert!(row.wire <= most, "more than {most:.4} bytes sent per byte:\n{}\n{row}", Row::HEADER);
        }
    }
    insta::assert_snapshot!("reference", table);
}

#[test]
fn watched_cases_are_as_they_were() {
    let (rows, table) = table(&reference::watched(), 10);
    assert!(rows.iter().all(|row| row.failed == 0), "{table}");
    insta::assert_snapshot!("watched", table);
}
