//! The downpour transport engine: reliable, encrypted transport over datagrams, with erasure codes.
//!
//! The engine is sans-IO. Its input is datagrams, time and the results of work; its output is datagrams, a deadline,
//! events and requests for work. It owns no socket, clock, thread or source of randomness, so the same calls give the
//! same bytes.
//!
//! - An [`Endpoint`] is one socket's worth of connections: it knows keys and connection ids, opens connections and
//!   accepts them.
//! - A [`Connection`] carries objects, streams and a control stream. It is polled for [`Event`]s, [`WorkRequest`]s and
//!   datagrams ([`Batch`]).
//! - A [`Profile`] names every choice the engine makes when it sends: code, schedule, congestion control, loss
//!   detection, feedback. [`profile`] is the place to start reading.
//!
//! `examples/bare_engine.rs` is a complete loop around a UDP socket, and shows the order of the calls. Here two
//! endpoints exchange their datagrams in virtual time:
//!
//! ```
//! use std::time::Duration;
//! use downpour_transport::{AcceptOptions, Batch, ConnectOptions, Endpoint, EndpointConfig, Event, Profile, ReceivedEcn, Time};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = [7; 32];
//! let addresses = ["192.0.2.1:4000".parse()?, "192.0.2.2:4000".parse()?];
//! let mut ends = [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), [seed; 32]));
//! ends[1].add_key(key, None, AcceptOptions::default());
//! let options = ConnectOptions::new(vec![addresses[1]]);
//! ends[0].connect(Time::ZERO, key, options)?;
//!
//! let (mut now, mut batch, mut received) = (Time::ZERO, Batch::new(), Vec::new());
//! for side in [0, 1].into_iter().cycle().take(1_000) {
//!     // Every turn of a side takes 5 ms, which is also how long its datagrams travel.
//!     now += Duration::from_millis(5);
//!     let mut datagrams = Vec::new();
//!     for handle in ends[side].handles().collect::<Vec<_>>() {
//!         let Some(connection) = ends[side].connection(handle) else { continue };
//!         if connection.poll_timeout().is_some_and(|at| at <= now) {
//!             connection.handle_timeout(now);
//!         }
//!         while let Some(event) = connection.poll_event() {
//!             match event {
//!                 Event::Connected if side == 0 => connection.write_control(b"hello"),
//!                 Event::ControlReadable => _ = connection.read_control(&mut received),
//!                 _ => {}
//!             }
//!         }
//!         while connection.poll_transmit(now, &mut batch) {
//!             batch.seal();
//!             datagrams.push((batch.bytes().to_vec(), batch.segment_size()));
//!         }
//!     }
//!     while let Some(answer) = ends[side].poll_answer() {
//!         let length = answer.bytes.len();
//!         datagrams.push((answer.bytes, length));
//!     }
//!     for (mut bytes, size) in datagrams {
//!         ends[1 - side].handle_datagrams(now, addresses[side], None, ReceivedEcn::NotEct, &mut bytes, size);
//!     }
//! }
//! assert_eq!(received, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! The modules [`wire`], [`secure`], [`recovery`], [`flow`], [`connection`] and [`endpoint`] each import only those
//! before them.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod connection;
#[cfg(test)]
mod corpora;
pub mod endpoint;
mod floor;
pub mod flow;
pub mod profile;
pub mod recovery;
pub mod secure;
pub mod settings;
pub mod time;
mod trace;
pub mod wire;

pub use connection::{
    Batch, CongestionStats, Connection, ConnectionConfig, ConnectionError, ConnectionStats, Event, FlowError,
    ObjectOptions, ObjectStats, PacketStats, PathStats, Priority, ReceivedEcn, ReconfigureError, SendLimit,
    StreamOptions, SymbolPacket, SymbolStats, TimerStats,
};
pub use endpoint::{
    AcceptOptions, ConnectError, ConnectOptions, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent, KeyHandle,
    Transmit,
};
pub use erasure::{Block, WindowCode};
pub use floor::{ConnectingSide, transfer_floor};
pub use flow::{Direction, FlowKey, PartialBlock, WorkReply, WorkRequest};
pub use profile::Profile;
pub use recovery::congestion;
pub use time::{Rate, Time};
pub use wire::{FlowId, KeyId};
