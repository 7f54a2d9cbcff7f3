//! The program's messages from any control stream.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| downpour::messages::fuzz_messages(data));
