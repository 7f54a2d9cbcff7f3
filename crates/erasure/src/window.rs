//! The closed, numbered set of window codes, and of all codes.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::code::{BlockCode, CodeError, ParseCodeError, check_symbol_size};
use crate::rlc;

/// Codes over a sliding window of source symbols: a closed set, in the upper half of the numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WindowCode {
    /// Random linear combinations over GF(256), RFC 8681: see [`rlc`].
    Rlc = 128,
}

impl WindowCode {
    /// Every code, in the order of its number.
    pub const ALL: [Self; 1] = [Self::Rlc];

    /// Returns the number of this code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Returns the name that `Display` prints and `FromStr` reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rlc => "rlc",
        }
    }

    /// Returns the largest window in source symbols.
    #[must_use]
    pub const fn max_window(self) -> u32 {
        match self {
            Self::Rlc => rlc::MAX_WINDOW,
        }
    }

    /// Checks whether this code has windows of `symbols` source symbols of `symbol_size` bytes.
    ///
    /// # Errors
    ///
    /// The exceeded limit; see [`CodeError`].
    pub fn check(self, symbols: u32, symbol_size: usize) -> Result<(), CodeError> {
        let limit = self.max_window();
        if !(1..=limit).contains(&symbols) {
            return Err(CodeError::Window { code: self, symbols, limit });
        }
        check_symbol_size(symbol_size)
    }
}

/// A text that names no window code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown window code {0:?}: use rlc")]
pub struct UnknownWindowCode(String);

impl FromStr for WindowCode {
    type Err = UnknownWindowCode;

    fn from_str(text: &str) -> Result<Self, UnknownWindowCode> {
        Self::ALL.into_iter().find(|code| code.name() == text).ok_or_else(|| UnknownWindowCode(text.to_owned()))
    }
}

impl fmt::Display for WindowCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Any code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyCode {
    /// A block code, which codes each block by itself.
    Block(BlockCode),
    /// A window code, whose window slides over the symbols.
    Window(WindowCode),
}

impl AnyCode {
    /// Returns the number of this code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::Block(code) => code.wire(),
            Self::Window(code) => code.wire(),
        }
    }

    /// Returns the code with this number, or `None` for a reserved or unknown number.
    #[must_use]
    pub fn from_wire(number: u8) -> Option<Self> {
        let window = WindowCode::ALL.into_iter().find(|code| code.wire() == number);
        window.map(Self::Window).or_else(|| BlockCode::from_wire(number).map(Self::Block))
    }

    /// Checks whether this code has blocks, or windows, of `symbols` source symbols of `symbol_size` bytes.
    ///
    /// # Errors
    ///
    /// The exceeded limit; see [`CodeError`].
    pub fn check(self, symbols: u32, symbol_size: usize) -> Result<(), CodeError> {
        match self {
            Self::Block(code) => code.check(symbols, symbol_size),
            Self::Window(code) => code.check(symbols, symbol_size),
        }
    }
}

impl fmt::Display for AnyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(code) => code.fmt(f),
            Self::Window(code) => code.fmt(f),
        }
    }
}

impl FromStr for AnyCode {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, ParseCodeError> {
        text.parse().map(Self::Window).or_else(|_: UnknownWindowCode| text.parse().map(Self::Block))
    }
}

impl From<BlockCode> for AnyCode {
    fn from(code: BlockCode) -> Self {
        Self::Block(code)
    }
}
