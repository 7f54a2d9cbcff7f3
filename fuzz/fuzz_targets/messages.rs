//! The program's messages from any control stream.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::fuzz_messages(data));
