//! The codes of this project, by the interface that the transport uses.

use std::time::Duration;

use erasure::{Block, BlockCode, Encoder, Progress};
use fastrand::Rng;

use super::clock::timed;
use xtask::failure::Failure;

/// Bytes in a symbol by default.
pub(super) const SYMBOL_SIZE: usize = 1280;

/// Returns a full block without a pattern.
pub(super) fn block(k: u32, symbol_size: usize, rng: &mut Rng) -> Block {
    let mut bytes = vec![0; k as usize * symbol_size];
    rng.fill(&mut bytes);
    Block::new_complete(k, symbol_size, bytes)
}

/// A sender's block with repair symbols, made on request.
pub(super) struct Sender {
    pub(super) code: BlockCode,
    pub(super) source: Block,
    encoder: Box<dyn Encoder>,
    repairs: Vec<Vec<u8>>,
}

/// The received part of a block: source symbols at their positions, and the ids of missing ones.
pub(super) struct ReceivedBlock {
    pub(super) block: Block,
    pub(super) lost: Vec<u32>,
}

impl Sender {
    pub(super) fn new(code: BlockCode, source: Block) -> Result<Self, Failure> {
        let encoder = code.encoder(source.k(), source.symbol_size()).map_err(Failure::at(code))?;
        Ok(Self { code, source, encoder, repairs: Vec::new() })
    }

    /// Returns the first id that does not exist.
    pub(super) fn symbol_limit(&self) -> u32 {
        self.encoder.symbol_limit()
    }

    /// Returns repair symbol `number`, counted from 0; `None` beyond the last.
    pub(super) fn repair(&mut self, number: u32) -> Option<&[u8]> {
        let (k, size) = (self.source.k(), self.source.symbol_size());
        if k + number >= self.symbol_limit() {
            return None;
        }
        while self.repairs.len() <= number as usize {
            let mut symbol = vec![0; size];
            self.encoder.write_repair(&self.source, k + self.repairs.len() as u32, &mut symbol);
            self.repairs.push(symbol);
        }
        Some(&self.repairs[number as usize])
    }

    /// Returns repair symbol `number`, which was requested before.
    pub(super) fn made(&self, number: u32) -> &[u8] {
        &self.repairs[number as usize]
    }

    /// Returns a buffer for `count` repair symbols.
    pub(super) fn place(&self, count: u32) -> Vec<u8> {
        vec![0; count as usize * self.source.symbol_size()]
    }

    /// Returns the time of a new encoder for repair symbols, all at once as in the transport.
    pub(super) fn encode(&self, place: &mut [u8]) -> Duration {
        let (k, size) = (self.source.k(), self.source.symbol_size());
        let (_encoder, took) = timed(|| {
            let mut encoder = self.code.encoder(k, size).expect("it made one before");
            encoder.repairs(&self.source, k, std::hint::black_box(place));
            encoder
        });
        took
    }

    /// Removes this number of random source symbols.
    pub(super) fn lose(&self, count: u32, rng: &mut Rng) -> ReceivedBlock {
        let k = self.source.k();
        let mut ids: Vec<u32> = (0..k).collect();
        rng.shuffle(&mut ids);
        let mut lost = ids[..count as usize].to_vec();
        lost.sort_unstable();
        // Missing symbols must not be readable.
        let mut block = Block::new_missing(k, self.source.symbol_size(), vec![0xee; self.source.bytes().len()]);
        for &esi in &ids[count as usize..] {
            block.insert(esi, self.source.symbol(esi).expect("a full block"));
        }
        ReceivedBlock { block, lost }
    }

    /// Decodes with repair symbols from number `first` on, as many as the decoder requests. Returns the time from a new
    /// decoder to the complete block, including the passing of symbols but not their creation, or `None` if the code
    /// has too few.
    pub(super) fn decode(&mut self, received: &mut ReceivedBlock, first: u32) -> Result<Option<Duration>, Failure> {
        let (k, size, code) = (self.source.k(), self.source.symbol_size(), self.code);
        let mut next = first;
        let (mut decoder, mut took) = timed(|| code.decoder(k, size).expect("its encoder was made"));
        loop {
            let (progress, time) = timed(|| decoder.recover(&mut received.block));
            took += time;
            let Progress::Need(more) = progress else { break };
            for number in next..next + more {
                if self.repair(number).is_none() {
                    return Ok(None);
                }
            }
            let symbols = &self.repairs[next as usize..(next + more) as usize];
            took += timed(|| {
                for (symbol, number) in symbols.iter().zip(next..) {
                    decoder.push(&received.block, k + number, symbol);
                }
            })
            .1;
            next += more;
        }
        if received.block == self.source {
            Ok(Some(took))
        } else {
            Err(Failure::new(format_args!("{code}, k = {k}: decoded to wrong bytes")))
        }
    }
}
