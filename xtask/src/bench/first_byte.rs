//! Round trips from ssh's login until a file's first byte is at its receiver.
//!
//! The clock starts when ssh starts the remote command after the login, and stops when the staged file has its first
//! byte. ssh's own round trips before that are not included: [`crate::relayed_ssh`] delays the bytes that ssh carries,
//! not ssh.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::client::{Client, Remote};
use super::scp::Server;
use super::stage::{Stage, compare, generate, remove, staged};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

const LINK: &str = "rate=100M,delay=60ms,loss=0.1%,queue=2MB";
const ROUND_TRIP: Duration = Duration::from_millis(120);
const PERIOD: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_secs(30);

/// Of a file of one short block, and of one whose first block takes the link 115 ms by itself.
const SIZES: [(&str, u64); 2] = [("10 kB", 10_000), ("16 MB", 16_000_000)];

/// A direction, and the round trips it may take.
struct Way {
    name: &'static str,
    is_up: bool,
    target: f64,
}

const WAYS: [Way; 2] = [Way { name: "up", is_up: true, target: 3.0 }, Way { name: "down", is_up: false, target: 3.5 }];

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let runs = if quick { 3 } else { 11 };
    let stage = Stage::on_disk(100_000_000)?;
    heading(format_args!("first byte: over {LINK}, to {}, {runs} alternating runs", stage.place));
    println!(
        "  round trips of 120 ms from the start of the remote command, and s from the start of the local downpour"
    );
    let bench = Bench::new(program, &stage)?;
    let mut rows = Vec::new();
    for (size, bytes) in SIZES {
        generate(&stage.path(size), bytes)?;
        // As files are: not written a moment ago.
        let old = File::options().write(true).open(stage.path(size));
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        old.and_then(|file| file.set_modified(hour_ago)).map_err(Failure::at(size))?;
        for way in &WAYS {
            for holds_some in [false, true] {
                rows.push((size, way, holds_some, Sample::default(), Sample::default()));
            }
        }
    }
    let server = Server::start()?;
    let client = Client::with(Remote { program: bench.remote.clone() }, program, &server, stage.directory());
    let mut late = 0;
    for _ in 0..runs {
        for (size, way, holds_some, trips, seconds) in &mut rows {
            let took = bench.measure(&client, &server, size, way, *holds_some)?;
            trips.push(took.from_login.div_duration_f64(ROUND_TRIP));
            seconds.push(took.from_start.as_secs_f64());
            late += u32::from(!took.on_time);
        }
    }
    for (size, way, holds_some, trips, seconds) in rows {
        let state = if holds_some { "holds a file" } else { "empty" };
        let name = format!("{size} {}, target {state}", way.name);
        // The rate of the link is no matter of round trips.
        let verdict = if size == SIZES[0].0 {
            let mark = tally.at_most(format_args!("first byte, {name}"), trips.median(), way.target);
            format!("target <= {}: {mark}", way.target)
        } else {
            "first block of 1.4 MB, no target".to_owned()
        };
        println!("  {name:32}  {trips:.2} round trips, {seconds:.2} s, {verdict}");
    }
    if late > 0 {
        println!(
            "  in {late} runs the relay was late or lost packets itself: this machine was too busy to be the link"
        );
    }
    Ok(())
}

struct Bench<'a> {
    stage: &'a Stage,
    /// A program that records its start and becomes downpour.
    remote: PathBuf,
    stamp: PathBuf,
}

struct Took {
    from_login: Duration,
    from_start: Duration,
    /// Whether this machine was quick enough to be the link.
    on_time: bool,
}

impl<'a> Bench<'a> {
    fn new(program: &Path, stage: &'a Stage) -> Result<Self, Failure> {
        let (remote, stamp) = (stage.path("started-over-there"), stage.path("stamp"));
        let script = format!("#!/bin/sh\ndate +%s%N > {}\nexec {} \"$@\"\n", stamp.display(), program.display());
        let written =
            fs::write(&remote, script).and_then(|()| fs::set_permissions(&remote, Permissions::from_mode(0o755)));
        written.map_err(Failure::at(remote.display()))?;
        Ok(Self { stage, remote, stamp })
    }

    fn measure(
        &self,
        client: &Client<'_>,
        server: &Server,
        size: &str,
        way: &Way,
        holds_some: bool,
    ) -> Result<Took, Failure> {
        remove(&self.stamp)?;
        let into = self.stage.path("into");
        fs::create_dir(&into).map_err(Failure::at(into.display()))?;
        if holds_some {
            fs::write(into.join("other"), "other").map_err(Failure::at(into.display()))?;
        }
        let mut command = client.command("cp", Some(LINK))?;
        command.args(["-q", "--rate", "100M"]);
        let source = self.stage.path(size);
        if way.is_up {
            command.arg(&source).arg(server.there(&into));
        } else {
            command.arg(server.there(&source)).arg(&into);
        }
        let started = Instant::now();
        let child = client.start(&mut command)?;
        while !has_first_byte(&into, size) {
            if started.elapsed() > PATIENCE {
                return Err(Failure::new(format_args!("no byte of {size} has arrived {}", way.name)));
            }
            thread::sleep(PERIOD);
        }
        let (from_start, now) = (started.elapsed(), SystemTime::now());
        let on_time = client.finish(child)?;
        compare(&source, &into.join(size))?;
        fs::remove_dir_all(&into).map_err(Failure::at(into.display()))?;
        let login = self.login()?;
        Ok(Took { from_login: now.duration_since(login).map_err(Failure::at("the clock"))?, from_start, on_time })
    }

    fn login(&self) -> Result<SystemTime, Failure> {
        let text = fs::read_to_string(&self.stamp).map_err(Failure::at(self.stamp.display()))?;
        let nanoseconds = text.trim().parse().map_err(Failure::at("date +%s%N"))?;
        Ok(UNIX_EPOCH + Duration::from_nanos(nanoseconds))
    }
}

/// Whether the staged file, or the file, has its first byte.
fn has_first_byte(into: &Path, name: &str) -> bool {
    staged(into).any(|path| begins(&path)) || begins(&into.join(name))
}

/// Generated files do not begin with a zero byte, unlike a file that was only extended.
fn begins(path: &Path) -> bool {
    let mut byte = [0];
    File::open(path).and_then(|mut file| file.read_exact(&mut byte)).is_ok() && byte != [0]
}
