//! `cargo xtask assure`: hours of fuzzing and of seeds, and the table of docs/ASSURANCE.md.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum as _};

use crate::fuzz::{self, Reached, Searched};
use crate::miri;
use crate::soak::{self, Property, Soaked};
use xtask::failure::Failure;
use xtask::tools;

/// The options of `assure`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How long, in equal parts for all fuzz targets and properties; builds and Miri are extra
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    hours: Duration,
}

fn hours(text: &str) -> Result<Duration, String> {
    let hours = text.parse::<f64>().ok().and_then(|hours| Duration::try_from_secs_f64(hours * 3600.0).ok());
    hours.ok_or_else(|| "a number of hours, such as 0.5".to_owned())
}

/// Runs Miri, every fuzz target guided by coverage and every property, each with its own seeds. Ends with a table; an
/// error lists the failures.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::rerun_optimised(tools::root(), "xtask")? {
        return Ok(());
    }
    fuzz::require()?;
    let (targets, properties) = (fuzz::targets()?, Property::value_variants());
    let time = options.hours / u32::try_from(targets.len() + properties.len()).expect("a few");
    let mut report = Report { header: format!("{}, {} s each", occasion()?, time.as_secs()), ..Report::default() };
    report.miri(miri::run());
    for target in targets {
        report.fuzzed(&target, fuzz::search(&target, time));
    }
    for property in properties {
        report.soaked(*property, &soak::soak(*property, None, time));
    }
    println!("\n{}", report.table());
    if report.red.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("red:\n{}", report.red.join("\n")))) }
}

/// Today's date, and the commit.
fn occasion() -> Result<String, Failure> {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(tools::root()).output();
        let output = output.map_err(Failure::at(program))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = said("git", &["describe", "--always", "--dirty", "--exclude=*"])?;
    Ok(format!("{}, commit {commit}", said("date", &["-u", "+%F"])?))
}

/// The rows of the table, and the failures with the command that repeats them.
#[derive(Debug, Default)]
struct Report {
    header: String,
    targets: String,
    properties: String,
    miri: &'static str,
    red: Vec<String>,
}

impl Report {
    fn miri(&mut self, result: Result<(), Failure>) {
        self.miri = if result.is_ok() { "green" } else { "red" };
        self.red.extend(result.err().map(|failure| format!("{failure}; again: cargo xtask miri")));
    }

    fn fuzzed(&mut self, name: &str, result: Result<Searched, Failure>) {
        let _ = match result {
            Ok(Searched { inputs, reached: Reached { edges, features, inputs: corpus } }) => {
                writeln!(self.targets, "| `{name}` | {inputs} | {edges} | {features} | {corpus} | green |")
            }
            Err(failure) => {
                self.red.push(failure.to_string());
                writeln!(self.targets, "| `{name}` | | | | | red |")
            }
        };
    }

    fn soaked(&mut self, property: Property, Soaked { first, tried, failed }: &Soaked) {
        let name = property.name();
        let _ = writeln!(self.properties, "| `{name}` | {tried} | {first} | {} |", failed.len());
        let again = |seed| format!("{name}, seed {seed}; again: cargo xtask soak {name} --seed {seed} --minutes 1");
        self.red.extend(failed.iter().map(again));
    }

    fn table(&self) -> String {
        let Self { header, targets, properties, miri, .. } = self;
        format!(
            "{header}\n\n| target | inputs | edges | features | corpus | result |\n|---|--:|--:|--:|--:|---|\n{targets}\n\
             | property | seeds | first seed | red |\n|---|--:|--:|--:|\n{properties}\nMiri: {miri}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_in_the_table_with_their_command() {
        let mut report = Report { header: "today".to_owned(), ..Report::default() };
        report.miri(Ok(()));
        let reached = Reached { edges: 5, features: 6, inputs: 7 };
        report.fuzzed("wire", Ok(Searched { inputs: 1000, reached }));
        report.fuzzed("sink", Err(Failure::new("sink broke\nagain: cargo +nightly fuzz run sink FILE")));
        report.soaked(Property::Moving, &Soaked { first: 12, tried: 30, failed: vec![15] });
        let table = report.table();
        assert!(table.contains("| `wire` | 1000 | 5 | 6 | 7 | green |\n| `sink` | | | | | red |\n"), "{table}");
        assert!(table.contains("| `moving` | 30 | 12 | 1 |\n\nMiri: green"), "{table}");
        assert_eq!(report.red.len(), 2);
        assert!(report.red[0].ends_with("cargo +nightly fuzz run sink FILE"));
        assert!(report.red[1].ends_with("again: cargo xtask soak moving --seed 15 --minutes 1"), "{:?}", report.red);
    }

    #[test]
    fn hours_are_a_number() {
        assert_eq!(hours("0.5"), Ok(Duration::from_secs(1800)));
        for wrong in ["", "-1", "NaN", "1e300", "an hour"] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }
}
