//! The content of `PLAN.toml`.

use netsim::Duplex;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::overlay::{LineText, PublishedText};
use super::{Axis, Scale};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PlanText {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) claim: Vec<Claim>,
    pub(super) link: Spanned<String>,
    pub(super) topology: Option<Spanned<TopologyText>>,
    pub(super) size: Spanned<String>,
    pub(super) writes: Option<WritesText>,
    pub(super) peers: Spanned<Vec<Spanned<String>>>,
    pub(super) seeds: Option<Spanned<Vec<u64>>>,
    pub(super) repeats: Option<Spanned<u32>>,
    pub(super) cap: Option<Spanned<String>>,
    pub(super) warm_up: Option<u32>,
    #[serde(default)]
    pub(super) fast: bool,
    #[serde(default)]
    pub(super) shuffle: u64,
    #[serde(rename = "told")]
    pub(super) rate_share: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) picture: PictureText,
    pub(super) ranges: Option<Spanned<RangesText>>,
    #[serde(default)]
    pub(super) sweep: Vec<Spanned<SweepText>>,
    #[serde(default)]
    pub(super) published: Vec<Spanned<PublishedText>>,
    #[serde(default)]
    pub(super) line: Vec<Spanned<LineText>>,
}

/// Returns whether a name is valid: names of plans and sweeps become names of files and directories.
pub(crate) fn is_name(name: &str) -> bool {
    let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    name.split('/').all(|part| !part.is_empty() && part.bytes().all(good))
}

/// A claim of a document, in words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim.
    pub text: String,
    /// The section of the document.
    pub section: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopologyText {
    pub(super) file: String,
    pub(super) between: [String; 2],
    pub(super) pair: [String; 2],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WritesText {
    pub(super) every: Spanned<String>,
    #[serde(default)]
    pub(super) poisson: bool,
    #[serde(rename = "for")]
    pub(super) duration: Spanned<String>,
    #[serde(default)]
    pub(super) echo: bool,
    pub(super) beside: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PictureText {
    pub(super) x: Option<Spanned<Axis>>,
    #[serde(default)]
    pub(super) x_scale: Scale,
    pub(super) y: Option<Spanned<Quantity>>,
    #[serde(default)]
    pub(super) y_scale: Scale,
    #[serde(default)]
    pub(super) spread: Spread,
    pub(super) floor: Option<bool>,
    pub(super) floor_round_trips: Option<Spanned<f64>>,
}

/// The quantity on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Seconds until all bytes have arrived.
    Seconds,
    /// Bytes of the file per second, in Mbit/s.
    Goodput,
    /// The median delay of small writes, in milliseconds.
    DelayP50,
    /// The delay that 90 % of them did not exceed.
    DelayP90,
    /// The delay that 99 % of them did not exceed.
    DelayP99,
    /// The longest delay.
    DelayMax,
    /// IP bytes of both hosts for each written byte.
    WirePerByte,
    /// Bytes per second of the upload beside small writes, in Mbit/s.
    Upload,
}

impl Quantity {
    /// The quantities of small writes, in the order of the report.
    pub(crate) const OF_WRITES: [Self; 6] =
        [Self::DelayP50, Self::DelayP90, Self::DelayP99, Self::DelayMax, Self::WirePerByte, Self::Upload];

    /// Returns its name in plans and tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Goodput => "goodput",
            Self::DelayP50 => "delay-p50",
            Self::DelayP90 => "delay-p90",
            Self::DelayP99 => "delay-p99",
            Self::DelayMax => "delay-max",
            Self::WirePerByte => "wire-per-byte",
            Self::Upload => "upload",
        }
    }

    /// Returns its title and unit.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Seconds => "Time until all bytes are there, s",
            Self::Goodput => "Goodput, Mbit/s",
            Self::DelayP50 => "Median delay of the writes, ms",
            Self::DelayP90 => "Delay of 90 % of the writes at most, ms",
            Self::DelayP99 => "Delay of 99 % of the writes at most, ms",
            Self::DelayMax => "Longest delay of a write, ms",
            Self::WirePerByte => "IP bytes of both hosts for each byte written",
            Self::Upload => "Goodput of the upload beside, Mbit/s",
        }
    }

    /// Returns whether more is better, in which case an unfinished run has less.
    pub(crate) const fn is_rate(self) -> bool {
        matches!(self, Self::Goodput | Self::Upload)
    }
}

/// The meaning of error bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// The shortest and the longest run.
    #[default]
    Range,
    /// The middle half of the runs.
    Quartiles,
}

/// The least time that any protocol needs, as a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Round trips that cannot be avoided.
    pub round_trips: f64,
}

/// Bytes of IPv4 and UDP headers, the least overhead of a datagram.
const HEADERS: f64 = 28.0;
const MTU: f64 = 1500.0;

impl Floor {
    /// Returns `a x RTT + S x w / (R x (1 - p))`, in seconds: `size` bytes in full packets with only IPv4 and UDP
    /// headers (w) over the rate R, of which the share p is lost. No protocol is faster: TCP's headers are longer.
    pub(super) fn seconds(self, size: u64, link: &Duplex) -> Option<f64> {
        let rate = link.forward.rate?.bits_per_second() as f64;
        let mtu = link.forward.mtu.map_or(MTU, f64::from).min(MTU);
        let carried = rate * (1.0 - link.forward.loss.mean()) * (mtu - HEADERS) / mtu;
        let rtt = (link.forward.delay + link.backward.delay).as_secs_f64();
        (carried > 0.0).then(|| self.round_trips * rtt + size as f64 * 8.0 / carried)
    }
}

/// Values of each axis, in all combinations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangesText {
    loss: Option<Values>,
    delay: Option<Values>,
    rate: Option<Values>,
    burst: Option<Values>,
    queue: Option<Values>,
    size: Option<Values>,
    link: Option<Values>,
}

pub(super) type Values = Spanned<Vec<Spanned<String>>>;

impl RangesText {
    /// Returns the axes that have a range, in the order of the picture titles.
    pub(super) fn all(self) -> Vec<(Axis, Values)> {
        let all = [
            // Loss before bursts, and both after parts that may contain them.
            (Axis::Size, self.size),
            (Axis::Link, self.link),
            (Axis::Rate, self.rate),
            (Axis::Queue, self.queue),
            (Axis::Delay, self.delay),
            (Axis::Loss, self.loss),
            (Axis::Burst, self.burst),
        ];
        all.into_iter().filter_map(|(axis, values)| Some((axis, values?))).collect()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SweepText {
    pub(super) name: Spanned<String>,
    pub(super) title: Option<String>,
    pub(super) vary: Axis,
    pub(super) values: Values,
    pub(super) link: Option<Spanned<String>>,
    pub(super) size: Option<Spanned<String>>,
    pub(super) peers: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) repeats: Option<Spanned<u32>>,
    pub(super) cap: Option<Spanned<String>>,
    pub(super) scale: Option<Scale>,
}
