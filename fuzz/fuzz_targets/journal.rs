//! The journal of an interrupted transfer, from any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::fuzz_journal(data));
