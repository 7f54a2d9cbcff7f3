//! Running plans on data: all strips of all symbols.

use std::sync::Arc;

use super::plan::Output;
use super::{Equations, Plan};
use crate::kernel::program::{Inputs, LINE, Lines, Part, Slots};

/// Most bytes of the slots of one strip, which should stay in a core's second-level cache with the symbols read.
const STRIP_BYTES: usize = 512 * 1024;

/// Narrowest strip, in lines: the program itself is read once for each strip.
const NARROWEST: usize = 4;

/// Widest strip, in lines.
const WIDEST: usize = 8;

/// A strip: `width` lines from byte `offset` of every symbol on.
#[derive(Clone, Copy, Debug)]
struct Strip {
    offset: usize,
    width: usize,
}

/// Iterates over the strips of symbols of `size` bytes in `slots` slots. The last may reach beyond the symbol.
fn strips(slots: u32, size: usize) -> impl Iterator<Item = Strip> {
    let fitting = STRIP_BYTES / LINE / slots.max(1) as usize;
    let widest = 1 << fitting.clamp(NARROWEST, WIDEST).ilog2();
    let mut offset = 0;
    std::iter::from_fn(move || {
        let lines = (size - offset).checked_sub(1)? / LINE + 1;
        // A part of a line is a strip of its own.
        let whole = (size - offset) / LINE;
        let width = if whole == 0 { lines } else { widest.min(1 << whole.ilog2()) };
        let strip = Strip { offset, width };
        offset = size.min(offset + width * LINE);
        Some(strip)
    })
}

/// Returns the lines of the widest of [`strips`].
fn widest(slots: u32, size: usize) -> usize {
    strips(slots, size).map(|strip| strip.width).max().unwrap_or(0)
}

impl Output {
    /// Allocates room for its tables in strips of at most `widest` lines.
    fn room(&self, widest: usize) -> Lines {
        Lines::new(self.slots as usize * widest)
    }
}

/// The last bytes of symbols whose size is no multiple of a line, each padded to a line with zeros.
struct Ragged {
    lines: Vec<[u8; LINE]>,
}

impl Ragged {
    fn new(inputs: &Inputs<'_>) -> Self {
        let start = inputs.size() / LINE * LINE;
        let line = |symbol: &&[u8]| {
            let mut line = [0; LINE];
            line[..symbol.len() - start].copy_from_slice(&symbol[start..]);
            line
        };
        Self { lines: inputs.symbols()[1..].iter().map(line).collect() }
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs::new(LINE, self.lines.iter().map(|line| Some(&line[..])))
    }
}

impl Strip {
    /// Runs `work` with the inputs of this strip and its offset in them.
    fn with_inputs(self, inputs: &Inputs<'_>, work: impl FnOnce(&Inputs<'_>, usize)) {
        if self.offset + self.width * LINE <= inputs.size() {
            work(inputs, self.offset);
        } else {
            work(&Ragged::new(inputs).inputs(), 0);
        }
    }

    /// Computes this strip of `outputs`; `tables` has room for tables.
    fn output(self, slots: &Slots<'_>, output: &Output, tables: &mut Lines, outputs: &mut [&mut [u8]]) {
        let mut tables = tables.slots(0, output.slots as usize * self.width, self.width);
        slots.fill(&output.tables, &mut tables);
        let size = outputs.first().map_or(0, |output| output.len());
        if self.offset + self.width * LINE <= size {
            return slots.output(&output.sums, &tables, outputs, self.offset);
        }
        let mut lines = vec![[0; LINE]; outputs.len()];
        let mut padded: Vec<_> = lines.iter_mut().map(|line| &mut line[..]).collect();
        slots.output(&output.sums, &tables, &mut padded, 0);
        for (output, line) in outputs.iter_mut().zip(&lines) {
            let ragged = &mut output[self.offset..];
            ragged.copy_from_slice(&line[..ragged.len()]);
        }
    }
}

impl Plan {
    /// Solves for all unknowns, the peeled ones except for the contributions of the inactive ones.
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
        let widest = widest(self.slots, inputs.size());
        let (mut lines, mut tables) = (Lines::new(self.slots as usize * widest), output.room(widest));
        for strip in strips(self.slots, inputs.size()) {
            let mut slots = lines.slots(0, self.slots as usize * strip.width, strip.width);
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

/// Returns the lists of unknowns unchanged, for when every unknown is complete.
fn plain(lists: &Equations) -> Output {
    let mut output = Output::default();
    for list in 0..lists.count() as u32 {
        output.sums.push(list, 0, lists.terms(list).iter().copied());
    }
    output
}

/// All unknowns of a system, kept so that sums of them can be made on demand.
#[derive(Debug)]
pub(crate) struct Solved {
    plan: Arc<Plan>,
    size: usize,
    /// Strip by strip, the slots of the unknowns.
    lines: Lines,
    /// Additions so far that complete peeled unknowns would have saved; `None` once they are complete.
    spent: Option<usize>,
}

impl Solved {
    pub(crate) fn new(plan: Arc<Plan>, inputs: &Inputs<'_>) -> Self {
        let (unknowns, size) = (plan.unknowns as usize, inputs.size());
        let extra = (plan.slots - plan.unknowns) as usize;
        let mut lines = Lines::new(unknowns * size.div_ceil(LINE) + extra * widest(plan.slots, size));
        for strip in strips(plan.slots, size) {
            // The slots of intermediate sums lie where the next strip will be.
            let start = unknowns * (strip.offset / LINE);
            let mut slots = lines.slots(start, plan.slots as usize * strip.width, strip.width);
            strip.with_inputs(inputs, |inputs, offset| plan.solve_strip(&mut slots, inputs, offset));
        }
        Self { plan, size, lines, spent: Some(0) }
    }

    /// Adds up unknowns: list `i` of `lists` becomes `outputs[i]`.
    pub(crate) fn output(&mut self, lists: &Equations, outputs: &mut [&mut [u8]]) {
        let output = if self.spent.is_some() { self.plan.output(lists) } else { plain(lists) };
        let mut tables = output.room(widest(self.plan.slots, self.size));
        self.each_strip(|strip, slots| strip.output(slots, &output, &mut tables, outputs));
    }

    /// Prepares for adding up `count` more lists: completes the peeled unknowns if that pays, which it does once as
    /// much has been spent on doing without. `inputs` returns those with which the system was solved.
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
            let start = unknowns * (strip.offset / LINE);
            work(strip, &mut self.lines.slots(start, unknowns * strip.width, strip.width));
        }
    }
}
