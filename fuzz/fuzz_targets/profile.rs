//! Profiles, as settings and as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::profile::fuzzing::fuzz_profile(data));
