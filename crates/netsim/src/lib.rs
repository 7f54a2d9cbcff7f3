//! Links, topologies and a virtual clock for networks that lose, delay, reorder and mark packets.
//!
//! [`Link`] is a pure calculator: [`Link::offer`] returns the outcome of a packet and the time when it leaves, and the
//! caller keeps the packet, for example in an [`InFlightQueue`]. [`Fabric`] holds the packets of many links and
//! forwards them from host to host. One model thus serves a simulation in virtual time ([`Network`]), a relay, and an
//! emulator of real packets, and one seed loses the same packets in all of them. The crate reads no clock, starts no
//! thread, and draws randomness only from a seed.
//!
//! ```
//! use downpour_netsim::{Ecn, OfferOutcome, Link, Time};
//!
//! let mut link = Link::new("rate=100M,delay=50ms,queue=256KB".parse()?)?;
//! let OfferOutcome::Delivered(deliveries) = link.offer(Time::ZERO, 1250, Ecn::NotEct) else { unreachable!() };
//! assert_eq!(deliveries.first.at, Time::from_nanos(50_100_000)); // 0.1 ms to send, 50 ms to travel
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bucket;
mod codel;
mod config;
mod deadline_tree;
mod fabric;
mod fair;
mod link;
mod network;
mod node;
mod pipe;
mod queue_delays;
mod random;
mod rate;
mod reordering_delay;
mod routes;
mod shaper;
mod stats;
mod text;
mod time;
pub mod topology;
mod trace;
mod traffic;
mod transit;

pub use codel::Codel;
pub use config::{DelayStep, Duplex, LinkConfig, LinkError, Loss, LossStep, Mark, Outage, Police, RateStep, Reorder};
pub use fabric::{Arrival, Fabric, Header, LinkId, NetworkError, Refusal, Undelivered};
pub use link::{Deliveries, Delivery, DropReason, Ecn, Link, OfferOutcome, corrupt};
pub use network::{Network, NetworkStats, NodeStalled};
pub use node::{Node, NodeId, Packet};
pub use queue_delays::QueueDelays;
pub use rate::Rate;
pub use reordering_delay::ReorderingDelay;
pub use stats::{LinkStats, PacketCount};
pub use text::TextError;
pub use time::Time;
pub use trace::{Trace, TraceError, TraceFile, TraceFileError};
pub use traffic::{ConstantRate, Filler};
pub use transit::InFlightQueue;
