//! The feedback frame: a mask of sections, written within a budget of bytes.

use super::bytes::{Put, Reader, length_u16};
use super::codec::kind;
use super::error::WireError;
use super::frame::{BlockMask, BlockStatus, Credit, EcnCounts, Feedback, FlowStatus, PacketCount, PacketRanges};
use super::ids::FlowId;
use super::limits::{MAX_BLOCK_STATUSES, MAX_COMPLETE_REPORTED, MAX_FLOW_STATUSES, MAX_PACKET_NUMBER};
use super::ranges::MIN_SECTION;
use std::borrow::Cow;

/// Bytes of a feedback without optional sections: type 1, mask 1, number 4, credit 16. The smallest useful budget.
pub const MIN_FEEDBACK: usize = 22;

const ECN_SECTION: usize = 24;
const FLOW_HEAD: usize = 8;
const BLOCK_STATUS: usize = 6;
const COUNT_SECTION: usize = 20;
const BLOCK_MASK: usize = 34;

/// Bits of the section mask. Bit 4 is reserved for arrival times, 6 and 7 are unassigned: this version refuses them.
mod section {
    pub(super) const PACKETS: u8 = 1;
    pub(super) const ECN: u8 = 1 << 1;
    pub(super) const FLOWS: u8 = 1 << 2;
    pub(super) const COUNT: u8 = 1 << 3;
    pub(super) const MASKS: u8 = 1 << 5;
    pub(super) const KNOWN: u8 = PACKETS | ECN | FLOWS | COUNT | MASKS;
}

impl Feedback {
    /// Appends the frame in at most `budget` bytes and returns how many it took: 0, and nothing is written, below
    /// [`MIN_FEEDBACK`].
    ///
    /// Number and credit are always included. Of the rest the ECN counts (24 bytes) and the count of packets (20) are
    /// first; then the packets get the bytes that the blocks leave and at least half; packets are cut to the newest,
    /// blocks from the end. Masks have priority over flows that report blocks, but not over those without blocks at the
    /// front: a complete flow is removed once it has been reported.
    pub fn encode_within(&self, budget: usize, out: &mut Vec<u8>) -> usize {
        let Some(mut left) = budget.checked_sub(MIN_FEEDBACK) else {
            return 0;
        };
        let start = out.len();
        out.put(&[kind::FEEDBACK, 0]);
        out.put_u32(self.number);
        out.put_u64(self.credit.symbols);
        out.put_u64(self.credit.control);
        let mut mask = 0;

        let ecn = self.ecn.filter(|_| left >= ECN_SECTION + MIN_SECTION);
        left -= ecn.map_or(0, |_| ECN_SECTION);
        let count = self.count.filter(|_| left >= COUNT_SECTION);
        left -= count.map_or(0, |_| COUNT_SECTION);
        if let Some(packets) = &self.packets {
            let written = packets.encode_within(left - (self.flows_len() + self.masks_len()).min(left / 2), out);
            left -= written;
            mask |= if written > 0 { section::PACKETS } else { 0 };
        }
        if let Some(ecn) = ecn {
            [ecn.ect0, ecn.ect1, ecn.ce].into_iter().for_each(|count| out.put_u64(count));
            mask |= section::ECN;
        }
        let for_masks = left.saturating_sub(self.complete_len() + 1);
        let masks = &self.masks[..self.masks.len().min(for_masks / BLOCK_MASK).min(MAX_FLOW_STATUSES)];
        left -= masks_len(masks);
        if put_flows(&self.flows, left, out) {
            mask |= section::FLOWS;
        }
        if let Some(count) = count {
            out.put_u64(count.largest);
            out.put_u32(count.delay_micros);
            out.put_u64(count.arrived);
            mask |= section::COUNT;
        }
        if !masks.is_empty() {
            put_masks(masks, out);
            mask |= section::MASKS;
        }
        out[start + 1] = mask;
        out.len() - start
    }

    /// Returns the frame's report on blocks, in one form.
    pub fn statuses(&self) -> Cow<'_, [FlowStatus]> {
        if self.masks.is_empty() {
            return Cow::Borrowed(&self.flows);
        }
        self.flows.iter().cloned().chain(self.masks.iter().map(FlowStatus::from)).collect()
    }

    /// Returns the bytes of the frame without a limit.
    pub(crate) fn len(&self) -> usize {
        let packets = self.packets.as_ref().map_or(0, |packets| packets.len_within(usize::MAX));
        let counts = self.ecn.map_or(0, |_| ECN_SECTION) + self.count.map_or(0, |_| COUNT_SECTION);
        MIN_FEEDBACK + packets + counts + self.flows_len() + self.masks_len()
    }

    /// Returns the bytes of the whole section of masks.
    fn masks_len(&self) -> usize {
        masks_len(&self.masks[..self.masks.len().min(MAX_FLOW_STATUSES)])
    }

    /// Returns the bytes of the flows section up to the first flow that reports blocks; complete flows report none.
    fn complete_len(&self) -> usize {
        let complete = self.flows.iter().take(MAX_COMPLETE_REPORTED).take_while(|flow| flow.blocks.is_empty()).count();
        if complete == 0 { 0 } else { 1 + FLOW_HEAD * complete }
    }

    /// Returns the bytes of the whole flows section.
    fn flows_len(&self) -> usize {
        let flows = self.flows.iter().take(MAX_FLOW_STATUSES);
        let blocks = flows.clone().map(|flow| flow.blocks.len().min(MAX_BLOCK_STATUSES)).sum::<usize>();
        if self.flows.is_empty() { 0 } else { 1 + FLOW_HEAD * flows.len() + BLOCK_STATUS * blocks }
    }

    /// Reads the bytes after the type byte.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let mask = reader.u8()?;
        if mask & !section::KNOWN != 0 {
            return Err(WireError::Malformed("feedback section"));
        }
        let number = reader.u32()?;
        let credit = Credit { symbols: reader.u64()?, control: reader.u64()? };
        let has = |section| mask & section != 0;
        let packets = has(section::PACKETS).then(|| PacketRanges::decode(reader)).transpose()?;
        let ecn = has(section::ECN).then(|| decode_ecn(reader)).transpose()?;
        let flows = if has(section::FLOWS) { decode_flows(reader)? } else { Vec::new() };
        let count = has(section::COUNT).then(|| decode_count(reader)).transpose()?;
        let masks = if has(section::MASKS) { decode_masks(reader)? } else { Vec::new() };
        Ok(Self { number, packets, ecn, count, flows, masks, credit })
    }
}

fn masks_len(masks: &[BlockMask]) -> usize {
    if masks.is_empty() { 0 } else { 1 + BLOCK_MASK * masks.len() }
}

fn put_masks(masks: &[BlockMask], out: &mut Vec<u8>) {
    out.put_u8(masks.len() as u8);
    for mask in masks {
        out.put_u16(mask.flow.0);
        out.put(&mask.done);
    }
}

fn decode_masks(reader: &mut Reader<'_>) -> Result<Vec<BlockMask>, WireError> {
    let count = reader.u8()?;
    if count == 0 {
        return Err(WireError::Malformed("masks section without a flow"));
    }
    (0..count)
        .map(|_| match reader.u16()? {
            0 => Err(WireError::Malformed("flow of a mask")),
            flow => Ok(BlockMask { flow: FlowId(flow), done: reader.array()? }),
        })
        .collect()
}

fn decode_count(reader: &mut Reader<'_>) -> Result<PacketCount, WireError> {
    let count = PacketCount { largest: reader.u64()?, delay_micros: reader.u32()?, arrived: reader.u64()? };
    if count.largest > MAX_PACKET_NUMBER {
        return Err(WireError::Malformed("largest packet number"));
    }
    if count.arrived == 0 || count.arrived > count.largest + 1 {
        return Err(WireError::Malformed("count of packets"));
    }
    Ok(count)
}

/// Writes the statuses that fit, from the first on; returns false if not even one flow fits.
fn put_flows(flows: &[FlowStatus], budget: usize, out: &mut Vec<u8>) -> bool {
    let count_at = out.len();
    let mut left = budget.saturating_sub(1);
    let mut count = 0;
    for status in flows.iter().take(MAX_FLOW_STATUSES) {
        let Some(for_blocks) = left.checked_sub(FLOW_HEAD) else {
            break;
        };
        if count == 0 {
            out.put_u8(0);
        }
        count += 1;
        let blocks = status.blocks.len().min(MAX_BLOCK_STATUSES).min(for_blocks / BLOCK_STATUS);
        out.put_u16(status.flow.0);
        out.put_u32(status.done_below);
        out.put_u16(length_u16(blocks));
        for block in &status.blocks[..blocks] {
            out.put_u32(block.block);
            out.put_u16(u16::try_from(block.need).unwrap_or(u16::MAX));
        }
        left = for_blocks - BLOCK_STATUS * blocks;
    }
    if count > 0 {
        out[count_at] = count;
    }
    count > 0
}

fn decode_ecn(reader: &mut Reader<'_>) -> Result<EcnCounts, WireError> {
    Ok(EcnCounts { ect0: reader.u64()?, ect1: reader.u64()?, ce: reader.u64()? })
}

fn decode_flows(reader: &mut Reader<'_>) -> Result<Vec<FlowStatus>, WireError> {
    let count = reader.u8()?;
    if count == 0 {
        return Err(WireError::Malformed("flows section without a flow"));
    }
    (0..count).map(|_| decode_flow(reader)).collect()
}

fn decode_flow(reader: &mut Reader<'_>) -> Result<FlowStatus, WireError> {
    let (flow, done_below) = (FlowId(reader.u16()?), reader.u32()?);
    let count = usize::from(reader.u16()?);
    if flow.0 == 0 {
        return Err(WireError::Malformed("flow of a status"));
    }
    // Check that the bytes are present before allocating for them.
    let mut entries = Reader::new(reader.bytes(BLOCK_STATUS * count)?);
    let mut blocks = Vec::with_capacity(count);
    let mut lowest = u64::from(done_below);
    while !entries.is_empty() {
        let status = BlockStatus { block: entries.u32()?, need: u32::from(entries.u16()?) };
        if u64::from(status.block) < lowest {
            return Err(WireError::Malformed("order of the block statuses"));
        }
        lowest = u64::from(status.block) + 1;
        blocks.push(status);
    }
    Ok(FlowStatus { flow, done_below, blocks })
}
