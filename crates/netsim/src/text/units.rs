//! Numbers with units.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ::units::RateError;

use super::TextError;
use crate::Rate;

const RATES: [(&str, u64); 4] = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000), ("bit/s", 1)];
/// The first that divides a size is used to print it. `KB` is 1000 bytes, `KiB` 1024.
const SIZES: [(&str, u64); 7] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const TIMES: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A queue in bandwidth-delay products is counted in millionths of one.
const BDPS: [(&str, u64); 1] = [("bdp", MILLIONTHS)];
pub(super) const MILLIONTHS: u64 = 1_000_000;

impl FromStr for Rate {
    type Err = TextError;

    /// Parses `100M`, `2.5G` or `500k` in powers of ten, `64000bit/s`, and `12MB/s` in bytes; `0` needs no unit.
    fn from_str(text: &str) -> Result<Self, TextError> {
        match ::units::whole_rate(text) {
            Ok(bits) => Ok(Self::from_bits_per_second(bits)),
            Err(RateError::Zero) => Ok(Self::from_bits_per_second(0)),
            Err(error @ RateError::NoUnit(_)) => Err(error.into()),
            Err(_) => Err(bad("rate", text, "100M (Mbit/s), 1G, 500k or 12MB/s")),
        }
    }
}

impl fmt::Display for Rate {
    /// Prints the rate in the largest unit of bits that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_scaled(self.bits_per_second(), &RATES))
    }
}

pub(super) fn bad(key: &str, value: &str, example: &'static str) -> TextError {
    TextError::Value { key: key.to_owned(), value: value.to_owned(), example }
}

pub(super) fn time(key: &str, value: &str) -> Result<Duration, TextError> {
    scaled(value, &TIMES).map(Duration::from_nanos).ok_or_else(|| bad(key, value, "50ms, 1s, 200us or 100ns"))
}

pub(super) fn size(key: &str, value: &str) -> Result<u64, TextError> {
    scaled(value, &SIZES).ok_or_else(|| bad(key, value, "256KB (1 KB is 1000 bytes), 256KiB or 1MB"))
}

/// The size of a queue.
pub(super) enum QueueSize {
    Bytes(u64),
    /// Millionths of the link's bytes in one round trip.
    Bdps(u64),
}

pub(super) fn queue_size(key: &str, value: &str) -> Result<QueueSize, TextError> {
    scaled(value, &SIZES)
        .map(QueueSize::Bytes)
        .or_else(|| scaled(value, &BDPS).map(QueueSize::Bdps))
        .ok_or_else(|| bad(key, value, "256KB (1 KB is 1000 bytes), 256KiB or 1bdp"))
}

/// Parses `5%` or `0.05`.
pub(super) fn probability(key: &str, value: &str, example: &'static str) -> Result<f64, TextError> {
    // As one decimal number, not divided by 100: the nearest double to five percent is that of 0.05.
    let number = match value.strip_suffix('%') {
        Some(percent) => format!("{}e-2", percent.trim_end()).parse(),
        None => value.parse(),
    };
    number.map_err(|_| bad(key, value, example))
}

/// A probability, printed in percent if that reads back as the same number, otherwise as a fraction.
pub(super) struct Percent(pub(super) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = format!("{:.10}", self.0 * 100.0);
        let percent = format!("{}%", rounded.trim_end_matches('0').trim_end_matches('.'));
        if probability("", &percent, "") == Ok(self.0) { f.write_str(&percent) } else { write!(f, "{}", self.0) }
    }
}

/// Parses a decimal number with one of `units`, as a whole number of the smallest; `None` if it is malformed or leaves
/// a fraction.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].trim();
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty()
        || fraction.len() > 18
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let divisor = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = u128::from(whole.parse::<u64>().ok()?) * divisor + fraction.parse::<u128>().unwrap_or(0);
    let product = number.checked_mul(u128::from(scale))?;
    if product.is_multiple_of(divisor) { u64::try_from(product / divisor).ok() } else { None }
}

pub(super) fn print_time(duration: Duration) -> String {
    print_scaled(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), &TIMES)
}

pub(super) fn print_size(bytes: u64) -> String {
    print_scaled(bytes, &SIZES)
}

/// Prints a whole number in the first of `units` that leaves no fraction; the last has scale 1.
fn print_scaled(number: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, scale)| number != 0 && number.is_multiple_of(*scale));
    let (name, scale) = unit.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", number / scale)
}
