//! Fuzz target: any bytes become source symbols, losses and repair.

use super::{Density, Field, RepairId, WindowDecoder, WindowEncoder};
use crate::Progress;
use std::collections::BTreeSet;

/// Bounds the cost of an input.
const MAX_WINDOW: u32 = 40;
const MAX_OPERATIONS: usize = 600;

/// Interprets `data` as a window and a list of events for its symbols; panics if the decoder is wrong.
///
/// Layout: field in the top bit, below it the density (1 byte), window (1), symbol size (1), seed of the content (1),
/// then operations of 2 bytes: the low 3 bits of the first select the operation, its high 5 bits and the other byte are
/// numbers.
pub fn fuzz_window(data: &[u8]) {
    let Some((head, operations)) = data.split_first_chunk::<4>() else {
        return;
    };
    let mut case = Case::new(*head);
    for operation in operations.chunks_exact(2).take(MAX_OPERATIONS) {
        case.apply(operation[0] & 7, operation[0] >> 3, operation[1]);
        case.check();
    }
    case.finish();
}

struct Case {
    encoder: WindowEncoder,
    decoder: WindowDecoder,
    density: Density,
    window: u32,
    symbol_size: usize,
    seed: u8,
    /// Source symbols sent so far.
    sent: u64,
    /// Those that arrived or were recovered.
    known: BTreeSet<u64>,
}

impl Case {
    fn new(head: [u8; 4]) -> Self {
        let field = if head[0] & 0x80 == 0 { Field::Gf256 } else { Field::Gf2 };
        let window = 1 + u32::from(head[1]) % MAX_WINDOW;
        let symbol_size = 1 + usize::from(head[2]) % 20;
        Self {
            encoder: WindowEncoder::new(field, symbol_size, window),
            decoder: WindowDecoder::new(field, symbol_size, window),
            density: Density::new(head[0] & 15).expect("four bits"),
            window,
            symbol_size,
            seed: head[3],
            sent: 0,
            known: BTreeSet::new(),
        }
    }

    fn symbol(&self, id: u64) -> Vec<u8> {
        let octet =
            |at: u64| (id * 31 + at + u64::from(self.seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7];
        (0..self.symbol_size as u64).map(octet).collect()
    }

    fn apply(&mut self, operation: u8, count: u8, number: u8) {
        match operation {
            // A few are sent, and the bits of the number select those that arrive; in the other operation none does.
            0 | 1 => (0..=count).for_each(|bit| self.send(operation == 0 && number >> (bit % 8) & 1 == 1)),
            2 => (0..=count % 8).for_each(|step| self.repair(u16::from(number) << 4 | u16::from(step))),
            // Late, or again.
            3 => self.arrive(self.sent.saturating_sub(1 + u64::from(number))),
            4 => self.encoder.forget_below(self.sent.saturating_sub(number.into())),
            5 => self.refuse_repair(count, number),
            6 => self.refuse_source(count, number),
            _ => self.encoder.restart(self.sent),
        }
    }

    fn send(&mut self, arrives: bool) {
        let id = self.sent;
        assert_eq!(self.encoder.push(&self.symbol(id)), id);
        self.sent += 1;
        if arrives {
            self.arrive(id);
        }
    }

    fn arrive(&mut self, id: u64) {
        if id >= self.sent {
            return;
        }
        let progress = self.decoder.source(id, &self.symbol(id));
        assert!(progress == Progress::Redundant || self.known.insert(id), "symbol {id} taken twice");
    }

    fn repair(&mut self, key: u16) {
        let mut symbol = vec![0xa5; self.symbol_size];
        if let Some(repair) = self.encoder.repair(key, self.density, &mut symbol) {
            assert_eq!(repair.first..repair.first + u64::from(repair.symbols), self.encoder.window());
            self.decoder.repair(repair, &symbol);
        }
    }

    /// Sends impossible repair symbols: of another size, of an empty window, of one too large, of the end of all
    /// numbers.
    fn refuse_repair(&mut self, count: u8, number: u8) {
        let symbol = vec![number; self.symbol_size + usize::from(count == 0)];
        let wide = (self.window + u32::from(number)) as u16 + 1;
        let (first, symbols) = match count % 4 {
            0 => (self.sent, if count == 0 { 1 } else { 0 }),
            1 => (self.sent, wide),
            2 => (u64::MAX - u64::from(number), wide),
            _ => (u64::MAX, 1),
        };
        let repair = RepairId { key: number.into(), density: self.density, first, symbols };
        assert_eq!(self.decoder.repair(repair, &symbol), Progress::Redundant, "{repair:?}");
    }

    fn refuse_source(&mut self, count: u8, number: u8) {
        let symbol = vec![number; self.symbol_size + 1 + usize::from(count)];
        assert_eq!(self.decoder.source(self.sent, &symbol), Progress::Redundant);
        assert_eq!(self.decoder.source(u64::MAX, &symbol[..self.symbol_size]), Progress::Redundant);
    }

    /// Checks that recovered symbols are right and the memory is within its bounds.
    fn check(&mut self) {
        while let Some((id, symbol)) = self.decoder.next_recovered() {
            let symbol = symbol.to_vec();
            assert!(id < self.sent && self.known.insert(id), "symbol {id} was known or never sent");
            assert_eq!(symbol, self.symbol(id), "symbol {id} is another");
        }
        let (symbols, equations) = self.decoder.buffers();
        assert!(equations <= self.decoder.most_equations(), "{equations} equations");
        assert!(symbols + equations <= 2 * self.window as usize + self.decoder.most_equations(), "{symbols} buffers");
    }

    /// Checks that, after any input, a window that arrives except for one symbol recovers it.
    fn finish(&mut self) {
        (0..2 * self.window).for_each(|_| self.send(true));
        self.encoder.restart(self.sent);
        self.send(false);
        let lost = self.sent - 1;
        (0..self.window - 1).for_each(|_| self.send(true));
        self.density = Density::FULL;
        self.repair(1);
        assert_eq!(self.encoder.window(), lost..self.sent);
        self.check();
        assert!(self.known.contains(&lost), "symbol {lost} is not recovered");
    }
}
