//! Work that the engine requests. A request owns its buffers and is `Send`, so that a driver can run it inline or on a
//! worker, and the simulator after a modelled delay. The [`WorkReply`] returns buffers and credit.

use crate::wire::FlowId;
use erasure::{Block, Decoder, Encoder, Progress};
use std::sync::Arc;

/// The direction of a flow. Each side numbers the flows it sends, so an id alone names two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// We send the flow.
    Sending,
    /// The peer sends the flow.
    Receiving,
}

/// A flow of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The flow's direction.
    pub direction: Direction,
    /// The sender's number for the flow.
    pub flow: FlowId,
}

/// Work for the caller.
#[derive(Debug)]
pub enum WorkRequest {
    /// Fill `buffer` with bytes `offset..offset + length` of the object that flow `flow` sends.
    Read {
        /// The flow.
        flow: FlowId,
        /// The block the bytes are for.
        block: u32,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: usize,
        /// Has any length and content; is returned with at least `length` bytes.
        buffer: Vec<u8>,
    },
    /// Write the first `length` bytes of `data` at `offset` of the object received on flow `flow`.
    Write {
        /// The flow.
        flow: FlowId,
        /// The block the bytes are of.
        block: u32,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: usize,
        /// The block.
        data: Arc<Block>,
    },
    /// Compute BLAKE3 of the first `length` bytes of `data`. The digest is for the caller; the engine only waits until
    /// it is made.
    Digest {
        /// The flow.
        key: FlowKey,
        /// The block.
        block: u32,
        /// Offset of its first byte in the object.
        offset: u64,
        /// Number of bytes.
        length: usize,
        /// The block.
        data: Arc<Block>,
    },
    /// Make repair symbols: pure computation, [`WorkRequest::run_pure`].
    Encode(EncodeJob),
    /// Recover the missing symbols of a block: pure computation, [`WorkRequest::run_pure`].
    Decode(DecodeJob),
}

/// The result of a request.
#[derive(Debug)]
pub enum WorkReply {
    /// The requested bytes.
    Read {
        /// The flow.
        flow: FlowId,
        /// The block.
        block: u32,
        /// At least the requested length.
        buffer: Vec<u8>,
    },
    /// The bytes are written: the engine may grant their credit to the peer again.
    Written {
        /// The flow.
        flow: FlowId,
        /// The block.
        block: u32,
    },
    /// The requested digest is made.
    Digested {
        /// The flow.
        key: FlowKey,
        /// The block.
        block: u32,
    },
    /// Repair symbols are ready.
    Encoded(EncodeJob),
    /// A decoding attempt has ended.
    Decoded(DecodeJob, Progress),
}

impl WorkRequest {
    /// Runs a request that needs computation only, and returns one that needs the caller's storage.
    ///
    /// # Errors
    /// `Err` holds the request when it is not [`WorkRequest::Encode`] or [`WorkRequest::Decode`].
    pub fn run_pure(self) -> Result<WorkReply, Self> {
        match self {
            Self::Encode(job) => Ok(job.run()),
            Self::Decode(job) => Ok(job.run()),
            other => Err(other),
        }
    }
}

/// Makes `count` repair symbols of a block from `first` on.
#[derive(Debug)]
pub struct EncodeJob {
    pub(crate) flow: FlowId,
    pub(crate) block: u32,
    pub(crate) source: Arc<Block>,
    pub(crate) encoder: Box<dyn Encoder>,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) symbols: Vec<u8>,
}

impl EncodeJob {
    /// Returns the flow and the number of the block.
    pub const fn block(&self) -> (FlowId, u32) {
        (self.flow, self.block)
    }

    /// Returns the bytes of the block's source symbols.
    pub fn source_bytes(&self) -> usize {
        self.source.bytes().len()
    }

    /// Returns the bytes of the repair symbols to make.
    pub fn repair_bytes(&self) -> usize {
        self.count as usize * self.source.symbol_size()
    }

    fn run(mut self) -> WorkReply {
        self.symbols.resize(self.count as usize * self.source.symbol_size(), 0);
        self.encoder.repairs(&self.source, self.first, &mut self.symbols);
        WorkReply::Encoded(self)
    }
}

/// Recovers a block from its received symbols.
#[derive(Debug)]
pub struct DecodeJob {
    pub(crate) flow: FlowId,
    pub(crate) block: u32,
    pub(crate) partial: Block,
    pub(crate) decoder: Box<dyn Decoder>,
    /// Repair symbols the decoder holds.
    pub(crate) repairs: u32,
}

impl DecodeJob {
    /// Returns the bytes of the block's source symbols.
    pub fn source_bytes(&self) -> usize {
        self.partial.bytes().len()
    }

    fn run(mut self) -> WorkReply {
        let progress = self.decoder.recover(&mut self.partial);
        WorkReply::Decoded(self, progress)
    }
}
