//! Which packet numbers have come before.

use std::fmt;

/// Numbers that the window remembers, back from the highest one.
const WINDOW: u64 = 65_536;

const WORDS: usize = (WINDOW / 64) as usize;

/// Remembers the last 65,536 packet numbers, so that none is accepted twice (after RFC 6479). 8 KiB, of one size for ever.
#[derive(Clone)]
pub struct ReplayWindow {
    highest: u64,
    /// Bit `n % WINDOW` stands for number `n`; those above `highest - WINDOW` are valid.
    bits: Box<[u64; WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { highest: 0, bits: Box::new([0; WORDS]) }
    }
}

impl ReplayWindow {
    /// Whether the number is new; if so, it is no longer. A number below the window counts as old. To be asked only about packets that
    /// are authentic, since a forged number would move the window.
    pub fn check_and_set(&mut self, number: u64) -> bool {
        if number > self.highest {
            self.advance(number);
        } else if self.highest - number >= WINDOW {
            return false;
        }
        let (word, bit) = place(number);
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        new
    }

    /// Forgets what falls out of the window as `number` becomes the highest. At most one pass over the bitmap.
    fn advance(&mut self, number: u64) {
        if number - self.highest >= WINDOW {
            self.bits.fill(0);
        } else {
            let mut cleared = self.highest;
            while cleared < number {
                let (word, bit) = place(cleared + 1);
                if bit == 1 && number - cleared >= 64 {
                    self.bits[word] = 0;
                    cleared += 64;
                } else {
                    self.bits[word] &= !bit;
                    cleared += 1;
                }
            }
        }
        self.highest = number;
    }
}

impl fmt::Debug for ReplayWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWindow").field("highest", &self.highest).finish_non_exhaustive()
    }
}

/// The word and the bit of a number.
const fn place(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
}
