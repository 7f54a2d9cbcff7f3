//! The axes: quantities that a sweep varies.

use std::str::FromStr;

use netsim::{Duplex, Loss, TextError};
use serde::Deserialize;

use super::{LinkText, link};

/// The quantity that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Share of packets lost at random.
    Loss,
    /// One-way delay.
    Delay,
    /// Rate of the link.
    Rate,
    /// Mean number of packets lost in a row.
    Burst,
    /// Limit of the queue.
    Queue,
    /// Bytes to move.
    Size,
    /// Any parts of the link's text form, as names and not numbers.
    Link,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps for equal differences.
    #[default]
    Linear,
    /// Equal steps for equal ratios.
    Log,
}

/// The varied link or size.
#[derive(Debug)]
pub(super) struct VariedInput {
    pub(super) link: LinkText,
    pub(super) size: u64,
}

impl Axis {
    /// Returns its name: all but [`Axis::Link`] have a key of the same name in the text form of links or, for the size,
    /// in the plan.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::Rate => "rate",
            Self::Burst => "burst",
            Self::Queue => "queue",
            Self::Size => "size",
            Self::Link => "link",
        }
    }

    /// Returns its title in a picture.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Loss => "Packets lost at random",
            Self::Delay => "One-way delay",
            Self::Rate => "Rate of the link",
            Self::Burst => "Mean burst of losses",
            Self::Queue => "Queue of the link",
            Self::Size => "Size of the file",
            Self::Link => "Link",
        }
    }

    /// Returns the unit of its numbers; empty if there is none.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Loss => "%",
            Self::Delay => "ms",
            Self::Rate => "Mbit/s",
            Self::Burst => "packets",
            Self::Queue => "kB",
            Self::Size => "MB",
            Self::Link => "",
        }
    }

    /// Returns the base with a value of this axis inserted.
    pub(super) fn vary(self, base: &str, size: u64, value: &str) -> Result<VariedInput, TextError> {
        Ok(match self {
            Self::Size => VariedInput { link: link::with(base, "")?, size: bytes(value)? },
            Self::Link => VariedInput { link: link::with(base, value)?, size },
            // `1%` for both directions, `1% / 0%` for each direction separately.
            _ => {
                let parts: Vec<String> =
                    value.split(link::BETWEEN).map(|value| format!("{}={value}", self.name())).collect();
                VariedInput { link: link::with(base, &parts.join(link::BETWEEN))?, size }
            }
        })
    }

    /// Returns the position of a point on the axis, in its unit; `None` if it has no number.
    pub(super) fn coordinate(self, link: &Duplex, size: u64) -> Option<f64> {
        let link = &link.forward;
        match self {
            Self::Loss => Some(rounded(link.loss.mean() * 100.0)),
            Self::Delay => Some(rounded(link.delay.as_secs_f64() * 1e3)),
            Self::Rate => link.rate.map(|rate| rate.bits_per_second() as f64 / 1e6),
            Self::Burst => match link.loss {
                Loss::GilbertElliott { mean_burst, .. } => Some(mean_burst),
                Loss::Bernoulli(loss) => Some(rounded(1.0 / (1.0 - loss))),
                Loss::None => None,
            },
            Self::Queue => link.queue_bytes.map(|bytes| bytes as f64 / 1e3),
            Self::Size => Some(size as f64 / 1e6),
            Self::Link => None,
        }
    }
}

/// Rounds a number, since 0.07 * 100 is 7.000000000000001.
fn rounded(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// Parses a size such as `10MB`, as links do.
pub fn bytes(text: &str) -> Result<u64, TextError> {
    let refused = || TextError::Value { key: "size".into(), value: text.into(), example: "10MB (1 MB is 10^6 bytes)" };
    alone(text).and_then(|text| part(&format!("rate=1G,queue={text}"))?.queue_bytes).ok_or_else(refused)
}

/// Parses a time such as `120s`, as links do.
pub(crate) fn time(key: &str, text: &str) -> Result<std::time::Duration, TextError> {
    let refused = || TextError::Value { key: key.into(), value: text.into(), example: "120s" };
    alone(text).and_then(|text| part(&format!("delay={text}"))).map(|link| link.delay).ok_or_else(refused)
}

/// Parses a share such as `95%`, as links do.
pub(crate) fn share(key: &str, text: &str) -> Result<f64, TextError> {
    let refused = || TextError::Value { key: key.into(), value: text.into(), example: "95%" };
    alone(text).and_then(|text| part(&format!("loss={text}"))).map(|link| link.loss.mean()).ok_or_else(refused)
}

/// Returns the text if it is a single value, not several parts of a link.
fn alone(text: &str) -> Option<&str> {
    (!text.contains([',', '/', '='])).then_some(text)
}

fn part(text: &str) -> Option<netsim::LinkConfig> {
    netsim::LinkConfig::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_varies_its_quantity() {
        let base = "rate=12M,delay=10ms,queue=30KB,loss=5%,burst=5";
        for (axis, value, x) in [
            (Axis::Loss, "7%", Some(7.0)),
            (Axis::Loss, "0.003", Some(0.3)),
            (Axis::Delay, "500us", Some(0.5)),
            (Axis::Rate, "2.5M", Some(2.5)),
            (Axis::Burst, "8", Some(8.0)),
            (Axis::Queue, "130KB", Some(130.0)),
            (Axis::Size, "50MB", Some(50.0)),
            (Axis::Link, "reorder=1%:2ms", None),
        ] {
            let varied = axis.vary(base, 1_000_000, value).expect(value);
            assert_eq!(axis.coordinate(&varied.link.duplex, varied.size), x, "{axis:?} {value}");
            assert_eq!(varied.size, if axis == Axis::Size { 50_000_000 } else { 1_000_000 });
        }
        for value in ["50", "50MB,loss=5%", "fast", "-1MB", "0MB"] {
            let refused = Axis::Size.vary(base, 1, value).map(|varied| varied.size);
            assert!(refused == Ok(50) || refused.is_err(), "{value}: {refused:?}");
        }
        assert_eq!(time("cap", "2s"), Ok(std::time::Duration::from_secs(2)));
        assert!(time("cap", "2").is_err() && share("told", "95% ,seed=1").is_err());
    }
}
