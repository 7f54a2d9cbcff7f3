//! A hostile sender's manifests, digests and voids, into a target with files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::fuzz_sink(data));
