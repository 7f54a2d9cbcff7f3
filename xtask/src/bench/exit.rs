//! Time from the moment when the last file is in place until the commands of both sides return.
//!
//! A transfer through a ticket is measured on both sides, a copy through ssh on the side where its user waits. Only UDP
//! crosses the link with loss; ssh is delayed by [`crate::relayed_ssh`].

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use downpour::Ticket;
use linkrelay::Relay;
use netsim::Duplex;

use super::client::{Client, Remote};
use super::program::{Guard, start};
use super::scp::Server;
use super::stage::{Stage, compare, generate, remove};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

/// Round trips in milliseconds, and the share of lost packets in each direction.
const ROUND_TRIPS: [u64; 3] = [20, 70, 600];
const LOSSES: [&str; 2] = ["0%", "5%"];

/// The median time allowed for the machine itself.
const OWN: Duration = Duration::from_millis(20);
/// Round trips, in the median and in the worst case.
const TARGETS: (f64, f64) = (1.0, 3.0);

const BYTES: u64 = 100_000;
const FILE: &str = "file";
const PERIOD: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_secs(60);

/// The commands whose ends are measured, in the order of the samples.
const COMMANDS: [&str; 4] = ["recv", "send", "cp up", "cp down"];

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let runs = if quick { 3 } else { 30 };
    let stage = Stage::on_disk(100_000_000)?;
    heading(format_args!("exit: from the last file in place until the command returns, {runs} alternating runs each"));
    generate(&stage.path(FILE), BYTES)?;
    let server = Server::start()?;
    let client = Client::with(Remote::new(program, stage.directory())?, program, &server, stage.directory());
    let bench = Bench { program, stage: &stage, server: &server, client };
    for round_trip in ROUND_TRIPS.map(Duration::from_millis) {
        for loss in LOSSES {
            let link = format!("rate=100M,delay={}ms,loss={loss},queue=2MB", round_trip.as_millis() / 2);
            let mut samples = COMMANDS.map(|_| Sample::default());
            for _ in 0..runs {
                let [recv, send] = bench.ticket(&link)?;
                let times = [recv, send, bench.copy(&link, true)?, bench.copy(&link, false)?];
                for (sample, time) in samples.iter_mut().zip(times) {
                    sample.push(time.as_secs_f64() * 1e3);
                }
            }
            for (command, sample) in COMMANDS.iter().zip(samples) {
                report(command, &sample, round_trip, loss, tally);
            }
        }
    }
    Ok(())
}

fn report(command: &str, sample: &Sample, round_trip: Duration, loss: &str, tally: &mut Tally) {
    let name = format!("{command}, {} ms, {loss}", round_trip.as_millis());
    let limit = |trips: f64| (round_trip.mul_f64(trips)).as_secs_f64() * 1e3;
    let (median, worst) = (limit(TARGETS.0) + OWN.as_secs_f64() * 1e3, limit(TARGETS.1).max(OWN.as_secs_f64() * 3e3));
    let marks = [
        tally.at_most(format_args!("exit, {name}, median in ms"), sample.median(), median),
        tally.at_most(format_args!("exit, {name}, worst in ms"), sample.largest(), worst),
    ];
    println!("  {name:20} {sample:.0} ms, target <= {median:.0}: {}, worst <= {worst:.0}: {}", marks[0], marks[1]);
}

struct Bench<'a> {
    program: &'a Path,
    stage: &'a Stage,
    server: &'a Server,
    client: Client<'a>,
}

impl Bench<'_> {
    /// `send` and `recv` by a ticket, through a relay: the times of the receiver and the sender.
    fn ticket(&self, link: &str) -> Result<[Duration; 2], Failure> {
        let into = self.into()?;
        let (given, relayed) = (self.stage.path("ticket"), self.stage.path("relayed-ticket"));
        remove(&given)?;
        let mut command = Command::new(self.program);
        command.args(["--config", "none", "send", "--quiet", "--rate", "100M", "--listen", "127.0.0.1:0"]);
        command.arg("--ticket-file").arg(&given).arg(self.stage.path(FILE));
        let sender = Guard(start(&mut command)?);
        wait_until("a ticket", || given.exists())?;
        let _relay = relay(&given, &relayed, link)?;
        let mut command = Command::new(self.program);
        command.args(["--config", "none", "recv", "--quiet", "--yes", "--ticket-file"]).arg(&relayed);
        let receiver = Guard(start(command.arg("--into").arg(&into))?);
        let placed = self.placed(&into)?;
        let mut sides = [(receiver, None), (sender, None)];
        while sides.iter().any(|(_, ended)| ended.is_none()) {
            for (process, ended) in sides.iter_mut().filter(|(_, ended)| ended.is_none()) {
                if let Some(status) = process.0.try_wait().map_err(Failure::at("downpour"))? {
                    *ended = Some(placed.elapsed());
                    if !status.success() {
                        return Err(Failure::new(format_args!("downpour: {status}")));
                    }
                }
            }
            if placed.elapsed() > PATIENCE {
                return Err(Failure::new("a side does not exit"));
            }
            thread::sleep(PERIOD);
        }
        self.check(&into)?;
        Ok(sides.map(|(_, ended)| ended.unwrap_or_default()))
    }

    /// `cp` through ssh: the time of the side that started it.
    fn copy(&self, link: &str, is_up: bool) -> Result<Duration, Failure> {
        let into = self.into()?;
        let mut command = self.client.command("cp", Some(link))?;
        command.args(["-q", "--rate", "100M"]);
        let source = self.stage.path(FILE);
        if is_up {
            command.arg(&source).arg(self.server.there(&into));
        } else {
            command.arg(self.server.there(&source)).arg(&into);
        }
        let process = self.client.start(&mut command)?;
        let placed = self.placed(&into)?;
        self.client.finish(process)?;
        let took = placed.elapsed();
        self.check(&into)?;
        Ok(took)
    }

    /// When the file has its name.
    fn placed(&self, into: &Path) -> Result<Instant, Failure> {
        let file = into.join(FILE);
        wait_until("the file", || file.exists())?;
        Ok(Instant::now())
    }

    fn into(&self) -> Result<PathBuf, Failure> {
        let into = self.stage.path("into");
        fs::create_dir(&into).map_err(Failure::at(into.display()))?;
        Ok(into)
    }

    /// Compares the copy and removes it.
    fn check(&self, into: &Path) -> Result<(), Failure> {
        compare(&self.stage.path(FILE), &into.join(FILE))?;
        fs::remove_dir_all(into).map_err(Failure::at(into.display()))
    }
}

/// A relay to where the ticket in `given` leads, and a ticket to the relay.
fn relay(given: &Path, relayed: &Path, link: &str) -> Result<Relay, Failure> {
    let text = fs::read_to_string(given).map_err(Failure::at(given.display()))?;
    let mut ticket = Ticket::parse(text.trim()).map_err(Failure::at(given.display()))?;
    let address: SocketAddr = *ticket.addresses.first().ok_or_else(|| Failure::new("a ticket without an address"))?;
    let link: Duplex = link.parse().map_err(Failure::at("the link"))?;
    let relay = Relay::start(address, link).map_err(Failure::at("the relay"))?;
    ticket.addresses = vec![relay.address()];
    let text = ticket.to_text().map_err(Failure::at("the ticket"))?;
    fs::write(relayed, text).map_err(Failure::at(relayed.display()))?;
    Ok(relay)
}

fn wait_until(what: &str, mut is_there: impl FnMut() -> bool) -> Result<(), Failure> {
    let started = Instant::now();
    while !is_there() {
        if started.elapsed() > PATIENCE {
            return Err(Failure::new(format_args!("timeout waiting for {what}")));
        }
        thread::sleep(PERIOD);
    }
    Ok(())
}
