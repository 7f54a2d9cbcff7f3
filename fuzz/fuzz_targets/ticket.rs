//! Tickets, as text and as fields.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| downpour::ticket::fuzzing::fuzz_ticket(data));
