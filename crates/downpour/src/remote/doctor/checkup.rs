//! The findings of an examination.

use std::net::SocketAddr;

use serde::Serialize;

use super::machine::Machine;
use super::meter::Traffic;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The host that runs the doctor.
    #[serde(rename = "here")]
    Local,
    /// The remote host.
    #[serde(rename = "there")]
    Remote,
}

/// Whether UDP works.
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
        /// Whether datagrams arrived, and the answers were lost.
        arrived: bool,
        /// The local kernel's error when sending, if any.
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
    /// Whether UDP works.
    Udp(Udp),
    /// The measurements of one direction.
    Traffic {
        /// Whether the direction is from the local to the remote host.
        up: bool,
        /// The figures.
        traffic: Box<Traffic>,
    },
    /// The properties of a host.
    Machine {
        /// Which host.
        side: Side,
        /// The figures.
        machine: Box<Machine>,
    },
}

/// All findings of an examination. In JSON, sizes are in bytes, times in seconds, and rates in bytes per second unless
/// the name includes bits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checkup {
    /// The host as the user named it.
    pub host: String,
    /// Whether UDP works.
    pub udp: Udp,
    /// Whether the traffic used ssh's connection because UDP is blocked.
    pub over_ssh: bool,
    /// Minimum round-trip time in seconds.
    pub min_rtt: Option<f64>,
    /// Traffic from the local to the remote host.
    pub up: Option<Traffic>,
    /// Traffic from the remote to the local host.
    pub down: Option<Traffic>,
    /// The local host.
    #[serde(rename = "here")]
    pub local: Machine,
    /// The remote host.
    #[serde(rename = "there")]
    pub remote: Machine,
    /// Failed measurements and their reasons.
    pub troubles: Vec<String>,
    /// The consequences for transfers.
    pub verdict: DoctorVerdict,
}

impl Checkup {
    /// Returns the host of a side.
    #[must_use]
    pub const fn machine(&self, side: Side) -> &Machine {
        match side {
            Side::Local => &self.local,
            Side::Remote => &self.remote,
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
    #[serde(rename = "told_rate")]
    ConfiguredRate,
    /// ssh's own connection.
    Ssh,
    /// A core of this host.
    Cpu(Side),
    /// Reading the source, or writing the target.
    Disk(Side),
}

/// The consequences of the findings for transfers; `None` for a direction that could not be probed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DoctorVerdict {
    /// From the local to the remote host.
    pub up: Option<Speed>,
    /// From the remote to the local host.
    pub down: Option<Speed>,
    /// Predicted transfer times.
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

/// The predicted time of a transfer, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Number of files.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// From the local to the remote host.
    pub up: Option<f64>,
    /// From the remote to the local host.
    pub down: Option<f64>,
}
