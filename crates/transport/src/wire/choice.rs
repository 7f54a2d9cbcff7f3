//! What a sender of data wants in its receiver's feedback. The receiver never learns the sender's profile: this is all of it that
//! crosses the wire, and every number in it is checked before anything obeys it.

use super::bytes::{Put, Reader};
use super::error::WireError;
use super::limits::MAX_RANGES_BODY;
use crate::settings::{Choice, Count, Form, Setting, SettingError, Settings, Share, Shown, Span, choices, field};
use crate::time::micros;
use std::time::Duration;

const FLAG_ECN: u8 = 1;
const FLAG_BLOCKS: u8 = 1 << 1;

/// Numbers of what is told of packets.
mod packets {
    pub(super) const RANGES: u8 = 0;
    pub(super) const IN_ORDER: u8 = 1;
    pub(super) const COUNT: u8 = 2;
    pub(super) const LAST: u8 = 3;
}

/// Numbers of what is told of blocks.
mod blocks {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const NEEDS: u8 = 1;
    pub(super) const DONE: u8 = 2;
    pub(super) const MASK: u8 = 3;
    pub(super) const RECEIVED: u8 = 4;
}

/// Numbers of timings; the first two stand in the plain choice too.
mod timing {
    pub(super) const EVERY_PACKET: u8 = 0;
    pub(super) const SPACED: u8 = 1;
    pub(super) const ON_BLOCKS: u8 = 2;
    pub(super) const EVERY: u8 = 3;
}

/// Most packets of [`PacketsTold::Last`] and [`FeedbackTiming::Every`]: what one packets section holds as a bitmap.
const MAX_LAST: u16 = 8 * MAX_RANGES_BODY as u16;

/// Millionths in one.
pub const MILLION: u32 = 1_000_000;

/// Largest epsilon, in millionths: what a block may take beyond its k symbols before decoding is tried.
const MAX_EPSILON: u32 = MILLION / 4;

/// Bounds of a [`Heartbeat`]: a shorter one would be a flood that the sender asks for, a longer one would outlive the connection.
const HEARTBEATS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));

/// Most that [`Counting`] stretches its spacing by.
const MAX_FACTOR: u8 = 16;

/// What a sender of data wants in its receiver's feedback. Credit is always in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackChoice {
    /// Counts of packets by ECN mark.
    pub ecn: bool,
    /// Which packets arrived, or how many.
    pub packets: PacketsTold,
    /// Which blocks are done; nothing is said of blocks to who sends none.
    pub blocks: Option<BlocksTold>,
    /// When to send it.
    pub timing: FeedbackTiming,
}

/// What feedback says of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketsTold {
    /// All that arrived since the last feedback that was seen.
    #[default]
    Ranges,
    /// The same, but a packet is named only once its symbol belongs to the unbroken beginning of its flow, as a cumulative
    /// acknowledgement would (arq 2.1); and how many arrived in all, so that who counts duplicates misses none.
    InOrder,
    /// The highest number and how many arrived in all (rc-udp IV).
    Count,
    /// Of the last packet numbers, and of those since the last feedback (ttp II-B).
    Last(LastPackets),
}

choices! {
    "telling of packets",
    PacketsTold { "ranges" => Ranges, "in-order" => InOrder, "count" => Count, "last" => Last(LastPackets) }
}

/// Of how many packet numbers feedback tells what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPackets {
    /// How many, 1 to 32,768.
    pub packets: u16,
}

impl Default for LastPackets {
    /// 1024 (ttp II-B: the last n, and III-A).
    fn default() -> Self {
        Self { packets: 1_024 }
    }
}

impl Settings for LastPackets {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!(bare "packets", packets, Count(1, MAX_LAST as u64))];
}

/// What feedback says of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlocksTold {
    /// Which are done, and what the others need at least.
    #[default]
    Needs,
    /// Which are done.
    Done(DoneBlocks),
    /// A bit for each of an object's blocks, if there are at most 256 (tornado-transfer 2.1); as [`Done`](Self::Done) of larger ones
    /// and of streams.
    Mask,
    /// A block is called done as soon as enough symbols of it are there, before it is decoded (rc-udp IV). What cannot be decoded
    /// then is lost, and ends the connection.
    Received(ReceivedBlocks),
}

choices! {
    "telling of blocks",
    BlocksTold { "needs" => Needs, "done" => Done(DoneBlocks), "mask" => Mask, "received" => Received(ReceivedBlocks) }
}

/// When a block is tried that is called done once it is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoneBlocks {
    /// Decoding is not tried before (1 + this) k symbols are there; in millionths, at most a quarter.
    pub epsilon: u32,
}

impl Settings for DoneBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "epsilon", epsilon, Millionths(MAX_EPSILON))];
}

/// When a block is called done before it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedBlocks {
    /// Once (1 + this) k symbols are there; in millionths, at most a quarter.
    pub epsilon: u32,
}

impl Default for ReceivedBlocks {
    /// 0.01 (rc-udp V).
    fn default() -> Self {
        Self { epsilon: 10_000 }
    }
}

impl Settings for ReceivedBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "epsilon", epsilon, Millionths(MAX_EPSILON))];
}

/// When a receiver of data sends feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackTiming {
    /// For every packet.
    EveryPacket,
    /// Every max(`at_least`, round-trip time / `per_rtt`).
    Spaced(Spacing),
    /// At once when a block is done, and again and again as long as anything is unfinished (tornado-transfer 2.1).
    OnBlocks(Heartbeat),
    /// Every so many packets, sooner after loss, later after none (ttp II-B).
    Every(Counting),
}

choices! {
    "feedback timing",
    FeedbackTiming {
        "every-packet" => EveryPacket,
        "spaced" => Spaced(Spacing),
        "on-blocks" => OnBlocks(Heartbeat),
        "every" => Every(Counting),
    }
}

/// Feedback spaced by the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// Feedbacks per round-trip time, at least 1.
    pub per_rtt: u8,
    /// Least time between two: whole microseconds, 32 bits of them.
    pub at_least: Duration,
}

impl Default for Spacing {
    /// 32 in a round trip, at least 1 ms apart (design section 8).
    fn default() -> Self {
        Self { per_rtt: 32, at_least: Duration::from_millis(1) }
    }
}

/// Spacing that a receiver obeys at most: the sender's questions are answered at once, but what it learns in between would come late.
const LONGEST_SPACING: Duration = Duration::from_secs(10);

impl Settings for Spacing {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("per-rtt", per_rtt, Count(1, 255)),
        field!("at-least", at_least, Span(Duration::ZERO, LONGEST_SPACING)),
    ];
}

/// Feedback as long as anything is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Time between two while no block is done: whole microseconds, 1 ms to 10 s.
    pub heartbeat: Duration,
}

impl Default for Heartbeat {
    /// 10 ms. The document says "constantly" and no number (tornado-transfer 2.1): chosen so that at a few Mbit/s it still is a small
    /// part of what goes the other way.
    fn default() -> Self {
        Self { heartbeat: Duration::from_millis(10) }
    }
}

impl Settings for Heartbeat {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("heartbeat", heartbeat, Span(HEARTBEATS.0, HEARTBEATS.1))];
}

/// Feedback by the number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Packets between two feedbacks, 2 to 32,768.
    pub packets: u16,
    /// With more of the last `packets` missing than this, half as many are between two; in millionths, at most [`MILLION`].
    pub threshold: u32,
    /// With none of them missing, so many times as many, 1 to 16.
    pub factor: u8,
}

impl Default for Counting {
    /// n = 1024 (ttp III-A). The document leaves threshold and factor open (II-B). Chosen: 1 %, where its links' own loss ends; and 2, the least
    /// that is rarer.
    fn default() -> Self {
        Self { packets: 1_024, threshold: 10_000, factor: 2 }
    }
}

impl Settings for Counting {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("packets", packets, Count(2, MAX_LAST as u64)),
        field!("threshold", threshold, Millionths(MILLION)),
        field!("factor", factor, Count(1, MAX_FACTOR as u64)),
    ];
}

/// A share of a whole, kept in millionths, at most so many: `1%`, `0.01`.
#[derive(Clone, Copy, Debug)]
struct Millionths(u32);

impl Millionths {
    fn form(self) -> Share {
        Share(0.0, f64::from(self.0) / f64::from(MILLION))
    }
}

impl Form<u32> for Millionths {
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

/// Who sends blocks wants to be told of them: saying nothing is what the wire allows and no profile chooses.
impl Choice for Option<BlocksTold> {
    fn text(&self) -> String {
        self.map_or_else(|| "nothing".into(), |told| told.text())
    }

    fn numbers(&self) -> Vec<Shown> {
        self.map_or_else(Vec::new, |told| told.numbers())
    }

    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        self.get_or_insert_default().set_number(key, value)
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        self.get_or_insert_default().set(text)
    }
}

impl FeedbackTiming {
    /// The timing that a receiver is asked for which knows only the two plain ones.
    const FALLBACK: Self = Self::Spaced(Spacing { per_rtt: 32, at_least: Duration::from_millis(1) });

    const fn is_plain(self) -> bool {
        matches!(self, Self::EveryPacket | Self::Spaced(_))
    }
}

impl FeedbackChoice {
    /// Ranges of packets, ECN counts, what blocks need: what a sender learns most from.
    pub const fn everything(timing: FeedbackTiming) -> Self {
        Self { ecn: true, packets: PacketsTold::Ranges, blocks: Some(BlocksTold::Needs), timing }
    }

    /// Bytes of the choice in detail.
    pub(super) const DETAIL: usize = 21;

    /// The choice as every receiver understands it: itself, or what comes nearest.
    pub(super) fn encode_plain(self) -> [u8; 7] {
        let flags = (u8::from(self.ecn) * FLAG_ECN) | (u8::from(self.blocks.is_some()) * FLAG_BLOCKS);
        let timing = if self.timing.is_plain() { self.timing } else { FeedbackTiming::FALLBACK };
        let (number, [per_rtt, min_micros, _]) = timing.numbers();
        let [a, b, c, d] = min_micros.to_be_bytes();
        [flags, number, per_rtt as u8, a, b, c, d]
    }

    pub(super) fn decode_plain([flags, timing, per_rtt, min_micros @ ..]: [u8; 7]) -> Result<Self, WireError> {
        if flags & !(FLAG_ECN | FLAG_BLOCKS) != 0 {
            return Err(WireError::Malformed("flags of the feedback choice"));
        }
        let numbers = [u32::from(per_rtt), u32::from_be_bytes(min_micros), 0];
        let timing = FeedbackTiming::from_numbers(timing, numbers)?;
        if !timing.is_plain() {
            return Err(WireError::Malformed("timing of the feedback choice"));
        }
        let blocks = (flags & FLAG_BLOCKS != 0).then_some(BlocksTold::Needs);
        Ok(Self { ecn: flags & FLAG_ECN != 0, packets: PacketsTold::Ranges, blocks, timing })
    }

    /// The choice in detail; `None` where the plain form says all of it.
    pub(super) fn encode_detail(self) -> Option<[u8; Self::DETAIL]> {
        let plain_blocks = matches!(self.blocks, None | Some(BlocksTold::Needs));
        if self.packets == PacketsTold::Ranges && plain_blocks && self.timing.is_plain() {
            return None;
        }
        let (packets, last) = match self.packets {
            PacketsTold::Ranges => (packets::RANGES, 0),
            PacketsTold::InOrder => (packets::IN_ORDER, 0),
            PacketsTold::Count => (packets::COUNT, 0),
            PacketsTold::Last(last) => (packets::LAST, last.packets),
        };
        let (blocks, epsilon) = match self.blocks {
            None => (blocks::NOTHING, 0),
            Some(BlocksTold::Needs) => (blocks::NEEDS, 0),
            Some(BlocksTold::Done(done)) => (blocks::DONE, done.epsilon),
            Some(BlocksTold::Mask) => (blocks::MASK, 0),
            Some(BlocksTold::Received(received)) => (blocks::RECEIVED, received.epsilon),
        };
        let (timing, numbers) = self.timing.numbers();
        let mut out = Vec::with_capacity(Self::DETAIL);
        out.put_u8(packets);
        out.put_u16(last);
        out.put_u8(blocks);
        out.put_u32(epsilon);
        out.put_u8(timing);
        numbers.into_iter().for_each(|number| out.put_u32(number));
        out.try_into().ok()
    }

    /// This choice with what `detail` says; only ECN is left as it was.
    pub(super) fn with_detail(self, detail: &[u8; Self::DETAIL]) -> Result<Self, WireError> {
        let mut reader = Reader::new(detail);
        let packets = match (reader.u8()?, reader.u16()?) {
            (packets::RANGES, 0) => PacketsTold::Ranges,
            (packets::IN_ORDER, 0) => PacketsTold::InOrder,
            (packets::COUNT, 0) => PacketsTold::Count,
            (packets::LAST, packets @ 1..=MAX_LAST) => PacketsTold::Last(LastPackets { packets }),
            _ => return Err(WireError::Malformed("packets of the feedback choice")),
        };
        let blocks = match (reader.u8()?, reader.u32()?) {
            (blocks::NOTHING, 0) => None,
            (blocks::NEEDS, 0) => Some(BlocksTold::Needs),
            (blocks::DONE, epsilon @ 0..=MAX_EPSILON) => Some(BlocksTold::Done(DoneBlocks { epsilon })),
            (blocks::MASK, 0) => Some(BlocksTold::Mask),
            (blocks::RECEIVED, epsilon @ 0..=MAX_EPSILON) => Some(BlocksTold::Received(ReceivedBlocks { epsilon })),
            _ => return Err(WireError::Malformed("blocks of the feedback choice")),
        };
        let timing = FeedbackTiming::from_numbers(reader.u8()?, [reader.u32()?, reader.u32()?, reader.u32()?])?;
        Ok(Self { ecn: self.ecn, packets, blocks, timing })
    }
}

impl FeedbackTiming {
    fn numbers(self) -> (u8, [u32; 3]) {
        match self {
            Self::EveryPacket => (timing::EVERY_PACKET, [0; 3]),
            Self::Spaced(Spacing { per_rtt, at_least }) => (timing::SPACED, [per_rtt.into(), micros(at_least), 0]),
            Self::OnBlocks(Heartbeat { heartbeat }) => (timing::ON_BLOCKS, [micros(heartbeat), 0, 0]),
            Self::Every(Counting { packets, threshold, factor }) => {
                (timing::EVERY, [packets.into(), threshold, factor.into()])
            }
        }
    }

    fn from_numbers(number: u8, numbers: [u32; 3]) -> Result<Self, WireError> {
        let (small, time) =
            (|number: u32| u8::try_from(number).ok(), |micros: u32| Duration::from_micros(micros.into()));
        match (number, numbers) {
            (timing::EVERY_PACKET, [0, 0, 0]) => Some(Self::EveryPacket),
            (timing::SPACED, [per_rtt, at_least, 0]) => {
                let per_rtt = small(per_rtt).filter(|per_rtt| *per_rtt > 0);
                let at_least = Some(time(at_least)).filter(|time| *time <= LONGEST_SPACING);
                per_rtt.zip(at_least).map(|(per_rtt, at_least)| Self::Spaced(Spacing { per_rtt, at_least }))
            }
            (timing::ON_BLOCKS, [heartbeat, 0, 0]) => {
                let heartbeat = Some(time(heartbeat)).filter(|time| (HEARTBEATS.0..=HEARTBEATS.1).contains(time));
                heartbeat.map(|heartbeat| Self::OnBlocks(Heartbeat { heartbeat }))
            }
            (timing::EVERY, [packets, threshold @ 0..=MILLION, factor]) => {
                let packets = u16::try_from(packets).ok().filter(|packets| (2..=MAX_LAST).contains(packets));
                let factor = small(factor).filter(|factor| (1..=MAX_FACTOR).contains(factor));
                packets.zip(factor).map(|(packets, factor)| Self::Every(Counting { packets, threshold, factor }))
            }
            _ => None,
        }
        .ok_or(WireError::Malformed("timing of the feedback choice"))
    }
}
