//! A controller's estimates of the path: for people and traces, and for the next connection.

use crate::time::Rate;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limit that keeps a controller from sending faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateConstraint {
    /// It is still searching for the path's rate.
    Search,
    /// The path carries no more.
    #[default]
    Path,
    /// Packets are lost at a certain rate although nothing queues: a policer, or a buffer of a few packets.
    Policer,
    /// Others fill the path's queue and take their share.
    Neighbors,
    /// The fixed rate that it was given.
    FixedRate,
    /// The path carries far less than the fixed rate: the excess is lost, and other flows get nothing.
    Overload,
    /// The limit set by the program. [`ConnectionStats`](crate::ConnectionStats) reports it, not a controller, if the
    /// limit is less than the controller's rate.
    RateLimit,
}

impl RateConstraint {
    /// Returns its name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Path => "path",
            Self::Policer => "policer",
            Self::Neighbors => "neighbors",
            Self::FixedRate => "fixed-rate",
            Self::Overload => "overload",
            Self::RateLimit => "rate-limit",
        }
    }
}

/// A controller's estimates of the path at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerState {
    /// How it treats a queue, such as `default` or `compete`.
    pub mode: &'static str,
    /// Its phase, such as `start` or `cruise`.
    pub phase: &'static str,
    /// The limit that keeps it from sending faster.
    pub constraint: RateConstraint,
    /// The rate that the path delivers, in IP bits per second.
    pub rate: Rate,
    /// The path's round-trip time without a queue.
    pub base: Duration,
    /// The time that the newest packet has waited in queues.
    pub queue: Duration,
    /// The share of packets that the path loses without congestion, 0 to 1.
    pub baseline: f64,
    /// The path's slowest link as measured by packet trains, if enough of them agree.
    pub link: Option<LinkRate>,
}

/// The rate of a path's slowest link, from how far it spreads packets that leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRate {
    /// The median of all pairs of packets, in IP bits per second: the link's rate for a short burst.
    pub rate: Rate,
    /// Number of reports that it is taken from.
    pub reports: u32,
}

/// The loss that a controller holds to be the path's own: no lower rate would avoid it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    /// The share of lost packets, 0 to 1.
    pub share: f64,
    /// The largest share compatible with the observed losses.
    pub most: f64,
}

/// The measurements of a connection, for the next one to the same address (careful resume, RFC 9959).
///
/// The engine keeps nothing itself. A program that does passes a saved path to one connection at a time, and to none
/// after a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPath {
    /// The rate that the path delivered, in IP bits per second.
    pub rate: Rate,
    /// The path's round-trip time without a queue.
    pub base: Duration,
    /// The share of packets that the path lost without congestion, 0 to 1; `None` if too few were sent to know.
    pub baseline: Option<f64>,
    /// The mean number of packets lost in a row.
    pub burst: f64,
}
