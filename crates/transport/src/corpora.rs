//! The corpora of the fuzz targets of this crate.

use hostile::replay;

use crate::endpoint::fuzzing::fuzz_strangers;
use crate::secure::fuzzing::fuzz_handshake;
use crate::wire::fuzzing::fuzz_wire;

#[test]
fn handshake() {
    replay("handshake", fuzz_handshake);
}

#[test]
fn strangers() {
    replay("strangers", fuzz_strangers);
}

#[test]
fn wire() {
    replay("wire", fuzz_wire);
}
