//! The measured programs: small tables of how each is started and stopped, how the arrival of the last byte is
//! detected, whether it is encrypted, and how to install it.
//!
//! To add a peer: one file with its rows, and its name in `TABLES`.

mod carrier;
mod downpour;
mod error;
mod gate;
mod hysteria;
mod iperf3;
mod kcptun;
mod norm;
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
mod tunnel;
mod udt;
mod uftp;
mod writes;

use transport::Profile;

use crate::program::names;
pub use error::PeerError;
pub use gate::{Gate, Start};
pub use own::{OwnPeer, QuicReceive, QuicSend, TcpHear, TcpReceive, TcpSend, TcpWrite, run as run_own};
pub use peer::{Peer, Presence, TimedSpan};
pub use programs::{Downpour, Programs};
pub use quic::Congestion;
pub use stage::MEMORY;
pub(crate) use tcp::UnconnectedSocket;
pub use transfer::{Job, Transfer, transfer};
pub use writes::Delays;

/// The rows of every file.
const TABLES: &[&[Peer]] = &[
    tcp::PEERS,
    downpour::PEERS,
    tunnel::PEERS,
    ssh::PEERS,
    quic::PEERS,
    iperf3::PEERS,
    kcptun::PEERS,
    uftp::PEERS,
    srt::PEERS,
    hysteria::PEERS,
    norm::PEERS,
    udt::PEERS,
];

/// Iterates over every peer.
pub fn all() -> impl Iterator<Item = &'static Peer> {
    TABLES.iter().copied().flatten()
}

/// Returns the peer of this name. Choices of the profile may follow the name of one of downpour's:
/// `downpour-arq congestion=reno`.
///
/// # Errors
/// [`PeerError::Unknown`], [`PeerError::Simulated`].
pub fn named(name: &str) -> Result<&'static Peer, PeerError> {
    let first = name.split(' ').next().unwrap_or_default();
    if first == sim::LINUX_TCP {
        return Err(PeerError::Simulated);
    }
    all().find(|peer| peer.name == first).ok_or_else(|| PeerError::Unknown { name: first.to_owned() })
}

/// Returns the choices after a peer's name: keys and values.
///
/// # Errors
/// [`PeerError::Choice`]: the peer is not one of downpour's, or its profile has no such choice.
pub fn choices(name: &str) -> Result<Vec<(String, String)>, PeerError> {
    let mut words = name.split(' ');
    let peer = words.next().unwrap_or_default();
    let wrong = |reason: String| PeerError::Choice { peer: name.to_owned(), reason };
    let mut choices = Vec::new();
    for word in words {
        let mut profile = profile(peer).ok_or_else(|| wrong("it has no profile".to_owned()))?;
        let (key, value) = word.split_once('=').ok_or_else(|| wrong(format!("'{word}' is not KEY=VALUE")))?;
        choices.push((key.to_owned(), value.to_owned()));
        for (key, value) in &choices {
            profile.set(key, value).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(choices)
}

/// Returns the choices of the profile with which a peer sends, if it is one of downpour's.
pub(crate) fn profile_text(name: &str) -> Option<String> {
    let mut profile = profile(name.split(' ').next()?)?;
    for (key, value) in choices(name).ok()? {
        profile.set(&key, &value).ok()?;
    }
    serde_json::to_string(&profile).ok()
}

/// Returns the profile with which a peer sends, if it is one of downpour's.
fn profile(peer: &str) -> Option<Profile> {
    names().profile(downpour::profile(peer).or_else(|| tunnel::profile(peer))?).ok()
}

/// Returns a human-readable table of the peers: name, presence, encryption and needs; then the two ends of its clock,
/// and the command that installs missing programs.
pub fn table(programs: &Programs) -> String {
    let mut text = String::new();
    for peer in all() {
        let presence = peer.presence(programs);
        let mut words = vec![
            if presence == Presence::Present { "present".to_owned() } else { "absent".to_owned() },
            if peer.encrypted { "encrypted".to_owned() } else { "not encrypted".to_owned() },
        ];
        words.extend(peer.fixed_rate.then(|| "fixed rate".to_owned()));
        words.extend(peer.route_congestion.map(|name| format!("{name} by its route")));
        words.extend(peer.ecn.then(|| "asks for ECN".to_owned()));
        let [starts, ends] = peer.clock;
        text += &format!("{:<26}{}\n", peer.name, words.join(", "));
        text += &format!("    from: {starts}\n    to:   {ends}\n");
        if let Presence::Absent { missing, install } = presence {
            text += &format!("    needs {missing}: {install}\n");
        }
    }
    text
}
