//! Tunnels: the connections of programs, carried over one connection of [`net`].
//!
//! ```text
//! program ── Listener ── Session ═══ streams ═══ Session ── server
//! ```
//!
//! Each connection takes a stream in each direction (`messages`), on which its bytes follow (`relay`).

pub mod control;
mod counts;
mod events;
pub mod fuzzing;
mod grammar;
mod http;
mod listener;
mod messages;
mod metrics;
mod relay;
mod session;
mod socks;
#[cfg(test)]
mod tests;

pub use events::ConnectionEvent;
pub(crate) use events::{Note, Notes};
pub use grammar::{Destination, Forward, ForwardError, Place};
pub(crate) use http::serve_metrics;
pub(crate) use listener::{Listener, raise_descriptor_limit};
pub(crate) use session::{Permitted, Proxied, Session};
