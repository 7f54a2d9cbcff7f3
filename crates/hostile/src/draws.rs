//! Choices made by the bytes of an input.

/// The rest of an input. At its end, every choice is the first, so that any bytes are a whole case.
#[derive(Debug)]
pub(crate) struct Draws<'a> {
    rest: &'a [u8],
}

impl<'a> Draws<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// Returns the next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    /// Returns true for one byte in `count`, never after the end.
    pub(crate) fn one_in(&mut self, count: u8) -> bool {
        self.below(count) == count - 1
    }

    /// Returns one of `all`.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }
}
