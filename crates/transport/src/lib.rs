//! The downpour transport engine: reliable, encrypted, erasure-coded transport over datagrams.
//!
//! The engine is sans-IO: bytes, time and replies go in; packets, a deadline, events and requests come out. It owns no
//! socket, clock, thread or source of randomness, so the same seed gives the same run. `profile` is the place to start
//! reading: it names every choice the engine makes.
//!
//! Rooms, each importing only those before it: [`wire`], [`secure`], [`recovery`], [`flow`], [`connection`], [`endpoint`].

pub mod connection;
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
    Batch, Closed, Connection, ConnectionStats, Event, FlowError, LimitedBy, Limits, ObjectOptions, ReceivedEcn,
    SetError, StreamOptions,
};
pub use endpoint::{
    AcceptOptions, Answer, ConnectError, ConnectOptions, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent,
};
pub use erasure::{Block, WindowCode};
pub use floor::{Connector, floor};
pub use flow::{Direction, FlowKey, Reply, Request};
pub use profile::Profile;
pub use recovery::congestion;
pub use time::{Rate, Time};
pub use wire::{FlowId, KeyId};
