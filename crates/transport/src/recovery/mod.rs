//! Path (round-trip time, loss estimate, ECN, congestion control, pacer), packets in flight, loss detection, and the
//! [`Report`] that tells the rest what became of them.
//!
//! [`Recovery`] is one path's. It is asked what may be sent ([`Recovery::admit`]), told what was sent and what came
//! back, and normalises feedback and timeouts into one form. It carries [`Content`] and never looks inside.

mod black_hole;
mod congestion;
mod delivery_rate;
mod detection;
mod ecn;
mod flight;
mod loss_estimate;
mod outcome;
mod pacer;
mod path;
mod rtt;
mod sent;

pub use congestion::{CongestionConfig, CongestionControl, CongestionParseError, CubicConfig, PathView};
pub use detection::Detection;
pub use ecn::{Ecn, EcnCodepoint, EcnState};
pub use loss_estimate::LossEstimate;
pub use outcome::RecoveryStats;
pub use path::Recovery;
pub use rtt::{INITIAL_RTT, RttEstimator};
pub use sent::{Cause, Content, RateSample, Report, Sent};

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What recovery is told by the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryConfig {
    /// The controller.
    pub congestion: CongestionConfig,
    /// Numbers of loss detection.
    pub detection: Detection,
    /// Loss assumed until the path has shown its own, 0 to 1 (design section 8).
    pub initial_loss: f64,
    /// Probe timeouts back off to at most this (design section 8).
    pub max_probe_timeout: Duration,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            congestion: CongestionConfig::default(),
            detection: Detection::default(),
            initial_loss: 0.05,
            max_probe_timeout: Duration::from_secs(1),
        }
    }
}

/// What may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// So many IP bytes, at least one full packet; ask again after sending them.
    Bytes(u64),
    /// The pacer allows the next batch at this time.
    Wait(Time),
    /// The window is full: only feedback or a timeout changes that.
    Blocked,
}

/// What a timeout brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Nothing was due.
    None,
    /// Packets are lost: there is a new [`Report`].
    Lost,
    /// Silence: one or two packets that ask for feedback are to be sent, whatever the window says.
    Probe,
}

/// The peer acknowledged a packet that was never sent: it lies, or it is not the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {number} was acknowledged but never sent")]
pub struct NeverSent {
    /// The packet number.
    pub number: u64,
}

#[cfg(test)]
mod tests;
