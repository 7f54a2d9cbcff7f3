//! The floor: the least time a transfer can take over a link.

use std::time::Duration;

use netsim::{Duplex, Rate};

/// IP bytes that a byte of the file costs: symbols of 1408 bytes in IPv4 packets of 1479.
const EXPANSION: f64 = 1479.0 / 1408.0;

/// From the first datagram to the last byte there can be no less than a handshake there and back, and the data's way there.
const ROUND_TRIPS: f64 = 1.5;

/// `1.5 x RTT + S x w / (R x (1 - p))`, for a sender that connects and a link that loses a share p of what is sent at rate R.
pub(super) fn time(bytes: u64, rate: Rate, link: &Duplex) -> Duration {
    let rtt = link.forward.delay + link.backward.delay;
    let carried = rate.bits_per_second() as f64 * (1.0 - link.forward.loss.mean());
    let seconds = ROUND_TRIPS * rtt.as_secs_f64() + bytes as f64 * EXPANSION * 8.0 / carried;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (bytes, link, seconds) in [
            (10_000_000, "delay=25ms", 0.915),
            (10_000_000, "delay=25ms,loss=1%", 0.924),
            (10_000_000, "delay=25ms,loss=5%", 0.960),
            (10_000_000, "delay=300ms,loss=2%", 1.757),
            (1_000_000, "delay=200ms,loss=5% / perfect", 0.388),
        ] {
            let floor = time(bytes, Rate::from_megabits_per_second(100), &link.parse().expect(link)).as_secs_f64();
            assert!((floor - seconds).abs() < 0.0006, "{link}: {floor}");
        }
        let dead = "loss=100%".parse().expect("a link");
        assert_eq!(time(1, Rate::from_megabits_per_second(1), &dead), Duration::MAX);
    }
}
