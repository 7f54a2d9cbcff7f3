//! The symbol sizes of a profile, and the number of symbols in a packet.

use crate::settings::{Algorithm, IntegerRange, Or, SettingError, SettingText, ValueFormat, as_text};
use crate::wire::SYMBOL_OVERHEAD;
use crate::wire::limits::MAX_DATAGRAM;
use std::fmt;
use std::str::FromStr;

/// Symbol sizes in bytes, at least one and the largest first, and the number of symbols in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolSizes {
    sizes: Vec<u16>,
    /// r: at most this many, if the path carries them; `None`: as many as the path carries.
    per_packet: Option<u8>,
}

impl Default for SymbolSizes {
    /// 1408 fills a 1500-byte packet of IPv4 and IPv6; the others are for tunnels and 1280
    /// (docs/design/block-sizes.md).
    fn default() -> Self {
        Self { sizes: vec![1408, 1344, 1280, 1152], per_packet: Some(1) }
    }
}

/// The smallest symbol that leaves room for feedback in packets of its size, and the largest: 9000-byte frames.
const LIMITS: std::ops::RangeInclusive<u16> = 256..=8900;

/// UDP payload of a 9000-byte IPv6 packet. Larger packets are only sent if the number of symbols requires them.
const LARGEST_FIT: usize = 8952;

/// The number of symbols in a packet, as text.
const PER_PACKET: Or<IntegerRange> = Or("fit", IntegerRange(1, 64));

const KEY: &str = "per-packet";

fn allowed() -> String {
    ValueFormat::<Option<u8>>::allowed(&PER_PACKET)
}

impl SymbolSizes {
    /// Creates a single size, without alternatives.
    pub fn only(size: u16) -> Self {
        Self { sizes: vec![size], per_packet: Some(1) }
    }

    /// Returns the same sizes, with as many symbols in a packet as the path carries.
    #[must_use]
    pub fn filling_packets(self) -> Self {
        Self { per_packet: None, ..self }
    }

    /// Returns all sizes, largest first.
    pub fn all(&self) -> &[u16] {
        &self.sizes
    }

    /// Returns the smallest size.
    pub fn smallest(&self) -> u16 {
        self.sizes[self.sizes.len() - 1]
    }

    /// Returns the largest size.
    pub fn largest(&self) -> u16 {
        self.sizes[0]
    }

    /// Returns the number of symbols of this size in one packet, if the path carries it.
    pub fn per_packet(&self, size: u16) -> u8 {
        let fit = |datagram: usize| ((datagram - SYMBOL_OVERHEAD) / usize::from(size.max(1))).clamp(1, 64) as u8;
        self.per_packet.map_or_else(|| fit(LARGEST_FIT), |count| count.min(fit(MAX_DATAGRAM)))
    }

    /// Returns the largest size that a datagram of `payload` bytes carries, or the smallest if none fits.
    pub fn for_payload(&self, payload: usize) -> u16 {
        let fits = |size: &&u16| usize::from(**size) + SYMBOL_OVERHEAD <= payload;
        self.sizes.iter().find(fits).copied().unwrap_or(self.smallest())
    }
}

impl fmt::Display for SymbolSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl FromStr for SymbolSizes {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        Self::read(text, Some(1))
    }
}

impl SymbolSizes {
    /// Reads sizes, and the number of symbols in a packet: `per_packet` if the text leaves it out.
    fn read(text: &str, per_packet: Option<u8>) -> Result<Self, SettingError> {
        let (list, numbers) = text.split_once(':').unwrap_or((text, ""));
        let sizes: Result<Vec<u16>, _> = list.split(',').map(str::parse).collect();
        let sizes = sizes.ok().filter(|sizes| {
            sizes.is_sorted_by(|before, after| before > after) && sizes.iter().all(|size| LIMITS.contains(size))
        });
        let sizes = sizes.ok_or_else(|| SettingError::Value {
            key: "list of symbol sizes".into(),
            value: list.into(),
            allowed: format!("bytes from {} to {}, largest first, such as 1408,1152", LIMITS.start(), LIMITS.end()),
        })?;
        let mut symbols = Self { sizes, per_packet };
        for number in numbers.split(',').filter(|number| !number.is_empty()) {
            let (key, value) = number.split_once('=').unwrap_or((number, ""));
            symbols.set_number(key, value)?;
        }
        Ok(symbols)
    }
}

impl Algorithm for SymbolSizes {
    fn name(&self) -> &'static str {
        "symbols"
    }

    fn written(&self, own: &[SettingText]) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(u16::to_string).collect();
        let per_packet = PER_PACKET.print(&self.per_packet);
        let same = own.iter().all(|own| own.value == per_packet);
        let number = if self.per_packet == Some(1) && same { String::new() } else { format!(":{KEY}={per_packet}") };
        sizes.join(",") + &number
    }

    fn numbers(&self) -> Vec<SettingText> {
        vec![SettingText { key: KEY, value: PER_PACKET.print(&self.per_packet), allowed: allowed() }]
    }

    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        if key != KEY {
            return Err(SettingError::UnknownKey { of: "symbols".into(), key: key.into(), keys: KEY.into() });
        }
        self.per_packet = PER_PACKET.parse(value).ok_or_else(|| SettingError::Value {
            key: KEY.into(),
            value: value.into(),
            allowed: allowed(),
        })?;
        Ok(())
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        *self = Self::read(text, self.per_packet)?;
        Ok(())
    }
}

as_text!(SymbolSizes);
