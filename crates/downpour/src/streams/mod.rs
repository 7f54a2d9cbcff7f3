//! A stream under a name: what a program writes, of unknown length, from the maker of a ticket to the first who connects
//! with it. It is read once, so it cannot be resumed.

mod error;
mod frames;
mod receive;
mod send;
mod target;

use net::{Connection, NetError};

pub use error::StreamError;
pub use receive::StreamFetch;
pub use send::StreamOffer;
pub use target::StreamTarget;

use crate::error::{Closing, Error};

/// Tag of the only stream.
const STREAM: u64 = 0;

/// Returns whether a name can be that of a stream: a single component of a path.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    (1..=frames::MAX_NAME).contains(&name.len())
        && ![&b"."[..], b".."].contains(&name)
        && !name.iter().any(|byte| b"/\0".contains(byte))
}

/// Ends a connection with the reason of this side's end.
async fn close(connection: &Connection, error: &Error) -> NetError {
    Closing::of(error, false).close(connection);
    connection.closed().await
}
