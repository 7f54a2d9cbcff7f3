//! hysteria 2: TCP in a tunnel of QUIC, with BBR or with a fixed rate ("brutal").

use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::carrier::Carrier;
use super::error::PeerError;
use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

/// The tunnel, encrypted.
const HYSTERIA: Peer = Peer {
    name: "",
    needs: &[Need::Program {
        name: "hysteria",
        install: "put the program of https://github.com/apernet/hysteria/releases into a directory of PATH",
        version: &["version"],
    }],
    encrypted: true,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: [
        "a TCP sender is started at the tunnel's near end, which has connected to the far one",
        "the stamp of the TCP receiver at the far end when the last byte is in its file",
    ],
    play: PeerKind::Connections(|run, target| open(run, target, &json!({}))),
};

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "hysteria-bbr", ..HYSTERIA },
    Peer { name: "hysteria-brutal", fixed_rate: true, play: PeerKind::Connections(brutal), ..HYSTERIA },
];

/// Share of the path's rate: headers do not count in its own rate.
const PERCENT: u64 = 98;
/// The name in the certificate, which is no secret: no other program reaches the tunnel.
const NAME: &str = "downpour-lab";

fn brutal(run: &mut TransferRun<'_>, target: SocketAddrV4) -> Result<Carrier, Unfinished> {
    let rate = format!("{} bps", run.share_of_rate(PERCENT).bits_per_second());
    open(run, target, &json!({ "up": rate, "down": rate }))
}

fn open(run: &mut TransferRun<'_>, target: SocketAddrV4, bandwidth: &Value) -> Result<Carrier, Unfinished> {
    let far = run.at_receiver(TransferRun::free_port(run.to)?);
    let near = SocketAddrV4::new(run.from.address(), TransferRun::free_port(run.from)?);
    let [certificate, key] = ["certificate", "key"].map(|name| run.stage.own(name));
    let own = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).map_err(std::io::Error::other);
    let own = own.map_err(PeerError::at("a certificate"))?;
    write(&certificate, &own.cert.pem())?;
    write(&key, &own.signing_key.serialize_pem())?;
    let server = json!({
        "listen": far,
        "tls": { "cert": certificate, "key": key },
        "auth": { "type": "password", "password": NAME },
    });
    let client = json!({
        "server": far,
        "auth": NAME,
        "tls": { "sni": NAME, "ca": certificate },
        "bandwidth": bandwidth,
        "tcpForwarding": [{ "listen": near, "remote": target }],
    });
    let command = end(run, "server", &server)?;
    let mut server = run.start(run.to, command)?;
    run.listens(&mut server, run.to, Protocol::Udp, far.port())?;
    let command = end(run, "client", &client)?;
    let mut client = run.start(run.from, command)?;
    // It does not listen before it is connected.
    run.listens(&mut client, run.from, Protocol::Tcp, near.port())?;
    Ok(Carrier { entry: near, congestion: None, processes: vec![client, server] })
}

/// One end of the tunnel.
fn end(run: &TransferRun<'_>, end: &str, config: &Value) -> Result<Command, Unfinished> {
    let path = run.stage.own(&format!("{end}.json"));
    write(&path, &config.to_string())?;
    let mut command = run.program("hysteria");
    command.args([end, "--disable-update-check", "--config"]).arg(path);
    Ok(command)
}

fn write(path: &Path, text: &str) -> Result<(), PeerError> {
    fs::write(path, text).map_err(PeerError::at(path.display().to_string()))
}
