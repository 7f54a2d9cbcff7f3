//! Frames: the content of control packets. A control packet holds any number of them, padded or not.

use super::ids::FlowId;
use erasure::{AnyCode, BlockCode};

/// One frame of a control packet. Byte strings are borrowed from the opened packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Only asks for feedback: for probes and keep-alives.
    Ping,
    /// Which packets arrived and which symbols are still needed.
    Feedback(Feedback),
    /// The sender of data acknowledges the highest feedback it has seen, so that the receiver need not repeat its
    /// content.
    FeedbackSeen {
        /// Highest feedback number seen.
        number: u32,
        /// The sender's smoothed round-trip time in microseconds, by which the receiver spaces its feedback. 0:
        /// unknown.
        rtt_micros: u32,
    },
    /// Bytes of flow 0, the control stream.
    Control {
        /// Offset of the first byte in the stream.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// A flow begins.
    Announce(Announcement),
    /// A further plan of a flow.
    Plan(Plan),
    /// An object continues in another flow.
    Successor(Successor),
    /// A stream begins.
    AnnounceStream(StreamAnnouncement),
    /// A stream continues in another flow.
    StreamSuccessor(StreamSuccessor),
    /// The receiver's program has read blocks of a stream to their end: their credit is the sender's again.
    StreamRead {
        /// The stream.
        flow: FlowId,
        /// Their source symbols, the sum of their `k`, from the stream's beginning.
        symbols: u64,
    },
    /// The sender resets a stream: it sends no more of it.
    Reset {
        /// The stream.
        flow: FlowId,
        /// The program's reason.
        code: u32,
    },
    /// The receiver wants no more of a stream: its sender should reset it.
    Stop {
        /// The stream.
        flow: FlowId,
        /// The program's reason.
        code: u32,
    },
    /// Asks for a [`Frame::PathResponse`] from the address to which this packet is sent, to verify that it belongs to a
    /// holder of the keys.
    PathChallenge {
        /// Unpredictable bytes.
        data: [u8; 8],
    },
    /// Answers a [`Frame::PathChallenge`], at the address that it came from.
    PathResponse {
        /// The bytes of the challenge.
        data: [u8; 8],
    },
    /// The connection ends.
    Close {
        /// 0 is a normal close; codes below 0x100 are the engine's (`CloseCode`), the others the program's.
        code: u32,
        /// A human-readable reason, at most 256 bytes of UTF-8.
        reason: &'a [u8],
    },
}

/// One feedback frame: optional sections (docs/design/feedback.md).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Counts up by one per feedback of a connection's direction.
    pub number: u32,
    /// Which packets arrived.
    pub packets: Option<PacketRanges>,
    /// Counts of packets by ECN mark since the connection began.
    pub ecn: Option<EcnCounts>,
    /// How many packets arrived.
    pub count: Option<PacketCount>,
    /// The done blocks and the needs of the others, per flow.
    pub flows: Vec<FlowStatus>,
    /// Which blocks are done, of objects with at most 256.
    pub masks: Vec<BlockMask>,
    /// Absolute credit; always present.
    pub credit: Credit,
}

/// Which packets arrived, newest first, as far back as the section had room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketRanges {
    /// Microseconds between the arrival of `largest` and the sending of this feedback.
    pub delay_micros: u32,
    /// Inclusive ranges (lowest, highest) of packet numbers that arrived, highest first, disjoint and not adjacent.
    /// Never empty.
    pub ranges: Vec<(u64, u64)>,
}

/// How many packets that ask for feedback arrived since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// The highest number among them.
    pub largest: u64,
    /// Microseconds between the arrival of `largest` and the sending of this feedback.
    pub delay_micros: u32,
    /// Their number, `largest` included.
    pub arrived: u64,
}

/// The receiver's view of the blocks of an object with at most 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMask {
    /// The flow.
    pub flow: FlowId,
    /// Bit `n`, counted from the most significant one of the first byte, is set where block `n` is done.
    pub done: [u8; 32],
}

impl From<&BlockMask> for FlowStatus {
    fn from(mask: &BlockMask) -> Self {
        let is_done = |block: &u32| mask.done[*block as usize / 8] & (0x80 >> (block % 8)) != 0;
        let done_below = (0..256).take_while(is_done).count() as u32;
        let blocks = (done_below..256).filter(is_done).map(|block| BlockStatus { block, need: 0 }).collect();
        Self { flow: mask.flow, done_below, blocks }
    }
}

/// Packets received so far by ECN mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Marked ECT(0).
    pub ect0: u64,
    /// Marked ECT(1).
    pub ect1: u64,
    /// Marked CE.
    pub ce: u64,
}

/// The receiver's view of one flow's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowStatus {
    /// The flow.
    pub flow: FlowId,
    /// Every block below this number is done: the receiver has all its source symbols.
    pub done_below: u32,
    /// Blocks from `done_below` on of which something is known, ascending.
    pub blocks: Vec<BlockStatus>,
}

/// The receiver's view of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockStatus {
    /// The block.
    pub block: u32,
    /// Least number of symbols still needed; 0: done.
    pub need: u32,
}

/// The amount that the peer may send, absolute, counted from the connection's beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Credit {
    /// Source symbols of blocks that the sender may have started (sum of their `k`).
    pub symbols: u64,
    /// Bytes of the control stream.
    pub control: u64,
}

/// Announces a flow, with everything its receiver needs to place a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// The flow, not 0.
    pub flow: FlowId,
    /// Length of the object in bytes.
    pub length: u64,
    /// T: bytes per symbol.
    pub symbol_size: u16,
    /// r: symbols of consecutive esi per packet.
    pub symbols_per_packet: u8,
    /// The program's tag for this flow, which identifies the object.
    pub tag: u64,
    /// Plan 0, from block 0 and symbol 0 on: only its `k` and code are on the wire.
    pub plan: Plan,
}

/// Announces a stream, with everything its receiver needs to place a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAnnouncement {
    /// The flow, not 0.
    pub flow: FlowId,
    /// T: bytes per symbol.
    pub symbol_size: u16,
    /// The program's tag for this flow, which identifies the stream.
    pub tag: u64,
    /// Source symbols of a full block; with a window code, of its largest window.
    pub k: u32,
    /// Code of full blocks, and of those of more than [`SHORT_K`](super::SHORT_K) symbols. With a window code, every
    /// block is one source symbol, and repair symbols cover the blocks before them.
    pub code: AnyCode,
    /// Code of partly filled blocks of at most [`SHORT_K`](super::SHORT_K) symbols; with a window code uncoded.
    pub short_code: BlockCode,
}

/// Announces a flow that carries the rest of an object in smaller symbols: self-contained, since the object's
/// announcement may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    /// The flow, not 0.
    pub flow: FlowId,
    /// T of this flow: bytes per symbol.
    pub symbol_size: u16,
    /// The object's announcement, with the first flow that carried it.
    pub object: Announcement,
}

/// Announces a flow that carries the rest of a stream in smaller symbols: self-contained, as a [`Successor`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSuccessor {
    /// The flow, not 0.
    pub flow: FlowId,
    /// T of this flow: bytes per symbol.
    pub symbol_size: u16,
    /// The stream's announcement, with the first flow that carried it.
    pub stream: StreamAnnouncement,
}

/// How the blocks from `first_block` on are coded, until the next plan's first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The flow.
    pub flow: FlowId,
    /// The plan's number in its flow.
    pub number: u8,
    /// First block the plan covers.
    pub first_block: u32,
    /// Source symbols of the flow before that block: gives its position in the object.
    pub first_symbol: u64,
    /// Source symbols per block; an object's last block has the remainder.
    pub k: u32,
    /// The code.
    pub code: BlockCode,
}
