//! Rates as users type and read them.

use std::fmt;

use downpour::Rate;
pub(crate) use units::RateError;

/// Parses a rate as [`units::rate`] does.
///
/// # Errors
/// A text that is not a rate above zero; the error contains an example.
pub(crate) fn parse(text: &str) -> Result<Rate, RateError> {
    units::rate(text).map(Rate::from_bits_per_second)
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
