//! `downpour demo`: a real file between two endpoints of this machine, over an emulated network.

mod crossing;
mod results;
mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use downpour::{Connector, Profile, floor};
use netsim::{Duplex, Rate};
use tempfile::TempDir;

use crate::args::DemoArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::json;
use crate::output::Output;
use crate::print;
use crossing::{Crossing, CrossingResult};
pub(crate) use results::Results;

/// How many times longer than downpour CUBIC may take before it is stopped.
const PATIENCE: u32 = 3;

/// Name of the generated file.
const SAMPLE: &str = "sample";

/// Runs the demo; returns the exit code.
pub(crate) async fn run(args: DemoArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    let rate = told_rate(&args)?;
    let (folder, source) = prepare(&args)?;
    let mut output = Output::new(args.output);
    let told = downpour::Rate::from_bits_per_second(rate.bits_per_second());
    let what = args
        .path
        .as_ref()
        .map_or_else(|| format!("A generated file of {}", units::bytes(args.size)), |path| path.display().to_string());
    output.say(format_args!("{what} over {}.", args.link));
    output.speed(Some(told), None);
    output.start("demo", Some(told), None)?;
    let mut stage = Stage { folder: &folder, source: &source, link: &args.link };

    let outcome = stage.cross("downpour", Profile::auto().with_fixed_rate(told), None, &mut output, interrupts).await?;
    let mut results = Results::new(&args.link, rate, least(outcome.bytes, &args.link, rate), &outcome);
    if !args.no_compare {
        let limit = outcome.took * PATIENCE;
        output.say(format_args!("Now CUBIC on the same link, for at most {PATIENCE} times as long."));
        results.compare(&stage.cross("cubic", as_tcp(), Some(limit), &mut output, interrupts).await?);
    }
    drop(folder);
    if args.output.json {
        json::print(&results);
    } else {
        print::out(format_args!("{results}"));
    }
    results.warnings().iter().for_each(print::warn);
    Ok(Code::Done as u8)
}

/// CUBIC with retransmission, as in current kernels: every packet is acknowledged selectively. (`arq` is the system of
/// its document, which repairs one loss per round trip.)
fn as_tcp() -> Profile {
    let mut profile = Profile::auto();
    for (key, value) in [("schedule", "arq"), ("feedback.timing", "every-packet")] {
        profile.set(key, value).expect("choices that there are");
    }
    profile
}

/// Returns the sender's fixed rate: `--rate`, or the rate of the link.
fn told_rate(args: &DemoArgs) -> Result<Rate, Failure> {
    let told = args.rate.map(|rate| Rate::from_bits_per_second(rate.bits_per_second()));
    told.or(args.link.forward.rate).ok_or_else(|| {
        Failure::new(
            Code::Usage,
            "this link has no rate: give it one (--link rate=100M,...), or tell the sender one with --rate",
        )
    })
}

/// Returns the shortest possible time for `bytes` bytes, given the rate of the link and the fixed rate.
fn least(bytes: u64, link: &Duplex, told: Rate) -> Duration {
    let rate = link.forward.rate.map_or(told, |rate| rate.min(told)).bits_per_second();
    let rtt = link.forward.delay + link.backward.delay;
    floor(bytes, downpour::Rate::from_bits_per_second(rate), rtt, link.forward.loss.mean(), Connector::Sender)
}

/// Prepares a folder for what arrives, and the file to send.
fn prepare(args: &DemoArgs) -> Result<(TempDir, PathBuf), Failure> {
    let bytes = match &args.path {
        Some(path) => sample::size(path)
            .map_err(|error| Failure::new(Code::SourceAbsent, format!("{}: {error}", path.display())))?,
        None => args.size,
    };
    let disk = |error| Failure::new(Code::Disk, format!("no room for the files of the demo: {error}"));
    // Room for what arrives and, if it is generated, for what is sent.
    let files = if args.path.is_some() { bytes } else { bytes.saturating_mul(2) };
    let folder = sample::folder(files).map_err(disk)?;
    let source = match &args.path {
        Some(path) => path.clone(),
        None => {
            let path = folder.path().join(SAMPLE);
            sample::generate(&path, bytes).map_err(disk)?;
            path
        }
    };
    Ok((folder, source))
}

/// The location of a demo's transfers.
struct Stage<'a> {
    folder: &'a TempDir,
    source: &'a Path,
    link: &'a Duplex,
}

impl Stage<'_> {
    /// Runs one transfer. What arrives is compared with what was sent, and removed.
    async fn cross(
        &mut self,
        name: &str,
        profile: Profile,
        limit: Option<Duration>,
        output: &mut Output,
        interrupts: &mut Interrupts,
    ) -> Result<CrossingResult, Failure> {
        let disk = |error| Failure::new(Code::Disk, format!("the folder of the demo: {error}"));
        let into = self.folder.path().join(name);
        fs::create_dir(&into).map_err(disk)?;
        let crossing = Crossing { source: self.source, into: &into, link: self.link, profile, limit };
        let outcome = crossing.run(output, interrupts).await?;
        output.rest();
        if outcome.is_complete && !self.arrived(&into).map_err(disk)? {
            return Err(Failure::new(Code::Integrity, "what arrived is not what was sent"));
        }
        fs::remove_dir_all(&into).map_err(disk)?;
        Ok(outcome)
    }

    fn arrived(&self, into: &Path) -> std::io::Result<bool> {
        // `.` has no name of its own.
        let whole = self.source.canonicalize()?;
        let name = self.source.file_name().or(whole.file_name()).unwrap_or_default();
        sample::is_same(self.source, &into.join(name))
    }
}
