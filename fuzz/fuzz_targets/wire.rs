//! Everything the wire knows, from any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::wire::fuzzing::fuzz_wire(data));
