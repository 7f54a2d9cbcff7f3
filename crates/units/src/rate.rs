//! Rates as users type them: `100M` is bits per second, `12MB/s` is bytes per second.

/// An invalid rate, with advice on the form.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RateError {
    /// No digits at the beginning.
    #[error("{0:?} is not a rate: write a number and a unit, such as 100M (Mbit/s) or 12MB/s")]
    NotANumber(String),
    /// No unit, which means bits for some programs, bytes or KiB for others.
    #[error("{0:?} has no unit: write {0}M for Mbit/s, {0}MB/s for megabytes per second, {0}bit/s if you mean that")]
    NoUnit(String),
    /// A rate of zero, at which nothing would be sent.
    #[error("a rate of 0 sends nothing")]
    Zero,
    /// A fraction of a bit per second, where whole ones are wanted.
    #[error("{0:?} is not a whole number of bits per second")]
    Fraction(String),
    /// A number that does not fit into 64 bits.
    #[error("{0:?} is too large for a rate")]
    TooLarge(String),
    /// A lower-case `m`, `g` or `t`.
    #[error("{text:?} means thousandths: write {upper} for {name}bit/s")]
    LowerCase {
        /// The text as typed.
        text: String,
        /// The same with the prefix in upper case.
        upper: String,
        /// The prefix in words.
        name: &'static str,
    },
    /// Bytes without a time.
    #[error("{0:?} is a size: write {0}/s for bytes per second, or omit the B for bits per second")]
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

/// Parses a rate, and returns it in bits per second, at least 1. Prefixes are powers of ten, with an `i` powers of two; `bit/s`
/// and `bps` may follow the prefix, `B/s` makes it bytes.
///
/// # Errors
/// A text other than a rate above zero, with advice on the form.
pub fn rate(text: &str) -> Result<u64, RateError> {
    let (number, divisor) = fraction(text)?;
    u64::try_from((number + divisor / 2) / divisor)
        .map(|bits| bits.max(1))
        .map_err(|_| RateError::TooLarge(text.trim().to_owned()))
}

/// Parses a rate as [`rate`] does, without rounding.
///
/// # Errors
/// Those of [`rate`], and a fraction of a bit per second.
pub fn whole_rate(text: &str) -> Result<u64, RateError> {
    let (number, divisor) = fraction(text)?;
    if !number.is_multiple_of(divisor) {
        return Err(RateError::Fraction(text.trim().to_owned()));
    }
    u64::try_from(number / divisor).map_err(|_| RateError::TooLarge(text.trim().to_owned()))
}

/// Parses a rate as the numerator and the denominator of its bits per second.
fn fraction(text: &str) -> Result<(u128, u128), RateError> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = (&text[..unit_at], text[unit_at..].trim());
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    if decimals.contains('.') || (whole.is_empty() && decimals.is_empty()) {
        return Err(RateError::NotANumber(text.to_owned()));
    }
    if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return Err(RateError::Zero);
    }
    if unit.is_empty() {
        return Err(RateError::NoUnit(text.to_owned()));
    }
    let bits = bits_per_unit(text, digits, unit)?;
    let too_large = || RateError::TooLarge(text.to_owned());
    // More decimals are below a bit per second with any unit.
    let decimals = &decimals[..decimals.len().min(18)];
    let divisor = 10_u128.pow(u32::try_from(decimals.len()).unwrap_or_default());
    let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u64>().ok().map(u128::from) };
    let whole = number(whole).and_then(|whole| whole.checked_mul(divisor)).ok_or_else(too_large)?;
    let sum = whole + number(decimals).unwrap_or_default();
    Ok((sum.checked_mul(bits).ok_or_else(too_large)?, divisor))
}

fn bits_per_unit(text: &str, digits: &str, unit: &str) -> Result<u128, RateError> {
    let (prefix, rest) = match unit.chars().next() {
        Some(letter @ ('k' | 'K' | 'M' | 'G' | 'T' | 'm' | 'g' | 't')) => (Some(letter), &unit[1..]),
        _ => (None, unit),
    };
    let (binary, kind) = match rest.strip_prefix('i') {
        Some(kind) if prefix.is_some() => (true, kind),
        _ => (false, rest),
    };
    let bits = match kind {
        "B/s" => 8,
        "B" => return Err(RateError::Size(text.to_owned())),
        "" | "bit/s" | "bps" | "b/s" if binary => return Err(RateError::BinaryBits(text.to_owned())),
        "" | "bit/s" | "bps" | "b/s" => 1,
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
    let base: u128 = if binary { 1024 } else { 1000 };
    Ok(bits * base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_parse_accepts_units() {
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
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
    }

    #[test]
    fn rejected_rates_have_advice() {
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
            ("99999999999999999999T", "too large"),
        ] {
            let error = rate(text).expect_err(text).to_string();
            assert!(error.contains(hint), "{text:?} gave {error:?}, without {hint:?}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_whole_rate_is_not_rounded() {
        assert_eq!(whole_rate("18446744073709551615bit/s"), Ok(u64::MAX));
        assert_eq!(whole_rate("1.5kbit/s"), Ok(1500));
        assert_eq!(whole_rate("0.1bit/s"), Err(RateError::Fraction("0.1bit/s".to_owned())));
        assert_eq!(whole_rate("10"), Err(RateError::NoUnit("10".to_owned())));
    }
}
