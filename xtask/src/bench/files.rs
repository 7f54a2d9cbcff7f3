//! Many small files against one file of as many bytes, and against scp and rsync.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::client::Client;
use super::scp::Server;
use super::stage::{Stage, compare, generate, sync};
use super::tree;
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};
use xtask::tools;

const LINK: &str = "rate=100M,delay=60ms,loss=0.1%,queue=2MB";
/// The fixed rate for it.
const RATE: &str = "100M";

const RUNS: u64 = 3;

/// Times the one file's time, at most: over the link, and over loopback.
const OVER_LINK: f64 = 1.2;
const OVER_LOOPBACK: f64 = 3.0;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let count = if quick { 10_000 } else { 100_000 };
    // The source, and the copies of four kinds of runs.
    let stage = Stage::on_disk(count * 4096 * (1 + 4 * RUNS))?;
    let bytes = tree::grow(&stage.path("tree"), count, |_, random| random.usize(1000..=4000))?;
    generate(&stage.path("file"), bytes)?;
    let server = Server::start()?;
    let client = Client::new(program, &server, stage.directory())?;
    let bench = Bench { stage: &stage, server: &server, client: &client, rounds: Cell::new(0) };
    let size = format!("{count} files of 1 to 4 kB, {:.0} MB, or one file", bytes as f64 / 1e6);
    heading(format_args!("small files: {size}, over loopback, {0} to {0}, {RUNS} alternating runs", stage.place));
    println!("  s until the program exits, and until all is on the disk as well; the source is in memory");
    bench.over_loopback(tally)?;
    println!();
    heading(format_args!("small files: {size}, over {LINK}, fixed rate {RATE}, {RUNS} alternating runs"));
    bench.over_link(tally)
}

struct Bench<'a> {
    rounds: Cell<u64>,
    stage: &'a Stage,
    server: &'a Server,
    client: &'a Client<'a>,
}

/// Times until the end, and until the disk has all.
#[derive(Default)]
struct Row([Sample; 2]);

impl Row {
    fn push(&mut self, times: [Duration; 2]) {
        self.0.iter_mut().zip(times).for_each(|(sample, time)| sample.push(time.as_secs_f64()));
    }

    fn print(&self, name: &str) {
        let [end, durable] = &self.0;
        println!("  {name:22}  {end:.2} s, {durable:.2} s on the disk");
    }
}

impl Bench<'_> {
    fn over_loopback(&self, tally: &mut Tally) -> Result<(), Failure> {
        let rsync = tools::find("rsync");
        let mut rows: [Row; 6] = Default::default();
        for _ in 0..RUNS {
            for (what, row) in ["tree", "file"].into_iter().zip(&mut rows[..2]) {
                row.push(self.round(what, |source, into| Ok(self.downpour(source, into, None)?.0))?);
            }
            for (what, row) in ["tree", "file"].into_iter().zip(&mut rows[2..4]) {
                row.push(self.round(what, |source, into| self.server.copy(source, into))?);
            }
            if let Some(rsync) = &rsync {
                for (what, row) in ["tree", "file"].into_iter().zip(&mut rows[4..]) {
                    row.push(self.round(what, |source, into| self.server.rsync(rsync, source, into))?);
                }
            }
        }
        let names = [
            "downpour, files",
            "downpour, one file",
            "scp -r, files",
            "scp, one file",
            "rsync -a, files",
            "rsync, one file",
        ];
        let measured = if rsync.is_some() { 6 } else { 4 };
        for (name, row) in names.iter().zip(&rows).take(measured) {
            row.print(name);
        }
        if rsync.is_none() {
            println!("  rsync                   not measured: not installed");
        }
        let ratio = rows[0].0[0].median() / rows[1].0[0].median();
        let mark = tally.at_most("small files over loopback, times one file", ratio, OVER_LOOPBACK);
        println!("  downpour, files by one file, medians {ratio:.2}, target <= {OVER_LOOPBACK}: {mark}");
        Ok(())
    }

    fn over_link(&self, tally: &mut Tally) -> Result<(), Failure> {
        let mut rows: [Row; 2] = Default::default();
        let mut late = 0;
        for _ in 0..RUNS {
            for (what, row) in ["tree", "file"].into_iter().zip(&mut rows) {
                row.push(self.round(what, |source, into| {
                    let (took, on_time) = self.downpour(source, into, Some(LINK))?;
                    late += u32::from(!on_time);
                    Ok(took)
                })?);
            }
        }
        for (name, row) in ["downpour, files", "downpour, one file"].iter().zip(&rows) {
            row.print(name);
        }
        let ratio = rows[0].0[0].median() / rows[1].0[0].median();
        let mark = tally.at_most("small files over a link, times one file", ratio, OVER_LINK);
        println!("  files by one file, medians {ratio:.3}, target <= {OVER_LINK}: {mark}");
        if late > 0 {
            println!(
                "  in {late} of {} runs the relay was late or lost packets itself: this machine was too busy to be the link",
                2 * RUNS
            );
        }
        Ok(())
    }

    /// Copies to a fresh target, and compares. Targets stay until the end: ext4 does not use an inode again for some
    /// minutes after its file was removed and checks every such one whenever it creates a file, which would be most of
    /// the measured time.
    fn round(
        &self,
        what: &str,
        mut copy: impl FnMut(&Path, &Path) -> Result<Duration, Failure>,
    ) -> Result<[Duration; 2], Failure> {
        let (source, into): (PathBuf, PathBuf) =
            (self.stage.path(what), self.stage.path(&format!("into-{}", self.rounds.get())));
        self.rounds.set(self.rounds.get() + 1);
        fs::create_dir(&into).map_err(Failure::at(into.display()))?;
        sync(&into)?;
        let took = copy(&source, &into)?;
        let since = Instant::now();
        sync(&into)?;
        let durable = took + since.elapsed();
        let copied = into.join(what);
        if source.is_dir() {
            tree::compare(&source, &copied)?
        } else {
            compare(&source, &copied)?
        }
        Ok([took, durable])
    }

    /// The time, and whether the link was on time.
    fn downpour(&self, source: &Path, into: &Path, link: Option<&str>) -> Result<(Duration, bool), Failure> {
        let mut command = self.client.command("cp", link)?;
        command.args(["-q", "-r"]);
        if link.is_some() {
            command.args(["--rate", RATE]);
        }
        let run = self.client.run(command.arg(source).arg(self.server.there(into)))?;
        Ok((run.took, run.is_on_time()))
    }
}
