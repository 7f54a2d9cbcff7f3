//! What a tunnel reads: the user's forwards, and what programs and the other side say.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| downpour::tunnel::fuzzing::fuzz_tunnel(data));
