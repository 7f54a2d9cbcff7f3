//! File transfers over UDP for embedding in programs: reliable, encrypted, repaired with erasure codes, verified end to
//! end.
//!
//! [`send`] offers paths and [`receive`] writes them into a directory; the peers find each other by a [`Ticket`] that
//! either may create. [`remote`] runs both through the user's ssh. See `examples/send.rs` and `examples/receive.rs`;
//! streams and objects without files are in the crate [`net`].

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod activity;
mod block_on;
#[cfg(test)]
mod corpora;
mod error;
pub mod home;
mod options;
mod path_cache;
mod protocol;
pub mod remote;
pub mod streams;
pub mod ticket;
mod transfer;
pub mod tunnel;

pub(crate) use store::{base64, private_directory};

pub use error::{Context, Error, ErrorKind};
pub use net::{Bind, EndpointOptions, Family, MIN_MEMORY, NetError, RejectedDatagrams};
pub use options::EngineOptions;
pub use path_cache::PathCache;
pub use store::{self as files, messages};
pub use ticket::{Role, Ticket, TicketError};
pub use transfer::{
    Bottleneck, ByteCounts, ConnectionFigures, DisplayBytes, Failures, ListenOptions, NameCounts, Offer, Progress,
    Rendezvous, SendSpec, Side, StopReason, Summary, Transfer, TransferEvent, TransferOptions, receive, send,
};
pub use transport::{
    CongestionStats, ConnectingSide, ConnectionStats, ObjectStats, PacketStats, PathStats, Profile, Rate, SymbolStats,
    TimerStats, congestion, profile, transfer_floor,
};
