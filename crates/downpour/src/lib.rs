//! File transfers over UDP for embedding in programs: reliable, encrypted, repaired with erasure codes, verified end to
//! end.
//!
//! [`send`] offers paths and [`receive`] writes them into a directory; the peers find each other by a [`Ticket`] that
//! either may create:
//!
//! ```
//! use std::fs;
//!
//! use downpour::{ListenOptions, Ticket, TransferOptions, receive, send};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let home = tempfile::tempdir()?;
//! # let (photos, incoming) = (home.path().join("photos"), home.path().join("incoming"));
//! # fs::create_dir(&photos)?;
//! # fs::write(photos.join("1.jpg"), "bytes")?;
//! # let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
//! // One side sends a directory, to one receiver. By default it listens on every address of this host.
//! let sending = send([photos], ListenOptions::default().bind(loopback), TransferOptions::default())?;
//! let ticket = sending.ticket().ok_or("it connects")?.to_text()?; // a secret, for the receiver only
//!
//! // The other side receives it, verified, under its own name.
//! let receiving = receive(incoming.clone(), Ticket::parse(&ticket)?, TransferOptions::default())?;
//! assert_eq!(receiving.finish().await?.names.files, 1);
//! sending.finish().await?;
//! assert_eq!(fs::read(incoming.join("photos/1.jpg"))?, b"bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | send and receive files by ticket | [`send`], [`receive`], [`Transfer`] |
//! | copy, synchronise and pipe through the user's ssh | [`remote`] |
//! | carry TCP connections | [`tunnel`] |
//! | send one stream by ticket | [`streams`] |
//! | open streams and objects of your own | [`net`] |
//!
//! The features `remote`, which is on by default, and `tunnel`, which `remote` needs, are the modules of these names: a
//! program that only sends and receives by ticket is built without them, by `default-features = false`.

#![cfg_attr(
    not(feature = "remote"),
    allow(
        dead_code,
        unused_imports,
        reason = "parts of the common modules serve the optional ones; the lints run with all features"
    )
)]

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
#[cfg(feature = "remote")]
pub mod remote;
pub mod streams;
pub mod ticket;
mod transfer;
#[cfg(feature = "tunnel")]
pub mod tunnel;

pub(crate) use store::{base64, private_directory};

pub use error::{Context, CopyError, Error, ErrorKind, KeyRefusal, RequiredFeature};
pub use net;
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
