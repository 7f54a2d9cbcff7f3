//! The corpora of the fuzz targets of this crate.

use hostile::replay;

use crate::remote::fuzzing::fuzz_remote;
use crate::ticket::fuzzing::fuzz_ticket;
use crate::tunnel::fuzzing::fuzz_tunnel;

#[test]
fn ticket() {
    replay("ticket", fuzz_ticket);
}

#[test]
fn remote() {
    replay("remote", fuzz_remote);
}

#[test]
fn tunnel() {
    replay("tunnel", fuzz_tunnel);
}
