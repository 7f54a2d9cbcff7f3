//! The bottleneck of a transfer.

use std::time::{Duration, Instant};

use net::{Stats, ThreadTime};
use serde::{Deserialize, Serialize};
use transport::congestion::RateConstraint;
use transport::{ConnectionStats, Rate, SendLimit};

use crate::messages::HostPressure;

/// Share of the time that a saturated network thread works or waits for a core.
const SATURATED: f64 = 0.9;

/// How long a socket that has dropped datagrams is called the bottleneck.
const OVERFLOW_SHOWN: Duration = Duration::from_secs(2);

/// Minimum number of datagrams dropped between two reports that is reported.
const SOME: u64 = 10;

/// The bottleneck of the sender or, at the receiver, of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bottleneck {
    /// The controller is still searching for the path's rate.
    Search,
    /// The path carries no more.
    Path,
    /// A device on the path drops packets beyond a certain rate, without queueing them.
    Policer,
    /// Other traffic takes its share of the path.
    Neighbors,
    /// The fixed rate of the user.
    FixedRate,
    /// The path, which carries far less than the fixed rate of the user.
    Overload,
    /// The rate limit of the user of either peer.
    RateLimit,
    /// The source's bytes have not been read yet.
    Reading,
    /// The local network thread is saturated.
    Processor,
    /// The receiver does not write fast enough.
    Writing,
    /// The local memory bound.
    Memory,
    /// The peer's memory bound.
    PeerMemory,
    /// The receive buffer of the local socket is full, and the kernel drops datagrams.
    Overflow,
    /// The receive buffer of the peer's socket is full.
    PeerOverflow,
}

impl Bottleneck {
    /// Returns its name: in progress lines, in `--json`, and in the traces that the lab draws.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "finding the rate",
            Self::Path => "path",
            Self::Policer => "policer",
            Self::Neighbors => "shared path",
            Self::FixedRate => "set rate",
            Self::Overload => "set rate above the path",
            Self::RateLimit => "rate limit",
            Self::Reading => "reading here",
            Self::Processor => "processor here",
            Self::Writing => "writing there",
            Self::Memory => "memory here",
            Self::PeerMemory => "memory there",
            Self::Overflow => "socket overflows here",
            Self::PeerOverflow => "socket overflows there",
        }
    }

    /// Returns the bottleneck of a connection with or without a saturated network thread, under this pressure on its
    /// hosts; `None` if there is nothing to send.
    fn of(stats: &ConnectionStats, is_saturated: bool, strains: &Strains) -> Option<Self> {
        let network = match stats.congestion.constraint {
            RateConstraint::Search => Self::Search,
            RateConstraint::Path => Self::Path,
            RateConstraint::Policer => Self::Policer,
            RateConstraint::Neighbors => Self::Neighbors,
            RateConstraint::FixedRate => Self::FixedRate,
            RateConstraint::Overload => Self::Overload,
            RateConstraint::RateLimit => Self::RateLimit,
        };
        match stats.limited_by {
            _ if strains.memory => Some(Self::Memory),
            SendLimit::Receiver if strains.peer_memory => Some(Self::PeerMemory),
            SendLimit::Receiver => Some(Self::Writing),
            _ if strains.overflow => Some(Self::Overflow),
            _ if strains.peer_overflow => Some(Self::PeerOverflow),
            _ if is_saturated => Some(Self::Processor),
            SendLimit::Source => Some(Self::Reading),
            SendLimit::Window | SendLimit::Pacing => Some(network),
            SendLimit::Nothing => strains.peer_memory.then_some(Self::PeerMemory),
        }
    }
}

/// The current pressure on the two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Strains {
    memory: bool,
    peer_memory: bool,
    overflow: bool,
    peer_overflow: bool,
}

/// Monitors the load of the network thread, and dropped datagrams.
#[derive(Debug)]
pub(super) struct LoadMonitor {
    at: Instant,
    used: Duration,
    overflow: Rise,
    peer_overflow: Rise,
}

impl LoadMonitor {
    pub(super) const fn new(now: Instant) -> Self {
        let rise = Rise { count: 0, shown_until: now };
        Self { at: now, used: Duration::MAX, overflow: rise, peer_overflow: rise }
    }

    /// Returns the bottleneck of the time since the last call, given the reports of both peers.
    pub(super) fn bottleneck(
        &mut self,
        now: Instant,
        stats: &Stats,
        ours: &HostPressure,
        theirs: &HostPressure,
    ) -> Option<Bottleneck> {
        let used = stats.network_thread.map_or(Duration::MAX, |ThreadTime { running, waiting }| running + waiting);
        let share = used.saturating_sub(self.used).as_secs_f64() / now.duration_since(self.at).as_secs_f64().max(1e-3);
        let is_saturated = self.used != Duration::MAX && used != Duration::MAX && share > SATURATED;
        (self.at, self.used) = (now, used);
        let strains = Strains {
            memory: ours.memory,
            peer_memory: theirs.memory,
            overflow: self.overflow.is_recent(now, ours.overflowed),
            peer_overflow: self.peer_overflow.is_recent(now, theirs.overflowed),
        };
        Bottleneck::of(&stats.connection, is_saturated, &strains)
    }
}

/// A counter, and until when its last rise is reported.
#[derive(Clone, Copy, Debug)]
struct Rise {
    count: u64,
    shown_until: Instant,
}

impl Rise {
    /// Updates the counter; returns whether it has risen noticeably of late.
    fn is_recent(&mut self, now: Instant, count: u64) -> bool {
        if count.saturating_sub(self.count) >= SOME {
            self.shown_until = now + OVERFLOW_SHOWN;
        }
        self.count = count;
        now < self.shown_until
    }
}

/// The last note to the user about a fixed rate far above the path's.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Overload {
    #[default]
    None,
    /// The path carries far less.
    Named,
    /// Congestion control has replaced the rate.
    GivenUp,
}

impl Overload {
    /// Returns a new note to the user about the fixed rate, if there is one.
    pub(super) fn note(&mut self, fixed: Option<Rate>, stats: &ConnectionStats) -> Option<String> {
        let (fixed, state) = fixed.zip(stats.congestion.controller)?;
        let is_fixed = matches!(state.constraint, RateConstraint::FixedRate | RateConstraint::Overload);
        let rate = |rate: Rate| units::scaled(rate.bits_per_second() as f64, "bit/s");
        match self {
            Self::None if state.constraint == RateConstraint::Overload => {
                *self = Self::Named;
                let (fixed, carried) = (rate(fixed), rate(state.rate));
                Some(format!(
                    "path carries only {carried} of the fixed rate {fixed}: the excess is lost, also for other traffic"
                ))
            }
            Self::None | Self::Named if !is_fixed => {
                *self = Self::GivenUp;
                Some("fixed rate abandoned: congestion control sets the rate now".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::ControllerState;
    use transport::{CongestionStats, Rate};

    fn stats(limited_by: SendLimit, constraint: RateConstraint) -> Stats {
        let state = ControllerState {
            mode: "default",
            phase: "cruise",
            constraint,
            rate: Rate::from_bits_per_second(1),
            base: Duration::ZERO,
            queue: Duration::ZERO,
            baseline: 0.0,
            link: None,
        };
        let congestion = CongestionStats { constraint, controller: Some(state), ..CongestionStats::default() };
        let connection = ConnectionStats { limited_by, congestion, ..ConnectionStats::default() };
        Stats { connection, ..Stats::default() }
    }

    fn used(millis: u64, mut stats: Stats) -> Stats {
        let half = Duration::from_millis(millis / 2);
        stats.network_thread = Some(ThreadTime { running: half, waiting: half });
        stats
    }

    #[test]
    fn bottleneck_full_window_is_engine_constraint() {
        let of = |stats: &Stats| Bottleneck::of(&stats.connection, false, &Strains::default());
        let mut full = stats(SendLimit::Window, RateConstraint::Policer);
        assert_eq!(of(&full), Some(Bottleneck::Policer));
        full.connection.congestion.constraint = RateConstraint::RateLimit;
        assert_eq!(of(&full), Some(Bottleneck::RateLimit), "whatever the controller believes");
        assert_eq!(of(&stats(SendLimit::Receiver, RateConstraint::Neighbors)), Some(Bottleneck::Writing));
        assert_eq!(of(&stats(SendLimit::Nothing, RateConstraint::Path)), None);
    }

    #[test]
    fn bottleneck_memory_bound_names_side() {
        let of =
            |limited_by, strains| Bottleneck::of(&stats(limited_by, RateConstraint::Path).connection, false, &strains);
        let (ours, theirs) =
            (Strains { memory: true, ..Strains::default() }, Strains { peer_memory: true, ..Strains::default() });
        assert_eq!(of(SendLimit::Receiver, ours), Some(Bottleneck::Memory));
        assert_eq!(of(SendLimit::Receiver, theirs), Some(Bottleneck::PeerMemory));
        // The receiver of the files, which sends next to nothing.
        assert_eq!(of(SendLimit::Nothing, ours), Some(Bottleneck::Memory));
        assert_eq!(of(SendLimit::Nothing, theirs), Some(Bottleneck::PeerMemory));
        assert_eq!(of(SendLimit::Window, theirs), Some(Bottleneck::Path), "there is credit again");
    }

    #[test]
    fn bottleneck_socket_drops_shown_two_seconds() {
        let began = Instant::now();
        let mut watch = LoadMonitor::new(began);
        let paced = stats(SendLimit::Pacing, RateConstraint::Path);
        let mut after = |millis, local, remote| {
            let strain = |overflowed| HostPressure { memory: false, overflowed };
            watch.bottleneck(began + Duration::from_millis(millis), &paced, &strain(local), &strain(remote))
        };
        assert_eq!(after(200, 0, 0), Some(Bottleneck::Path));
        assert_eq!(after(400, 0, 9), Some(Bottleneck::Path), "a few");
        assert_eq!(after(600, 0, 19), Some(Bottleneck::PeerOverflow));
        assert_eq!(after(2_500, 0, 19), Some(Bottleneck::PeerOverflow));
        assert_eq!(after(2_700, 0, 19), Some(Bottleneck::Path));
        assert_eq!(after(2_900, 500, 19), Some(Bottleneck::Overflow));
        // A peer may claim anything.
        assert_eq!(after(5_000, 500, u64::MAX), Some(Bottleneck::PeerOverflow));
        assert_eq!(after(7_000, 500, 0), Some(Bottleneck::Path));
    }

    #[test]
    fn rate_above_capacity_noted_once() {
        let fixed = Some(Rate::from_bits_per_second(1_000_000_000));
        let mut overload = Overload::default();
        let mut note = |constraint| overload.note(fixed, &stats(SendLimit::Pacing, constraint).connection);
        assert_eq!(note(RateConstraint::FixedRate), None);
        let named = note(RateConstraint::Overload).expect("a note");
        assert!(named.starts_with("path carries only 1 bit/s of the fixed rate 1 Gbit/s"), "{named}");
        assert_eq!([note(RateConstraint::Overload), note(RateConstraint::FixedRate)], [None, None]);
        assert!(note(RateConstraint::Path).is_some());
        assert_eq!([note(RateConstraint::Path), note(RateConstraint::Search)], [None, None]);
        assert_eq!(Overload::default().note(None, &stats(SendLimit::Pacing, RateConstraint::Path).connection), None);
    }

    #[test]
    fn bottleneck_saturated_thread_is_processor() {
        let began = Instant::now();
        let mut watch = LoadMonitor::new(began);
        let mut after = |millis, stats: &Stats| {
            let none = HostPressure::default();
            watch.bottleneck(began + Duration::from_millis(millis), stats, &none, &none)
        };
        let paced = stats(SendLimit::Pacing, RateConstraint::Path);
        assert_eq!(after(200, &used(190, paced)), Some(Bottleneck::Path), "no earlier sample");
        assert_eq!(after(400, &used(380, paced)), Some(Bottleneck::Processor));
        assert_eq!(after(600, &used(480, paced)), Some(Bottleneck::Path));
        assert_eq!(after(800, &used(680, stats(SendLimit::Receiver, RateConstraint::Path))), Some(Bottleneck::Writing));
        assert_eq!(after(1000, &paced), Some(Bottleneck::Path), "a kernel without CPU times");
    }
}
