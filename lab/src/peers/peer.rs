//! The description of a peer.

use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::carrier::Carrier;
use super::programs::Programs;
use super::run::{TransferRun, Unfinished};
use crate::sys::grow_only;

/// A program that moves a file from one host to another or carries connections, and how to measure it.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Need],
    /// Whether the file is encrypted in transit.
    pub(super) encrypted: bool,
    /// The congestion control for all TCP of its host, for programs that cannot choose one.
    pub(super) route_congestion: Option<&'static str>,
    /// Whether TCP of its hosts asks for ECN, which Linux by default does not.
    pub(super) ecn: bool,
    /// Whether it sends at a fixed rate.
    pub(super) fixed_rate: bool,
    /// The events that start and end the clock.
    pub(super) clock: [&'static str; 2],
    /// How it is started.
    pub(super) play: PeerKind,
}

/// The work of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerKind {
    /// Moves the file; returns the time at which the last byte had arrived.
    File(fn(&mut TransferRun<'_>) -> Result<Duration, Unfinished>),
    /// Carries TCP connections to an address at the receiving host: opens the path to it. The lab's own programs use
    /// it, for a file or for small writes.
    Connections(fn(&mut TransferRun<'_>, SocketAddrV4) -> Result<Carrier, Unfinished>),
}

/// A requirement of a peer on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A program.
    Program {
        name: &'static str,
        /// The command that installs it.
        install: &'static str,
        /// The arguments that make it print its version; empty if it cannot.
        version: &'static [&'static str],
    },
    /// A congestion control of the kernel's TCP.
    Congestion(&'static str),
    /// The right to load our own into the kernel, and a kernel that accepts it.
    OwnCongestion,
}

/// Whether a peer can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It can be measured.
    Present,
    /// A requirement is missing.
    Absent {
        /// The missing item.
        missing: String,
        /// The command that installs it.
        install: String,
    },
}

/// The two ends of a clock, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedSpan {
    /// The event that starts it.
    pub starts: String,
    /// The event that ends it.
    pub ends: String,
}

impl Peer {
    /// Returns its name, as used in plans.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the file is encrypted in transit.
    pub const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Returns the congestion control that the routes of both hosts must have (`ip route ... congctl`), for a peer that
    /// cannot choose one itself.
    pub const fn route_congestion(&self) -> Option<&'static str> {
        self.route_congestion
    }

    /// Returns whether TCP of its hosts must ask for ECN (`net.ipv4.tcp_ecn=1`).
    pub const fn asks_for_ecn(&self) -> bool {
        self.ecn
    }

    /// Returns whether it needs the rate of the path.
    pub const fn needs_fixed_rate(&self) -> bool {
        self.fixed_rate
    }

    /// Returns whether it carries connections, over which small writes can be measured.
    pub const fn carries_connections(&self) -> bool {
        matches!(self.play, PeerKind::Connections(_))
    }

    /// Returns the two ends of its clock.
    pub fn clock(&self) -> TimedSpan {
        let [starts, ends] = self.clock.map(str::to_owned);
        TimedSpan { starts, ends }
    }

    /// Returns whether everything that it needs is present.
    pub fn presence(&self, programs: &Programs) -> Presence {
        let route = self.route_congestion.map(Need::Congestion);
        let absent = self.needs.iter().chain(&route).find_map(|need| need.missing(programs));
        absent.map_or(Presence::Present, |(missing, install)| Presence::Absent { missing, install })
    }
}

impl Need {
    /// Returns the missing item, and the command that installs it.
    fn missing(&self, programs: &Programs) -> Option<(String, String)> {
        match *self {
            Self::Program { name, install, .. } => {
                programs.find(name).is_none().then(|| (format!("the program {name}"), install.to_owned()))
            }
            Self::Congestion(name) => {
                let known =
                    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
                let missing = !known.split_whitespace().any(|known| known == name);
                missing.then(|| (format!("the kernel's {name}"), format!("modprobe tcp_{name}")))
            }
            Self::OwnCongestion => {
                let missing = !geteuid().is_root() || !Path::new(grow_only::BTF).exists();
                let name = "root, and a kernel with BTF and BPF struct_ops".to_owned();
                missing.then(|| (name, "run it as root, on Linux 5.6 or later".to_owned()))
            }
        }
    }
}
