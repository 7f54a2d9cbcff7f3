//! SRT in its file mode, with its own congestion control for files.

use std::time::Duration;

use super::error::PeerError;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

pub(super) const PEERS: &[Peer] = &[Peer {
    name: "srt",
    needs: &[Need::Program { name: "srt-file-transmit", install: "apt-get install srt-tools", version: &["-version"] }],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["the sender is started", "the receiver's file has its full length"],
    play: PeerKind::File(transfer),
}];

fn transfer(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    if run.job.size == 0 {
        // The sender may exit before the receiver considers the connection established, which then reports a failure.
        return Err(PeerError::Empty { peer: "srt" }.into());
    }
    let port = TransferRun::free_port(run.to)?;
    let at = run.at_receiver(port);
    let mut receive = run.program("srt-file-transmit");
    receive.args(["-quiet", &format!("srt://{at}?mode=listener"), &format!("file://{}", run.stage.target().display())]);
    let mut receiver = run.start(run.to, receive)?;
    run.listens(&mut receiver, run.to, Protocol::Udp, port)?;
    let mut send = run.program("srt-file-transmit");
    send.args(["-quiet", &format!("file://{}", run.stage.source().display()), &format!("srt://{at}?mode=caller")]);
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    // It exits only after the sender, which waits in case it has to retransmit.
    run.full(&mut receiver, &mut [&mut sender])
}
