//! A block, a decoder and any symbols.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::fuzz_decoder(data));
