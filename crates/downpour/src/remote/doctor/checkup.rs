//! The findings of an examination.

use std::net::SocketAddr;

use serde::Serialize;

use super::machine::Machine;
use super::meter::Traffic;

/// One of the two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The machine that runs the doctor.
    Here,
    /// The other machine.
    There,
}

/// Whether UDP passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Udp {
    /// In both directions.
    Open {
        /// The remote address that answered first.
        address: SocketAddr,
        /// Payload bytes of the largest datagram known to have passed in both directions...
        datagram: usize,
        /// ... and its size as an IP packet.
        packet: usize,
        /// Payload bytes of the largest datagram tried.
        largest_tried: usize,
        /// Minimum round-trip time in seconds, without load.
        min_rtt: Option<f64>,
    },
    /// No answer.
    Closed {
        /// The remote port.
        port: u16,
        /// Seconds waited.
        waited: f64,
        /// Whether datagrams arrived there, and the answers were lost.
        arrived: bool,
        /// Error of this kernel when sending, if any.
        hint: Option<String>,
    },
    /// The first connection failed in another way: see [`Checkup::troubles`].
    Unclear,
}

/// One step of an examination.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// A downpour was reached through ssh.
    Reached {
        /// The host as the user named it.
        host: String,
    },
    /// Whether UDP passes.
    Udp(Udp),
    /// What was measured in one direction.
    Traffic {
        /// Whether the direction is from here to there.
        up: bool,
        /// The figures.
        traffic: Box<Traffic>,
    },
    /// The properties of a machine.
    Machine {
        /// Which machine.
        side: Side,
        /// The figures.
        machine: Box<Machine>,
    },
}

/// All findings of an examination. In JSON, sizes are in bytes, times in seconds, and rates in bytes per second unless
/// the name says bits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checkup {
    /// The host as the user named it.
    pub host: String,
    /// Whether UDP passes.
    pub udp: Udp,
    /// Whether the traffic went over ssh's own connection, since UDP does not pass.
    pub over_ssh: bool,
    /// Minimum round-trip time in seconds.
    pub min_rtt: Option<f64>,
    /// Traffic from here to there.
    pub up: Option<Traffic>,
    /// Traffic from there to here.
    pub down: Option<Traffic>,
    /// This machine.
    pub here: Machine,
    /// The other machine.
    pub there: Machine,
    /// What could not be determined, and why.
    pub troubles: Vec<String>,
    /// What the findings mean for transfers.
    pub verdict: DoctorVerdict,
}

impl Checkup {
    /// Returns the machine of a side.
    #[must_use]
    pub const fn machine(&self, side: Side) -> &Machine {
        match side {
            Side::Here => &self.here,
            Side::There => &self.there,
        }
    }
}

/// The bottleneck of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", content = "side", rename_all = "snake_case")]
pub enum ForecastLimit {
    /// The path: its rate, its loss, or the controller's caution.
    Network,
    /// The configured rate or limit.
    ToldRate,
    /// ssh's own connection.
    Ssh,
    /// A core of this side.
    Cpu(Side),
    /// Reading the source, or writing the target.
    Disk(Side),
}

/// What the findings mean for transfers; `None` for a direction that could not be probed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DoctorVerdict {
    /// From here to there.
    pub up: Option<Speed>,
    /// From there to here.
    pub down: Option<Speed>,
    /// How long transfers will take.
    pub forecasts: Vec<Forecast>,
}

/// The expected speed of a large file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Speed {
    /// Bytes per second.
    pub goodput: u64,
    /// The bottleneck.
    pub bottleneck: ForecastLimit,
}

/// How long a transfer will take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Number of files.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// From here to there.
    pub up: Option<f64>,
    /// From there to here.
    pub down: Option<f64>,
}
