//! A window code, its encoder, its decoder and any losses.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| erasure::rlc::fuzzing::fuzz_window(data));
