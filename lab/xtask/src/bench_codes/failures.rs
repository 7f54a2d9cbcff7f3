//! Failure rates of decoding, with confidence bounds, and the symbols beyond k that each code needs.

use erasure::BlockCode;
use lab::picture::{Lines, Mark};
use lab::plan::Scale;

use super::Bench;
use super::overhead::Overheads;
use super::report::{Cell, Report};
use xtask::failure::Failure;

/// Block sizes of RaptorQ, and the factor of trials of each.
const RAPTORQ: [(u32, u64); 3] = [(10, 3), (100, 3), (1000, 1)];
/// Failure rates allowed by the design with 0, 1 and 2 symbols beyond k: those of [`BlockCode::failure_probability`].
const LIMITS: [f64; 3] = [1e-2, 1e-4, 1e-6];
/// The trials needed for such a limit: with fewer it cannot be met. For 1000 symbols no run has enough for 2.
const ENOUGH: [u64; 3] = [1_000_000, 1_000_000, 3_000_000];
/// Block sizes of the other codes, and the share of the trials each has: an overhead shows in far fewer.
const OTHERS: [(u32, u64); 3] = [(100, 100), (1000, 500), (10_000, 5000)];
/// The drawn block size.
const DRAWN: u32 = 1000;
/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

pub(super) fn run(bench: &mut Bench, trials: u64) -> Result<(), Failure> {
    let seed = bench.rng.u64(..);
    let mut drawn = raptorq(bench, trials, seed)?;
    drawn.extend(others(bench, trials, seed)?);
    bench.draw(
        "failure-over-overhead",
        Lines::new(
            format!("Share of blocks of {DRAWN} symbols that do not decode"),
            "Symbols of a random part of the code; LT and pre-code + LT: coded symbols only.".to_owned(),
            [("Symbols received beyond k, % of k", Scale::Linear), ("Share that fails", Scale::Log)],
            drawn,
        ),
    )
}

type Line = (String, Vec<Mark>);

fn raptorq(bench: &mut Bench, trials: u64, seed: u64) -> Result<Vec<Line>, Failure> {
    let columns = ["RaptorQ, k", "symbols", "trials", "failures", "share", "95 % interval", "at most", "met"];
    let title =
        "RaptorQ: random losses, random repair symbols (intervals of Clopper and Pearson; of none the rule of three)";
    bench.report.table("failures", title, &columns);
    let mut drawn = Vec::new();
    for (k, times) in RAPTORQ {
        let overheads = Overheads::of(BlockCode::RaptorQ, k, trials * times, seed)?;
        for (beyond, limit) in LIMITS.into_iter().enumerate() {
            let (failures, trials) = (overheads.failures(beyond), overheads.trials());
            let (low, high) = interval(failures, trials);
            let mark = judge(&mut bench.report, k, beyond, (low, trials));
            let share = failures as f64 / trials as f64;
            bench.report.row(&[
                Cell::Whole(k.into()),
                Cell::text(format_args!("k + {beyond}")),
                Cell::Whole(trials),
                Cell::Whole(failures),
                Cell::Exponent(share),
                Cell::text(match failures {
                    0 => format!("0 to {high:.1e}"),
                    _ => format!("{low:.1e} to {high:.1e}"),
                }),
                Cell::Exponent(limit),
                mark,
            ]);
        }
        if k == DRAWN {
            drawn.push(line(BlockCode::RaptorQ, k, &overheads));
        }
    }
    Ok(drawn)
}

/// Within error: enough trials do not exclude the limit.
fn judge(report: &mut Report, k: u32, beyond: usize, (low, trials): (f64, u64)) -> Cell {
    let limit = LIMITS[beyond];
    if low <= limit && trials < ENOUGH[beyond] {
        return Cell::text("too few");
    }
    let [_, mark] = report.at_most(format!("RaptorQ, k = {k}, +{beyond}: lower end of the interval"), low, limit);
    mark
}

fn others(bench: &mut Bench, trials: u64, seed: u64) -> Result<Vec<Line>, Failure> {
    let columns = ["code", "k", "trials", "median, %", "90 %", "99 %", "largest", "never"];
    bench.report.table("overheads", "Symbols received beyond k until the block is there, % of k", &columns);
    let mut drawn = Vec::new();
    for code in BlockCode::ALL {
        if matches!(code, BlockCode::Uncoded | BlockCode::ReedSolomon | BlockCode::RaptorQ) {
            continue;
        }
        for (k, share) in OTHERS.into_iter().filter(|&(k, _)| code.check(k, 2).is_ok()) {
            let overheads = Overheads::of(code, k, (trials / share).max(10), seed)?;
            let percent = |beyond: usize| beyond as f64 * 100.0 / f64::from(k);
            let quantile =
                |share| overheads.quantile(share).map_or(Cell::None, |beyond| Cell::Number(percent(beyond), 1));
            bench.report.row(&[
                Cell::text(code),
                Cell::Whole(k.into()),
                Cell::Whole(overheads.trials()),
                quantile(0.5),
                quantile(0.9),
                quantile(0.99),
                Cell::Number(percent(overheads.largest()), 1),
                Cell::Whole(overheads.never()),
            ]);
            if k == DRAWN {
                drawn.push(line(code, k, &overheads));
            }
        }
    }
    Ok(drawn)
}

/// The failure rate, wherever it changes and is not 0.
fn line(code: BlockCode, k: u32, overheads: &Overheads) -> Line {
    let trials = overheads.trials() as f64;
    let mut last = u64::MAX;
    let mut marks = Vec::new();
    // Indistinguishable marks are omitted.
    for beyond in (0..=overheads.largest()).step_by((overheads.largest() / 40).max(1)) {
        let failures = overheads.failures(beyond);
        if failures > 0 && failures != last {
            marks.push(Mark::at(beyond as f64 * 100.0 / f64::from(k), failures as f64 / trials));
        }
        last = failures;
    }
    (code.to_string(), marks)
}

/// Returns the confidence interval of the share: that of Clopper 1934, and without failures up to 3 divided by the
/// trials.
fn interval(failures: u64, trials: u64) -> (f64, f64) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let high = match failures {
        0 => 1.0 - (1.0 - CONFIDENCE).powf(1.0 / trials as f64),
        all if all == trials => 1.0,
        failures => bisect(|share| at_most(failures, trials, share) > tail),
    };
    let low = match failures {
        0 => 0.0,
        failures => bisect(|share| 1.0 - at_most(failures - 1, trials, share) < tail),
    };
    (low, high)
}

/// Returns the largest number between 0 and 1 for which this holds, if it holds below and not above.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *if holds(middle) { &mut low } else { &mut high } = middle;
    }
    low
}

/// Returns the probability of at most this number of failures, if each trial fails with this probability.
fn at_most(failures: u64, trials: u64, share: f64) -> f64 {
    let odds = share.ln() - (-share).ln_1p();
    let mut term = trials as f64 * (-share).ln_1p();
    let mut largest = term;
    let mut sum = 1.0;
    // The sum of exp(term), kept as a multiple of the largest.
    for count in 0..failures {
        term += ((trials - count) as f64 / (count + 1) as f64).ln() + odds;
        if term > largest {
            sum = sum * (largest - term).exp() + 1.0;
            largest = term;
        } else {
            sum += (term - largest).exp();
        }
    }
    (largest + sum.ln()).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_needs_enough_trials() {
        let mut report = Report::new(true);
        let mut judged = |beyond, failures, trials| {
            let (low, _) = interval(failures, trials);
            match judge(&mut report, 10, beyond, (low, trials)) {
                Cell::Text(mark) => mark,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([judged(0, 0, 1), judged(1, 3, 999_999), judged(2, 0, 2_999_999)], ["too few"; 3]);
        assert_eq!([judged(0, 4_000, 1_000_000), judged(1, 100, 1_000_000), judged(2, 3, 3_000_000)], ["pass"; 3]);
        assert_eq!([judged(0, 60, 1_000), judged(2, 30, 3_000_000)], ["short"; 2], "ruled out by however few");
        assert_eq!((report.tally.outcome().0, report.tally.outcome().1.len()), (3, 2));
    }

    /// Known values: 0 of 3,000,000 is the rule of three; the others are tabulated for Clopper and Pearson.
    #[test]
    fn intervals() {
        for (failures, trials, low, high) in [
            (0, 3_000_000, 0.0, 0.9986e-6),
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1.0),
            (4000, 1_000_000, 0.003877, 0.004126),
        ] {
            let found = interval(failures, trials);
            for (found, known) in [(found.0, low), (found.1, high)] {
                assert!(
                    (found - known).abs() <= 1e-3 * known + 1e-12 + 5e-5 * f64::from(u8::from(trials == 10)),
                    "{failures} of {trials}: {found}, not {known}"
                );
            }
        }
    }
}
