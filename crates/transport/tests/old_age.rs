//! A listener that serves one connection after another does not grow old: it remembers a bounded number of them. The tests
//! have a process of their own, since they read the memory of the process.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared with the tests of hostile peers, which use all of it")]
#[path = "hostile/rogue.rs"]
mod rogue;

use downpour_transport::wire::{ConnectionId, limits::MIN_MESSAGE1};
use downpour_transport::{EndpointConfig, EndpointEvent, Time};
use rogue::{address, deliver, message1, parameters, proof, victim};
use std::time::Duration;

/// Returns the peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of proc(5)");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kilobytes") * 1_024
}

/// Serves so many connections one after another, of which every tenth begins twice and is completed once, and demands that
/// the memory grows no more once half of them are served.
fn serve(connections: u64) {
    let mut endpoint = victim(EndpointConfig::default());
    let mut before = 0;
    for number in 0..connections {
        let now = Time::ZERO + Duration::from_millis(10 * number);
        if number % 10 == 0 {
            let (_, abandoned) = message1(&parameters(ConnectionId((1 << 40 | number).to_be_bytes())), 2, MIN_MESSAGE1);
            deliver(&mut endpoint, now, address(2), abandoned);
            assert!(endpoint.poll_answer().is_some(), "connection {number}");
        }
        let (mut initiator, message) = message1(&parameters(ConnectionId(number.to_be_bytes())), 1, MIN_MESSAGE1);
        deliver(&mut endpoint, now, address(1), message);
        let answer = endpoint.poll_answer().unwrap_or_else(|| panic!("connection {number} is not answered"));
        let (_, ping) = proof(&mut initiator, &answer.bytes);
        deliver(&mut endpoint, now, address(1), ping);
        let Some(EndpointEvent::Accepted { handle, .. }) = endpoint.poll_event() else {
            panic!("connection {number} is not accepted")
        };
        endpoint.remove(handle);
        if number == connections / 2 {
            before = peak();
        }
    }
    // Every tenth, for 30 s at a hundred a second.
    assert_eq!((endpoint.handles().count(), endpoint.half_open()), (0, 300));
    let grown = peak() - before;
    assert!(grown < 1 << 20, "{grown} bytes");
}

/// The first hundred thousand of them are more than the 65,536 first messages that a listener once could remember.
#[test]
#[ignore = "takes several minutes"]
fn a_million_connections_one_after_another_succeed_in_bounded_memory() {
    serve(1_000_000);
}

/// The same for as many as take a few seconds: more than are remembered.
#[test]
fn connections_one_after_another_succeed_in_bounded_memory() {
    serve(12_000);
}
