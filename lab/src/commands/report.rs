//! `downpour-lab report`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use super::default_directory;
use crate::claims;
use crate::exit::{Code, Failure};
use crate::output::say;
use crate::picture::{png, svg};
use crate::report::{Section, page};
use crate::results::write;
use crate::tables::{Measured, ResultsReader};

/// Plot results and write a report.
///
/// Writes a picture of every sweep with records (SVG and PNG) and a table of all runs (results.csv) to
/// each directory of results. The report is a single HTML page with the pictures, medians and spread, the environment,
/// the claims, and the verdicts of verdict.toml beside the results, which are written to verdict.txt too. It is
/// self-contained and has no scripts.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Directories of results, or plans whose results are in lab-results.
    #[arg(value_name = "DIRECTORY|PLAN.toml", required = true)]
    pub from: Vec<PathBuf>,
    /// File for the report [default: report.html, in the directory of results if there is only one].
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, if results cannot be read or drawn.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let directories = args.from.iter().map(|from| directory(from)).collect::<Result<Vec<_>, _>>()?;
    let out = args.out.clone().unwrap_or_else(|| match &directories[..] {
        [only] => only.join("report.html"),
        _ => PathBuf::from("report.html"),
    });
    write_up(&directories, &out)?;
    say(&format!("{}\n", out.display()));
    Ok(0)
}

pub(super) fn directory(from: &Path) -> Result<PathBuf, Failure> {
    if from.is_dir() {
        return Ok(from.to_owned());
    }
    Ok(default_directory(Measured::of_plan(from)?.title_and_name().1))
}

/// Draws each directory's pictures and table, and writes one page about all of them.
pub(super) fn write_up(directories: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let mut sections = Vec::new();
    for directory in directories {
        let measured = measured(directory)?;
        let mut pictures = Vec::new();
        for (name, drawn) in drawn(&measured) {
            let [svg, png_of] = ["svg", "png"].map(|kind| directory.join(format!("{name}.{kind}")));
            if let Some(drawn) = &drawn {
                write(&svg, drawn.as_bytes())?;
                let pixels = png(drawn).map_err(|error| Failure::new(Code::Other, error))?;
                write(&png_of, &pixels)?;
            } else {
                remove(&svg)?;
                remove(&png_of)?;
            }
            pictures.push(drawn.unwrap_or_else(|| "<figcaption>No run has a value to draw.</figcaption>".to_owned()));
        }
        write(&directory.join("results.csv"), measured.csv().as_bytes())?;
        let judged = claims::read(directory, &measured)?;
        if let Some(judged) = &judged {
            write(&directory.join(claims::TEXT), judged.to_string().as_bytes())?;
        }
        sections.push(Section { measured, pictures, judged });
    }
    write(out, page(&sections).as_bytes())
}

/// Returns the picture of each sweep by its name, or `None` if no run has a value.
fn drawn(measured: &Measured) -> Vec<(String, Option<String>)> {
    let charts = measured.charts().into_iter();
    charts.map(|(name, chart)| (name, (!chart.is_empty()).then(|| svg(&chart)))).collect()
}

fn remove(picture: &Path) -> Result<(), Failure> {
    match fs::remove_file(picture) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::at(picture)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the pictures of a directory's results as `report` draws them, by the names of their sweeps, or `None` if no
/// run has a value.
///
/// # Errors
/// One line and an exit code, if results cannot be read.
pub fn pictures(directory: &Path) -> Result<Vec<(String, Option<String>)>, Failure> {
    Ok(drawn(&measured(directory)?))
}

/// Returns the plan and the records of a directory; at least one record.
pub(super) fn measured(directory: &Path) -> Result<Measured, Failure> {
    let measured = ResultsReader::of_results(directory)?.into_measured();
    if measured.count() == 0 {
        let message = format!("no results in {}: measure them with downpour-lab run", directory.display());
        return Err(Failure::new(Code::Usage, message));
    }
    Ok(measured)
}
