//! Tests of the wire: exact bytes, hostile bytes, properties.

mod datagrams;
mod feedback;
mod frames;
mod properties;
mod ranges;
#[path = "../../../tests/vectors/samples.rs"]
mod samples;
#[path = "../../../tests/vectors/varied.rs"]
mod varied;

use super::*;
use crate::wire;

/// Returns one frame's bytes.
fn bytes_of(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    assert_eq!(out.len(), frame.encoded_len(), "encoded_len of {frame:?}");
    out
}

/// Reads the only frame in some bytes.
fn read_one(bytes: &[u8]) -> Result<Frame<'_>, WireError> {
    let mut frames = Frames::new(bytes);
    let frame = frames.next().expect("a frame");
    assert_eq!(frames.next(), None, "one frame, and nothing after an error");
    frame
}

#[track_caller]
fn assert_layout(frame: &Frame<'_>, bytes: &[u8]) {
    assert_eq!(bytes_of(frame), bytes);
    assert_eq!(read_one(bytes).as_ref(), Ok(frame));
    // Truncated anywhere, it is an error and not something else.
    for end in 1..bytes.len() {
        assert_eq!(read_one(&bytes[..end]), Err(WireError::Truncated), "cut after {end} bytes");
    }
}
