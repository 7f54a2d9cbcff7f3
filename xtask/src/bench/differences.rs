//! A large file with another version at the target, compared with rsync.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::client::Client;
use super::scp::Server;
use super::stage::{Stage, compare, generate, remove, room, sync};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};
use xtask::tools;

/// Length of the file, if it fits.
const SIZE: u64 = 10_000_000_000;
const QUICK: u64 = 500_000_000;
/// The version before, the one after, the one at the target, its replacement, and a reserve.
const COPIES: u64 = 5;

const PAGE: u64 = 4096;

/// Changes to a file of so many bytes, which a hundredth of it takes part in.
struct Edit {
    name: &'static str,
    apply: fn(&Path, &Path, u64) -> io::Result<()>,
}

const EDITS: [Edit; 3] = [
    Edit { name: "1 % rewritten, in pieces of 1 MB", apply: |old, new, size| rewrite(old, new, size, 1_000_000) },
    Edit { name: "1 % rewritten, in pages of 4 KiB", apply: |old, new, size| rewrite(old, new, size, PAGE) },
    Edit { name: "1000 bytes inserted in 100 places", apply: insert },
];

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (wanted, runs) = if quick { (QUICK, 1) } else { (SIZE, 3) };
    let size = room(&std::env::temp_dir()).map_or(wanted, |free| wanted.min(free / COPIES / 1_000_000 * 1_000_000));
    let stage = Stage::on_disk(size * (COPIES - 1))?;
    let rsync = tools::find("rsync").ok_or_else(|| Failure::new("rsync is not installed"))?;
    let server = Server::start()?;
    let client = Client::new(program, &server, stage.directory())?;
    let bench = Bench { stage: &stage, server: &server, client: &client, rsync: &rsync };
    heading(format_args!(
        "differences: a file of {} MB whose older version is at the target, over loopback, to {}, {runs} alternating runs",
        size / 1_000_000,
        stage.place
    ));
    generate(&stage.path("old"), size)?;
    for edit in &EDITS {
        let new = stage.path("new");
        (edit.apply)(&stage.path("old"), &new, size).map_err(Failure::at(new.display()))?;
        let mut rows: [Row; 3] = Default::default();
        for _ in 0..runs {
            rows[0].push(bench.round(|| bench.downpour(&[]))?);
            rows[1].push(bench.round(|| bench.rsync())?);
            rows[2].push(bench.round(|| bench.downpour(&["-W"]))?);
        }
        println!("  {}", edit.name);
        for (name, row) in ["downpour cp", "rsync", "downpour cp -W"].iter().zip(&rows) {
            println!("    {name:16}  {:.1} s, {:.1} MB transferred", row.seconds, row.megabytes);
        }
        let [bytes, time] = [rows[0].over(&rows[1], |row| &row.megabytes), rows[0].over(&rows[1], |row| &row.seconds)];
        let marks = [("bytes", bytes), ("time", time)].map(|(what, ratio)| {
            tally.at_most(format_args!("differences, {}, {what} of rsync's", edit.name), ratio, 1.0)
        });
        println!("    bytes {bytes:.2} of rsync's: {}, time {time:.2}: {}", marks[0], marks[1]);
        remove(&new)?;
    }
    Ok(())
}

/// Times, and the bytes transferred.
#[derive(Default)]
struct Row {
    seconds: Sample,
    megabytes: Sample,
}

impl Row {
    fn push(&mut self, (took, bytes): (Duration, u64)) {
        self.seconds.push(took.as_secs_f64());
        self.megabytes.push(bytes as f64 / 1e6);
    }

    fn over(&self, other: &Self, what: impl Fn(&Self) -> &Sample) -> f64 {
        what(self).median() / what(other).median()
    }
}

struct Bench<'a> {
    stage: &'a Stage,
    server: &'a Server,
    client: &'a Client<'a>,
    rsync: &'a Path,
}

impl Bench<'_> {
    /// Puts the older version to the target, runs `copy`, and compares.
    fn round(&self, copy: impl FnOnce() -> Result<u64, Failure>) -> Result<(Duration, u64), Failure> {
        let (old, new, into) = (self.stage.path("old"), self.stage.path("new"), self.stage.path("into"));
        fs::create_dir_all(&into).map_err(Failure::at(into.display()))?;
        let target = into.join("new");
        let old_time = || File::options().write(true).open(&target)?.set_modified(UNIX_EPOCH);
        fs::copy(&old, &target).and_then(|_| old_time()).map_err(Failure::at(target.display()))?;
        sync(&into)?;
        let since = Instant::now();
        let bytes = copy()?;
        let took = since.elapsed();
        compare(&new, &target)?;
        remove(&target)?;
        Ok((took, bytes))
    }

    fn downpour(&self, options: &[&str]) -> Result<u64, Failure> {
        let mut command = self.client.command("cp", None)?;
        command.arg("--json").args(options).arg(self.stage.path("new"));
        let run = self.client.run(command.arg(self.server.there(&self.stage.path("into"))))?;
        let summary = run.summary()?;
        summary["wire_bytes"].as_u64().ok_or_else(|| Failure::new("the summary has no number of transferred bytes"))
    }

    fn rsync(&self) -> Result<u64, Failure> {
        let mut command = Command::new(self.rsync);
        let ssh = [vec!["ssh".to_owned()], self.server.options()].concat().join(" ");
        command.args(["-t", "--stats", "-e", &ssh]).arg(self.stage.path("new"));
        command.arg(self.server.there(&self.stage.path("into")));
        let done = command.output().map_err(Failure::at("rsync"))?;
        if !done.status.success() {
            return Err(Failure::new(format_args!("rsync: {}", String::from_utf8_lossy(&done.stderr).trim())));
        }
        let said = String::from_utf8_lossy(&done.stdout);
        let number = |what: &str| -> Option<u64> {
            let line = said.lines().find_map(|line| line.strip_prefix(what))?;
            line.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok()
        };
        let both = number("Total bytes sent:").zip(number("Total bytes received:"));
        both.map(|(sent, received)| sent + received).ok_or_else(|| Failure::new("rsync --stats printed no bytes"))
    }
}

/// Makes a version of which a hundredth is other bytes, in pieces of `piece` bytes.
fn rewrite(old: &Path, new: &Path, size: u64, piece: u64) -> io::Result<()> {
    fs::copy(old, new)?;
    let mut random = fastrand::Rng::with_seed(7);
    let (file, mut bytes) = (OpenOptions::new().write(true).open(new)?, vec![0; usize::try_from(piece).unwrap_or(0)]);
    for _ in 0..size / 100 / piece {
        random.fill(&mut bytes);
        file.write_all_at(&bytes, random.u64(..size / piece) * piece)?;
    }
    Ok(())
}

/// Makes a version with bytes inserted in a hundred places.
fn insert(old: &Path, new: &Path, size: u64) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(8);
    let (mut from, mut to) = (BufReader::new(File::open(old)?), BufWriter::new(File::create(new)?));
    let mut bytes = [0; 1000];
    for _ in 0..100 {
        io::copy(&mut from.by_ref().take(size / 100), &mut to)?;
        random.fill(&mut bytes);
        to.write_all(&bytes)?;
    }
    io::copy(&mut from, &mut to)?;
    to.flush()
}
