//! Congestion control: how much may be in flight and how fast. One file per controller; [`CongestionConfig`] names them.

mod bbr;
#[cfg(test)]
mod bench;
mod ccid2;
mod config;
mod cubic;
mod custom;
mod fixed_rate;
mod fixed_window;
mod grow_only;
mod highspeed;
mod hystart;
mod ledbat;
mod period;
mod reno;
mod tfrc;
mod ttp;

pub use bbr::BbrConfig;
pub use ccid2::Ccid2Config;
pub use config::CongestionConfig;
pub use cubic::{CubicConfig, CubicForm};
pub use custom::{ControllerFactory, CustomController, DynController};
pub use fixed_rate::FixedRateConfig;
pub use fixed_window::FixedWindowConfig;
pub use grow_only::GrowOnlyConfig;
pub use highspeed::HighSpeedConfig;
pub use ledbat::LedbatConfig;
pub use period::{Congestion, RecoveryPeriod};
pub use reno::{RenoConfig, Signal, WindowLimit};
pub use tfrc::TfrcConfig;
pub use ttp::TtpConfig;

use super::loss_estimate::LossEstimate;
use super::report::Report;
use super::rtt::RttEstimator;
use crate::time::{Rate, Time};
use std::fmt::Debug;

/// The smallest window, in packets (RFC 9002 section 7.2).
const MIN_PACKETS: u32 = 2;

/// The window before anything is known, in packets (RFC 6928, RFC 9002 section 7.2).
const INITIAL_PACKETS: u32 = 10;

/// What a controller may know about the path beside the report.
#[derive(Clone, Copy, Debug)]
pub struct PathView<'a> {
    /// Round-trip time.
    pub rtt: &'a RttEstimator,
    /// Loss before decoding.
    pub loss: &'a LossEstimate,
    /// IP bytes of a full packet.
    pub max_packet: u32,
    /// Everything sent over three probe timeouts was lost (RFC 9002 section 7.6).
    pub persistent_congestion: bool,
    /// Congestion would show as CE marks, as far as is known: the path has not failed ECN's validation (RFC 9000 section 13.4.2).
    pub ecn_usable: bool,
}

/// Decides how much may be in flight and how fast. All bytes are IP bytes: UDP payload plus the headers below it.
pub trait CongestionControl: Debug + Send {
    /// The path became known or changed: its packet size, or a round-trip time from the handshake.
    fn on_path(&mut self, path: &PathView<'_>);

    /// A packet of `bytes` left; `in_flight` bytes are on their way with it.
    fn on_sent(&mut self, now: Time, bytes: u32, in_flight: u64);

    /// Feedback came or a loss timer ran out.
    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>);

    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// Bytes of the window that stand for packets which have arrived and no feedback names (RFC 5681 section 3.2); 0 unless it says so.
    fn inflation(&self) -> u64 {
        0
    }

    /// The pacing rate; None: it follows from the window.
    fn rate(&self) -> Option<Rate>;

    /// The algorithm's name, as in a [`CongestionConfig`].
    fn name(&self) -> &'static str;

    /// Still looking for the path's capacity: the pacer leaves it room to double.
    fn in_slow_start(&self) -> bool;
}
