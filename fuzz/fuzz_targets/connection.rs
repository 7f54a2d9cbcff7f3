//! A whole connection with a hostile peer that has the key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim::fuzzing::fuzz_connection(data));
