//! `cargo xtask figures`: runs every figure and table in `experiments/`, and judges them.
//!
//! Plans run in the order of their sensitivity to load: simulated ones, then codes, which are timed alone, then links,
//! which need a quiet machine. After a stop, the same command resumes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;
use lab::codes::CodePlan;
use lab::results::{RECORDS, has_records};
use lab::simulated::SimPlan;

use xtask::failure::Failure;
use xtask::tools;

use crate::root;

/// The table of all verdicts.
const TABLE: &str = "experiments/VERDICTS.md";
/// The text above the table.
const ABOVE: &str = "# Verdicts

Written by `cargo xtask figures` from the results and the `verdict.toml` beside them; [README.md](README.md) says how to read
it. *Reproduced*: every number is within the document's own spread, or 20 % where it gives none, and every order and direction
is as claimed. *In kind*: every order and direction is as claimed, and a number is not. *Not reproduced*: neither.

";

/// The options of `figures`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run only plans whose name contains one of these: arq, lt-tcp/table2-1
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Also repeat measurements of another build of downpour
    #[arg(long)]
    stale: bool,
    /// Measure the first run at each point only, into the target directory, and compare the verdicts with the stored
    /// ones
    #[arg(long)]
    quick: bool,
    /// List the plans, with the remaining cases and time of each
    #[arg(long)]
    list: bool,
    /// Only draw and judge existing results
    #[arg(long, conflicts_with_all = ["stale", "quick", "list"])]
    draw: bool,
    /// Number of parallel runs over links [default: twice the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// The kinds of plans, in the order of runs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    Simulated,
    Codes,
    Links,
}

/// A plan and the directory of its results.
struct Figure {
    kind: Kind,
    name: String,
    plan: PathBuf,
    results: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let figures = figures(&options.names, options.quick)?;
    if figures.is_empty() {
        return Err(Failure::new("no plan in experiments/ matches these names"));
    }
    // The measured program must be of the same sources.
    if !options.draw && figures.iter().any(|figure| figure.kind == Kind::Links) {
        tools::build(tools::root(), "downpour-cli", "downpour")?;
    }
    let lab = crate::build_lab()?;
    if !options.draw {
        for (number, figure) in (1..).zip(&figures) {
            println!("{number} of {}: {}: {}", figures.len(), figure.name, left(&lab, figure, options)?);
            if !options.list {
                // Others may still succeed, and the verdict lists missing measurements.
                if let Err(failure) = tools::run(&mut measure(&lab, figure, options)) {
                    eprintln!("xtask: {failure}");
                }
            }
        }
    }
    if options.list { Ok(()) } else { judge(&lab, &figures, options) }
}

/// Finds the plans whose names contain one of `names`, or all.
fn figures(names: &[String], is_quick: bool) -> Result<Vec<Figure>, Failure> {
    let directory = root().join("experiments");
    let quick = tools::target()?.join("figures");
    let mut figures = Vec::new();
    for plan in tools::files(&directory, Some("toml"))? {
        let Ok(path) = plan.strip_prefix(&directory) else { continue };
        let name = path.with_extension("").display().to_string();
        // Plans are in the directories of documents, their copies and verdicts one level deeper.
        if path.components().count() != 2 || !is_plan(&plan)? {
            continue;
        }
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted)) {
            continue;
        }
        let results = if is_quick { quick.join(&name) } else { directory.join(&name) };
        figures.push(Figure { kind: kind(&plan)?, name, plan, results });
    }
    figures.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(figures)
}

/// Returns whether a file is a plan, and not a topology.
fn is_plan(file: &Path) -> Result<bool, Failure> {
    let text = fs::read_to_string(file).map_err(Failure::at(file.display()))?;
    Ok(text.lines().any(|line| line.trim() == "[[sweep]]"))
}

fn kind(plan: &Path) -> Result<Kind, Failure> {
    if CodePlan::read(plan).map_err(Failure::new)?.is_some() {
        return Ok(Kind::Codes);
    }
    let simulated = SimPlan::read(plan).map_err(Failure::new)?.filter(|plan| !plan.base.is_emulated());
    Ok(if simulated.is_some() { Kind::Simulated } else { Kind::Links })
}

fn measure(lab: &Path, figure: &Figure, options: &Options) -> Command {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = match figure.kind {
        Kind::Simulated => cores,
        Kind::Codes => 1,
        Kind::Links => options.jobs.unwrap_or(2 * cores),
    };
    let mut command = Command::new(lab);
    command.arg("run").arg(&figure.plan).arg("--out").arg(&figure.results).arg("--jobs").arg(jobs.to_string());
    command.args(options.stale.then_some("--stale")).args(options.quick.then_some("--quick"));
    command
}

/// Returns the last line of a dry run.
fn left(lab: &Path, figure: &Figure, options: &Options) -> Result<String, Failure> {
    let mut command = measure(lab, figure, options);
    let output = command.arg("--dry-run").stderr(Stdio::null()).output().map_err(Failure::at(lab.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().last().unwrap_or("cannot run on this machine").trim().to_owned())
}

/// Draws and judges the results.
fn judge(lab: &Path, figures: &[Figure], options: &Options) -> Result<(), Failure> {
    let has_results = |figure: &&Figure| has_records(&figure.results);
    let has_new = |figure: &&Figure| figure.results.join(RECORDS).exists();
    for Figure { name, results, .. } in figures.iter().filter(has_results) {
        let verdict = root().join("experiments").join(name).join("verdict.toml");
        if options.quick && verdict.exists() {
            fs::copy(&verdict, results.join("verdict.toml")).map_err(Failure::at(verdict.display()))?;
        }
        tools::run(Command::new(lab).arg("report").arg(results))?;
    }
    let new: Vec<&PathBuf> = figures.iter().filter(has_new).map(|figure| &figure.results).collect();
    if !new.is_empty() && !options.quick {
        tools::run(Command::new(lab).arg("pack").args(new))?;
    }
    // The page and the table are of all plans, whichever were run.
    let every = self::figures(if options.quick { &options.names } else { &[] }, options.quick)?;
    let directories: Vec<&PathBuf> = every.iter().filter(has_results).map(|figure| &figure.results).collect();
    let page = tools::target()?.join("figures.html");
    tools::run(Command::new(lab).arg("report").args(&directories).arg("--out").arg(&page))?;
    let output = Command::new(lab).arg("verdicts").args(&directories).stderr(Stdio::inherit()).output();
    let output = output.map_err(Failure::at(lab.display()))?;
    if !output.status.success() {
        return Err(Failure::new("cannot read the verdicts"));
    }
    let table = String::from_utf8(output.stdout).map_err(Failure::new)?;
    let path = root().join(TABLE);
    if options.quick {
        return compare(&table, &fs::read_to_string(&path).map_err(Failure::at(TABLE))?);
    }
    fs::write(&path, format!("{ABOVE}{table}")).map_err(Failure::at(TABLE))
}

/// Prints which verdicts differ from the stored ones.
fn compare(now: &str, stored: &str) -> Result<(), Failure> {
    let (now, stored) = (verdicts(now), verdicts(stored));
    let compared = || now.iter().filter_map(|(claim, verdict)| Some((claim, verdict, stored.get(claim)?)));
    let differ = || compared().filter(|(_, now, stored)| now != stored);
    for ((item, claim), now, stored) in differ() {
        println!("{item}: now {now}, stored {stored}: {claim}");
    }
    println!("{} of {} verdicts equal the stored ones", compared().count() - differ().count(), compared().count());
    Ok(())
}

/// Returns the verdicts of a table by their items and claims, without reasons.
fn verdicts(table: &str) -> BTreeMap<(String, String), String> {
    // These include the headlines.
    let all = table.split_once("## All claims").map_or(table, |(_, all)| all);
    let rows = all.lines().filter_map(|line| line.strip_prefix("| [")?.strip_suffix(" |"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [item, claim, .., verdict] = &cells[..] else { return None };
        let (item, _) = item.split_once(']')?;
        let verdict = verdict.split(':').next().unwrap_or_default();
        Some(((item.to_owned(), (*claim).to_owned()), verdict.to_owned()))
    };
    rows.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_by_item_and_claim() {
        let table = "| item | claim | system | measured | verdict |\n|---|---|---|---|---|\n\
            | [arq 1](arq/fig1/verdict.toml) | It grows. | arq | 3 s | reproduced |\n\
            | [arq 2](arq/fig2/verdict.toml), older build | It falls. | arq | 4 s | not reproduced: it rises |\n";
        let expected = [(("arq 1", "It grows."), "reproduced"), (("arq 2", "It falls."), "not reproduced")];
        let owned = expected.map(|((item, claim), verdict)| ((item.to_owned(), claim.to_owned()), verdict.to_owned()));
        assert_eq!(verdicts(table), owned.into());
    }

    #[test]
    fn figures_finds_every_plan_once() {
        let names: Vec<String> = figures(&[], false).expect("plans").into_iter().map(|figure| figure.name).collect();
        assert!(names.iter().any(|name| name == "arq/fig3") && names.iter().any(|name| name == "neighbours/cubic"));
        assert!(names.iter().all(|name| !name.ends_with("plan") && !name.ends_with("verdict")), "{names:?}");
    }
}
