//! Hostile handshake messages, payloads and packets.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::secure::fuzzing::fuzz_handshake(data));
