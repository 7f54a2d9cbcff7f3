//! Downpour itself, run as its users do: the program, a ticket, and a profile.

use std::time::Duration;

use serde_json::Value;

use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};

pub(super) const DOWNPOUR: Need = Need::Program {
    name: "downpour",
    install: "cargo build --release --package downpour-cli",
    version: &["--version"],
};

/// Downpour's files, encrypted.
const BY_TICKET: Peer = Peer {
    name: "",
    needs: &[DOWNPOUR],
    encrypted: true,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["the sender is started", "the receiver reports that the file is verified, synced and under its name"],
    play: PeerKind::File(|run| transfer(run, "auto", false)),
};

/// `auto` and `arq` find their rate themselves, unless a fixed one is given.
pub(super) const PEERS: &[Peer] = &[
    Peer { name: "downpour-arq", play: PeerKind::File(|run| transfer(run, "arq", false)), ..BY_TICKET },
    Peer { name: "downpour-auto", ..BY_TICKET },
    Peer {
        name: "downpour-auto-told",
        fixed_rate: true,
        play: PeerKind::File(|run| transfer(run, "auto", true)),
        ..BY_TICKET
    },
    Peer { name: "downpour-lt-tcp", play: PeerKind::File(|run| transfer(run, "lt-tcp", false)), ..BY_TICKET },
    Peer {
        name: "downpour-rc-udp",
        fixed_rate: true,
        play: PeerKind::File(|run| transfer(run, "rc-udp", true)),
        ..BY_TICKET
    },
    Peer {
        name: "downpour-tornado-transfer",
        play: PeerKind::File(|run| transfer(run, "tornado-transfer", false)),
        ..BY_TICKET
    },
    Peer { name: "downpour-ttp", play: PeerKind::File(|run| transfer(run, "ttp", false)), ..BY_TICKET },
];

/// Returns the name of the profile with which a peer sends.
pub(super) fn profile(peer: &str) -> Option<&str> {
    match peer.strip_prefix("downpour-")? {
        "cp" => Some("auto"),
        name => Some(name.strip_suffix("-told").unwrap_or(name)),
    }
}

fn transfer(run: &mut TransferRun<'_>, profile: &str, fixed_rate: bool) -> Result<Duration, Unfinished> {
    let ticket = run.stage.own("ticket");
    let mut receive = run.downpour("recv");
    receive.args(["--json", "--yes", "--listen", &run.at_receiver(0).to_string(), "--ticket-file"]).arg(&ticket);
    receive.arg("--into").arg(run.stage.target_directory());
    let mut receiver = run.start_read(run.to, receive)?;
    // The ticket is written before the first line is printed.
    run.wait_for_line(&mut receiver, &mut [], |line| is(line, "start").then_some(()))?;
    let mut send = run.downpour("send");
    send.args(["--quiet", "--to", "--profile", profile, "--ticket-file"]).arg(ticket);
    if fixed_rate {
        // It counts whole IP packets, as the rate of the path does.
        send.arg("--rate").arg(format!("{}bit/s", run.share_of_rate(100).bits_per_second()));
    }
    for (key, value) in &run.job.choices {
        send.arg("--set").arg(format!("{key}={value}"));
    }
    send.arg(run.stage.source());
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    let ((), at) = run.wait_for_line(&mut receiver, &mut [&mut sender], |line| is(line, "file").then_some(()))?;
    Ok(at)
}

/// Returns whether a line of `--json` is of this type.
fn is(line: &str, kind: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|line| line["type"] == kind)
}
