//! An endpoint that gets datagrams of strangers without a key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::endpoint::fuzzing::fuzz_strangers(data));
