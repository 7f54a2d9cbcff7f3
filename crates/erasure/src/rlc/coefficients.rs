//! The source symbols and coefficients of a repair symbol: RFC 8681, section 3.6.

use super::tinymt32::TinyMt32;

/// The finite field of the coefficients. One octet of a symbol is one element of GF(256), or eight of GF(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2), FEC Encoding ID 9: repair is an exclusive or. Needs a few symbols more than were lost.
    Gf2,
    /// GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, FEC Encoding ID 10: nearly as many symbols as were lost
    /// suffice.
    Gf256,
}

/// The density threshold DT: a coefficient is nonzero with probability (DT + 1) / 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Density(u8);

impl Density {
    /// No coefficient is 0. In GF(2) all repair symbols of a window are then identical, whatever their key.
    pub const FULL: Self = Self(15);

    /// Returns the density of this threshold, 0 to 15.
    #[must_use]
    pub const fn new(threshold: u8) -> Option<Self> {
        if threshold <= 15 { Some(Self(threshold)) } else { None }
    }
}

/// Writes the coefficients of a window's symbols to `out`, that of the oldest first.
pub(super) fn coefficients(field: Field, density: Density, key: u16, out: &mut [u8]) {
    let mut generator = TinyMt32::new(key.into());
    let full = density == Density::FULL;
    for coefficient in out {
        // With the full density no number is drawn for the choice of symbols.
        *coefficient = match field {
            Field::Gf2 => u8::from(full || generator.next16() <= density.0),
            Field::Gf256 if full || generator.next16() <= density.0 => not_zero(&mut generator),
            Field::Gf256 => 0,
        };
    }
}

fn not_zero(generator: &mut TinyMt32) -> u8 {
    loop {
        let number = generator.next256();
        if number != 0 {
            return number;
        }
    }
}
