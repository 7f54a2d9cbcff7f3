//! The feedback that a sender of data requests from its receiver. The receiver never learns the sender's profile: this
//! request is the only part of it on the wire, and every number is checked before it takes effect.

use super::bytes::{Put, Reader};
use super::error::WireError;
use super::limits::{MAX_COUNTING_FACTOR, MAX_EPSILON, MAX_HEARTBEAT, MAX_LAST_PACKETS, MAX_SPACING, MIN_HEARTBEAT};
use crate::time::micros;
use std::time::Duration;

const FLAG_ECN: u8 = 1;
const FLAG_BLOCKS: u8 = 1 << 1;

/// Wire numbers of [`PacketFeedback`].
mod packets {
    pub(super) const RANGES: u8 = 0;
    pub(super) const IN_ORDER: u8 = 1;
    pub(super) const COUNT: u8 = 2;
    pub(super) const LAST: u8 = 3;
}

/// Wire numbers of [`BlockFeedback`].
mod blocks {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const NEEDS: u8 = 1;
    pub(super) const DONE: u8 = 2;
    pub(super) const MASK: u8 = 3;
    pub(super) const RECEIVED: u8 = 4;
}

/// Wire numbers of [`FeedbackTiming`]. The plain form has the first two only.
mod timing {
    pub(super) const EVERY_PACKET: u8 = 0;
    pub(super) const SPACED: u8 = 1;
    pub(super) const ON_BLOCKS: u8 = 2;
    pub(super) const EVERY: u8 = 3;
}

/// Shares on the wire are in millionths.
pub const MILLION: u32 = 1_000_000;

/// The feedback that a sender of data requests. Credit is always part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackConfig {
    /// Counts of received packets by ECN codepoint.
    pub ecn: bool,
    /// Which packets have arrived, or how many.
    pub packets: PacketFeedback,
    /// Which blocks are done. `None` requests nothing about blocks, for a sender that sends none.
    pub blocks: Option<BlockFeedback>,
    /// When feedback is sent.
    pub timing: FeedbackTiming,
}

/// The report on packets in feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketFeedback {
    /// Every packet that has arrived since the last feedback that the sender is known to have received.
    #[default]
    Ranges,
    /// As [`Ranges`](Self::Ranges), but a packet is named only once no symbol before its own is missing from the flow,
    /// as in a cumulative acknowledgement (arq §2.1). The total number of arrivals is added, so that the sender counts
    /// every duplicate acknowledgement.
    InOrder,
    /// The highest packet number received and the total number of arrivals (rc-udp §IV).
    Count,
    /// Which of the last packet numbers have arrived, and which since the last feedback (ttp §II-B).
    Last(LastPackets),
}

/// The number of packet numbers that [`PacketFeedback::Last`] covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPackets {
    /// 1 to 32,768.
    pub packets: u16,
}

/// The report on blocks in feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockFeedback {
    /// Which blocks are done, and how many symbols each of the others still needs at least.
    #[default]
    Needs,
    /// Which blocks are done.
    Done(DoneConfig),
    /// One bit for each block of an object of at most 256 blocks (tornado-transfer §2.1). Larger objects and streams
    /// are reported as in [`Done`](Self::Done).
    Mask,
    /// A block is reported as done as soon as enough of its symbols have arrived, before it is decoded (rc-udp §IV). A
    /// block that then cannot be decoded is lost, and ends the connection.
    Received(ReceivedConfig),
}

/// When the receiver first tries to decode a block, for [`BlockFeedback::Done`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoneConfig {
    /// Decoding starts once (1 + epsilon) k symbols have arrived. In millionths, at most 250,000.
    pub epsilon: u32,
}

/// When a block is reported as done, for [`BlockFeedback::Received`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedConfig {
    /// Once (1 + epsilon) k symbols have arrived. In millionths, at most 250,000.
    pub epsilon: u32,
}

/// When the receiver sends feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackTiming {
    /// For every packet.
    EveryPacket,
    /// Every max(`at_least`, round-trip time / `per_rtt`).
    Spaced(Spacing),
    /// Whenever a block is done, and periodically while anything is incomplete (tornado-transfer §2.1).
    OnBlocks(Heartbeat),
    /// After a number of packets that shrinks with loss and grows without (ttp §II-B).
    Every(PacketCountTiming),
}

/// Feedback at a fraction of the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// Feedback frames per round-trip time, at least 1.
    pub per_rtt: u8,
    /// Shortest interval, in whole microseconds; at most 10 s.
    pub at_least: Duration,
}

/// Periodic feedback while anything is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Interval while no block is done, in whole microseconds; 1 ms to 10 s.
    pub heartbeat: Duration,
}

/// Feedback after a number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCountTiming {
    /// Packets between two feedback frames, 2 to 32,768.
    pub packets: u16,
    /// The interval is halved when more than this share of the last `packets` packets is missing. In millionths, at
    /// most [`MILLION`].
    pub threshold: u32,
    /// The interval is multiplied by this when none of them is missing, 1 to 16.
    pub factor: u8,
}

impl FeedbackTiming {
    /// The timing that the plain form requests when the configured one has no plain form.
    const FALLBACK: Self = Self::Spaced(Spacing { per_rtt: 32, at_least: Duration::from_millis(1) });

    const fn is_plain(self) -> bool {
        matches!(self, Self::EveryPacket | Self::Spaced(_))
    }
}

impl FeedbackConfig {
    /// Packet ranges, ECN counts and the needs of blocks: the most informative feedback.
    pub const fn everything(timing: FeedbackTiming) -> Self {
        Self { ecn: true, packets: PacketFeedback::Ranges, blocks: Some(BlockFeedback::Needs), timing }
    }

    /// Bytes of the detailed form.
    pub(super) const DETAIL: usize = 21;

    /// The plain form, which every receiver understands: this configuration or the nearest to it.
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
        let blocks = (flags & FLAG_BLOCKS != 0).then_some(BlockFeedback::Needs);
        Ok(Self { ecn: flags & FLAG_ECN != 0, packets: PacketFeedback::Ranges, blocks, timing })
    }

    /// The detailed form; `None` if the plain form is complete.
    pub(super) fn encode_detail(self) -> Option<[u8; Self::DETAIL]> {
        let plain_blocks = matches!(self.blocks, None | Some(BlockFeedback::Needs));
        if self.packets == PacketFeedback::Ranges && plain_blocks && self.timing.is_plain() {
            return None;
        }
        let (packets, last) = match self.packets {
            PacketFeedback::Ranges => (packets::RANGES, 0),
            PacketFeedback::InOrder => (packets::IN_ORDER, 0),
            PacketFeedback::Count => (packets::COUNT, 0),
            PacketFeedback::Last(last) => (packets::LAST, last.packets),
        };
        let (blocks, epsilon) = match self.blocks {
            None => (blocks::NOTHING, 0),
            Some(BlockFeedback::Needs) => (blocks::NEEDS, 0),
            Some(BlockFeedback::Done(done)) => (blocks::DONE, done.epsilon),
            Some(BlockFeedback::Mask) => (blocks::MASK, 0),
            Some(BlockFeedback::Received(received)) => (blocks::RECEIVED, received.epsilon),
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

    /// The configuration of the detailed form, with the ECN flag of this one.
    pub(super) fn with_detail(self, detail: &[u8; Self::DETAIL]) -> Result<Self, WireError> {
        let mut reader = Reader::new(detail);
        let packets = match (reader.u8()?, reader.u16()?) {
            (packets::RANGES, 0) => PacketFeedback::Ranges,
            (packets::IN_ORDER, 0) => PacketFeedback::InOrder,
            (packets::COUNT, 0) => PacketFeedback::Count,
            (packets::LAST, packets @ 1..=MAX_LAST_PACKETS) => PacketFeedback::Last(LastPackets { packets }),
            _ => return Err(WireError::Malformed("packets of the feedback choice")),
        };
        let blocks = match (reader.u8()?, reader.u32()?) {
            (blocks::NOTHING, 0) => None,
            (blocks::NEEDS, 0) => Some(BlockFeedback::Needs),
            (blocks::DONE, epsilon @ 0..=MAX_EPSILON) => Some(BlockFeedback::Done(DoneConfig { epsilon })),
            (blocks::MASK, 0) => Some(BlockFeedback::Mask),
            (blocks::RECEIVED, epsilon @ 0..=MAX_EPSILON) => Some(BlockFeedback::Received(ReceivedConfig { epsilon })),
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
            Self::Every(PacketCountTiming { packets, threshold, factor }) => {
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
                let at_least = Some(time(at_least)).filter(|time| *time <= MAX_SPACING);
                per_rtt.zip(at_least).map(|(per_rtt, at_least)| Self::Spaced(Spacing { per_rtt, at_least }))
            }
            (timing::ON_BLOCKS, [heartbeat, 0, 0]) => {
                let heartbeat = Some(time(heartbeat)).filter(|time| (MIN_HEARTBEAT..=MAX_HEARTBEAT).contains(time));
                heartbeat.map(|heartbeat| Self::OnBlocks(Heartbeat { heartbeat }))
            }
            (timing::EVERY, [packets, threshold @ 0..=MILLION, factor]) => {
                let packets = u16::try_from(packets).ok().filter(|packets| (2..=MAX_LAST_PACKETS).contains(packets));
                let factor = small(factor).filter(|factor| (1..=MAX_COUNTING_FACTOR).contains(factor));
                packets
                    .zip(factor)
                    .map(|(packets, factor)| Self::Every(PacketCountTiming { packets, threshold, factor }))
            }
            _ => None,
        }
        .ok_or(WireError::Malformed("timing of the feedback choice"))
    }
}
