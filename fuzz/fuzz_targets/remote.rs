//! The messages of two downpours through ssh.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| downpour::remote::fuzzing::fuzz_remote(data));
