//! `downpour-lab report`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::default_folder;
use crate::codes::{self, CodePlan, CodeSweep};
use crate::exit::{Code, Failure};
use crate::judged;
use crate::output::say;
use crate::picture::{Chart, png, svg};
use crate::plan::{LinkPlan, Sweep};
use crate::report::{Measured, Section, page};
use crate::results::{PLAN, StoreOf, csv, write};
use crate::simulated::{self, SimPlan, SimSweep};

/// The verdicts on the results with their numbers, in their folder.
const VERDICT: &str = "verdict.txt";

/// Plot results and write a report.
///
/// Writes a picture of every sweep (SVG and PNG) and a table of all runs (results.csv) to each folder of results. The
/// report is a single HTML page with the pictures, medians and spread, the environment, the claims, and the verdicts of
/// verdict.toml beside the results, which are written to verdict.txt too. It needs no other file, no network and no
/// scripts.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Folders of results, or plans whose results are in lab-results.
    #[arg(value_name = "FOLDER|PLAN.toml", required = true)]
    pub from: Vec<PathBuf>,
    /// File for the report [default: report.html, in the folder of results if there is only one].
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, where results cannot be read or drawn.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let folders = args.from.iter().map(|from| folder(from)).collect::<Result<Vec<_>, _>>()?;
    let out = args.out.clone().unwrap_or_else(|| match &folders[..] {
        [only] => only.join("report.html"),
        _ => PathBuf::from("report.html"),
    });
    write_up(&folders, &out)?;
    say(&format!("{}\n", out.display()));
    Ok(0)
}

pub(super) fn folder(from: &Path) -> Result<PathBuf, Failure> {
    if from.is_dir() {
        return Ok(from.to_owned());
    }
    let name = match (CodePlan::read(from)?, SimPlan::read(from)?) {
        (Some(plan), _) => plan.name,
        (_, Some(plan)) => plan.name,
        (None, None) => LinkPlan::of_results(from)?.name,
    };
    Ok(default_folder(&name))
}

/// Draws each folder's pictures and table, and writes one page about all of them.
pub(super) fn write_up(folders: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let mut sections = Vec::new();
    for folder in folders {
        let measured = measured(folder)?;
        let (charts, table) = drawn(&measured);
        let mut pictures = Vec::new();
        for (name, chart) in charts {
            let drawn = svg(&chart);
            write(&folder.join(format!("{name}.svg")), drawn.as_bytes())?;
            let pixels = png(&drawn).map_err(|error| Failure::new(Code::Other, error))?;
            write(&folder.join(format!("{name}.png")), &pixels)?;
            pictures.push(drawn);
        }
        write(&folder.join("results.csv"), table.as_bytes())?;
        let judged = judged::read(folder, &measured)?;
        if let Some(judged) = &judged {
            write(&folder.join(VERDICT), judged.to_string().as_bytes())?;
        }
        sections.push(Section { measured, pictures, judged });
    }
    write(out, page(&sections).as_bytes())
}

/// Returns the plan and the records of a folder.
pub(super) fn measured(folder: &Path) -> Result<Measured, Failure> {
    let file = folder.join(PLAN);
    if let Some(plan) = CodePlan::read(&file)? {
        return Ok(Measured::Codes(Box::new(plan), records(folder)?));
    }
    if let Some(plan) = SimPlan::read(&file)? {
        return Ok(Measured::Simulated(Box::new(plan), records(folder)?));
    }
    Ok(Measured::Links(Box::new(LinkPlan::of_results(&file)?), records(folder)?))
}

/// Returns the picture of each sweep by its name, and all records as a table.
fn drawn(measured: &Measured) -> (Vec<(String, Chart)>, String) {
    fn each<S>(sweeps: &[S], chart: impl Fn(&S) -> (String, Chart)) -> Vec<(String, Chart)> {
        sweeps.iter().map(chart).collect()
    }
    match measured {
        Measured::Codes(plan, records) => {
            let chart = |sweep: &CodeSweep| (sweep.name.clone(), codes::picture(plan, sweep, records));
            (each(&plan.sweeps, chart), codes::csv(records))
        }
        Measured::Simulated(plan, records) => {
            let chart = |sweep: &SimSweep| (sweep.name.clone(), simulated::picture(plan, sweep, records));
            (each(&plan.sweeps, chart), simulated::csv(records))
        }
        Measured::Links(plan, records) => {
            let chart = |sweep: &Sweep| (sweep.name.clone(), Chart::new(plan, sweep, records));
            (each(&plan.sweeps, chart), csv(records))
        }
    }
}

/// Returns the records of a folder, at least one.
fn records<R: Serialize + DeserializeOwned>(folder: &Path) -> Result<Vec<R>, Failure> {
    let records = StoreOf::read(folder)?;
    if records.is_empty() {
        let message = format!("there are no results in {}: measure them with downpour-lab run", folder.display());
        return Err(Failure::new(Code::Usage, message));
    }
    Ok(records)
}
