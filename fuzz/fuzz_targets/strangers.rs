//! An endpoint that strangers send to, who hold no key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::endpoint::fuzzing::fuzz_strangers(data));
