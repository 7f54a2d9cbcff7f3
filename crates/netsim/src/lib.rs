//! Links, topologies and a virtual clock for networks that lose, delay, reorder and mark packets.
//!
//! [`Link`] is a pure calculator: [`Link::offer`] returns the fate of a packet and when it leaves, and the caller holds
//! the packet, for example in a [`Transit`]. [`Fabric`] holds the packets of many links and forwards them from host to
//! host. One model thus serves a simulation in virtual time ([`Network`]), a relay, and an emulator of real packets,
//! and one seed loses the same packets in all of them. Nothing here reads a clock, starts a thread, or draws randomness
//! except from a seed.
//!
//! ```
//! use netsim::{Ecn, Fate, Link, Time};
//!
//! let mut link = Link::new("rate=100M,delay=50ms,queue=256KB".parse()?)?;
//! let Fate::Delivered(deliveries) = link.offer(Time::ZERO, 1250, Ecn::NotEct) else { unreachable!() };
//! assert_eq!(deliveries.first.at, Time::from_nanos(50_100_000)); // 0.1 ms to send, 50 ms to travel
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod bucket;
mod codel;
mod config;
mod fabric;
mod fair;
mod link;
mod network;
mod node;
mod pipe;
mod random;
mod rate;
mod routes;
mod scatter;
mod shaper;
mod stats;
mod text;
mod time;
pub mod topology;
mod trace;
mod traffic;
mod transit;
mod waits;

pub use codel::Codel;
pub use config::{DelayStep, Duplex, LinkConfig, LinkError, Loss, LossStep, Mark, Outage, Police, RateStep, Reorder};
pub use fabric::{Arrival, Fabric, Header, LinkId, NetworkError, Refusal, Refused};
pub use link::{Deliveries, Delivery, DropReason, Ecn, Fate, Link, corrupt};
pub use network::{Network, NetworkStats, Stalled};
pub use node::{Node, NodeId, Packet};
pub use rate::Rate;
pub use scatter::Scatter;
pub use stats::{Count, LinkStats};
pub use text::TextError;
pub use time::Time;
pub use trace::{Trace, TraceError, TraceFile, TraceFileError};
pub use traffic::{ConstantRate, Filler};
pub use transit::Transit;
pub use waits::Waits;
