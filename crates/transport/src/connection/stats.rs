//! Counts and estimates of a connection, for people and for tests.

use crate::time::Rate;
use crate::wire::RefusedCounts;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What keeps a connection from sending faster at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// There is nothing to send.
    #[default]
    Nothing,
    /// The congestion window is full.
    Window,
    /// The pacer: a told rate, a limit, or the window's own pace.
    Pacing,
    /// The source's bytes have not been read yet.
    Source,
    /// The receiver has no room: it does not write fast enough.
    Receiver,
}

/// What a connection counts that none of its components does.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) refused: RefusedCounts,
    pub(super) packets_received: u64,
    pub(super) bytes_received: u64,
    pub(super) undecodable_blocks: u64,
    pub(super) timers_expired: u64,
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// Packets sent, of every kind.
    pub packets_sent: u64,
    /// IP bytes sent.
    pub bytes_sent: u64,
    /// Authentic, new packets received.
    pub packets_received: u64,
    /// IP bytes of them.
    pub bytes_received: u64,
    /// Packets called lost, less those that came late.
    pub packets_lost: u64,
    /// Source symbols sent for the first time.
    pub source_symbols: u64,
    /// Source symbols sent again.
    pub resent_symbols: u64,
    /// Repair symbols sent.
    pub repair_symbols: u64,
    /// Symbols received that were not needed.
    pub surplus_symbols: u64,
    /// Blocks that the sender was told are done, and that could not be decoded: the connection ends with the first.
    pub undecodable_blocks: u64,
    /// Bytes of objects written here and confirmed by the program.
    pub bytes_written: u64,
    /// Bytes of objects that the receiver has.
    pub bytes_acknowledged: u64,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// Estimated loss before repair, 0 to 1.
    pub loss: f64,
    /// Times that the peer was found to have moved to another address.
    pub path_changes: u64,
    /// Probe timeouts (RFC 9002 section 6.2).
    pub probe_timeouts: u64,
    /// Retransmission timeouts (RFC 6298), for profiles that have them.
    pub retransmission_timeouts: u64,
    /// PINGs sent because nothing was heard.
    pub pings: u64,
    /// Packets sent to find out which sizes the path carries.
    pub mtu_probes: u64,
    /// Timers that expired, of every kind.
    pub timers_expired: u64,
    /// Bytes of a symbol of the flows that go out.
    pub symbol_size: u16,
    /// Symbols that a packet of objects carries at most: what the path is known to take of those the profile wants.
    pub per_packet: u8,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The pacer's rate.
    pub pacing_rate: Option<Rate>,
    /// Packets reported as marked CE.
    pub marked: u64,
    /// Whether the path keeps ECN marks; unknown until marked packets have arrived.
    pub ecn: Option<bool>,
    /// Payload bytes of the largest datagram that the path is known to carry.
    pub datagram: usize,
    /// Datagrams for this connection that were refused.
    pub refused: u64,
    /// What holds sending back.
    pub limited_by: LimitedBy,
}
