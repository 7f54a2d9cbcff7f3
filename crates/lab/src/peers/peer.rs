//! What a peer is.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::programs::Programs;
use super::run::{TransferRun, Unfinished};

/// A program that moves a file from one host to another, and how that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Need],
    /// Whether somebody on the way can read the file.
    pub(super) encrypted: bool,
    /// The congestion control that all TCP of its host is to have, for programs that cannot be told one.
    pub(super) route_congestion: Option<&'static str>,
    /// Whether it sends at a rate that it is told.
    pub(super) told: bool,
    /// What happens when the clock starts, and when it ends.
    pub(super) clock: [&'static str; 2],
    /// Moves the file; gives the time at which the last byte was there.
    pub(super) play: fn(&mut TransferRun<'_>) -> Result<Duration, Unfinished>,
}

/// What a peer needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A program.
    Program {
        name: &'static str,
        /// The line that installs it.
        install: &'static str,
        /// The arguments on which it tells its version; none where it cannot.
        version: &'static [&'static str],
    },
    /// A congestion control of the kernel's TCP.
    Congestion(&'static str),
}

/// Whether a peer can take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It can.
    Present,
    /// Something is missing.
    Absent {
        /// What.
        missing: String,
        /// The line that installs it.
        install: String,
    },
}

/// The two ends of a clock, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// What happens when it starts.
    pub starts: String,
    /// What happens when it ends.
    pub ends: String,
}

impl Peer {
    /// Its name, as plans call it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether nobody on the way can read the file.
    pub const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// The congestion control that the routes of both hosts must have (`ip route ... congctl`), for a peer that cannot choose one itself.
    pub const fn route_congestion(&self) -> Option<&'static str> {
        self.route_congestion
    }

    /// Whether it must be told the rate of the path.
    pub const fn must_be_told(&self) -> bool {
        self.told
    }

    /// The two ends of its clock.
    pub fn clock(&self) -> Clock {
        let [starts, ends] = self.clock.map(str::to_owned);
        Clock { starts, ends }
    }

    /// Whether all is there that it needs.
    pub fn presence(&self, programs: &Programs) -> Presence {
        let route = self.route_congestion.map(Need::Congestion);
        let absent = self.needs.iter().chain(&route).find_map(|need| need.missing(programs));
        absent.map_or(Presence::Present, |(missing, install)| Presence::Absent { missing, install })
    }
}

impl Need {
    /// What is missing, and the line that installs it.
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
        }
    }
}
