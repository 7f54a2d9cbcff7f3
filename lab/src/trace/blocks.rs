//! The state of the blocks of flows: open, being repaired, or done.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::record::Symbol;

/// The most flows with known blocks: the last ones that began.
const MOST_FLOWS: usize = 4;
/// The most open blocks of a flow; more than the engine opens.
const MOST_OPEN: usize = 4096;
/// The most cells of a map: with more blocks, each cell is several.
const MOST_CELLS: usize = 512;

/// The flows of a connection.
#[derive(Debug, Default)]
pub(super) struct Flows(VecDeque<Flow>);

/// The blocks of one flow.
#[derive(Debug)]
struct Flow {
    id: u64,
    /// Bytes of an object.
    length: Option<u64>,
    is_received: bool,
    is_over: bool,
    /// The number of started blocks.
    begun: u32,
    done: u32,
    /// Open blocks, and whether they are being repaired.
    open: BTreeMap<u32, bool>,
    /// The number of finished blocks of each cell.
    cells: Vec<u32>,
    per_cell: u32,
}

/// The view of a flow on a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FlowView {
    id: u64,
    length: Option<u64>,
    is_received: bool,
    is_over: bool,
    begun: u32,
    done: u32,
    open: usize,
    repaired: usize,
    per_cell: u32,
    /// One letter for each cell: `d` all blocks are done, `o` a block is open, `r` a block is being repaired.
    map: String,
}

impl Flows {
    /// A flow begins, in this direction.
    pub(super) fn open(&mut self, id: u64, length: Option<u64>, is_received: bool) {
        if self.get(id, is_received).is_some() {
            return;
        }
        if self.0.len() == MOST_FLOWS {
            self.0.pop_front();
        }
        self.0.push_back(Flow {
            id,
            length,
            is_received,
            is_over: false,
            begun: 0,
            done: 0,
            open: BTreeMap::new(),
            cells: Vec::new(),
            per_cell: 1,
        });
    }

    /// Symbols of a block were sent or received. Flows whose beginning is not in the trace are ignored.
    pub(super) fn symbols(&mut self, symbol: Symbol<'_>, is_received: bool) {
        let is_repair = symbol.kind.is_some_and(|kind| matches!(kind, "resent" | "repair"));
        if let Some(flow) = self.get(symbol.flow, is_received) {
            flow.begin(symbol.block);
            if let Some(is_repaired) = flow.open.get_mut(&symbol.block) {
                *is_repaired |= is_repair;
            }
        }
    }

    /// A block is done.
    pub(super) fn done(&mut self, id: u64, block: u32, is_received: bool) {
        if let Some(flow) = self.get(id, is_received) {
            flow.begin(block);
            flow.finish(block);
        }
    }

    /// A flow is over: all of its blocks are done.
    pub(super) fn over(&mut self, id: u64, is_received: bool) {
        if let Some(flow) = self.get(id, is_received) {
            flow.is_over = true;
            while let Some((&block, _)) = flow.open.first_key_value() {
                flow.finish(block);
            }
        }
    }

    pub(super) fn views(&self) -> Vec<FlowView> {
        self.0.iter().map(Flow::view).collect()
    }

    fn get(&mut self, id: u64, is_received: bool) -> Option<&mut Flow> {
        self.0.iter_mut().rev().find(|flow| (flow.id, flow.is_received) == (id, is_received))
    }
}

impl Flow {
    /// A block and all before it have begun.
    fn begin(&mut self, block: u32) {
        // A block number that no flow reaches would cause an endless loop.
        if block < self.begun || block - self.begun > MOST_OPEN as u32 {
            return;
        }
        for number in self.begun..=block {
            self.open.insert(number, false);
            if self.open.len() > MOST_OPEN {
                self.open.pop_first();
            }
        }
        self.begun = block + 1;
        while self.begun.div_ceil(self.per_cell) as usize > MOST_CELLS {
            self.per_cell *= 2;
            self.cells = self.cells.chunks(2).map(|two| two.iter().sum()).collect();
        }
        self.cells.resize(self.begun.div_ceil(self.per_cell) as usize, 0);
    }

    fn finish(&mut self, block: u32) {
        if self.open.remove(&block).is_some() {
            self.done += 1;
            self.cells[(block / self.per_cell) as usize] += 1;
        }
    }

    fn view(&self) -> FlowView {
        let mut map = vec![b'd'; self.cells.len()];
        for (block, is_repaired) in &self.open {
            let cell = &mut map[(block / self.per_cell) as usize];
            *cell = if *is_repaired || *cell == b'r' { b'r' } else { b'o' };
        }
        FlowView {
            id: self.id,
            length: self.length,
            is_received: self.is_received,
            is_over: self.is_over,
            begun: self.begun,
            done: self.done,
            open: self.open.len(),
            repaired: self.open.values().filter(|is_repaired| **is_repaired).count(),
            per_cell: self.per_cell,
            map: map.into_iter().map(char::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(block: u32, kind: Option<&str>) -> Symbol<'_> {
        Symbol { flow: 2, block, kind }
    }

    #[test]
    fn blocks_are_open_repaired_and_done() {
        let mut flows = Flows::default();
        flows.symbols(symbol(0, Some("source")), false);
        assert!(flows.views().is_empty(), "no flow has begun");
        flows.open(2, Some(1000), false);
        [0, 1, 3].into_iter().for_each(|block| flows.symbols(symbol(block, Some("source")), false));
        flows.symbols(symbol(1, Some("repair")), false);
        flows.done(2, 0, false);
        flows.symbols(symbol(0, Some("resent")), false);
        flows.done(2, 0, false);
        flows.done(2, 0, true);
        let view = &flows.views()[0];
        assert_eq!((&*view.map, view.begun, view.done, view.open, view.repaired), ("droo", 4, 1, 3, 1));
        flows.over(2, false);
        let view = &flows.views()[0];
        assert_eq!((&*view.map, view.done, view.open, view.is_over), ("dddd", 4, 0, true));
    }

    /// No trace, however long or invalid, takes more memory than this.
    #[test]
    fn a_map_is_bounded() {
        let mut flows = Flows::default();
        (0..100).for_each(|id| flows.open(id, None, true));
        assert_eq!(flows.views().len(), MOST_FLOWS);
        flows.open(2, None, false);
        flows.symbols(symbol(u32::MAX, None), false);
        assert_eq!(flows.views().last().map(|view| view.begun), Some(0));
        for block in 0..100_000 {
            flows.symbols(symbol(block, None), false);
            if block >= 10 {
                flows.done(2, block - 10, false);
            }
        }
        let view = flows.views().pop().expect("the last one");
        assert_eq!((view.begun, view.done, view.open, view.per_cell), (100_000, 99_990, 10, 256));
        assert_eq!(view.map.len(), 391);
        assert_eq!(view.map.matches('o').count(), 1);
        for block in (100_000..100_000_000).step_by(4000).take(100) {
            flows.symbols(symbol(block, None), false);
        }
        assert_eq!(flows.views().pop().map(|view| view.open), Some(MOST_OPEN));
    }
}
