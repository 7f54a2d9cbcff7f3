//! Loss detection and congestion control: sent packets, ack processing, round-trip time, loss estimate, ECN,
//! controllers and the pacer.
//!
//! [`Recovery`] belongs to one path. It decides how much may be sent ([`Recovery::send_allowance`]), records sent
//! packets, and turns feedback and timeouts, whatever their form, into one [`Report`]. It carries the [`Content`] of
//! packets without interpreting it; only whether it is symbols matters, since feedback in order reports nothing else.

mod ack_info;
mod ack_processing;
pub mod congestion;
mod delivery_rate;
mod detection;
mod ecn;
mod in_flight;
mod loss_estimate;
mod pacer;
mod pacing;
mod path;
mod report;
mod rtt;
mod sent_packets;
mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod test_path;
mod timeout;

pub use ack_info::AckInfo;
pub use congestion::{
    AutoConfig, CongestionConfig, CongestionControl, ControllerState, CubicConfig, FixedRateConfig, PathView,
    RateConstraint, SavedPath,
};
pub use delivery_rate::RateSample;
pub use detection::{DetectionConfig, DuplicatesConfig, ThresholdConfig};
pub use ecn::{Ecn, EcnCodepoint, EcnState};
pub use in_flight::InFlightConfig;
pub use loss_estimate::{
    CONFIDENT, CustomEstimator, DynEstimator, EstimatorConfig, EstimatorFactory, INITIAL_LOSS, LossEstimate,
    LossEstimator, PacketsConfig,
};
pub use pacing::{PacingConfig, WindowPacing};
pub use path::Recovery;
pub use report::{Cause, Report};
pub use rtt::{INITIAL_RTT, MedianConfig, OverestimatedConfig, RttConfig, RttEstimator, RttWeights};
pub use sent_packets::{Content, SentPacket};
pub use stats::RecoveryStats;
pub use timeout::{ProbeConfig, RtoConfig, TimeoutConfig};

use crate::time::Time;

/// The part of a profile that configures recovery.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryConfig {
    /// The congestion controller.
    pub congestion: CongestionConfig,
    /// Whether a window is paced.
    pub pacing: PacingConfig,
    /// How losses are detected.
    pub detection: DetectionConfig,
    /// The action when no feedback arrives.
    pub timeout: TimeoutConfig,
    /// How the round-trip time is smoothed.
    pub rtt: RttConfig,
    /// How the share of lost packets is estimated.
    pub estimator: EstimatorConfig,
    /// How packets in flight are counted against the window.
    pub in_flight: InFlightConfig,
}

/// How much may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendAllowance {
    /// This many IP bytes, at least one full packet; ask again after sending them.
    Bytes(u64),
    /// Nothing before this time, when the pacer allows the next batch.
    Wait(Time),
    /// Nothing: the congestion window is full until feedback arrives or a timeout expires.
    Blocked,
}

/// The result of [`Recovery::on_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// No timer was due.
    None,
    /// Packets were declared lost, perhaps all in flight: a new [`Report`] is available.
    Lost,
    /// The probe timeout expired: one or two ack-eliciting packets must be sent, whatever the window allows (RFC 9002
    /// section 6.2.4).
    Probe,
}

/// The peer acknowledged an unsent packet (RFC 9000 section 13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {number} was acknowledged but never sent")]
pub struct UnsentAcknowledged {
    /// The packet number.
    pub number: u64,
}

#[cfg(test)]
mod tests;
