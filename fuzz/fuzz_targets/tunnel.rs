//! The input of a tunnel: the user's forwards, and the messages of programs and of the peer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| downpour::tunnel::fuzzing::fuzz_tunnel(data));
