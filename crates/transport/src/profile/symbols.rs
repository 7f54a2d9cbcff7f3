//! The symbol sizes that a profile may take.

use crate::settings::{Choice, SettingError, Shown, as_text};
use std::fmt;
use std::str::FromStr;

/// Symbol sizes in bytes, largest first, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolSizes(Vec<u16>);

impl Default for SymbolSizes {
    /// 1408 fills a 1500-byte packet of IPv4 and IPv6; the others are for tunnels and 1280 (design section 6).
    fn default() -> Self {
        Self(vec![1408, 1344, 1280, 1152])
    }
}

/// The smallest symbol that leaves room for feedback in packets of its size, and the largest: 9000-byte frames.
const LIMITS: std::ops::RangeInclusive<u16> = 256..=8900;

impl SymbolSizes {
    /// One size and no other.
    pub fn only(size: u16) -> Self {
        Self(vec![size])
    }

    /// All of them, largest first.
    pub fn all(&self) -> &[u16] {
        &self.0
    }

    /// The smallest.
    pub fn smallest(&self) -> u16 {
        self.0[self.0.len() - 1]
    }

    /// The largest.
    pub fn largest(&self) -> u16 {
        self.0[0]
    }

    /// The largest that a datagram of `payload` bytes carries; the smallest where none fits.
    pub fn for_payload(&self, payload: usize) -> u16 {
        let fits = |size: &&u16| usize::from(**size) + crate::wire::SYMBOL_OVERHEAD <= payload;
        self.0.iter().find(fits).copied().unwrap_or(self.smallest())
    }
}

impl fmt::Display for SymbolSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u16::to_string).collect();
        f.write_str(&sizes.join(","))
    }
}

impl FromStr for SymbolSizes {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let sizes: Result<Vec<u16>, _> = text.split(',').map(str::parse).collect();
        let sizes = sizes.ok().filter(|sizes| {
            sizes.is_sorted_by(|before, after| before > after) && sizes.iter().all(|size| LIMITS.contains(size))
        });
        sizes.map(Self).ok_or_else(|| SettingError::Value {
            key: "list of symbol sizes".into(),
            value: text.into(),
            allowed: format!("bytes from {} to {}, largest first, such as 1408,1152", LIMITS.start(), LIMITS.end()),
        })
    }
}

impl Choice for SymbolSizes {
    fn text(&self) -> String {
        self.to_string()
    }

    fn numbers(&self) -> Vec<Shown> {
        Vec::new()
    }

    fn set_number(&mut self, key: &str, _value: &str) -> Result<(), SettingError> {
        Err(SettingError::UnknownKey { of: "symbols".into(), key: key.into(), keys: "no numbers".into() })
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        *self = text.parse()?;
        Ok(())
    }
}

as_text!(SymbolSizes);
