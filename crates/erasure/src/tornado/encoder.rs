//! Check symbols, made on demand.

use std::fmt;
use std::sync::Arc;

use super::TornadoCode;
use super::graph::Graph;
use crate::kernel::add_many;
use crate::{Block, BlockCode};

/// The MDS code of the end.
struct FinalCode {
    encoder: Box<dyn crate::Encoder>,
    /// Its source symbols; none where the whole block is the end.
    block: Option<Block>,
}

/// Makes a check symbol of the first level by itself, others with all of the levels before, and keeps them.
pub(super) struct Encoder {
    design: TornadoCode,
    k: u32,
    symbol_size: usize,
    symbol_limit: u32,
    graph: Option<Arc<Graph>>,
    /// The check symbols of the graphs, and which of them are made.
    checks: Vec<u8>,
    made: Vec<bool>,
    /// Levels of which all check symbols are made.
    complete: usize,
    end: Option<FinalCode>,
}

impl Encoder {
    pub(super) fn new(design: TornadoCode, k: u32, symbol_size: usize) -> Self {
        Self {
            design,
            k,
            symbol_size,
            symbol_limit: design.symbol_limit(k),
            graph: None,
            checks: Vec::new(),
            made: Vec::new(),
            complete: 0,
            end: None,
        }
    }

    fn graph(&mut self) -> Arc<Graph> {
        let graph = self.graph.get_or_insert_with(|| Graph::of(self.design, self.k));
        let count = graph.equations().len();
        self.made.resize(count, false);
        self.checks.resize(count * self.symbol_size, 0);
        Arc::clone(graph)
    }

    /// Makes the check symbol of an equation; those of the levels before are already made.
    fn make(&mut self, source: &Block, graph: &Graph, equation: u32) {
        if std::mem::replace(&mut self.made[equation as usize], true) {
            return;
        }
        let size = self.symbol_size;
        let (before, out) = self.checks.split_at_mut(equation as usize * size);
        let lefts: Vec<&[u8]> = graph
            .lefts(equation)
            .iter()
            .map(|&left| match left.checked_sub(self.k) {
                None => &source.bytes()[left as usize * size..][..size],
                Some(check) => &before[check as usize * size..][..size],
            })
            .collect();
        add_many(&mut out[..size], &lefts);
    }

    /// Makes the first `levels` levels.
    fn complete(&mut self, source: &Block, graph: &Graph, levels: usize) {
        while self.complete < levels {
            for check in graph.cascade.levels[self.complete].checks.clone() {
                self.make(source, graph, check - self.k);
            }
            self.complete += 1;
        }
    }

    fn check(&self, esi: u32) -> &[u8] {
        &self.checks[(esi - self.k) as usize * self.symbol_size..][..self.symbol_size]
    }

    /// Makes a repair symbol of the end.
    fn repair_of_end(&mut self, source: &Block, graph: &Graph, esi: u32, out: &mut [u8]) {
        let cascade = &graph.cascade;
        self.complete(source, graph, cascade.levels.len());
        let count = cascade.end.len() as u32;
        if self.end.is_none() {
            let encoder = BlockCode::ReedSolomon.encoder(count, self.symbol_size).expect("checked when this was made");
            let block = (!cascade.levels.is_empty()).then(|| {
                let first = (cascade.end.start - self.k) as usize * self.symbol_size;
                Block::new_complete(count, self.symbol_size, self.checks[first..].to_vec())
            });
            self.end = Some(FinalCode { encoder, block });
        }
        if let Some(FinalCode { encoder, block }) = &mut self.end {
            encoder.write_repair(block.as_ref().unwrap_or(source), count + (esi - cascade.repairs.start), out);
        }
    }
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        self.symbol_limit
    }

    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert!(
            source.is_complete() && source.k() == self.k && source.symbol_size() == self.symbol_size,
            "not the block of this encoder"
        );
        assert!((self.k..self.symbol_limit).contains(&esi), "no repair symbol {esi}");
        let graph = self.graph();
        match graph.cascade.levels.iter().position(|level| level.checks.contains(&esi)) {
            Some(level) => {
                self.complete(source, &graph, level);
                self.make(source, &graph, esi - self.k);
                out.copy_from_slice(self.check(esi));
            }
            None => self.repair_of_end(source, &graph, esi, out),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("tornado::Encoder")
            .field("design", &self.design)
            .field("k", &self.k)
            .field("symbol_size", &self.symbol_size)
            .field("levels", &self.complete)
            .finish_non_exhaustive()
    }
}
