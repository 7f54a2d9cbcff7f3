//! Programs of additions: which symbols to add up to which, run on one strip of all symbols at a time.
//!
//! A block's symbols do not fit the first-level cache, but a strip of a few lines of each does. So a program runs
//! completely for one strip after the other, and every sum is gathered in registers from all its sources before it is
//! written once.

mod slots;
mod sums;
#[cfg(test)]
mod tests;

pub(crate) use self::slots::{Inputs, LINE, Lines, Slots};

/// A list of sums. Each has a target slot, an input, and sources, which are slots; input 0 is all zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// For each sum: target, input, number of first sources, number of all, the sources.
    words: Vec<u32>,
    /// Where the last sum begins.
    start: usize,
    /// Where the whole sums end. Anything after them, left behind by a panicking iterator, is ignored.
    end: usize,
    // Bounds are wider than the values they bound, so that one above the largest value can be represented.
    /// All first sources are below.
    slots: u64,
    /// All last sources are below.
    others: u64,
    /// All targets are below.
    targets: u64,
    /// All inputs named are below.
    inputs: u64,
}

/// Words of a sum before its sources.
const HEADER: usize = 4;

impl Program {
    pub(crate) fn with_capacity(sums: usize, sources: usize) -> Self {
        Self { words: Vec::with_capacity(HEADER * sums + sources), ..Self::default() }
    }

    /// Adds a sum of an input and sources.
    pub(crate) fn push(&mut self, target: u32, input: u32, sources: impl IntoIterator<Item = u32>) {
        self.push_parts(target, input, sources, []);
    }

    /// Adds a sum in two parts: a run over [`Part::First`] omits the `last` sources, or they are among other slots.
    pub(crate) fn push_parts(
        &mut self,
        target: u32,
        input: u32,
        first: impl IntoIterator<Item = u32>,
        last: impl IntoIterator<Item = u32>,
    ) {
        self.begin(target, input);
        self.add_first(first);
        self.add_last(last);
    }

    /// Begins a sum, to which sources will be added.
    pub(crate) fn begin(&mut self, target: u32, input: u32) {
        self.words.truncate(self.end);
        self.start = self.end;
        self.words.extend([target, input, 0, 0]);
        self.end = self.words.len();
        self.targets = self.targets.max(u64::from(target) + 1);
        self.inputs = self.inputs.max(u64::from(input) + 1);
    }

    /// Adds first sources to the last sum, which has no last ones yet.
    pub(crate) fn add_first(&mut self, sources: impl IntoIterator<Item = u32>) {
        assert_eq!(self.words[self.start + 2], self.words[self.start + 3], "first sources before the last ones");
        self.slots = self.slots.max(self.add(sources));
        self.words[self.start + 2] = self.words[self.start + 3];
    }

    /// Adds last sources to the last sum, after its first ones.
    pub(crate) fn add_last(&mut self, sources: impl IntoIterator<Item = u32>) {
        self.others = self.others.max(self.add(sources));
    }

    /// Adds and counts sources, and returns a number above all of them.
    fn add(&mut self, sources: impl IntoIterator<Item = u32>) -> u64 {
        assert!(self.start + HEADER <= self.end, "a sum was begun");
        let mut below = 0;
        self.words.truncate(self.end);
        self.words.extend(sources.into_iter().inspect(|&source| below = below.max(u64::from(source) + 1)));
        let count = u32::try_from(self.words.len() - self.start - HEADER).expect("a sum of less than 2^32 sources");
        self.words[self.start + 3] = count;
        self.end = self.words.len();
        below
    }

    /// Returns the whole sums.
    fn words(&self) -> &[u32] {
        &self.words[..self.end]
    }

    /// Returns the bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        4 * self.words.len()
    }

    /// Returns the additions it performs, with each sum counted once more for its input.
    #[cfg(test)]
    pub(crate) fn additions(&self, part: Part) -> usize {
        let (mut at, mut sum) = (0, 0);
        while at < self.end {
            let [first, all] = [self.words[at + 2], self.words[at + 3]];
            sum += 1 + if part == Part::First { first } else { all } as usize;
            at += HEADER + all as usize;
        }
        sum
    }
}

/// The part of each sum that a run computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    First,
    All,
}
