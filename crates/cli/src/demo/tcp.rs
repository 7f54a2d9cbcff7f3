//! TCP on the same link: simulated in virtual time, and of this host's kernel if `downpour-lab` is installed and may create
//! hosts for it.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::{io, thread};

use netsim::Duplex;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use sim::{Case, Ending as SimulationEnding, linux_tcp};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::crossing::payload;
use crate::exit::{Code, Failure};
use crate::interrupt::Attention;
use crate::web;

/// Virtual time after which the simulated TCP is stopped.
const LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Seed of the simulated losses.
const SEED: u64 = 1;
/// File bytes in a full packet of the simulated TCP.
const SYMBOL: u64 = 1400;
/// Maximum tries of the lab on a busy machine, and its time beside the transfer.
const TRIES: u32 = 3;
const SETTING_UP: Duration = Duration::from_secs(10);
/// Time for a stopped lab to remove its files and hosts.
const TIDYING_UP: Duration = Duration::from_secs(1);
/// Most bytes that are read of its stderr.
const MAX_STDERR: u64 = 1 << 16;

/// The result of a transfer by TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TcpResult {
    /// Time to the receiver's last byte, or until it was stopped.
    pub(super) took: Duration,
    /// Bytes of files at the receiver.
    pub(super) bytes: u64,
    /// Whether everything arrived.
    pub(super) is_complete: bool,
    /// IP bytes that the sender sent; `None` if they are not counted separately from the receiver's.
    pub(super) sent_ip_bytes: Option<u64>,
}

/// Sends `bytes` bytes by the simulator's model of Linux's TCP with CUBIC. The inner error is the reason why
/// there is no result.
///
/// # Errors
/// A signal to stop.
pub(super) async fn simulated(
    bytes: u64,
    link: &Duplex,
    attention: &mut Attention<'_>,
) -> Result<Result<TcpResult, String>, Failure> {
    let (link, (done, outcome)) = (link.clone(), oneshot::channel());
    // Not a task of the runtime, which would wait for it at the end.
    let started = thread::Builder::new().name("demo-tcp".into()).spawn(move || done.send(simulate(bytes, link)));
    if let Err(error) = started {
        return Ok(Err(format!("cannot start a thread: {error}")));
    }
    tokio::select! {
        outcome = outcome => outcome.map_err(|_| Failure::new(Code::Other, "internal error: the simulation ended without a result")),
        stop = attention.next() => Err(Failure::stopped(stop)),
    }
}

fn simulate(bytes: u64, link: Duplex) -> Result<TcpResult, String> {
    let outcome = Case { size: bytes, profile: linux_tcp(), limit: LIMIT, ..Case::new(link) }.run(SEED);
    let is_complete = outcome.is_identical();
    match outcome.ending {
        _ if is_complete => {}
        SimulationEnding::TimeUp => {}
        SimulationEnding::Closed | SimulationEnding::Stalled => return Err("connection lost".to_owned()),
    }
    Ok(TcpResult {
        took: outcome.completed.unwrap_or(LIMIT),
        bytes: if is_complete { bytes } else { payload(&outcome.receiver, SYMBOL).min(bytes) },
        is_complete,
        sent_ip_bytes: Some(outcome.bytes_until_complete),
    })
}

/// The part of a record of `downpour-lab run` that the demo needs.
#[derive(Debug, Deserialize)]
struct Record {
    ending: Ending,
    bytes_there: u64,
    verdict: Verdict,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
enum Ending {
    Finished { seconds: f64 },
    NotFinished,
    Failed { reason: String },
}

#[derive(Debug, Deserialize)]
struct Verdict {
    reasons: Vec<String>,
}

/// Sends `bytes` bytes by this kernel's TCP with CUBIC, for at most `limit`, between two hosts that the lab makes of
/// namespaces. The inner error is the reason why there is no result.
///
/// # Errors
/// A signal to stop.
pub(super) async fn of_kernel(
    bytes: u64,
    link: &Duplex,
    limit: Duration,
    directory: &Path,
    attention: &mut Attention<'_>,
) -> Result<Result<TcpResult, String>, Failure> {
    let Some(lab) = web::lab() else {
        return Ok(Err(format!("{} was not found beside downpour or in PATH", web::LAB)));
    };
    let (plan, results) = (directory.join("tcp.toml"), directory.join("tcp"));
    if let Err(error) = fs::write(&plan, plan_of(bytes, link, limit)) {
        return Ok(Err(format!("{}: {error}", plan.display())));
    }
    let mut command = Command::new(&lab);
    command.arg("run").arg(&plan).arg("--out").arg(&results);
    let stderr = match run(&mut command, (limit + SETTING_UP) * TRIES, attention).await? {
        Ok(Some(stderr)) => stderr,
        Ok(None) => return Ok(Err(format!("{} did not exit in time", lab.display()))),
        Err(error) => return Ok(Err(format!("cannot start {}: {error}", lab.display()))),
    };
    let records = fs::read_to_string(results.join("results.jsonl")).unwrap_or_default();
    let why = || {
        stderr
            .lines()
            .last()
            .map_or_else(|| "the lab stored no record".to_owned(), |line| crate::escape::text(line).to_string())
    };
    Ok(records.lines().last().map_or_else(|| Err(why()), |record| read(record, limit)))
}

/// Runs a program to its end, and returns its stderr; `None` if it runs longer than `patience` and is stopped.
async fn run(
    command: &mut Command,
    patience: Duration,
    attention: &mut Attention<'_>,
) -> Result<io::Result<Option<String>>, Failure> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    let mut text = Vec::new();
    let stderr = child.stderr.take();
    let ended = async {
        if let Some(stderr) = stderr {
            stderr.take(MAX_STDERR).read_to_end(&mut text).await?;
        }
        child.wait().await
    };
    let stopped = tokio::select! {
        ended = timeout(patience, ended) => match ended {
            Ok(ended) => return Ok(ended.map(|_| Some(String::from_utf8_lossy(&text).into_owned()))),
            Err(_) => Ok(Ok(None)),
        },
        signal = attention.next() => Err(Failure::stopped(signal)),
    };
    stop(&mut child).await;
    stopped
}

/// Stops a program; kills it if its cleanup takes too long.
async fn stop(child: &mut Child) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // It may have ended.
        let _ = kill_process(pid, Signal::TERM);
    }
    if timeout(TIDYING_UP, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Returns a plan with this one transfer.
fn plan_of(bytes: u64, link: &Duplex, limit: Duration) -> String {
    let (cap, seed) = (limit.as_millis(), link.forward.seed);
    format!(
        "name = \"demo/tcp\"\ntitle = \"TCP of this kernel\"\nlink = \"{link}\"\nseeds = [{seed}]\nsize = \"{bytes}B\"\npeers = [\"tcp-cubic\"]\n\
         repeats = 1\ncap = \"{cap}ms\"\n\n[[sweep]]\nname = \"demo\"\nvary = \"size\"\nvalues = [\"{bytes}B\"]\n"
    )
}

fn read(record: &str, limit: Duration) -> Result<TcpResult, String> {
    let record: Record = serde_json::from_str(record)
        .map_err(|error| format!("unreadable record: downpour-lab has another version: {error}"))?;
    if let Some(reason) = record.verdict.reasons.first() {
        return Err(format!("this host was too busy: {reason}"));
    }
    let (took, is_complete) = match record.ending {
        Ending::Finished { seconds } => (Duration::try_from_secs_f64(seconds).unwrap_or(limit), true),
        Ending::NotFinished => (limit, false),
        Ending::Failed { reason } => return Err(reason),
    };
    Ok(TcpResult { took, bytes: record.bytes_there, is_complete, sent_ip_bytes: None })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::args::DEMO_LINK;

    /// Returns the times of TCP, and of the profile `auto` without a fixed rate.
    fn beside_auto(bytes: u64, link: &str) -> (Duration, Duration) {
        let link: Duplex = link.parse().expect("a link");
        let auto = Case { size: bytes, profile: systems::auto(), ..Case::new(link.clone()) }.run(SEED);
        let tcp = simulate(bytes, link).expect("a result");
        assert!(tcp.is_complete && tcp.bytes == bytes, "{tcp:?}");
        assert!(tcp.sent_ip_bytes.is_some_and(|sent| sent > bytes), "{tcp:?}");
        (tcp.took, auto.completed.expect("it arrives"))
    }

    #[test]
    fn tcp_is_far_slower_than_auto_at_5_percent_loss() {
        let (tcp, auto) = beside_auto(50_000_000, DEMO_LINK);
        assert!(tcp > 3 * auto, "TCP takes {tcp:?}, auto {auto:?}");
        // The kernel's TCP takes 33.7 s for 2 MB on this link, and so over ten minutes for this file.
        assert!(tcp > Duration::from_secs(600), "{tcp:?}");
    }

    #[test]
    fn tcp_is_as_fast_as_auto_without_loss() {
        let (tcp, auto) = beside_auto(50_000_000, "rate=100M,delay=50ms,queue=1bdp");
        assert!(tcp < auto.mul_f64(1.2), "TCP takes {tcp:?}, auto {auto:?}");
    }

    /// The lab's own tests read the same two files.
    #[test]
    fn plan_and_record_match_the_labs_files() {
        let link = "rate=200M,delay=2ms,queue=100KB,loss=2%,seed=7".parse().expect("a link");
        let limit = Duration::from_secs(15);
        assert_eq!(plan_of(300_000, &link, limit), include_str!("../../tests/demo/plan.toml"));
        let took = Duration::from_millis(1500);
        let result = TcpResult { took, bytes: 1_000_000, is_complete: true, sent_ip_bytes: None };
        assert_eq!(read(include_str!("../../tests/demo/record.json"), limit), Ok(result));
    }

    #[test]
    fn record_endings_are_read() {
        let limit = Duration::from_secs(15);
        let record = |ending: &str, reasons: &str| {
            format!(r#"{{"schema":1,"ending":{ending},"bytes_there":900,"verdict":{{"reasons":[{reasons}]}}}}"#)
        };
        let result = |took, is_complete| Ok(TcpResult { took, bytes: 900, is_complete, sent_ip_bytes: None });
        let finished = r#"{"end":"finished","seconds":1.5}"#;
        assert_eq!(read(&record(finished, ""), limit), result(Duration::from_millis(1500), true));
        assert_eq!(read(&record(r#"{"end":"not-finished"}"#, ""), limit), result(limit, false));
        let failed = read(&record(r#"{"end":"failed","reason":"no route"}"#, ""), limit);
        assert_eq!(failed, Err("no route".to_owned()));
        let late = read(&record(finished, r#""late""#), limit);
        assert_eq!(late, Err("this host was too busy: late".to_owned()));
        assert!(read("{}", limit).is_err_and(|why| why.starts_with("unreadable record")));
    }
}
