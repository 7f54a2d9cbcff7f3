//! The programs that are measured: small tables that say how each is started and stopped, how the last byte is known, whether it is
//! encrypted, and what installs it.
//!
//! To add a peer: one file with its rows, and its name in [`TABLES`].

mod clock;
mod downpour;
mod error;
mod hysteria;
mod iperf3;
mod kcptun;
mod own;
mod peer;
mod process;
mod programs;
mod quic;
mod run;
mod srt;
mod ssh;
mod stage;
mod tcp;
#[cfg(test)]
mod tests;
mod transfer;
mod uftp;

pub use error::PeerError;
pub use own::{OwnPeer, QuicReceive, QuicSend, TcpReceive, TcpSend, run as run_own};
pub use peer::{Clock, Peer, Presence};
pub use programs::Programs;
pub use quic::Congestion;
pub use transfer::{Job, Transfer, transfer};

/// The rows of every file.
const TABLES: &[&[Peer]] = &[
    tcp::PEERS,
    downpour::PEERS,
    ssh::PEERS,
    quic::PEERS,
    iperf3::PEERS,
    kcptun::PEERS,
    uftp::PEERS,
    srt::PEERS,
    hysteria::PEERS,
];

/// Every peer.
pub fn all() -> impl Iterator<Item = &'static Peer> {
    TABLES.iter().copied().flatten()
}

/// The peer of this name.
///
/// # Errors
/// [`PeerError::Unknown`].
pub fn named(name: &str) -> Result<&'static Peer, PeerError> {
    all().find(|peer| peer.name == name).ok_or_else(|| PeerError::Unknown { name: name.to_owned() })
}

/// The peers as a table for people: name, whether it is there or the line that installs what is missing, whether it is encrypted, and the
/// two ends of its clock.
pub fn table(programs: &Programs) -> String {
    let mut lines = vec!["peer             encrypted  clock".to_owned()];
    for peer in all() {
        let encrypted = if peer.encrypted { "yes" } else { "no" };
        let [starts, ends] = peer.clock;
        lines.push(format!("{:<17}{encrypted:<11}from: {starts}; to: {ends}", peer.name));
        if let Presence::Absent { missing, install } = peer.presence(programs) {
            lines.push(format!("                 absent: {missing}: {install}"));
        }
    }
    lines.join("\n") + "\n"
}
