//! Plans on data: all strips of all symbols.

use std::sync::Arc;

use super::plan::Output;
use super::{Equations, Plan};
use crate::kernel::program::{Inputs, Line, Part, Slots};

/// What the slots of one strip may take: they are to stay in a core's second-level cache beside the symbols that are read.
const STRIP_BYTES: usize = 512 * 1024;

/// Narrowest strip, in lines: a program costs its own reading for each.
const NARROWEST: usize = 4;

/// Widest strip, in lines.
const WIDEST: usize = 8;

/// A strip: `width` lines from byte `offset` of every symbol on.
#[derive(Clone, Copy, Debug)]
struct Strip {
    offset: usize,
    width: usize,
}

/// The strips of symbols of `size` bytes in `slots` slots. The last may reach beyond the symbol.
fn strips(slots: u32, size: usize) -> impl Iterator<Item = Strip> {
    let fitting = STRIP_BYTES / Line::BYTES / slots.max(1) as usize;
    let widest = 1 << fitting.clamp(NARROWEST, WIDEST).ilog2();
    let mut offset = 0;
    std::iter::from_fn(move || {
        let lines = (size - offset).checked_sub(1)? / Line::BYTES + 1;
        // A part of a line is a strip of its own.
        let whole = (size - offset) / Line::BYTES;
        let width = if whole == 0 { lines } else { widest.min(1 << whole.ilog2()) };
        let strip = Strip { offset, width };
        offset = size.min(offset + width * Line::BYTES);
        Some(strip)
    })
}

/// The last bytes of symbols whose size is no multiple of a line, each filled up to a line with zeros.
struct Ragged {
    lines: Vec<[u8; Line::BYTES]>,
}

impl Ragged {
    fn new(inputs: &Inputs<'_>) -> Self {
        let start = inputs.size() / Line::BYTES * Line::BYTES;
        let line = |symbol: &&[u8]| {
            let mut line = [0; Line::BYTES];
            line[..symbol.len() - start].copy_from_slice(&symbol[start..]);
            line
        };
        Self { lines: inputs.symbols()[1..].iter().map(line).collect() }
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs::new(Line::BYTES, self.lines.iter().map(|line| Some(&line[..])))
    }
}

impl Strip {
    /// Runs `work` with the inputs of this strip and where it begins in them.
    fn with_inputs(self, inputs: &Inputs<'_>, work: impl FnOnce(&Inputs<'_>, usize)) {
        if self.offset + self.width * Line::BYTES <= inputs.size() {
            work(inputs, self.offset);
        } else {
            work(&Ragged::new(inputs).inputs(), 0);
        }
    }

    /// Makes this strip of `outputs`; `tables` is room for tables.
    fn output(self, slots: &Slots<'_>, output: &Output, tables: &mut Vec<Line>, outputs: &mut [&mut [u8]]) {
        tables.resize(output.slots as usize * self.width, Line::ZERO);
        let mut tables = Slots::new(tables, self.width);
        slots.fill(&output.tables, &mut tables);
        let size = outputs.first().map_or(0, |output| output.len());
        if self.offset + self.width * Line::BYTES <= size {
            return slots.output(&output.sums, &tables, outputs, self.offset);
        }
        let mut lines = vec![[0; Line::BYTES]; outputs.len()];
        let mut padded: Vec<_> = lines.iter_mut().map(|line| &mut line[..]).collect();
        slots.output(&output.sums, &tables, &mut padded, 0);
        for (output, line) in outputs.iter_mut().zip(&lines) {
            let ragged = &mut output[self.offset..];
            ragged.copy_from_slice(&line[..ragged.len()]);
        }
    }
}

impl Plan {
    /// Solves for all unknowns, the peeled ones up to what the inactive ones add to them.
    fn solve_strip(&self, slots: &mut Slots<'_>, inputs: &Inputs<'_>, offset: usize) {
        slots.run(&self.steps, Part::First, inputs, offset);
        slots.clear(self.inactive.iter().copied());
        if let Some(heavy) = &self.heavy {
            slots.clear(heavy.first..heavy.first + heavy.rows);
            slots.chain(&heavy.taps, heavy.first, heavy.rows);
        }
        slots.run(&self.rest, Part::All, inputs, offset);
        slots.run(&self.dense, Part::All, inputs, offset);
        if let Some(heavy) = &self.heavy {
            slots.combine(&heavy.targets, &heavy.sources, &heavy.coefficients);
            slots.run(&self.corrections, Part::All, inputs, offset);
        }
    }

    /// Adds up unknowns: list `i` of `lists` becomes `outputs[i]`. The inputs are those that the equations name.
    pub(crate) fn solve(&self, inputs: &Inputs<'_>, lists: &Equations, outputs: &mut [&mut [u8]]) {
        let complete = self.output_cost(lists.count()) > self.completion_cost();
        let output = if complete { plain(lists) } else { self.output(lists) };
        let (mut lines, mut tables) = (Vec::new(), Vec::new());
        for strip in strips(self.slots, inputs.size()) {
            lines.resize(self.slots as usize * strip.width, Line::ZERO);
            let mut slots = Slots::new(&mut lines, strip.width);
            strip.with_inputs(inputs, |inputs, offset| {
                self.solve_strip(&mut slots, inputs, offset);
                if complete {
                    slots.run(&self.steps, Part::All, inputs, offset);
                }
            });
            strip.output(&slots, &output, &mut tables, outputs);
        }
    }
}

/// Lists of unknowns as they are, once every unknown is complete.
fn plain(lists: &Equations) -> Output {
    let mut output = Output::default();
    for list in 0..lists.count() as u32 {
        output.sums.push(list, 0, lists.terms(list).iter().copied());
    }
    output
}

/// All unknowns of a system, kept: sums of them are made on demand.
#[derive(Debug)]
pub(crate) struct Solved {
    plan: Arc<Plan>,
    size: usize,
    /// Strip by strip: the slots of the unknowns.
    lines: Vec<Line>,
    /// Additions made so far that would not have been needed with the peeled unknowns complete; none once they are.
    spent: Option<usize>,
}

impl Solved {
    pub(crate) fn new(plan: Arc<Plan>, inputs: &Inputs<'_>) -> Self {
        let (unknowns, size) = (plan.unknowns as usize, inputs.size());
        let extra = (plan.slots - plan.unknowns) as usize;
        let widest = strips(plan.slots, size).map(|strip| strip.width).max().unwrap_or(0);
        let mut lines = vec![Line::ZERO; unknowns * size.div_ceil(Line::BYTES) + extra * widest];
        for strip in strips(plan.slots, size) {
            // The slots of intermediate sums lie where the next strip will be.
            let start = unknowns * (strip.offset / Line::BYTES);
            let mut slots = Slots::new(&mut lines[start..][..plan.slots as usize * strip.width], strip.width);
            strip.with_inputs(inputs, |inputs, offset| plan.solve_strip(&mut slots, inputs, offset));
        }
        lines.truncate(unknowns * size.div_ceil(Line::BYTES));
        Self { plan, size, lines, spent: Some(0) }
    }

    /// Adds up unknowns: list `i` of `lists` becomes `outputs[i]`.
    pub(crate) fn output(&mut self, lists: &Equations, outputs: &mut [&mut [u8]]) {
        let output = if self.spent.is_some() { self.plan.output(lists) } else { plain(lists) };
        let mut tables = Vec::new();
        self.each_strip(|strip, slots| strip.output(slots, &output, &mut tables, outputs));
    }

    /// Before `count` lists more are added up: completes the peeled unknowns if that pays, which it does once as much has been spent
    /// on doing without. `inputs` gives those that the system was solved with.
    pub(crate) fn expect<'a>(&mut self, count: usize, inputs: impl FnOnce() -> Inputs<'a>) {
        if let Some(spent) = &mut self.spent {
            *spent += self.plan.output_cost(count);
            if *spent > self.plan.completion_cost() {
                self.complete(&inputs());
            }
        }
    }

    fn complete(&mut self, inputs: &Inputs<'_>) {
        self.spent = None;
        let plan = Arc::clone(&self.plan);
        self.each_strip(|strip, slots| {
            strip.with_inputs(inputs, |inputs, offset| slots.run(&plan.steps, Part::All, inputs, offset));
        });
    }

    fn each_strip(&mut self, mut work: impl FnMut(Strip, &mut Slots<'_>)) {
        let unknowns = self.plan.unknowns as usize;
        for strip in strips(self.plan.slots, self.size) {
            let lines = &mut self.lines[unknowns * (strip.offset / Line::BYTES)..][..unknowns * strip.width];
            work(strip, &mut Slots::new(lines, strip.width));
        }
    }
}
