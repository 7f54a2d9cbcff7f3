//! Reliable, encrypted, high-speed transfers over UDP: what programs embed.
//!
//! [`send`] offers paths, [`receive`] takes them into a folder; the two find each other by a [`Ticket`] that either side may make.
//! See `examples/send.rs` and `examples/receive.rs`.

mod base64;
mod error;
pub mod files;
pub mod messages;
mod protocol;
pub mod remote;
pub mod ticket;
mod transfer;

pub use error::{CloseCode, Error};
pub use net::{Bind, Family, NetError};
pub use ticket::{Role, Ticket, TicketError};
pub use transfer::{
    Bytes, CommonOptions, ListenOptions, Offer, Peer, Progress, ReceiveOptions, SendOptions, Stop, Summary, Transfer,
    TransferEvent, receive, send,
};
pub use transport::{ConnectionStats, Connector, LimitedBy, Profile, Rate, floor, profile};
