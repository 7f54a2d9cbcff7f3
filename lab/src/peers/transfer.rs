//! One transfer, from the creation of the file to the comparison of the received one.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use netsim::Rate;
use serde::{Deserialize, Serialize};

use super::carrier;
use super::error::PeerError;
use super::gate::Start;
use super::peer::{Need, Peer, PeerKind, Presence, TimedSpan};
use super::programs::Programs;
use super::run::{TransferRun, Unfinished};
use super::stage::{Content, ScratchDirectory};
use super::writes::{self, Delays};
use crate::plan::Writes;
use crate::testbed::Host;

/// The transfer to perform.
#[derive(Clone, Debug)]
pub struct Job {
    /// Bytes of the file, or of each write.
    pub size: u64,
    /// The writes instead of a file, for peers that carry connections.
    pub writes: Option<Writes>,
    /// Whether the file consists of zeros that take no space: it is too large to arrive, and the cap ends the transfer.
    pub endless: bool,
    /// Seed of the bytes, which are incompressible.
    pub seed: u64,
    /// The rate of the path, in IP bits per second, for peers with a fixed rate.
    pub rate: Option<Rate>,
    /// Choices of the sender's profile, for peers that have one.
    pub choices: Vec<(String, String)>,
    /// The locations of programs.
    pub programs: Programs,
}

/// The result of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// From one end of the clock to the other; `None` if the file had not arrived within the cap.
    pub seconds: Option<f64>,
    /// Bytes of the file, or of the upload beside small writes, at the receiver in the end; for an unfinished one this
    /// may include the receiving program's bookkeeping.
    pub bytes_there: u64,
    /// Whether the received file equals the sent one, byte for byte; `None` for a program that keeps no file and only
    /// counts.
    pub equal: Option<bool>,
    /// The delays of small writes, if these were the work and all have arrived.
    pub delays: Option<Delays>,
    /// The two ends of the clock.
    pub clock: TimedSpan,
    /// Whether the file is encrypted in transit.
    pub encrypted: bool,
    /// The sender's congestion control as reported by the kernel, for TCP whose socket is ours.
    pub congestion: Option<String>,
    /// The version that each program prints.
    pub versions: BTreeMap<String, String>,
}

impl Transfer {
    /// Returns whether the whole file arrived within the cap, and nothing else.
    pub fn is_complete(&self) -> bool {
        self.seconds.is_some() && self.equal != Some(false)
    }
}

/// Moves a file of `job` from one host to the other with `peer`, or makes small writes over a connection that it
/// carries, for at most `cap` from the start of its clock.
///
/// If a `start` is given, the transfer waits for it once everything is ready for the sender, and its clock starts then.
/// The file and its copy are in a new directory, in memory if that has room. No started process is left when this
/// returns.
///
/// # Errors
/// Anything that prevents the measurement: a program that is missing, does not listen or fails, and errors of the
/// system. A file that does not arrive in time is none of these.
pub fn transfer(
    peer: &Peer,
    from: &Host,
    to: &Host,
    job: &Job,
    cap: Duration,
    start: Option<Start<'_>>,
) -> Result<Transfer, PeerError> {
    if let Presence::Absent { missing, install } = peer.presence(&job.programs) {
        return Err(PeerError::Absent { peer: peer.name, missing, install });
    }
    if peer.fixed_rate && job.rate.is_none() {
        return Err(PeerError::NotTold { peer: peer.name });
    }
    let bytes = job.writes.map_or(job.size, |writes| writes.beside.unwrap_or(0));
    let content = if job.endless { Content::Zeros } else { Content::Random { seed: job.seed } };
    let stage = ScratchDirectory::new(bytes, content).map_err(PeerError::at("a directory for the transfer"))?;
    let versions = versions(peer, &job.programs);
    let mut run = TransferRun::new(from, to, job, &stage, cap, start);
    let played = match (peer.play, &job.writes) {
        (PeerKind::Connections(open), Some(writes)) => writes::play(&mut run, open, writes),
        (PeerKind::Connections(open), None) => carrier::move_file(&mut run, open),
        (PeerKind::File(play), None) => play(&mut run),
        (PeerKind::File(_), Some(_)) => return Err(PeerError::NoConnections { peer: peer.name }),
    };
    let ended = match played {
        Ok(ended) => Some(ended),
        Err(Unfinished::Cap) => None,
        // Its programs were killed with all others.
        Err(Unfinished::Failed(_)) if start.is_some_and(|start| start.gate.is_over()) => None,
        Err(Unfinished::Failed(error)) => return Err(error),
    };
    let equal = match run.counted {
        // Small writes are compared by their reader.
        _ if job.writes.is_some() => Some(ended.is_some()),
        Some(_) => None,
        None => Some(ended.is_some() && stage.is_equal().map_err(PeerError::at("the received file"))?),
    };
    Ok(Transfer {
        seconds: ended.map(|ended| ended.saturating_sub(run.started()).as_secs_f64()),
        bytes_there: run.counted.unwrap_or_else(|| stage.arrived()).min(bytes),
        equal,
        delays: run.delays,
        clock: if job.writes.is_some() { writes::clock() } else { peer.clock() },
        encrypted: peer.encrypted,
        congestion: run.congestion,
        versions,
    })
}

/// Returns the versions that the programs of a peer print.
fn versions(peer: &Peer, programs: &Programs) -> BTreeMap<String, String> {
    let versions = peer.needs.iter().filter_map(|need| match *need {
        Need::Program { name, version, .. } if !version.is_empty() => {
            let output = Command::new(programs.find(name)?).args(version).stdin(Stdio::null()).output().ok()?;
            // Some use stdout, some stderr.
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            // Some print a banner first.
            let has_version = |line: &&str| line.contains(|c: char| c.is_ascii_digit()) || line.contains("ersion");
            Some((name.to_owned(), said.lines().map(str::trim).find(has_version)?.to_owned()))
        }
        _ => None,
    });
    versions.collect()
}
