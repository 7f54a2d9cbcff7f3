//! `downpour demo`: a real file between two endpoints on this host, over an emulated network.

mod crossing;
mod results;
mod sample;
mod tcp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use downpour::{ConnectingSide, Profile, transfer_floor};
use netsim::{Duplex, Rate};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalHandlers};
use crate::json;
use crate::output::Output;
use crate::print;
use crossing::{Crossing, CrossingResult};
pub(crate) use results::Results;

/// How many times longer than downpour the kernel's TCP may take before it is stopped.
const PATIENCE: u32 = 3;

/// Name of the generated file.
const SAMPLE: &str = "sample";

/// Runs the demo; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    let (Some(link), Some(size)) = (&args.link, args.size) else {
        return Err(Failure::new(Code::Other, "internal error: demo without a link"));
    };
    let rate = fixed_rate(&args, link)?;
    let mut attention = interrupts.attend();
    let path = args.paths.first().cloned();
    let (directory, source) =
        on_thread(move |is_stopped| prepare(path.as_deref(), size, is_stopped), &mut attention).await?;
    let mut output = Output::new(args.output);
    let sent_at = downpour::Rate::from_bits_per_second(rate.bits_per_second());
    let source_name = args
        .paths
        .first()
        .map_or_else(|| format!("A generated file of {}", units::bytes(size)), |path| path.display().to_string());
    output.say(format_args!("{source_name} over {link}."));
    output.speed(Some(sent_at), None);
    output.start("demo", Some(sent_at), None)?;
    let mut stage = DemoSetup { directory: &directory, source: &source, link };

    let outcome = stage.cross(systems::auto().with_fixed_rate(sent_at), &mut output, &mut attention).await?;
    let mut results = Results::new(link, rate, floor(outcome.bytes, link, rate), &outcome);
    if !args.no_compare {
        stage.compare(&outcome, &mut results, &output, &mut attention).await?;
    }
    drop(directory);
    if args.output.json {
        json::print(&results);
    } else {
        print::out(format_args!("{results}"));
    }
    if let Some(warning) = results.warning() {
        print::warn(warning);
    }
    Ok(Code::Done as u8)
}

/// Returns the sender's fixed rate: `--rate`, or the rate of the link.
fn fixed_rate(args: &Args, link: &Duplex) -> Result<Rate, Failure> {
    let typed = args.speed.rate.map(|rate| Rate::from_bits_per_second(rate.bits_per_second()));
    typed
        .or(link.forward.rate)
        .ok_or_else(|| Failure::new(Code::Usage, "the link has no rate: add one (--link rate=100M,...), or use --rate"))
}

/// Returns the floor of the time for `bytes` bytes, given the rate of the link and the fixed rate.
fn floor(bytes: u64, link: &Duplex, fixed: Rate) -> Duration {
    let rate = link.forward.rate.map_or(fixed, |rate| rate.min(fixed)).bits_per_second();
    let rtt = link.forward.delay + link.backward.delay;
    transfer_floor(
        bytes,
        downpour::Rate::from_bits_per_second(rate),
        rtt,
        link.forward.loss.mean(),
        ConnectingSide::Sender,
    )
}

/// Runs `work`, which reads or writes large files, on a thread of its own. After a signal to stop it ends soon, and its
/// files are removed.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<T, Failure> + Send + 'static,
    attention: &mut Attention<'_>,
) -> Result<T, Failure> {
    let is_stopped = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&is_stopped);
    let mut working = spawn_blocking(move || work(&flag));
    tokio::select! {
        result = &mut working => result.unwrap_or_else(|_| Err(Failure::new(Code::Other, "internal error: the demo panicked"))),
        stop = attention.next() => {
            is_stopped.store(true, Ordering::Relaxed);
            drop(working.await);
            Err(Failure::stopped(stop))
        }
    }
}

/// Creates a directory for the received files, and the file to send.
fn prepare(path: Option<&Path>, size: u64, is_stopped: &AtomicBool) -> Result<(TempDir, PathBuf), Failure> {
    let bytes = match path {
        Some(path) => sample::size(path, is_stopped).map_err(|error| Failure::new(Code::SourceAbsent, error))?,
        None => size,
    };
    if bytes == 0 {
        return Err(Failure::new(
            Code::Usage,
            "no bytes to send: name a file with content, or a directory with such a file",
        ));
    }
    let disk = |error| Failure::new(Code::Disk, format!("cannot create the files of the demo: {error}"));
    // Space for the received files and for a generated source.
    let files = if path.is_some() { bytes } else { bytes.saturating_mul(2) };
    let directory = sample::directory(files).map_err(disk)?;
    let source = match path {
        Some(path) => path.to_owned(),
        None => {
            let path = directory.path().join(SAMPLE);
            sample::generate(&path, bytes, is_stopped).map_err(disk)?;
            path
        }
    };
    Ok((directory, source))
}

/// The directory, source and link of a demo's transfers.
struct DemoSetup<'a> {
    directory: &'a TempDir,
    source: &'a Path,
    link: &'a Duplex,
}

impl DemoSetup<'_> {
    /// Runs one transfer, compares the received files with the source, and removes them.
    async fn cross(
        &mut self,
        profile: Profile,
        output: &mut Output,
        attention: &mut Attention<'_>,
    ) -> Result<CrossingResult, Failure> {
        let disk = |error| Failure::new(Code::Disk, format!("cannot use the directory of the demo: {error}"));
        let into = self.directory.path().join("arrived");
        fs::create_dir(&into).map_err(disk)?;
        let crossing = Crossing { source: self.source, into: &into, link: self.link, profile };
        let outcome = crossing.run(output, attention).await?;
        output.hide_progress();
        let (source, arrived) = (self.source.to_owned(), into.clone());
        let compare = move |is_stopped: &AtomicBool| missing(&source, &arrived, is_stopped).map_err(disk);
        if let Some(path) = on_thread(compare, attention).await? {
            let message =
                format!("{} differs from its copy: use files that do not change during the demo", path.display());
            return Err(Failure::new(Code::Integrity, message));
        }
        fs::remove_dir_all(&into).map_err(disk)?;
        Ok(outcome)
    }

    /// Adds the results of TCP for as many bytes.
    async fn compare(
        &self,
        outcome: &CrossingResult,
        results: &mut Results,
        output: &Output,
        attention: &mut Attention<'_>,
    ) -> Result<(), Failure> {
        output.say("Running TCP with CUBIC on the same link, simulated in virtual time.");
        match tcp::simulated(outcome.bytes, self.link, attention).await? {
            Ok(simulated) => results.add_simulated(simulated),
            Err(why) => output.say(format_args!("No result: {why}")),
        }
        let limit = outcome.took * PATIENCE;
        let most = units::seconds(limit.as_secs_f64());
        output.say(format_args!("Running TCP of this host's kernel, for at most {most}."));
        match tcp::of_kernel(outcome.bytes, self.link, limit, self.directory.path(), attention).await? {
            Ok(kernel) => results.add_kernel(kernel),
            Err(why) => output.say(format_args!("No result: {why}")),
        }
        Ok(())
    }
}

/// Returns the first name of the source whose copy differs.
fn missing(source: &Path, into: &Path, is_stopped: &AtomicBool) -> io::Result<Option<PathBuf>> {
    // `.` has no name of its own.
    let whole = source.canonicalize()?;
    let name = source.file_name().or(whole.file_name()).unwrap_or_default();
    sample::difference(source, &into.join(name), is_stopped)
}
