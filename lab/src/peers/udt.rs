//! UDT in its own library, with its own congestion control: `peers/udt.cpp`.

use std::time::Duration;

use super::own;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};

pub(super) const PEERS: &[Peer] = &[Peer {
    name: "udt",
    needs: &[Need::Program { name: "lab-udt", install: "cargo xtask lab-deps", version: &[] }],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["the sender is started", "the receiver's own stamp when the last byte is in its file"],
    play: PeerKind::File(transfer),
}];

fn transfer(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    let (address, size) = (run.to.address().to_string(), run.job.size.to_string());
    let mut receive = run.program("lab-udt");
    receive.args(["receive", &address, &size]).arg(run.stage.target());
    let mut receiver = run.start_read(run.to, receive)?;
    let port = own::port(run, &mut receiver)?;
    let mut send = run.program("lab-udt");
    send.args(["send", &address, &port.to_string(), &size]).arg(run.stage.source());
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    own::complete(run, &mut receiver, &mut [&mut sender])
}
