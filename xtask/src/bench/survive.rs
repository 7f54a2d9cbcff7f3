//! The cost of a kill: one side of a copy gets SIGKILL three times, the other one connects again.
//!
//! The surviving side runs in this process and counts. All bytes that it sent, or received, over all connections count
//! as symbols in full packets, without their headers: source, repair and everything else. That is more than the source
//! symbols alone.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use downpour::remote::{self, CarrierChoice, HostCopy, Location, PathOptions, SshOptions};
use downpour::{Family, TransferEvent};

use super::client::Remote;
use super::scp::Server;
use super::stage::{Stage, generate, remove, staged, sync};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

/// Symbol bytes moved by bytes of the file, at most.
const TARGET: f64 = 1.02;
/// Written shares of the file at the kills.
const KILLS: [f64; 3] = [0.3, 0.6, 0.9];
/// Silence after which the peer is given up: the user's default is longer, and moves no more bytes.
const DEAD_AFTER: Duration = Duration::from_secs(2);
const RETRY_FOR: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(1);
/// Bytes of a symbol and of the IPv4 packet that carries it (docs/design/path-mtu.md): IP and UDP headers 28, ours and
/// the tag 43.
const SYMBOL: f64 = 1408.0;
const PACKET: f64 = SYMBOL + 28.0 + 43.0;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (mebibytes, runs) = if quick { (512, 2) } else { (2048, 10) };
    let bytes = mebibytes << 20;
    let stage = Stage::on_disk(2 * bytes)?;
    heading(format_args!(
        "survive: {mebibytes} MiB over loopback, {0} to {0}, SIGKILL when 30, 60 and 90 % are written, {runs} times each side",
        stage.place
    ));
    generate(&stage.path("file"), bytes)?;
    let server = Server::start()?;
    let bench = Bench {
        remote: Arc::new(Remote::new(program, stage.directory())?),
        hash: hash(&stage.path("file"))?,
        stage: &stage,
        server: &server,
        bytes,
    };
    for (name, is_up) in [("receiver", true), ("sender", false)] {
        let (mut ratios, mut costs) = (Sample::default(), Sample::default());
        for _ in 0..runs {
            let moved = bench.copy(is_up)?;
            ratios.push(moved / bytes as f64);
            costs.push((moved - bytes as f64) / KILLS.len() as f64 / 1e6);
        }
        let mark =
            tally.at_most(format_args!("survive, {name} killed, bytes moved by bytes"), ratios.largest(), TARGET);
        println!(
            "  {name:8} killed  {ratios:.4} x the file, worst {:.4}, target <= {TARGET}: {mark}",
            ratios.largest()
        );
        println!("  {name:8} killed  {costs:.2} MB a kill, end of the transfer included");
    }
    println!(
        "  every copy is identical (BLAKE3); until then only its staging directory existed, and after it nothing else"
    );
    Ok(())
}

struct Bench<'a> {
    stage: &'a Stage,
    server: &'a Server,
    remote: Arc<Remote>,
    hash: blake3::Hash,
    bytes: u64,
}

impl Bench<'_> {
    /// One copy whose other side is killed three times: symbol bytes moved.
    fn copy(&self, is_up: bool) -> Result<f64, Failure> {
        let (source, into) = (self.stage.path("file"), self.stage.path("into"));
        fs::create_dir(&into).map_err(Failure::at(into.display()))?;
        sync(&into)?;
        let over = Arc::new(AtomicBool::new(false));
        let killer = killer(&into, self.bytes, Arc::clone(&self.remote), Arc::clone(&over));
        let moved = self.transfer(is_up, &source, &into);
        over.store(true, Ordering::SeqCst);
        let killed = killer.join().map_err(|_| Failure::new("the killer panicked"))?;
        let moved = moved?;
        let kills = killed?;
        if kills != KILLS.len() {
            return Err(Failure::new(format_args!("only {kills} kills: the copy was over too soon")));
        }
        let left = names(&into)?;
        if left != ["file"] {
            return Err(Failure::new(format_args!("left behind: {}", left.join(", "))));
        }
        if hash(&into.join("file"))? != self.hash {
            return Err(Failure::new("the copy differs from its source"));
        }
        remove(&into.join("file"))?;
        fs::remove_dir(&into).map_err(Failure::at(into.display()))?;
        Ok(moved)
    }

    fn transfer(&self, is_up: bool, source: &Path, into: &Path) -> Result<f64, Failure> {
        let here = |path: &Path| Location::Local(path.to_owned());
        let there = |path: &Path| Location::parse(self.server.there(path).as_ref()).map_err(Failure::at("a location"));
        let (source, target) = if is_up { (here(source), there(into)?) } else { (there(source)?, here(into)) };
        let transfer = remote::copy(self.arguments(source, target)).map_err(Failure::at("the copy"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Failure::at("an executor"))?;
        runtime.block_on(count(transfer))
    }

    fn arguments(&self, source: Location, target: Location) -> HostCopy {
        let mut ssh = vec!["ssh".into()];
        ssh.extend(self.server.options().into_iter().map(Into::into));
        let remote_program = Some(self.remote.program.display().to_string());
        let mut copy = HostCopy {
            ssh: SshOptions { command: ssh, remote_program, ..SshOptions::default() },
            path: PathOptions { via: CarrierChoice::Udp, family: Family::V4, ports: None },
            ..HostCopy::new(vec![source], target)
        };
        copy.options.engine.endpoint.dead_after = DEAD_AFTER;
        copy.options.retry_for = Some(RETRY_FOR);
        copy
    }
}

/// Symbol bytes moved until the transfer is done, over all its connections.
async fn count(mut transfer: downpour::Transfer) -> Result<f64, Failure> {
    while let Some(event) = transfer.next().await {
        if let TransferEvent::Done(result) = event {
            return Ok(result.map_err(Failure::at("the copy"))?.wire_bytes as f64 * SYMBOL / PACKET);
        }
    }
    Err(Failure::new("a transfer without an end"))
}

/// Kills the other side whenever the next share is written; returns the number of kills.
fn killer(into: &Path, bytes: u64, remote: Arc<Remote>, over: Arc<AtomicBool>) -> JoinHandle<Result<usize, Failure>> {
    let into = into.to_owned();
    thread::spawn(move || {
        let mut kills = 0;
        while kills < KILLS.len() && !over.load(Ordering::SeqCst) {
            if written(&into) as f64 >= KILLS[kills] * bytes as f64 && remote.kill() {
                kills += 1;
                let odd = names(&into)?.into_iter().find(|name| !name.starts_with(".downpour-"));
                if let Some(odd) = odd {
                    return Err(Failure::new(format_args!("{odd} existed before it was complete")));
                }
            }
            thread::sleep(PERIOD);
        }
        Ok(kills)
    })
}

/// Bytes of files staged in a directory.
fn written(into: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    staged(into).filter_map(|path| path.metadata().ok()).map(|found| found.blocks() * 512).sum()
}

fn names(directory: &Path) -> Result<Vec<String>, Failure> {
    let entries = fs::read_dir(directory).map_err(Failure::at(directory.display()))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

fn hash(path: &Path) -> Result<blake3::Hash, Failure> {
    let mut file = fs::File::open(path).map_err(Failure::at(path.display()))?;
    let (mut hasher, mut chunk) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut chunk).map_err(Failure::at(path.display()))? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&chunk[..length]),
        };
    }
}
