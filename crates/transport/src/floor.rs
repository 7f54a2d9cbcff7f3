//! The floor: the least time in which any protocol could carry an object, with which measurements are compared
//! (docs/design/floor.md).

use crate::time::Rate;
use std::time::Duration;

/// IP bytes that a byte of an object costs: symbols of 1408 bytes in IPv4 packets of 1479.
const EXPANSION: f64 = 1479.0 / 1408.0;

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectingSide {
    /// The sender of the object.
    Sender,
    /// The receiver: it fetches.
    Receiver,
}

impl ConnectingSide {
    /// Round trips that the handshake and the delivery of the last byte take at least: 1.5, and half a round trip for
    /// the request of a receiver.
    pub const fn round_trips(self) -> f64 {
        match self {
            Self::Sender => 1.5,
            Self::Receiver => 2.0,
        }
    }
}

/// The floor of a transfer of `size` bytes, from the first datagram to the receiver's last byte: `a x RTT + S x w / (R
/// x (1 - p))`, over a link of `rate` that loses the share `loss` of the packets towards the receiver.
/// [`Duration::MAX`] if nothing arrives.
pub fn transfer_floor(size: u64, rate: Rate, rtt: Duration, loss: f64, connector: ConnectingSide) -> Duration {
    let carried = rate.bytes_per_second() * (1.0 - loss);
    let seconds = rtt.as_secs_f64() * connector.round_trips() + size as f64 * EXPANSION / carried;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_that_of_the_design() {
        let rate = Rate::from_bits_per_second(100_000_000);
        let cases = [
            (10, 50, 0.0, 0.915),
            (10, 50, 0.01, 0.924),
            (10, 50, 0.05, 0.960),
            (10, 600, 0.02, 1.757),
            (1, 200, 0.05, 0.388),
        ];
        for (megabytes, rtt, loss, seconds) in cases {
            let rtt = Duration::from_millis(rtt);
            let found = transfer_floor(megabytes * 1_000_000, rate, rtt, loss, ConnectingSide::Sender).as_secs_f64();
            assert!((found - seconds).abs() < 0.0006, "{megabytes} MB, {rtt:?}, {loss}: {found}");
        }
        assert_eq!(
            transfer_floor(0, rate, Duration::from_millis(50), 0.0, ConnectingSide::Receiver),
            Duration::from_millis(100)
        );
        assert_eq!(transfer_floor(1, rate, Duration::ZERO, 1.0, ConnectingSide::Sender), Duration::MAX);
    }
}
