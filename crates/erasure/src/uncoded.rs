//! The code without repair symbols.

use crate::{Block, Decoder, Encoder, Progress};

/// Both halves of the code without repair symbols.
#[derive(Debug)]
pub(crate) struct Uncoded {
    k: u32,
}

impl Uncoded {
    pub(crate) fn new(k: u32) -> Self {
        Self { k }
    }
}

impl Encoder for Uncoded {
    fn symbol_limit(&self) -> u32 {
        self.k
    }

    fn write_repair(&mut self, _: &Block, esi: u32, _: &mut [u8]) {
        panic!("an uncoded block has no repair symbol {esi}");
    }
}

impl Decoder for Uncoded {
    fn push(&mut self, _: &Block, _: u32, _: &[u8]) -> Progress {
        Progress::Redundant
    }

    fn recover(&mut self, block: &mut Block) -> Progress {
        match block.k() - block.present_count() {
            0 => Progress::Ready,
            missing => Progress::Need(missing),
        }
    }
}
