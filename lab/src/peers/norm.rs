//! NORM (RFC 5740) in its authors' library, with a fixed rate, from one sender to one receiver: `peers/norm.cpp`.

use std::time::Duration;

use super::error::PeerError;
use super::own;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};

/// NORM, unencrypted.
const NORM: Peer = Peer {
    name: "",
    needs: &[Need::Program { name: "lab-norm", install: "cargo xtask lab-deps", version: &[] }],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: true,
    clock: ["the sender is started", "the receiver's own stamp when the file is complete and has its name"],
    play: PeerKind::File(|run| transfer(run, 0)),
};

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "norm", ..NORM },
    Peer { name: "norm-proactive", play: PeerKind::File(|run| transfer(run, 4)), ..NORM },
];

/// Share of the path's rate: not all headers count in its own rate.
const PERCENT: u64 = 98;

/// Sends `parity` packets after each block of 64 without a request.
fn transfer(run: &mut TransferRun<'_>, parity: u8) -> Result<Duration, Unfinished> {
    if run.job.size == 0 {
        return Err(PeerError::Empty { peer: "norm" }.into());
    }
    let (address, port) = (run.to.address().to_string(), TransferRun::free_port(run.to)?.to_string());
    let mut receive = run.program("lab-norm");
    receive.args(["receive", &address, &port]).arg(run.stage.target_directory()).arg(run.stage.target());
    let mut receiver = run.start_read(run.to, receive)?;
    own::port(run, &mut receiver)?;
    let rate = run.share_of_rate(PERCENT).bits_per_second().to_string();
    let mut send = run.program("lab-norm");
    send.args(["send", &address, &port, &rate, &parity.to_string()]).arg(run.stage.source());
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    own::complete(run, &mut receiver, &mut [&mut sender])
}
