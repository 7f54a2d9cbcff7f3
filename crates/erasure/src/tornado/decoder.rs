//! Decoding: as symbols arrive, the consequences are worked out without data, and in the end only lost symbols are
//! computed.

use std::borrow::Cow;

use super::TornadoCode;
use super::graph::Graph;
use super::peeling::{PeelStep, Peeling};
use crate::kernel::add_many;
use crate::repairs::Repairs;
use crate::{Block, BlockCode, Progress};

/// If peeling does not recover the whole block, the decoder asks for this part of the source symbols still unknown, and
/// for this part of all repair symbols at least: few enough for little overshoot, enough for few requests.
const PART_OF_MISSING: u32 = 32;
const PART_OF_REPAIRS: u32 = 256;

/// Peels as symbols arrive.
#[derive(Debug)]
pub(super) struct Decoder {
    design: TornadoCode,
    repairs: Repairs,
    peeling: Option<Peeling>,
    /// The source symbols absent at the last peeling.
    absent: Vec<u32>,
    /// How many of the repair symbols it knew then.
    learnt: usize,
}

impl Decoder {
    pub(super) fn new(design: TornadoCode, k: u32, symbol_size: usize) -> Self {
        let repairs = Repairs::new(k, symbol_size, design.symbol_limit(k));
        Self { design, repairs, peeling: None, absent: Vec::new(), learnt: 0 }
    }

    /// Updates the peeling with the symbols that arrived since; returns how many source symbols are unknown then.
    fn peel(&mut self, block: &Block) -> u32 {
        let peeling = self.peeling.get_or_insert_with(|| {
            (self.absent, self.learnt) = ((0..block.k()).collect(), 0);
            Peeling::new(Graph::of(self.design, block.k()))
        });
        self.absent.retain(|&esi| {
            let present = block.is_present(esi);
            if present {
                peeling.learn(esi);
            }
            !present
        });
        for (esi, _) in self.repairs.iter().skip(self.learnt) {
            peeling.learn(esi);
        }
        self.learnt = self.repairs.count() as usize;
        peeling.missing()
    }
}

impl crate::Decoder for Decoder {
    fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        self.repairs.push(block, esi, symbol)
    }

    fn wait_for(&mut self, symbols: u32) {
        self.repairs.wait_for_first(symbols);
    }

    fn recover(&mut self, block: &mut Block) -> Progress {
        let progress = self.repairs.progress(block);
        if progress != Progress::Ready || block.is_complete() {
            return progress;
        }
        let missing = self.peel(block);
        if missing > 0 {
            let all = self.design.symbol_limit(block.k()) - block.k();
            return self.repairs.wait_for(block, missing.div_ceil(PART_OF_MISSING).max(all / PART_OF_REPAIRS));
        }
        let Some(peeling) = self.peeling.take() else { return Progress::Redundant };
        if Values::new(&peeling.graph, &self.repairs).run(&peeling, block) {
            self.repairs.clear();
            return Progress::Ready;
        }
        // The block has lost symbols that it had: a violation of the contract, but no reason to write wrong bytes.
        self.repairs.wait_for(block, 1)
    }
}

/// The check symbols whose bytes are available.
struct Values<'a> {
    graph: &'a Graph,
    symbol_size: usize,
    /// By esi less k.
    checks: Vec<Option<Cow<'a, [u8]>>>,
}

impl<'a> Values<'a> {
    fn new(graph: &'a Graph, repairs: &'a Repairs) -> Self {
        let mut checks = vec![None; (graph.cascade.symbol_limit() - graph.k) as usize];
        for (esi, symbol) in repairs.iter() {
            checks[(esi - graph.k) as usize] = Some(Cow::Borrowed(symbol));
        }
        Self { graph, symbol_size: repairs.symbol_size(), checks }
    }

    fn get<'b>(&'b self, block: &'b Block, symbol: u32) -> Option<&'b [u8]> {
        match symbol.checked_sub(self.graph.k) {
            None => block.symbol(symbol),
            Some(check) => self.checks[check as usize].as_deref(),
        }
    }

    fn set(&mut self, block: &mut Block, symbol: u32, bytes: &[u8]) {
        match symbol.checked_sub(self.graph.k) {
            None => {
                block.insert(symbol, bytes);
            }
            Some(check) => self.checks[check as usize] = Some(Cow::Owned(bytes.to_vec())),
        }
    }

    /// Computes the missing source symbols. Returns false, and does nothing, if they do not follow.
    fn run(&mut self, peeling: &Peeling, block: &mut Block) -> bool {
        let Some(steps) = self.needed(peeling, block) else { return false };
        let mut sum = vec![0; self.symbol_size];
        for step in steps {
            match step {
                PeelStep::Equation { equation, symbol } => {
                    let others = self.graph.lefts(equation).iter().copied().chain([self.graph.k + equation]);
                    let others: Vec<&[u8]> =
                        others.filter(|&other| other != symbol).filter_map(|other| self.get(block, other)).collect();
                    sum.fill(0);
                    add_many(&mut sum, &others);
                    self.set(block, symbol, &sum);
                }
                PeelStep::End => self.solve_end(peeling, block),
            }
        }
        block.is_complete()
    }

    /// Returns the steps without which a missing source symbol does not follow, found from the last to the first.
    fn needed(&self, peeling: &Peeling, block: &Block) -> Option<Vec<PeelStep>> {
        let mut wanted = Wanted { marks: vec![false; self.graph.cascade.symbol_limit() as usize], count: 0 };
        for symbol in block.missing() {
            wanted.mark(symbol);
        }
        let mut steps = Vec::new();
        for &step in peeling.steps().iter().rev() {
            let used = match step {
                PeelStep::Equation { symbol, .. } => wanted.take(symbol),
                PeelStep::End => peeling.by_end().iter().filter(|&&symbol| wanted.take(symbol)).count() > 0,
            };
            if !used {
                continue;
            }
            steps.push(step);
            let mut mark = |symbol| {
                if self.get(block, symbol).is_none() {
                    wanted.mark(symbol);
                }
            };
            match step {
                PeelStep::Equation { equation, symbol } => {
                    let members = self.graph.lefts(equation).iter().copied().chain([self.graph.k + equation]);
                    members.filter(|&member| member != symbol).for_each(&mut mark);
                }
                // Ascending, as the end's source symbols are.
                PeelStep::End => {
                    let known = |symbol: &u32| peeling.by_end().binary_search(symbol).is_err();
                    self.graph.cascade.end.clone().filter(known).for_each(&mut mark);
                }
            }
        }
        steps.reverse();
        (wanted.count == 0).then_some(steps)
    }

    /// Decodes the final code: its source symbols are checks, or the source without a graph.
    fn solve_end(&mut self, peeling: &Peeling, block: &mut Block) {
        let cascade = &self.graph.cascade;
        let count = cascade.end.len() as u32;
        let mut end = Block::new_missing(count, self.symbol_size, Vec::new());
        for (index, symbol) in (0..).zip(cascade.end.clone()) {
            if let Some(bytes) = self.get(block, symbol) {
                end.insert(index, bytes);
            }
        }
        let mut decoder = BlockCode::ReedSolomon.decoder(count, self.symbol_size).expect("checked when this was made");
        for (index, repair) in (count..).zip(cascade.repairs.clone()) {
            if let Some(bytes) = self.get(block, repair) {
                decoder.push(&end, index, bytes);
            }
        }
        decoder.recover(&mut end);
        for &symbol in peeling.by_end() {
            if let Some(bytes) = end.symbol(symbol - cascade.end.start) {
                self.set(block, symbol, bytes);
            }
        }
    }
}

/// Symbols to be computed.
struct Wanted {
    marks: Vec<bool>,
    count: u32,
}

impl Wanted {
    fn mark(&mut self, symbol: u32) {
        self.count += u32::from(!std::mem::replace(&mut self.marks[symbol as usize], true));
    }

    /// Returns whether the symbol was wanted, and removes it.
    fn take(&mut self, symbol: u32) -> bool {
        let wanted = std::mem::replace(&mut self.marks[symbol as usize], false);
        self.count -= u32::from(wanted);
        wanted
    }
}
