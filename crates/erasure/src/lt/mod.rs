//! LT codes (Luby 2002), and LT codes over the symbols of a pre-code (rc-udp, sections III and IV-C).
//!
//! An encoding symbol is the exclusive or of a few symbols; their number and choice follow from a seed and its id. The
//! symbols to choose from are the k source symbols and, with a pre-code, R parities of them.
//!
//! Departs: rc-udp sends encoding symbols only. In this crate ids below k are the source symbols themselves, as in
//! every code, so a sender may send them first; a source symbol that arrives is an equation of degree 1. A sender that
//! uses only ids from k on has the code of the document.

mod distribution;
mod encoder;
mod system;

pub use self::distribution::Distribution;
use self::encoder::Encoder;
pub(crate) use self::system::LtSystem;
use crate::raptor::ldpc;
use crate::{BlockCode, CodeError, inactivation};

/// 10 MB in symbols of 128 bytes fit (rc-udp, figure 3); not much more, since the cost of the rest after peeling grows
/// with the cube of its size.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 1 << 14;

/// Ids have 24 bits on the wire.
pub(crate) const SYMBOL_LIMIT: u32 = 1 << 24;

/// The seed of the codes that have a number on the wire: "downpour" in ASCII.
const SEED: u64 = 0x646f_776e_706f_7572;

/// Degrees of [`LtCode::precoded`] and their weights, of 1000.
///
/// The degrees are those of RFC 5053. Fewer of them are 2: encoding symbols of degree 2 that form a cycle are linearly
/// dependent, and with its weights, 460 of 1000, this happens in every other block. More are 40: decoding fails mostly
/// because a few source symbols are in no encoding symbol, nor are the parities that contain them (once in 2000 blocks
/// of 1000 with 20 of degree 40, not once in 30,000 with 40).
const PRECODED_DEGREES: [(u32, u32); 7] = [(1, 10), (2, 340), (3, 330), (4, 140), (10, 85), (11, 55), (40, 40)];

/// A code: the parameters that both ends need in addition to k and the symbol size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LtCode {
    /// The number of symbols that an encoding symbol adds up.
    pub distribution: Distribution,
    /// The pre-code.
    pub parities: Parities,
    /// Codes with different seeds are unrelated.
    pub seed: u64,
}

/// A pre-code: each source symbol is added to three of R parities, as to the LDPC symbols of RFC 5053, section 5.4.2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parities {
    /// R = 0: a plain LT code.
    None,
    /// R = S of RFC 5053, about k / 100 + sqrt(2 k): the fewest with which no two source symbols have the same three.
    Fewest,
    /// The smallest prime at or above this number, which is at most 2^20, and at least 3.
    AtLeast(u32),
}

/// Returns the probability that `k + extra` repair symbols of [`LtCode::robust`] do not decode, from trials with k = 1
/// to 30,000: because of too few independent equations, or because of a source symbol in none of them, which more
/// symbols repair slowly, since each contains it with probability ln(k / delta) / k.
pub(crate) fn robust_failure(k: u32, extra: u32) -> f64 {
    let (k, extra) = (f64::from(k), f64::from(extra));
    let dependent = 1.2 * (k / 100.0).powf(0.4).max(1.0) * 0.57_f64.powf(extra);
    let uncovered = 1e-3 * (-extra * (1000.0 * k).ln() / k).exp();
    (dependent + uncovered).min(1.0)
}

/// Returns the probability that `k + extra` repair symbols of [`LtCode::precoded`] do not decode, from trials with
/// k = 1 to 30,000.
pub(crate) fn precoded_failure(k: u32, extra: u32) -> f64 {
    let (large, extra) = (f64::from(k) / 1000.0, f64::from(extra));
    // In a small block some of the few possible combinations occur twice.
    let chance = if k < 50 { 1.8 * 0.6_f64.powf(extra) } else { 1.1 * large.powf(0.5).max(1.0) * 0.55_f64.powf(extra) };
    chance.min(1.0)
}

impl LtCode {
    /// Returns the code with the number of [`BlockCode::Lt`]: the robust soliton with c = 0.03 and delta = 0.001, no
    /// pre-code.
    ///
    /// With inactivation a code decodes from about k symbols whenever each source symbol is covered, so delta is small
    /// and the spike high, to maximise coverage; c is small, since it only enlarges the ripple for peeling.
    #[must_use]
    pub fn robust() -> Self {
        Self { distribution: Distribution::Robust { c: 30, delta: 1 }, parities: Parities::None, seed: SEED }
    }

    /// Returns the code with the number of [`BlockCode::PrecodedLt`]: degrees of 5.4 on average, and the fewest
    /// parities, which recover the source symbols in no encoding symbol.
    #[must_use]
    pub fn precoded() -> Self {
        Self { distribution: Distribution::Weights(PRECODED_DEGREES.to_vec()), parities: Parities::Fewest, seed: SEED }
    }

    /// Returns R for blocks of `k` source symbols.
    ///
    /// # Panics
    ///
    /// When the parities are outside the limits of [`Parities`].
    #[must_use]
    pub fn parities(&self, k: u32) -> u32 {
        match self.parities {
            Parities::None => 0,
            Parities::Fewest => ldpc::symbols(k),
            Parities::AtLeast(count) => {
                assert!(count <= 1 << 20, "{count} parities");
                ldpc::prime_at_or_above(count.max(3))
            }
        }
    }

    /// Creates an encoder of this code that builds nothing until its first repair symbol.
    ///
    /// # Errors
    ///
    /// As [`BlockCode::encoder`] of `Lt`, whose limits hold for all.
    ///
    /// # Panics
    ///
    /// When the parities are outside the limits of [`Parities`]; with the first repair symbol, when the distribution's
    /// numbers are outside the limits of [`Distribution`].
    pub fn encoder(&self, k: u32, symbol_size: usize) -> Result<Box<dyn crate::Encoder>, CodeError> {
        BlockCode::Lt.check(k, symbol_size)?;
        Ok(Box::new(Encoder::new(LtSystem::new(self.clone(), k), symbol_size)))
    }

    /// Creates a decoder of this code that takes memory only as symbols arrive. It peels, and makes unknowns inactive
    /// where that stalls.
    ///
    /// # Errors
    ///
    /// As [`LtCode::encoder`].
    ///
    /// # Panics
    ///
    /// As [`LtCode::encoder`].
    pub fn decoder(&self, k: u32, symbol_size: usize) -> Result<Box<dyn crate::Decoder>, CodeError> {
        BlockCode::Lt.check(k, symbol_size)?;
        Ok(Box::new(inactivation::Decoder::new(LtSystem::new(self.clone(), k), symbol_size, SYMBOL_LIMIT)))
    }
}
