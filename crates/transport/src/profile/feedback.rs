//! The text form of [`FeedbackConfig`](crate::wire::FeedbackConfig), and its default numbers. Neither is on the wire.

use crate::settings::{
    Algorithm, IntegerRange, Setting, SettingError, SettingText, Settings, Share, Span, ValueFormat, choices, field,
};
use crate::wire::limits::{
    MAX_COUNTING_FACTOR, MAX_EPSILON, MAX_HEARTBEAT, MAX_LAST_PACKETS, MAX_SPACING, MIN_HEARTBEAT,
};
use crate::wire::{
    BlockFeedback, DoneConfig, FeedbackTiming, Heartbeat, LastPackets, MILLION, PacketCountTiming, PacketFeedback,
    ReceivedConfig, Spacing,
};
use std::time::Duration;

choices! {
    "packet feedback",
    PacketFeedback { "ranges" => Ranges, "in-order" => InOrder, "count" => Count, "last" => Last(LastPackets) }
}

choices! {
    "block feedback",
    BlockFeedback { "needs" => Needs, "done" => Done(DoneConfig), "mask" => Mask, "received" => Received(ReceivedConfig) }
}

choices! {
    "feedback timing",
    FeedbackTiming {
        "every-packet" => EveryPacket,
        "spaced" => Spaced(Spacing),
        "on-blocks" => OnBlocks(Heartbeat),
        "every" => Every(PacketCountTiming),
    }
}

impl Default for LastPackets {
    /// 1024 (ttp §II-B and §III-A: n).
    fn default() -> Self {
        Self { packets: 1_024 }
    }
}

impl Settings for LastPackets {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!(bare "packets", packets, IntegerRange(1, MAX_LAST_PACKETS as u64))];
}

impl Settings for DoneConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "epsilon", epsilon, Millionths(MAX_EPSILON))];
}

impl Default for ReceivedConfig {
    /// 0.01 (rc-udp §V).
    fn default() -> Self {
        Self { epsilon: 10_000 }
    }
}

impl Settings for ReceivedConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "epsilon", epsilon, Millionths(MAX_EPSILON))];
}

impl Default for Spacing {
    /// 32 in a round trip, at least 1 ms apart (docs/design/feedback.md).
    fn default() -> Self {
        Self { per_rtt: 32, at_least: Duration::from_millis(1) }
    }
}

impl Settings for Spacing {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("per-rtt", per_rtt, IntegerRange(1, 255)),
        field!("at-least", at_least, Span(Duration::ZERO, MAX_SPACING)),
    ];
}

impl Default for Heartbeat {
    /// 10 ms. tornado-transfer §2.1 says "constantly" and gives no number. Chosen: a small share of the reverse path
    /// even at a few Mbit/s.
    fn default() -> Self {
        Self { heartbeat: Duration::from_millis(10) }
    }
}

impl Settings for Heartbeat {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("heartbeat", heartbeat, Span(MIN_HEARTBEAT, MAX_HEARTBEAT))];
}

impl Default for PacketCountTiming {
    /// n = 1024 (ttp §III-A). ttp §II-B leaves threshold and factor open. Chosen: 1 %, above the loss of its links
    /// themselves, and 2, the smallest factor that has an effect.
    fn default() -> Self {
        Self { packets: 1_024, threshold: 10_000, factor: 2 }
    }
}

impl Settings for PacketCountTiming {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("packets", packets, IntegerRange(2, MAX_LAST_PACKETS as u64)),
        field!("threshold", threshold, Millionths(MILLION)),
        field!("factor", factor, IntegerRange(1, MAX_COUNTING_FACTOR as u64)),
    ];
}

/// A sender of blocks always requests feedback about them: the wire allows `None`, but no profile chooses it.
impl Algorithm for Option<BlockFeedback> {
    fn name(&self) -> &str {
        self.as_ref().map_or("nothing", Algorithm::name)
    }

    fn written(&self, own: &[SettingText]) -> String {
        self.map_or_else(|| "nothing".into(), |feedback| feedback.written(own))
    }

    fn numbers(&self) -> Vec<SettingText> {
        self.map_or_else(Vec::new, |feedback| feedback.numbers())
    }

    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        self.get_or_insert_default().set_number(key, value)
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        self.get_or_insert_default().set(text)
    }
}

/// A share kept in millionths, at most this many; written `1%` or `0.01`.
#[derive(Clone, Copy, Debug)]
struct Millionths(u32);

impl Millionths {
    fn form(self) -> Share {
        Share(0.0, f64::from(self.0) / f64::from(MILLION))
    }
}

impl ValueFormat<u32> for Millionths {
    fn parse(&self, text: &str) -> Option<u32> {
        self.form().parse(text).map(|share| (share * f64::from(MILLION)).round() as u32)
    }

    fn print(&self, value: &u32) -> String {
        self.form().print(&(f64::from(*value) / f64::from(MILLION)))
    }

    fn allowed(&self) -> String {
        self.form().allowed()
    }
}
