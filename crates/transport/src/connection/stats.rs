//! Counts and estimates of a connection.

use crate::recovery::{ControllerState, RateConstraint, SavedPath};
use crate::time::Rate;
use crate::wire::RejectCounts;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limit that keeps a connection from sending faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendLimit {
    /// No data waits to be sent.
    #[default]
    Nothing,
    /// The congestion window is full.
    Window,
    /// The pacer: a fixed rate, a limit, or the pace of the window.
    Pacing,
    /// The source's bytes have not been read yet.
    Source,
    /// The receiver does not write fast enough: it has granted no more credit, or does not report enough of the open
    /// blocks as done.
    Receiver,
}

impl SendLimit {
    /// Returns its name in traces: where window or pacer hold data back, that of the reason.
    pub(crate) const fn name(self, constraint: RateConstraint) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Window | Self::Pacing => constraint.name(),
            Self::Source => "source",
            Self::Receiver => "receiver",
        }
    }
}

/// Counts that belong to no component.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) refused: RejectCounts,
    pub(super) packets_received: u64,
    pub(super) bytes_received: u64,
    pub(super) undecodable_blocks: u64,
    pub(super) timers_expired: u64,
}

/// The state of a connection at one moment, and its counters since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// Packets and datagrams.
    pub packets: PacketStats,
    /// Symbols of objects and streams, and their blocks.
    pub symbols: SymbolStats,
    /// Bytes of objects and streams.
    pub objects: ObjectStats,
    /// The measurements of the path.
    pub path: PathStats,
    /// Window, pacing and the controller's estimates.
    pub congestion: CongestionStats,
    /// Timers that have expired.
    pub timers: TimerStats,
    /// The limit that keeps data from being sent faster.
    pub limited_by: SendLimit,
    /// Whether the bound on memory ([`ConnectionConfig::most_symbols`](super::ConnectionConfig::most_symbols)) keeps this side from sending,
    /// since it may open no more blocks, or from granting as much credit as the path needs.
    pub memory_binds: bool,
}

/// Packets and datagrams of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStats {
    /// Packets sent, of every kind.
    pub sent: u64,
    /// IP bytes sent.
    pub bytes_sent: u64,
    /// Authentic, new packets received.
    pub received: u64,
    /// IP bytes of these.
    pub bytes_received: u64,
    /// Packets declared lost, except those that arrived after all.
    pub lost: u64,
    /// Packets reported as marked CE.
    pub marked: u64,
    /// PINGs sent because nothing was received.
    pub pings: u64,
    /// Packets sent to find out which sizes the path carries.
    pub mtu_probes: u64,
    /// Rejected datagrams of this connection; [`Connection::refused`](super::Connection::refused) has the reasons.
    pub refused: u64,
}

/// Symbols of a connection's objects and streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolStats {
    /// Source symbols sent for the first time.
    pub source: u64,
    /// Source symbols sent again.
    pub resent: u64,
    /// Repair symbols sent.
    pub repair: u64,
    /// Received symbols that were not needed.
    pub surplus: u64,
    /// Acknowledged blocks that could not be decoded. The connection closes with the first.
    pub undecodable_blocks: u64,
    /// The most bytes of symbols buffered at once for one object or stream of the peer, of blocks neither complete nor
    /// decoded.
    pub most_held: u64,
}

/// Bytes of a connection's objects and streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStats {
    /// Bytes of the peer's objects that the program has written.
    pub written: u64,
    /// Bytes of our objects and streams that the receiver has.
    pub acknowledged: u64,
    /// Received bytes of symbols of the peer's objects, of blocks not yet written. They may have padding and may be
    /// dropped again.
    pub arriving: u64,
    /// Bytes of symbols that the receiver has of blocks of our objects which it does not have yet, as far as is known.
    pub delivered: u64,
    /// Blocks of local objects with bytes requested from the program and not delivered.
    pub reading: usize,
}

/// A connection's measurements of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStats {
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// Estimated loss before repair, 0 to 1.
    pub loss: f64,
    /// Migrations of the peer to another address.
    pub changes: u64,
    /// Whether the path preserves ECN marks; `None` until marked packets have been acknowledged.
    pub ecn: Option<bool>,
    /// UDP payload of the largest datagram that the path is known to carry, in bytes.
    pub datagram: usize,
    /// Bytes of a symbol of the sent flows.
    pub symbol_size: u16,
    /// The most symbols that a packet has: as many as the profile wants and the path is known to carry.
    pub per_packet: u8,
}

/// How much a connection sends at once and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CongestionStats {
    /// The congestion window, in IP bytes.
    pub window: u64,
    /// IP bytes in flight.
    pub in_flight: u64,
    /// IP bytes that the counter has beyond those in flight, with `in-flight = counter`.
    pub counter_drift: u64,
    /// The pacing rate; `None` while packets leave as the window allows.
    pub pacing_rate: Option<Rate>,
    /// The cause of a full window or a waiting pacer: the limit set by the program, or the controller's constraint.
    pub constraint: RateConstraint,
    /// The controller's estimates of the path, if it makes any.
    pub controller: Option<ControllerState>,
    /// Measurements for the next connection to the same address ([`super::Connection::restore_path`]).
    pub memory: Option<SavedPath>,
}

/// Timers of a connection that have expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerStats {
    /// Timers of every kind.
    pub expired: u64,
    /// Probe timeouts (RFC 9002 section 6.2).
    pub probe_timeouts: u64,
    /// Retransmission timeouts (RFC 6298), for profiles that have them.
    pub retransmission_timeouts: u64,
    /// Timeouts with the window full of packets no longer in flight, with `in-flight = counter`.
    pub counter_resets: u64,
}
