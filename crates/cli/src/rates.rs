//! Rates as users type them: `100M` is bits per second, `12MB/s` is bytes per second.

use std::fmt;

use downpour::Rate;

/// An invalid rate, with advice what to write instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum RateError {
    /// No digits at the beginning.
    #[error("{0:?} is not a rate: write a number and a unit, such as 100M (Mbit/s) or 12MB/s")]
    NotANumber(String),
    /// No unit, which means bits for some programs, bytes or KiB for others.
    #[error("{0:?} has no unit: write {0}M for Mbit/s, {0}MB/s for megabytes per second, {0}bit/s if you mean that")]
    NoUnit(String),
    /// A rate of zero, at which nothing would be sent.
    #[error("a rate of 0 sends nothing")]
    Zero,
    /// A number that does not fit into 64 bits.
    #[error("{0:?} is more than any line carries")]
    TooLarge(String),
    /// A lower-case `m`, `g` or `t`.
    #[error("{text:?} means thousandths: write {upper} for {name}bit/s")]
    LowerCase {
        /// The text that was typed.
        text: String,
        /// The same with the prefix in upper case.
        upper: String,
        /// The prefix in words.
        name: &'static str,
    },
    /// Bytes without a time.
    #[error("{0:?} is a size: write {0}/s for bytes per second, or leave the B out for bits per second")]
    Size(String),
    /// A binary prefix on bits.
    #[error("{0:?}: binary prefixes are for bytes per second only, such as 12MiB/s")]
    BinaryBits(String),
    /// An unknown unit.
    #[error(
        "{unit:?} is not a unit of a rate: write k, M, G or T for bits per second, or kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s"
    )]
    Unit {
        /// The text after the number.
        unit: String,
    },
}

/// Parses a rate. Prefixes are powers of ten, with an `i` powers of two; `bit/s` and `bps` may follow the prefix, `B/s`
/// makes it bytes.
///
/// # Errors
/// A text that is not a rate above zero, with advice what to write instead.
pub(crate) fn parse(text: &str) -> Result<Rate, RateError> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = (&text[..unit_at], text[unit_at..].trim());
    let number: f64 = digits.parse().map_err(|_| RateError::NotANumber(text.to_owned()))?;
    if number == 0.0 {
        return Err(RateError::Zero);
    }
    if unit.is_empty() {
        return Err(RateError::NoUnit(text.to_owned()));
    }
    let bits = number * bits_per_unit(text, digits, unit)?;
    if bits >= u64::MAX as f64 {
        return Err(RateError::TooLarge(text.to_owned()));
    }
    Ok(Rate::from_bits_per_second(bits.round().max(1.0) as u64))
}

fn bits_per_unit(text: &str, digits: &str, unit: &str) -> Result<f64, RateError> {
    let (prefix, rest) = match unit.chars().next() {
        Some(letter @ ('k' | 'K' | 'M' | 'G' | 'T' | 'm' | 'g' | 't')) => (Some(letter), &unit[1..]),
        _ => (None, unit),
    };
    let (binary, kind) = match rest.strip_prefix('i') {
        Some(kind) if prefix.is_some() => (true, kind),
        _ => (false, rest),
    };
    let bits = match kind {
        "B/s" => 8.0,
        "B" => return Err(RateError::Size(text.to_owned())),
        "" | "bit/s" | "bps" | "b/s" if binary => return Err(RateError::BinaryBits(text.to_owned())),
        "" | "bit/s" | "bps" | "b/s" => 1.0,
        _ => return Err(RateError::Unit { unit: unit.to_owned() }),
    };
    let power = match prefix {
        None => 0,
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(lower) => {
            return Err(RateError::LowerCase {
                text: text.to_owned(),
                upper: format!("{digits}{}", unit.replacen(lower, &lower.to_ascii_uppercase().to_string(), 1)),
                name: match lower {
                    'm' => "M",
                    'g' => "G",
                    _ => "T",
                },
            });
        }
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    Ok(bits * base.powi(power))
}

/// Displays a rate in bits and in bytes: `100 Mbit/s = 12.5 MB/s`.
pub(crate) struct Both(pub(crate) Rate);

impl fmt::Display for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.bits_per_second() as f64;
        write!(f, "{} = {}", units::scaled(bits, "bit/s"), units::bytes_per_second(bits / 8.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        for (text, bits) in [
            ("100M", 100_000_000),
            ("100 M", 100_000_000),
            ("100Mbit/s", 100_000_000),
            ("100 Mbps", 100_000_000),
            ("100Mb/s", 100_000_000),
            ("1.5G", 1_500_000_000),
            ("500k", 500_000),
            ("500K", 500_000),
            ("2T", 2_000_000_000_000),
            ("64000bit/s", 64_000),
            ("12MB/s", 96_000_000),
            ("12.5 MB/s", 100_000_000),
            ("1GB/s", 8_000_000_000),
            ("800kB/s", 6_400_000),
            ("125B/s", 1000),
            ("1MiB/s", 8_388_608),
            ("1KiB/s", 8192),
            ("0.5GiB/s", 4_294_967_296),
            (" 10M ", 10_000_000),
            (".5M", 500_000),
            ("0.1bps", 1),
        ] {
            assert_eq!(parse(text), Ok(Rate::from_bits_per_second(bits)), "{text}");
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, hint) in [
            ("", "such as 100M"),
            ("fast", "such as 100M"),
            ("-5M", "such as 100M"),
            ("1.2.3M", "such as 100M"),
            (".", "such as 100M"),
            ("64000", "64000M for Mbit/s"),
            ("0", "sends nothing"),
            ("0MB/s", "sends nothing"),
            ("100m", "100M for Mbit/s"),
            ("1g", "1G for Gbit/s"),
            ("12mB/s", "12MB/s"),
            ("12MB", "12MB/s for bytes"),
            ("12MiB", "12MiB/s for bytes"),
            ("100Mi", "12MiB/s"),
            ("100Mibit/s", "12MiB/s"),
            ("100X", "not a unit"),
            ("100M/s", "not a unit"),
            ("1e9", "not a unit"),
            ("100Mé", "not a unit"),
            ("10iB/s", "not a unit"),
            ("99999999999999999999T", "any line"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(hint), "{text:?} gave {error:?}, without {hint:?}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn both_units_are_echoed() {
        for (text, echo) in [
            ("100M", "100 Mbit/s = 12.5 MB/s"),
            ("12MB/s", "96 Mbit/s = 12 MB/s"),
            ("1.5G", "1.5 Gbit/s = 188 MB/s"),
            ("1MiB/s", "8.39 Mbit/s = 1.05 MB/s"),
            ("999999k", "1 Gbit/s = 125 MB/s"),
            ("8b/s", "8 bit/s = 1 B/s"),
        ] {
            let rate = parse(text).expect(text);
            assert_eq!(Both(rate).to_string(), echo, "{text}");
        }
    }
}
