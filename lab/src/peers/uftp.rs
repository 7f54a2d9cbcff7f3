//! UFTP, which sends at a fixed rate, to one receiver.

use std::time::Duration;

use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

const INSTALL: &str = "apt-get install uftp";

pub(super) const PEERS: &[Peer] = &[Peer {
    name: "uftp",
    needs: &[
        Need::Program { name: "uftpd", install: INSTALL, version: &[] },
        Need::Program { name: "uftp", install: INSTALL, version: &[] },
    ],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: true,
    clock: ["the sender is started, and has yet to announce the file", "the receiver's status line for the file"],
    play: PeerKind::File(transfer),
}];

/// Share of the path's rate: the headers of a block of 1300 bytes do not count in its own rate.
const PERCENT: u64 = 98;
/// Bytes of socket buffer; its default is for slower paths.
const BUFFER: &str = "4194304";

fn transfer(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    let port = TransferRun::free_port(run.to)?;
    let mut receive = run.program("uftpd");
    // In the foreground, without name lookups, and with its status on stdout.
    receive.args(["-d", "-q", "-F", "/dev/stdout", "-B", BUFFER, "-p", &port.to_string()]);
    receive.args(["-I", &run.to.address().to_string(), "-D"]).arg(run.stage.target_directory());
    let mut receiver = run.start_read(run.to, receive)?;
    run.listens(&mut receiver, run.to, Protocol::Udp, port)?;
    let mut send = run.program("uftp");
    let kilobits = run.share_of_rate(PERCENT).bits_per_second().div_ceil(1000);
    send.args(["-R", &kilobits.to_string(), "-B", BUFFER, "-p", &port.to_string()]);
    send.args(["-I", &run.from.address().to_string(), "-M", &run.to.address().to_string()]).arg(run.stage.source());
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    let ((), at) =
        run.wait_for_line(&mut receiver, &mut [&mut sender], |line| line.starts_with("RESULT;").then_some(()))?;
    Ok(at)
}
