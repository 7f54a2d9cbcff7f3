//! `downpour tunnel`: TCP over the streams of one connection, after a login with ssh.

use std::net::SocketAddrV4;

use serde_json::Value;

use super::carrier::Carrier;
use super::downpour::DOWNPOUR;
use super::peer::{Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use super::ssh::{KEYGEN, LOGIN, SSH, SSHD, Server, UNSHARE};

/// The tunnel, encrypted.
const TUNNEL: Peer = Peer {
    name: "tunnel",
    needs: &[DOWNPOUR, SSHD, SSH, KEYGEN, UNSHARE],
    encrypted: true,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: [
        "a TCP sender is started at the tunnel's near end, after the tunnel has reported that it is open",
        "the stamp of the TCP receiver at the far end when the last byte is in its file",
    ],
    play: PeerKind::Connections(|run, target| open(run, target, false)),
};

pub(super) const PEERS: &[Peer] = &[
    TUNNEL,
    Peer {
        name: "tunnel-told",
        fixed_rate: true,
        play: PeerKind::Connections(|run, target| open(run, target, true)),
        ..TUNNEL
    },
];

/// Returns the name of the profile with which a peer of these rows sends, the program's default.
pub(super) fn profile(peer: &str) -> Option<&'static str> {
    PEERS.iter().any(|row| row.name == peer).then_some("auto")
}

fn open(run: &mut TransferRun<'_>, target: SocketAddrV4, fixed_rate: bool) -> Result<Carrier, Unfinished> {
    let server = Server::start(run)?;
    let entry = SocketAddrV4::new(run.from.address(), TransferRun::free_port(run.from)?);
    let mut tunnel = run.downpour("tunnel");
    // Without a fallback to ssh, which would be another peer.
    tunnel.args(["--json", "--via", "udp", "--local", &format!("{entry}:{target}")]);
    tunnel.args(["--ssh", &format!("ssh {}", server.options().join(" "))]);
    tunnel.arg("--remote-bin").arg(run.program("downpour").get_program());
    if fixed_rate {
        tunnel.arg("--rate").arg(format!("{}bit/s", run.share_of_rate(100).bits_per_second()));
    }
    for (key, value) in &run.job.choices {
        tunnel.arg("--set").arg(format!("{key}={value}"));
    }
    tunnel.arg(server.place(run));
    run.patience = LOGIN;
    let mut client = run.start_read(run.from, tunnel)?;
    let mut process = server.process;
    run.wait_for_line(&mut client, &mut [&mut process], |line| is_open(line).then_some(()))?;
    Ok(Carrier { entry, congestion: None, processes: vec![client, process] })
}

/// Returns whether a line of `--json` reports an open tunnel.
fn is_open(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|line| line["type"] == "tunnel" && line["event"] == "open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_open_reads_the_json_line() {
        let listening = r#"{"v":1,"type":"tunnel","event":"listening","listen":"10.0.0.1:7","to":"10.0.0.2:7"}"#;
        assert!(!is_open(listening) && !is_open(r#"{"v":1,"type":"connection","event":"open"}"#) && !is_open("open"));
        assert!(is_open(r#"{"v":1,"type":"tunnel","event":"open"}"#));
    }
}
