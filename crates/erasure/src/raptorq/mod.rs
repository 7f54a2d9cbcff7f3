//! RaptorQ, RFC 6330, bit-exact and complete: every K' of its Table 2, every symbol size, every encoding symbol id of
//! 24 bits.
//!
//! RFC 6330 pads a block of `k` symbols with zero symbols to the next size `K'`. The padding exists in the equations
//! alone ([`system`]), so that one plan serves every `k` with the same `K'` ([`systematic`]). A decoder has two ways to
//! recover lost symbols and takes the faster one: the syndromes of the lost symbols over the encoder's own plan
//! ([`syndrome`]), which needs no elimination in the size of the block, or inactivation decoding
//! ([`crate::inactivation`]).

mod parameters;
mod syndrome;
mod system;
pub(crate) mod tables;

pub use self::parameters::padded;
pub(crate) use self::parameters::{MAX_SOURCE_SYMBOLS, is_prime};
use self::syndrome::Syndrome;
pub(crate) use self::system::RaptorqSystem;
pub use self::system::forget_plans;
use crate::inactivation::Inactivation;
use crate::repairs::Repairs;
use crate::{Block, Progress, systematic};

/// Ids have 24 bits, RFC 6330, section 3.2.
pub(crate) const SYMBOL_LIMIT: u32 = 1 << 24;

/// The encoder.
pub(crate) type Encoder = systematic::Encoder<RaptorqSystem>;

/// Creates an encoder of blocks of `k` source symbols.
pub(crate) fn encoder(k: u32, symbol_size: usize) -> Encoder {
    Encoder::new(RaptorqSystem::new(k), symbol_size)
}

/// How a decoder solves for the missing symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Solver {
    /// Chosen by the number of missing symbols.
    Fastest,
    /// Always over the syndromes of the missing symbols.
    #[cfg(test)]
    Syndrome,
    /// Always by inactivation decoding over the whole block, RFC 6330, section 5.4.
    #[cfg(test)]
    Inactivation,
}

/// An attempt that continues as symbols arrive.
#[derive(Debug)]
enum Attempt {
    Syndrome(Box<Syndrome>),
    Inactivation(Box<Inactivation>),
}

/// Holds repair symbols until the missing source symbols can be computed.
#[derive(Debug)]
pub(crate) struct Decoder {
    system: RaptorqSystem,
    repairs: Repairs,
    solver: Solver,
    attempt: Option<Attempt>,
}

impl Decoder {
    pub(crate) fn new(k: u32, symbol_size: usize) -> Self {
        Self::with_solver(k, symbol_size, Solver::Fastest)
    }

    fn with_solver(k: u32, symbol_size: usize, solver: Solver) -> Self {
        let repairs = Repairs::new(k, symbol_size, SYMBOL_LIMIT);
        Self { system: RaptorqSystem::new(k), repairs, solver, attempt: None }
    }

    fn begin(&self, block: &Block) -> Attempt {
        let by_syndrome = match self.solver {
            Solver::Fastest => syndrome::is_faster(block),
            #[cfg(test)]
            Solver::Syndrome => true,
            #[cfg(test)]
            Solver::Inactivation => false,
        };
        if by_syndrome {
            Attempt::Syndrome(Box::new(Syndrome::new(&self.system, block)))
        } else {
            Attempt::Inactivation(Box::new(Inactivation::new()))
        }
    }

    /// Attempts to decode with every symbol held; returns how many more symbols the next attempt needs, 0 when the
    /// block is complete.
    fn attempt(&mut self, block: &mut Block) -> u32 {
        let attempt = self.attempt.take().unwrap_or_else(|| self.begin(block));
        let (system, repairs) = (&self.system, &mut self.repairs);
        match attempt {
            Attempt::Syndrome(mut attempt) => {
                let lacking = attempt.add_symbols(system, repairs, block);
                if lacking == 0 {
                    attempt.fill(system, repairs, block);
                }
                self.attempt = Some(Attempt::Syndrome(attempt));
                lacking
            }
            Attempt::Inactivation(mut attempt) => {
                let lacking = attempt.add_symbols(system, repairs, block);
                if lacking == 0 {
                    attempt.fill(system, repairs, block);
                } else {
                    self.attempt = Some(Attempt::Inactivation(attempt));
                }
                lacking
            }
        }
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
        match self.attempt(block) {
            0 => {
                self.repairs.clear();
                self.attempt = None;
                Progress::Ready
            }
            more => self.repairs.wait_for(block, more),
        }
    }
}

#[cfg(test)]
mod tests;
