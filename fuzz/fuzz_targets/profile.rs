//! Profiles, as settings and as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| systems::fuzzing::fuzz_profile(data));
