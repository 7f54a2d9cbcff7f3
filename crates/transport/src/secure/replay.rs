//! The window of packet numbers seen before.

use std::fmt;

/// Numbers that the window remembers, back from the highest one.
const WINDOW: u64 = 65_536;

const WORDS: usize = (WINDOW / 64) as usize;

/// Remembers the last 65,536 packet numbers, so that none is accepted twice (after RFC 6479). Has a fixed size of 8
/// KiB.
#[derive(Clone)]
pub struct ReplayWindow {
    highest: u64,
    /// Bit `n % WINDOW` represents number `n`; bits for numbers above `highest - WINDOW` are valid.
    bits: Box<[u64; WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { highest: 0, bits: Box::new([0; WORDS]) }
    }
}

impl ReplayWindow {
    /// Returns whether the number is new, and marks it as seen. A number below the window counts as old. Call it only
    /// for authentic packets, since a forged number would move the window.
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

    /// Clears the numbers that leave the window as `number` becomes the highest. At most one pass over the bitmap.
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

/// Returns the word and the bit of a number.
const fn place(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
}
