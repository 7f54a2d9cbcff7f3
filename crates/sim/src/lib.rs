//! The transport engine over simulated links: the harness of the tests, the benchmarks and the lab.
//!
//! Two endpoints, joined by [`netsim`] links, run in virtual time with everything a real transfer has but sockets and disks:
//! handshake, encryption, feedback, coding. The same seed gives the same run.
//!
//! ```
//! let case = sim::Case { size: 100_000, ..sim::Case::new("rate=100M,delay=25ms,queue=256KB,loss=5%".parse()?) };
//! let outcome = case.run(1);
//! assert!(outcome.is_identical());
//! println!("{:.3} s of a floor of {:.3} s", outcome.completed_secs(), case.floor().as_secs_f64());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod case;
mod host;
pub mod property;
pub mod reference;
mod storage;

pub use case::{Case, Connector, Ending, Outcome};
pub use host::{Host, HostConfig, Tally};
pub use storage::{Pattern, Received};

/// The least time a transfer can take (design section 8): `a` round trips for handshake and last delivery, and the
/// object's wire bytes at what the link delivers of its rate.
///
/// `rate` is in IP bits per second, `loss` the share of packets lost towards the receiver.
pub fn floor(
    size: u64,
    rate: transport::Rate,
    rtt: std::time::Duration,
    loss: f64,
    connector: Connector,
) -> std::time::Duration {
    // 1408 bytes of symbol in a 1479-byte IPv4 packet.
    let wire_bits = size as f64 * 8.0 * 1479.0 / 1408.0;
    let carried = rate.bits_per_second() as f64 * (1.0 - loss);
    rtt.mul_f64(connector.round_trips()) + std::time::Duration::from_secs_f64(wire_bits / carried)
}
