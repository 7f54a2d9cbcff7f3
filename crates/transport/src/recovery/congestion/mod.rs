//! Congestion controllers, one per file; [`CongestionConfig`] names them.

mod auto;
mod bbr;
#[cfg(any(test, feature = "testing"))]
mod bench;
mod config;
mod cubic;
mod custom;
mod dispersion;
mod fixed_rate;
mod hystart;
mod inflation;
mod period;
mod reno;
mod rounds;
mod state;

pub use auto::{AutoConfig, Policy};
pub use bbr::BbrConfig;
#[cfg(any(test, feature = "testing"))]
pub use bench::{Bench, ReportSpec, TestWindow};
pub use config::CongestionConfig;
pub use cubic::{CubicConfig, CubicForm};
pub use custom::{ControllerFactory, CustomController, DynController};
pub use fixed_rate::{FixedRateConfig, LATE_WAKING};
pub use period::{Congestion, RecoveryPeriod};
pub use reno::{Reno, RenoConfig, Response, Signal, WindowLimit};
pub use state::{ControllerState, LinkRate, PathLoss, RateConstraint, SavedPath};

use super::loss_estimate::LossEstimate;
use super::report::Report;
use super::rtt::RttEstimator;
use crate::time::{Rate, Time};
use std::fmt::Debug;
use std::time::Duration;

/// The smallest window, in packets (RFC 9002 section 7.2).
pub const MIN_PACKETS: u32 = 2;

/// The time for which a sender that wakes up late may catch up at once.
const CATCH_UP: Duration = Duration::from_millis(4);

/// The initial window, in packets (RFC 6928, RFC 9002 section 7.2).
const INITIAL_PACKETS: u32 = 10;

/// A controller's view of the path, in addition to the report.
#[derive(Clone, Copy, Debug)]
pub struct PathView<'a> {
    /// Round-trip time.
    pub rtt: &'a RttEstimator,
    /// Loss before decoding.
    pub loss: &'a LossEstimate,
    /// IP bytes of a full packet.
    pub max_packet: u32,
    /// Persistent congestion: everything sent over three probe timeouts was lost (RFC 9002 section 7.6).
    pub persistent_congestion: bool,
    /// The path has not failed ECN validation (RFC 9000 section 13.4.2), so that congestion may show as CE marks.
    pub ecn_usable: bool,
    /// A number by which connections differ, so that the events they time themselves do not coincide.
    pub salt: u64,
}

/// A congestion controller: decides how much may be in flight, and how fast it is sent. All bytes are IP bytes: UDP
/// payload and headers below.
pub trait CongestionControl: Debug + Send {
    /// Handles a change of packet size, or the handshake's round-trip time.
    fn on_path(&mut self, path: &PathView<'_>);

    /// Handles the sending of a packet of `bytes`; `in_flight` includes it.
    fn on_sent(&mut self, now: Time, bytes: u32, in_flight: u64);

    /// Handles feedback or an expired timer.
    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>);

    /// Returns the controller that replaces this one permanently, if any; called after each report.
    fn successor(&mut self) -> Option<Box<dyn CongestionControl>> {
        None
    }

    /// Returns the congestion window in bytes.
    fn window(&self) -> u64;

    /// Returns the bytes by which the window is inflated for packets received but not yet acknowledged (RFC 5681
    /// section 3.2).
    fn inflation(&self) -> u64 {
        0
    }

    /// Returns the pacing rate; `None` if it follows from the window.
    fn rate(&self) -> Option<Rate>;

    /// Returns its name, as in a [`CongestionConfig`].
    fn name(&self) -> &'static str;

    /// Returns whether it is in slow start, in which the pacer leaves room for the window to double.
    fn in_slow_start(&self) -> bool;

    /// Handles a repeated probe timeout: no packet has arrived for at least three of them.
    fn on_repeated_pto(&mut self, _now: Time) {}

    /// Returns the time for which a sender that wakes up late may catch up at once. Timers are seldom later than 4 ms, and
    /// without it a fixed rate would not be kept (docs/design/pacing.md).
    fn catch_up(&self) -> Duration {
        CATCH_UP
    }

    /// Returns how many packets leave together at least, so that the path's slowest link spreads them.
    fn min_train_packets(&self) -> u32 {
        1
    }

    /// Returns the path's own loss; `None` if the controller does not distinguish it from congestion, or not yet.
    fn path_loss(&self) -> Option<PathLoss> {
        None
    }

    /// Begins with the measurements of an earlier connection. Without effect once the rate is found.
    fn recall(&mut self, _memory: &SavedPath) {}

    /// Returns the measurements for a later connection; `None` if none are worth saving.
    fn save_path(&self) -> Option<SavedPath> {
        None
    }

    /// Returns its estimates of the path; `None` if it has none, or none yet.
    fn state(&self) -> Option<ControllerState> {
        None
    }
}
