//! iperf3, from memory to memory.
//!
//! It runs in reverse (`-R`): the receiver is the client and ends the test when it has counted all bytes. Otherwise the
//! server stops reading when the sender has sent enough, and bytes in flight are never counted. Its own files (`-F`)
//! cannot be used: after a partial write the sender overwrites the rest of its buffer, so that the received bytes
//! differ from the file.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::error::PeerError;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

const PROGRAM: Need = Need::Program { name: "iperf3", install: "apt-get install iperf3", version: &["--version"] };

/// iperf3 over TCP, unencrypted.
const IPERF3: Peer = Peer {
    name: "",
    needs: &[PROGRAM, Need::Congestion("reno")],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: [
        "iperf3 has connected and agreed on the test: about four round trips are over",
        "the receiver has counted all bytes, by its own report",
    ],
    play: PeerKind::File(|run| transfer(run, "reno")),
};

pub(super) const PEERS: &[Peer] = &[
    Peer {
        name: "iperf3-cubic",
        needs: &[PROGRAM, Need::Congestion("cubic")],
        play: PeerKind::File(|run| transfer(run, "cubic")),
        ..IPERF3
    },
    Peer { name: "iperf3-reno", ..IPERF3 },
    Peer {
        name: "iperf3-bbr",
        needs: &[PROGRAM, Need::Congestion("bbr")],
        play: PeerKind::File(|run| transfer(run, "bbr")),
        ..IPERF3
    },
];

fn transfer(run: &mut TransferRun<'_>, congestion: &str) -> Result<Duration, Unfinished> {
    if run.job.size == 0 {
        return Err(PeerError::Empty { peer: "iperf3" }.into());
    }
    let port = TransferRun::free_port(run.from)?;
    let mut serve = run.program("iperf3");
    serve.args(["--server", "--one-off", "--port", &port.to_string(), "--bind", &run.from.address().to_string()]);
    let mut sender = run.start(run.from, serve)?;
    run.listens(&mut sender, run.from, Protocol::Tcp, port)?;
    let mut fetch = run.program("iperf3");
    fetch.args(["--client", &run.from.address().to_string(), "--port", &port.to_string(), "--reverse"]);
    fetch.args(["--congestion", congestion, "--bytes", &run.job.size.to_string()]);
    let report = run.stage.own("report");
    fetch.arg("--json").arg("--logfile").arg(&report);
    run.start_clock();
    let mut receiver = run.start(run.to, fetch)?;
    run.exit(&mut receiver, &mut [&mut sender])?;
    let report = fs::read(report).map_err(PeerError::at("the report of iperf3"))?;
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let received = &report["end"]["sum_received"];
    run.congestion = report["end"]["sender_tcp_congestion"].as_str().map(str::to_owned);
    run.counted = received["bytes"].as_u64();
    let took = received["seconds"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let program = "iperf3".to_owned();
    let took = took.ok_or_else(|| PeerError::UnexpectedOutput { program, line: report["error"].to_string() })?;
    Ok(run.started() + took)
}
