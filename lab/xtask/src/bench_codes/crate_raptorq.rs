//! The crate `raptorq`, by its own interface.

use std::time::Duration;

use erasure::Block;
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};

use super::clock::timed;
use xtask::failure::Failure;

/// One block and its plan.
pub(super) struct Crate<'a> {
    source: &'a Block,
    information: ObjectTransmissionInformation,
    plan: SourceBlockEncodingPlan,
}

impl<'a> Crate<'a> {
    pub(super) fn new(source: &'a Block) -> Self {
        let size = u16::try_from(source.symbol_size()).expect("symbols have at most 65,535 bytes");
        // It needs the symbol size: there is one sub-block, alignment is 1, and the transfer length is not used.
        let information = ObjectTransmissionInformation::new(0, size, 1, 1, 1);
        Self { source, information, plan: Self::plan(source) }
    }

    fn plan(source: &Block) -> SourceBlockEncodingPlan {
        // `SourceBlockEncoder::new` would use a cache of the process; this creates the plan.
        SourceBlockEncodingPlan::generate(u16::try_from(source.k()).expect("at most 56,403 symbols"))
    }

    fn encoder(&self, plan: &SourceBlockEncodingPlan) -> SourceBlockEncoder {
        SourceBlockEncoder::with_encoding_plan(0, &self.information, self.source.bytes(), plan)
    }

    /// Returns the time of a new encoder for `count` repair symbols, with a cached or a new plan.
    pub(super) fn encode(&self, count: u32, is_planned: bool) -> Duration {
        timed(|| {
            let fresh = (!is_planned).then(|| Self::plan(self.source));
            let encoder = self.encoder(fresh.as_ref().unwrap_or(&self.plan));
            let packets = encoder.repair_packets(0, count);
            (packets, encoder, fresh)
        })
        .1
    }

    /// The same, for its memory.
    pub(super) fn encode_once(&self, count: u32) -> usize {
        let plan = Self::plan(self.source);
        self.encoder(&plan).repair_packets(0, count).len()
    }

    /// Its repair symbols.
    pub(super) fn repairs(&self, count: u32) -> Vec<Vec<u8>> {
        let packets = self.encoder(&self.plan).repair_packets(0, count);
        packets.into_iter().map(|packet| packet.split().1).collect()
    }

    /// The received packets: all source symbols except the lost ones, then repair symbols of these numbers.
    pub(super) fn packets<'r>(
        &self,
        lost: &[u32],
        repairs: impl Iterator<Item = (u32, &'r [u8])>,
    ) -> Vec<EncodingPacket> {
        let k = self.source.k();
        let source = (0..k).filter(|esi| lost.binary_search(esi).is_err());
        let source = source.map(|esi| (esi, self.source.symbol(esi).expect("a full block")));
        let all = source.chain(repairs.map(|(number, symbol)| (k + number, symbol)));
        all.map(|(esi, symbol)| EncodingPacket::new(PayloadId::new(0, esi), symbol.to_vec())).collect()
    }

    /// Decodes from the first k packets, then from one more at a time; returns the time. It owns the packets and need
    /// not copy them.
    pub(super) fn decode(&self, mut packets: Vec<EncodingPacket>) -> Result<Duration, Failure> {
        let k = self.source.k();
        let mut more = packets.split_off(k as usize).into_iter();
        let ((result, _decoder), mut took) = timed(|| {
            let mut decoder = SourceBlockDecoder::new(0, &self.information, self.source.bytes().len() as u64);
            (decoder.decode(packets), decoder)
        });
        let (mut result, mut decoder) = (result, _decoder);
        while result.is_none() {
            let packet = more.next().ok_or_else(|| Failure::new("crate raptorq does not decode"))?;
            let (decoded, time) = timed(|| decoder.decode([packet]));
            (result, took) = (decoded, took + time);
        }
        if result.as_deref() == Some(self.source.bytes()) {
            Ok(took)
        } else {
            Err(Failure::new("crate raptorq decoded to wrong bytes"))
        }
    }
}
