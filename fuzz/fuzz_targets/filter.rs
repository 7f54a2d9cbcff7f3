//! Filter rules and paths, against a slow matcher.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| request::fuzz_filter(data));
