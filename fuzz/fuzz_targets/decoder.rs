//! A block, a decoder and any symbols.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| erasure::fuzzing::fuzz_decoder(data));
