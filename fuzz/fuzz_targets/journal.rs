//! What an interrupted transfer has left on record, from any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::fuzz_journal(data));
