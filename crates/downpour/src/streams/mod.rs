//! A named stream: the output of a program, of unknown length, from the creator of a ticket to the first peer that
//! connects with it. It is read once, so it cannot be resumed.

mod error;
mod frames;
mod receive;
mod send;
mod stdin;
mod target;

use net::{Connection, NetError};

pub use error::StreamError;
pub use receive::StreamFetch;
pub use send::StreamOffer;
pub(crate) use stdin::Stdin;
pub use stdin::{SignalProbe, StreamSource};
pub use target::StreamTarget;

use crate::error::{Closing, Error};

/// Tag of the only stream.
const STREAM: u64 = 0;

/// Returns whether a name is valid for a stream: a single component of a path.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    (1..=frames::MAX_NAME).contains(&name.len())
        && ![&b"."[..], b".."].contains(&name)
        && !name.iter().any(|byte| b"/\0".contains(byte))
}

/// Closes a connection with the reason of the local failure.
async fn close(connection: &Connection, error: &Error) -> NetError {
    Closing::of(error, false).close(connection);
    connection.closed().await
}
