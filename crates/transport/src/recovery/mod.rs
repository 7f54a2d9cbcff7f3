//! Path (round-trip time, loss estimate, ECN, congestion control, pacer), packets in flight, loss detection, and the
//! [`Report`] that tells the rest what became of them.
//!
//! [`Recovery`] is one path's. It is asked what may be sent ([`Recovery::admit`]), told what was sent and what came
//! back, and normalises feedback and timeouts into one form. It carries [`Content`] and never looks inside, but
//! for whether it is a symbol: feedback in order says nothing of others.

mod ack_info;
mod ack_processing;
pub mod congestion;
mod delivery_rate;
mod detection;
mod ecn;
mod loss_estimate;
mod loss_window;
mod pacer;
mod path;
mod report;
mod rtt;
mod sent_packets;
mod stats;
mod timeout;

pub use ack_info::AckInfo;
pub use congestion::{CongestionConfig, CongestionControl, CubicConfig, FixedRateConfig, PathView};
pub use delivery_rate::RateSample;
pub use detection::{DetectionConfig, DuplicatesConfig, ThresholdConfig};
pub use ecn::{Ecn, EcnCodepoint, EcnState};
pub use loss_estimate::{
    AutoregressiveConfig, DynamicEwmaConfig, EstimatorConfig, EwmaConfig, LossEstimate, OracleConfig, PacketsConfig,
    TtpConfig,
};
pub use path::Recovery;
pub use report::{Cause, Report};
pub use rtt::{INITIAL_RTT, MedianConfig, RttConfig, RttEstimator, RttWeights};
pub use sent_packets::{Content, SentPacket};
pub use stats::RecoveryStats;
pub use timeout::{ProbeConfig, RtoConfig, TimeoutConfig};

use crate::time::Time;

/// What recovery is told by the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryConfig {
    /// The controller.
    pub congestion: CongestionConfig,
    /// How losses are found.
    pub detection: DetectionConfig,
    /// What is done when nothing comes back.
    pub timeout: TimeoutConfig,
    /// How the round-trip time is smoothed.
    pub rtt: RttConfig,
    /// How the share of packets lost is estimated.
    pub estimator: EstimatorConfig,
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
    /// Packets are lost, perhaps all in flight: there is a new [`Report`].
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
