//! What an examination has found.

use std::net::SocketAddr;

use serde::Serialize;

use super::advice::Advice;
use super::machine::Machine;
use super::meter::Traffic;
use super::verdict::Verdict;

/// One of the two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Where the doctor was called.
    Here,
    /// The other one.
    There,
}

/// Whether UDP passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Udp {
    /// Both ways.
    Open {
        /// The address over there that answered first.
        address: SocketAddr,
        /// Payload bytes of the largest datagram that is known to have crossed both ways...
        datagram: usize,
        /// ... as an IP packet.
        packet: usize,
        /// Payload bytes of the largest that was tried.
        largest_tried: usize,
        /// Smallest round-trip time, in seconds, before bytes flowed.
        min_rtt: Option<f64>,
    },
    /// Nobody answered.
    Closed {
        /// The port over there.
        port: u16,
        /// Seconds that were waited.
        waited: f64,
        /// Datagrams arrived over there, and the answers got lost.
        arrived: bool,
        /// What this kernel said about sending, if anything.
        hint: Option<String>,
    },
    /// The first connection failed in another way: see [`Checkup::troubles`].
    Unclear,
}

/// One step of an examination.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// ssh has led to a downpour.
    Reached {
        /// As it was asked for.
        host: String,
    },
    /// Whether UDP passes.
    Udp(Udp),
    /// What one direction carries.
    Traffic {
        /// From here to there.
        up: bool,
        /// The figures.
        traffic: Traffic,
    },
    /// What a machine is.
    Machine {
        /// Which.
        side: Side,
        /// The figures.
        machine: Box<Machine>,
    },
}

/// Everything an examination has found. As JSON: sizes in bytes, times in seconds, rates in bytes per second where the name does not say
/// bits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checkup {
    /// As it was asked for.
    pub host: String,
    /// Whether UDP passes.
    pub udp: Udp,
    /// The traffic went over ssh's own connection, since UDP does not pass.
    pub over_ssh: bool,
    /// Smallest round-trip time, in seconds.
    pub min_rtt: Option<f64>,
    /// From here to there.
    pub up: Option<Traffic>,
    /// From there to here.
    pub down: Option<Traffic>,
    /// This machine.
    pub here: Machine,
    /// The other one.
    pub there: Machine,
    /// What could not be found out, and why.
    pub troubles: Vec<String>,
    /// What it means for transfers.
    pub verdict: Verdict,
    /// What would make them faster or possible, the most important first.
    pub advice: Vec<Advice>,
}

impl Checkup {
    /// The machine of a side.
    #[must_use]
    pub const fn machine(&self, side: Side) -> &Machine {
        match side {
            Side::Here => &self.here,
            Side::There => &self.there,
        }
    }
}
