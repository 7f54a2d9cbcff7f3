//! CCID 2, TCP-like congestion control of DCCP (RFC 4341): Reno with acknowledgements of every packet, as in TCP with
//! SACK. One of the two controllers of tornado-transfer §2.2.
//!
//! Departs: the ack ratio (section 6.1) is not negotiated. The profile decides how often feedback is sent, and feedback
//! is not congestion controlled otherwise.

use transport::congestion::{CongestionControl, ControllerFactory, Reno, RenoConfig, Response, Signal, WindowLimit};
use transport::settings::{IntegerRange, Setting, Settings, field};

/// Numbers of CCID 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ccid2Config {
    /// Initial cwnd in packets: 3, as RFC 3390 allows for packets of 1460 bytes (RFC 4341 section 5).
    pub initial: u32,
}

impl Default for Ccid2Config {
    fn default() -> Self {
        Self { initial: 3 }
    }
}

impl Settings for Ccid2Config {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("initial", initial, IntegerRange(1, 1000))];
}

impl ControllerFactory for Ccid2Config {
    const NAME: &'static str = "ccid2";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(ccid2(*self, max_packet))
    }
}

/// RFC 4341 section 5: ssthresh is initially infinite, the window is halved once per window of data with a lost or
/// marked packet, a timeout leaves one packet. The window is not inflated, since "pipe" excludes received packets.
pub(super) fn ccid2(config: Ccid2Config, max_packet: u32) -> Reno {
    let numbers = RenoConfig {
        initial: config.initial,
        threshold: None,
        beta: 0.5,
        inflation: 0,
        signal: Signal::Loss,
        limit: WindowLimit::None,
    };
    Reno::new("ccid2", numbers, Response::STANDARD, max_packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::{Bench, ReportSpec};
    use transport::recovery::Cause;

    #[test]
    fn starts_with_three_packets_and_halves_once_a_window() {
        let mut bench = Bench::new(ccid2(Ccid2Config::default(), Bench::<Reno>::PACKET), 100);
        assert_eq!((bench.packets(), bench.controller.name()), (3.0, "ccid2"));
        for expected in [6.0, 12.0, 24.0, 48.0, 96.0] {
            bench.report(ReportSpec { delivered: bench.packets() as u64, ..ReportSpec::default() });
            assert_eq!(bench.packets(), expected, "slow start has no threshold");
        }
        bench.report(ReportSpec { delivered: 90, lost: 3, ..ReportSpec::default() });
        bench.later(50);
        bench.report(ReportSpec { lost: 3, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 48.0);
        bench.later(60);
        bench.report(ReportSpec { delivered: 1, marked: 1, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 24.0);
        bench.report(ReportSpec { lost: 24, cause: Some(Cause::Timeout), ..ReportSpec::default() });
        assert_eq!(bench.packets(), 1.0);
    }
}
