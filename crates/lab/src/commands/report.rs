//! `downpour-lab report`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::default_folder;
use crate::codes::{self, CodePlan};
use crate::exit::{Code, Failure};
use crate::output::say;
use crate::picture::{Chart, png, svg};
use crate::plan::LinkPlan;
use crate::report::{Measured, Section, page};
use crate::results::{PLAN, StoreOf, csv, write};
use crate::simulated::{self, SimPlan};

/// A person's verdict on the results, in their folder.
const VERDICT: &str = "verdict.txt";

/// Plot results and write a report.
///
/// Writes a picture of every sweep (SVG and PNG) and a table of all runs (results.csv) to each folder of results. The
/// report is a single HTML page with the pictures, medians and spread, the environment, the claims, and the text of
/// verdict.txt beside the results. It needs no other file, no network and no scripts.
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

fn folder(from: &Path) -> Result<PathBuf, Failure> {
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
        let Results { measured, charts, table } = results(folder)?;
        let mut pictures = Vec::new();
        for (name, chart) in charts {
            let drawn = svg(&chart);
            write(&folder.join(format!("{name}.svg")), drawn.as_bytes())?;
            let pixels = png(&drawn).map_err(|error| Failure::new(Code::Other, error))?;
            write(&folder.join(format!("{name}.png")), &pixels)?;
            pictures.push(drawn);
        }
        write(&folder.join("results.csv"), table.as_bytes())?;
        let verdict = match fs::read_to_string(folder.join(VERDICT)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::at(&folder.join(VERDICT))(error)),
        };
        sections.push(Section { measured, pictures, verdict });
    }
    write(out, page(&sections).as_bytes())
}

/// The contents of a folder, ready to be shown.
struct Results {
    measured: Measured,
    /// The picture of each sweep, by its name.
    charts: Vec<(String, Chart)>,
    /// All records.
    table: String,
}

fn results(folder: &Path) -> Result<Results, Failure> {
    let file = folder.join(PLAN);
    if let Some(plan) = CodePlan::read(&file)? {
        let records = records(folder)?;
        let charts = plan.sweeps.iter().map(|sweep| (sweep.name.clone(), codes::picture(&plan, sweep, &records)));
        let (charts, table) = (charts.collect(), codes::csv(&records));
        return Ok(Results { measured: Measured::Codes(Box::new(plan), records), charts, table });
    }
    if let Some(plan) = SimPlan::read(&file)? {
        let records = records(folder)?;
        let charts = plan.sweeps.iter().map(|sweep| (sweep.name.clone(), simulated::picture(&plan, sweep, &records)));
        let (charts, table) = (charts.collect(), simulated::csv(&records));
        return Ok(Results { measured: Measured::Simulated(Box::new(plan), records), charts, table });
    }
    let plan = LinkPlan::of_results(&file)?;
    let records = records(folder)?;
    let charts = plan.sweeps.iter().map(|sweep| (sweep.name.clone(), Chart::new(&plan, sweep, &records)));
    let (charts, table) = (charts.collect(), csv(&records));
    Ok(Results { measured: Measured::Links(Box::new(plan), records), charts, table })
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
