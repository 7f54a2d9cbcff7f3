//! How a sender cuts an object into blocks and which code each gets, and what codes its streams.

use crate::wire::{FlowId, Plan};
use erasure::{BlockCode, WindowCode};
use serde::{Deserialize, Serialize};

/// How large blocks are and how they are coded. The largest `k` decides how well loss averages out within a block; up to
/// about 1500 symbols a block stays in a core's second-level cache (design section 8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockSizing {
    /// Source symbols of a full block.
    pub k: u32,
    /// Code of full blocks.
    #[serde(with = "code_name")]
    pub code: BlockCode,
    /// Code of a last block of at most `small_k` symbols: an MDS code needs no symbol beyond k, which counts there.
    #[serde(with = "code_name")]
    pub small_code: BlockCode,
    /// Largest block coded with `small_code`.
    pub small_k: u32,
}

impl BlockSizing {
    /// The plans of an object of `symbols` source symbols: full blocks, then what is left.
    pub fn plans(&self, flow: FlowId, symbols: u64) -> Vec<Plan> {
        let k = u64::from(self.k);
        let (full, left) = (symbols / k, symbols % k);
        let full_blocks = u32::try_from(full).unwrap_or(u32::MAX);
        let small = left > 0 && left <= u64::from(self.small_k);
        let plan = |number, first_block: u32, k, code| Plan {
            flow,
            number,
            first_block,
            first_symbol: u64::from(first_block) * u64::from(self.k),
            k,
            code,
        };
        match (full, small) {
            (0, true) => vec![plan(0, 0, left as u32, self.small_code)],
            (_, true) => {
                vec![plan(0, 0, self.k, self.code), plan(1, full_blocks, left as u32, self.small_code)]
            }
            (0, false) if left > 0 => vec![plan(0, 0, left as u32, self.code)],
            (_, false) => vec![plan(0, 0, self.k, self.code)],
        }
    }
}

/// What codes the bytes of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StreamCoding {
    /// Blocks, as an object's are: few packets more while much is sent, and in the last round trips repair of each block.
    Blocks,
    /// A window that slides over the stream, with repair all along: what is lost is there again after a few symbols, not after a
    /// round trip, at the cost of a little more than what is lost.
    Window {
        /// The code.
        #[serde(with = "code_name")]
        code: WindowCode,
        /// Source symbols in the largest window. The receiver may allow less.
        symbols: u32,
    },
}

/// Codes are written by name in a profile.
mod code_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<C: Display, S: Serializer>(code: &C, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(code)
    }

    pub(super) fn deserialize<'de, C: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<C, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZING: BlockSizing =
        BlockSizing { k: 1024, code: BlockCode::RaptorQ, small_code: BlockCode::ReedSolomon, small_k: 256 };

    fn shape(symbols: u64) -> Vec<(u32, u32, BlockCode)> {
        SIZING.plans(FlowId(1), symbols).iter().map(|p| (p.first_block, p.k, p.code)).collect()
    }

    #[test]
    fn a_small_rest_gets_the_mds_code() {
        use BlockCode::{RaptorQ, ReedSolomon};
        assert_eq!(shape(0), [(0, 1024, RaptorQ)]);
        assert_eq!(shape(1), [(0, 1, ReedSolomon)]);
        assert_eq!(shape(256), [(0, 256, ReedSolomon)]);
        assert_eq!(shape(257), [(0, 257, RaptorQ)]);
        assert_eq!(shape(1024), [(0, 1024, RaptorQ)]);
        assert_eq!(shape(2049), [(0, 1024, RaptorQ), (2, 1, ReedSolomon)]);
        assert_eq!(shape(2048 + 300), [(0, 1024, RaptorQ)]);
    }
}
