//! kcptun: TCP in a tunnel of KCP over UDP, without congestion control.

use std::net::SocketAddrV4;

use super::carrier::Carrier;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

const INSTALL: &str = "apt-get install kcptun";

/// The tunnel, encrypted (AES-CFB, without authentication).
const KCPTUN: Peer = Peer {
    name: "",
    needs: &[
        Need::Program { name: "kcptun-server", install: INSTALL, version: &[] },
        Need::Program { name: "kcptun-client", install: INSTALL, version: &["--version"] },
    ],
    encrypted: true,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: [
        "a TCP sender is started at the tunnel's near end, which has not yet contacted the far one",
        "the stamp of the TCP receiver at the far end when the last byte is in its file",
    ],
    play: PeerKind::Connections(|run, target| open(run, target, FEC)),
};

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "kcptun", ..KCPTUN },
    Peer { name: "kcptun-nofec", play: PeerKind::Connections(|run, target| open(run, target, NO_FEC)), ..KCPTUN },
];

/// Data and parity packets of a Reed-Solomon block; these are its own defaults.
const FEC: [u8; 2] = [10, 3];
/// Two zeros disable the code.
const NO_FEC: [u8; 2] = [0, 0];
/// Packets in flight: its defaults (128 and 512) allow 16 Mbit/s at a round trip of 100 ms.
const WINDOW: &str = "2048";

fn open(run: &mut TransferRun<'_>, target: SocketAddrV4, [data, parity]: [u8; 2]) -> Result<Carrier, Unfinished> {
    let [far, near] = [TransferRun::free_port(run.to)?, TransferRun::free_port(run.from)?];
    let options = |name| {
        let mut command = run.program(name);
        command.args(["--mode", "fast3", "--crypt", "aes-128", "--nocomp", "--quiet"]);
        command.args(["--sndwnd", WINDOW, "--rcvwnd", WINDOW]);
        command.args([format!("--datashard={data}"), format!("--parityshard={parity}")]);
        command
    };
    let entry = SocketAddrV4::new(run.from.address(), near);
    let mut serve = options("kcptun-server");
    serve.args(["--listen", &run.at_receiver(far).to_string(), "--target", &target.to_string()]);
    let mut tunnel = options("kcptun-client");
    tunnel.args(["--localaddr", &entry.to_string(), "--remoteaddr", &run.at_receiver(far).to_string()]);
    let mut server = run.start(run.to, serve)?;
    run.listens(&mut server, run.to, Protocol::Udp, far)?;
    let mut client = run.start(run.from, tunnel)?;
    run.listens(&mut client, run.from, Protocol::Tcp, near)?;
    Ok(Carrier { entry, congestion: None, processes: vec![client, server] })
}
