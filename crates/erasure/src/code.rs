//! The closed, numbered set of block codes and their limits.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::tornado::{self, CheckShare};
use crate::{Decoder, Encoder, WindowCode, lt, raptor, raptorq, reed_solomon, uncoded};

/// Largest symbol, in bytes: the symbol size is a 16-bit number in RFC 6330, section 3.3.2, and on the wire.
const MAX_SYMBOL_SIZE: usize = 65_535;

/// Tornado's numbers begin after this one, by rate.
const BEFORE_TORNADO: u8 = 63;

/// Codes of a source block: a closed set, numbered on the wire.
///
/// Numbers from 128 on are those of [window codes](WindowCode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockCode {
    /// No repair symbols; lost symbols are sent again.
    Uncoded,
    /// Reed-Solomon, over GF(256) up to 128 source symbols, over GF(2^16) above: any `k` symbols decode. For small
    /// blocks.
    ReedSolomon,
    /// RaptorQ, RFC 6330: nearly any `k` symbols decode, and nearly without limit on the number of repair symbols.
    RaptorQ,
    /// Raptor, RFC 5053: a few symbols more than `k` decode.
    Raptor,
    /// LT with the robust soliton, [`lt::LtCode::robust`]: slightly more than `k` symbols decode.
    Lt,
    /// LT over the symbols of a pre-code, [`lt::LtCode::precoded`]: `k` symbols and 1 % more decode where `k` is
    /// about 1000.
    PrecodedLt,
    /// Tornado: only exclusive ors, and a fixed number of repair symbols, which must exceed the losses by a few percent
    /// of `k`.
    Tornado(CheckShare),
}

/// A `k` or a symbol size that a code does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// The number of source symbols lies outside `1..=limit`.
    #[error("{code} has blocks of 1 to {limit} source symbols, not {k}")]
    SourceSymbols {
        /// The requested code.
        code: BlockCode,
        /// The requested number.
        k: u32,
        /// The largest number that this code supports.
        limit: u32,
    },
    /// The number of source symbols in a window lies outside `1..=limit`.
    #[error("{code} has windows of 1 to {limit} source symbols, not {symbols}")]
    Window {
        /// The requested code.
        code: WindowCode,
        /// The requested number.
        symbols: u32,
        /// The largest number that this code supports.
        limit: u32,
    },
    /// The symbol size lies outside `1..=65535` bytes.
    #[error("a symbol has 1 to {MAX_SYMBOL_SIZE} bytes, not {0}")]
    SymbolSize(usize),
    /// Above 128 source symbols Reed-Solomon works on elements of two bytes, so a repair symbol of an odd number of
    /// bytes does not exist.
    #[error("a symbol of reed-solomon with more than 128 of them has an even number of bytes, not {0}")]
    OddSymbolSize(usize),
}

/// Checks whether any code has symbols of this size.
pub(crate) fn check_symbol_size(symbol_size: usize) -> Result<(), CodeError> {
    let fits = (1..=MAX_SYMBOL_SIZE).contains(&symbol_size);
    fits.then_some(()).ok_or(CodeError::SymbolSize(symbol_size))
}

/// A text that names no code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown code {0:?}: use uncoded, reed-solomon, raptorq, raptor, lt, precoded-lt or tornado:1 to tornado:64")]
pub struct ParseCodeError(String);

impl BlockCode {
    /// Every code, in the order of its number; of the 64 rates of Tornado, a quarter and a half.
    pub const ALL: [Self; 8] = [
        Self::Uncoded,
        Self::ReedSolomon,
        Self::RaptorQ,
        Self::Raptor,
        Self::Lt,
        Self::PrecodedLt,
        Self::Tornado(CheckShare::QUARTER),
        Self::Tornado(CheckShare::HALF),
    ];

    /// Returns the number of this code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::Uncoded => 0,
            Self::ReedSolomon => 1,
            Self::RaptorQ => 2,
            Self::Raptor => 3,
            Self::Lt => 4,
            Self::PrecodedLt => 5,
            Self::Tornado(rate) => BEFORE_TORNADO + rate.of_128(),
        }
    }

    /// Returns the code with this number, or `None` for a reserved or unknown number.
    #[must_use]
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Uncoded),
            1 => Some(Self::ReedSolomon),
            2 => Some(Self::RaptorQ),
            3 => Some(Self::Raptor),
            4 => Some(Self::Lt),
            5 => Some(Self::PrecodedLt),
            64..=127 => match CheckShare::new(number - BEFORE_TORNADO) {
                Some(rate) => Some(Self::Tornado(rate)),
                None => None,
            },
            _ => None,
        }
    }

    /// Returns the name that `Display` prints and `FromStr` reads.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Uncoded => "uncoded".into(),
            Self::ReedSolomon => "reed-solomon".into(),
            Self::RaptorQ => "raptorq".into(),
            Self::Raptor => "raptor".into(),
            Self::Lt => "lt".into(),
            Self::PrecodedLt => "precoded-lt".into(),
            Self::Tornado(rate) => format!("tornado:{}", rate.of_128()).into(),
        }
    }

    /// Returns the largest number of source symbols in a block: any for `Uncoded` (the wire's 24-bit ids hold 2^24),
    /// 32,768 for `ReedSolomon` (half of GF(2^16)), 56,403 for `RaptorQ` (RFC 6330, section 5.1.2), 8192 for `Raptor`
    /// (RFC 5053, section 5.4.2.1), 16,384 for `Lt` and `PrecodedLt`, 65,536 for `Tornado`.
    #[must_use]
    pub const fn max_source_symbols(self) -> u32 {
        match self {
            Self::Uncoded => 1 << 24,
            Self::ReedSolomon => reed_solomon::MAX_SOURCE_SYMBOLS,
            Self::RaptorQ => raptorq::MAX_SOURCE_SYMBOLS,
            Self::Raptor => raptor::MAX_SOURCE_SYMBOLS,
            Self::Lt | Self::PrecodedLt => lt::MAX_SOURCE_SYMBOLS,
            Self::Tornado(_) => tornado::MAX_SOURCE_SYMBOLS,
        }
    }

    /// Checks whether this code has blocks of `k` source symbols of `symbol_size` bytes.
    ///
    /// # Errors
    ///
    /// The exceeded limit; see [`CodeError`].
    pub fn check(self, k: u32, symbol_size: usize) -> Result<(), CodeError> {
        let limit = self.max_source_symbols();
        if !(1..=limit).contains(&k) {
            return Err(CodeError::SourceSymbols { code: self, k, limit });
        }
        check_symbol_size(symbol_size)?;
        if let Self::Tornado(rate) = self {
            return Self::ReedSolomon.check(tornado::symbols_of_end(k, rate), symbol_size);
        }
        if self == Self::ReedSolomon && !symbol_size.is_multiple_of(reed_solomon::element_size(k)) {
            return Err(CodeError::OddSymbolSize(symbol_size));
        }
        Ok(())
    }

    /// Returns the first encoding symbol id that does not exist in a block of `k` source symbols; `k` itself if `k` is
    /// outside the code's limits.
    ///
    /// `Uncoded`: `k`. `ReedSolomon`: 256 up to `k` = 128; above, with `c` the power of two at or above `k`, `k +
    /// min(4c, 65536) - c`, so at least 3 repair symbols per source symbol up to `k` = 16,384. `RaptorQ`, `Lt`,
    /// `PrecodedLt`: 2^24. `Raptor`: 2^16, less the padding of a block of less than 4. `Tornado`: somewhat more than
    /// `128 k / (128 - r)`, see [`tornado::TornadoCode::symbol_limit`].
    #[must_use]
    pub fn symbol_limit(self, k: u32) -> u32 {
        if k == 0 || k > self.max_source_symbols() {
            return k;
        }
        match self {
            Self::Uncoded => k,
            Self::ReedSolomon => reed_solomon::symbol_limit(k),
            Self::RaptorQ => raptorq::SYMBOL_LIMIT,
            Self::Raptor => raptor::symbol_limit(k),
            Self::Lt | Self::PrecodedLt => lt::SYMBOL_LIMIT,
            Self::Tornado(rate) => tornado::TornadoCode::new(rate).symbol_limit(k),
        }
    }

    /// Returns the probability that decoding fails with `extra` symbols more than `k` received, losses falling at
    /// random: 0 for a code that decodes from any `k`, the design bound 10^-2(extra+1) of RFC 6330 for `RaptorQ`,
    /// [`CheckShare::failure`] for `Tornado`, and for `Raptor`, `Lt` and `PrecodedLt` a bound fitted to measurements of
    /// blocks decoded from repair symbols alone, from which they fail most often.
    #[must_use]
    pub fn failure_probability(self, k: u32, extra: u32) -> f64 {
        match self {
            Self::Uncoded | Self::ReedSolomon => 0.0,
            Self::Tornado(rate) => rate.failure(k, extra),
            Self::RaptorQ => 1e-2_f64.powi(i32::try_from(extra).unwrap_or(i32::MAX).saturating_add(1)),
            Self::Raptor => raptor::failure(k, extra),
            Self::Lt => lt::robust_failure(k, extra),
            Self::PrecodedLt => lt::precoded_failure(k, extra),
        }
    }

    /// Creates an encoder that builds nothing until its first repair symbol.
    ///
    /// # Errors
    ///
    /// As [`BlockCode::check`].
    pub fn encoder(self, k: u32, symbol_size: usize) -> Result<Box<dyn Encoder>, CodeError> {
        self.check(k, symbol_size)?;
        Ok(match self {
            Self::Uncoded => Box::new(uncoded::Uncoded::new(k)),
            Self::ReedSolomon => reed_solomon::encoder(k, symbol_size),
            Self::RaptorQ => Box::new(raptorq::encoder(k, symbol_size)),
            Self::Raptor => Box::new(raptor::encoder(k, symbol_size)),
            Self::Lt => lt::LtCode::robust().encoder(k, symbol_size)?,
            Self::PrecodedLt => lt::LtCode::precoded().encoder(k, symbol_size)?,
            Self::Tornado(rate) => tornado::TornadoCode::new(rate).encoder(k, symbol_size)?,
        })
    }

    /// Creates a decoder that takes memory only as symbols arrive.
    ///
    /// # Errors
    ///
    /// As [`BlockCode::check`].
    pub fn decoder(self, k: u32, symbol_size: usize) -> Result<Box<dyn Decoder>, CodeError> {
        self.check(k, symbol_size)?;
        Ok(match self {
            Self::Uncoded => Box::new(uncoded::Uncoded::new(k)),
            Self::ReedSolomon => reed_solomon::decoder(k, symbol_size),
            Self::RaptorQ => Box::new(raptorq::Decoder::new(k, symbol_size)),
            Self::Raptor => Box::new(raptor::decoder(k, symbol_size)),
            Self::Lt => lt::LtCode::robust().decoder(k, symbol_size)?,
            Self::PrecodedLt => lt::LtCode::precoded().decoder(k, symbol_size)?,
            Self::Tornado(rate) => tornado::TornadoCode::new(rate).decoder(k, symbol_size)?,
        })
    }
}

impl fmt::Display for BlockCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl FromStr for BlockCode {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, ParseCodeError> {
        let all = Self::ALL.into_iter().chain(CheckShare::all().map(Self::Tornado));
        all.into_iter().find(|code| code.name() == text).ok_or_else(|| ParseCodeError(text.to_owned()))
    }
}
