//! Tunnels: the connections of programs, carried over one connection of [`net`].
//!
//! ```text
//! program ── Listener ── Session ═══ streams ═══ Session ── server
//! ```
//!
//! Each connection takes a stream in each direction (`messages`), on which its bytes follow (`relay`).

mod by_ticket;
pub mod control;
mod counts;
mod events;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grammar;
mod http;
mod listener;
mod messages;
mod metrics;
mod near_end;
mod relay;
mod session;
mod socks;
#[cfg(test)]
mod tests;

pub use by_ticket::{PeerEvent, TicketListener, connect};
pub(crate) use events::Notes;
pub use events::{ConnectionEvent, TunnelEvent};
pub use grammar::{Forward, ForwardAddress, ForwardError, ForwardTarget, Permit};
pub(crate) use listener::{Listener, raise_descriptor_limit};
pub use near_end::Forwarding;
pub(crate) use near_end::LocalEnd;
pub(crate) use session::{Permitted, Session};
