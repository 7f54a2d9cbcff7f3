//! Decoding by the crate: inactivation decoding over all intermediate symbols, RFC 6330, section 5.4.

use ::raptorq::{EncodingPacket, PayloadId, SourceBlockDecoder};

use super::plan::transmission_information;
use crate::Block;
use crate::repairs::Repairs;

/// Completes the block from its symbols and `repairs`, or says that they do not determine it.
///
/// The crate's decoder lives for one attempt: it owns copies of all symbols, and an attempt fails in one block of 200.
pub(super) fn solve(repairs: &Repairs, block: &mut Block) -> bool {
    let size = block.symbol_size();
    let information = transmission_information(size);
    let mut decoder = SourceBlockDecoder::new(0, &information, block.bytes().len() as u64);
    let source = (0..block.k()).filter_map(|esi| block.symbol(esi).map(|symbol| (esi, symbol)));
    let packets =
        source.chain(repairs.iter()).map(|(esi, symbol)| EncodingPacket::new(PayloadId::new(0, esi), symbol.to_vec()));
    let Some(decoded) = decoder.decode(packets) else {
        return false;
    };
    let missing: Vec<u32> = block.missing().collect();
    for esi in missing {
        let start = esi as usize * size;
        block.insert(esi, &decoded[start..start + size]);
    }
    true
}
