//! The corpora of the fuzz targets of this crate.

use hostile::replay;

#[cfg(feature = "remote")]
use crate::remote::fuzzing::fuzz_remote;
use crate::ticket::fuzzing::fuzz_ticket;
#[cfg(feature = "tunnel")]
use crate::tunnel::fuzzing::fuzz_tunnel;

#[test]
fn ticket() {
    replay("ticket", fuzz_ticket);
}

#[cfg(feature = "remote")]
#[test]
fn remote() {
    replay("remote", fuzz_remote);
}

#[cfg(feature = "tunnel")]
#[test]
fn tunnel() {
    replay("tunnel", fuzz_tunnel);
}
