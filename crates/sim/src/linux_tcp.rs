//! A neighbour that sends as TCP with CUBIC does in Linux.

use transport::congestion::{CongestionConfig, CongestionControl, ControllerFactory, CubicConfig, PathView};
use transport::recovery::Report;
use transport::settings::{Setting, Settings};
use transport::{Profile, Rate, Time};

/// The name of [`linux_tcp`] where profiles are named.
pub const LINUX_TCP: &str = "linux-tcp";

/// Returns a profile that sends as TCP with CUBIC does in Linux: no redundancy, selective acknowledgements of every
/// second packet and of each one beyond a gap (RFC 5681 section 4.2), and packets that go out as soon as the window has
/// room for them. Linux paces TCP only below the queue discipline fq or with BBR.
///
/// Its slow start ends by HyStart++ (RFC 9406), where Linux has the HyStart of which that is a revision.
pub fn linux_tcp() -> Profile {
    let mut profile = Profile::arq();
    let choices = [
        ("feedback.packets", "ranges"),
        ("feedback.timing", "every:packets=2,threshold=0%,factor=2"),
        ("detection", "threshold"),
    ];
    profile.set_all(choices).expect("choices of every profile");
    profile.recovery.congestion = CongestionConfig::custom(Unpaced);
    profile
}

/// CUBIC (RFC 9438) whose packets are not paced.
#[derive(Clone, Debug, Default, PartialEq)]
struct Unpaced;

impl Settings for Unpaced {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

impl ControllerFactory for Unpaced {
    const NAME: &'static str = "linux-cubic";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(UnpacedCubic(CongestionConfig::Cubic(CubicConfig::default()).build(max_packet)))
    }
}

#[derive(Debug)]
struct UnpacedCubic(Box<dyn CongestionControl>);

impl CongestionControl for UnpacedCubic {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.0.on_path(path);
    }

    fn on_sent(&mut self, now: Time, bytes: u32, in_flight: u64) {
        self.0.on_sent(now, bytes, in_flight);
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        self.0.on_report(report, path);
    }

    fn window(&self) -> u64 {
        self.0.window()
    }

    /// Faster than any link: the acknowledgements are the clock.
    fn rate(&self) -> Option<Rate> {
        Some(Rate::from_bits_per_second(1_000_000_000_000))
    }

    fn name(&self) -> &'static str {
        Unpaced::NAME
    }

    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }
}
