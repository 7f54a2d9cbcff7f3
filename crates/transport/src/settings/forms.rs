//! The text forms of values: numbers, shares, times, rates.

use crate::time::Rate;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// The text form of a value.
pub trait ValueFormat<V>: Sync {
    /// The value, if the text is allowed.
    fn parse(&self, text: &str) -> Option<V>;
    /// Text that reads back as the value.
    fn print(&self, value: &V) -> String;
    /// The allowed values, in words.
    fn allowed(&self) -> String;
}

/// A number from the first to the second.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64, pub f64);

impl ValueFormat<f64> for Number {
    fn parse(&self, text: &str) -> Option<f64> {
        text.parse().ok().filter(|value| (self.0..=self.1).contains(value))
    }

    fn print(&self, value: &f64) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.0, self.1)
    }
}

/// A share of a whole, from the first to the second: `5%` or `0.05`.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub f64, pub f64);

impl ValueFormat<f64> for Share {
    fn parse(&self, text: &str) -> Option<f64> {
        let value = match text.strip_suffix('%') {
            // A hundredth of a decimal, exactly the decimal shifted by two places.
            Some(percent) => format!("{}e-2", percent).parse().ok().filter(|_| percent.parse::<f64>().is_ok())?,
            None => text.parse::<f64>().ok()?,
        };
        (self.0..=self.1).contains(&value).then_some(value)
    }

    fn print(&self, value: &f64) -> String {
        let percent = (value * 1e10).round() / 1e8;
        let text = format!("{percent}%");
        if self.parse(&text) == Some(*value) { text } else { value.to_string() }
    }

    fn allowed(&self) -> String {
        format!("a share from {} to {}", self.print(&self.0), self.print(&self.1))
    }
}

/// A whole number from the first to the second.
#[derive(Clone, Copy, Debug)]
pub struct IntegerRange(pub u64, pub u64);

impl<V: Copy + TryFrom<u64> + Into<u64> + 'static> ValueFormat<V> for IntegerRange {
    fn parse(&self, text: &str) -> Option<V> {
        let value = text.parse().ok().filter(|value| (self.0..=self.1).contains(value))?;
        V::try_from(value).ok()
    }

    fn print(&self, value: &V) -> String {
        let value: u64 = (*value).into();
        value.to_string()
    }

    fn allowed(&self) -> String {
        if self.1 == u64::MAX {
            return format!("a whole number from {} on", self.0);
        }
        format!("a whole number from {} to {}", self.0, self.1)
    }
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug)]
pub struct Switch;

impl ValueFormat<bool> for Switch {
    fn parse(&self, text: &str) -> Option<bool> {
        match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    fn print(&self, value: &bool) -> String {
        if *value { "on" } else { "off" }.into()
    }

    fn allowed(&self) -> String {
        "on or off".into()
    }
}

/// A time from the first to the second, in whole nanoseconds: `250us`, `5ms`, `1.5s`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration, pub Duration);

const SPANS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl ValueFormat<Duration> for Span {
    fn parse(&self, text: &str) -> Option<Duration> {
        let at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = SPANS.iter().find(|(name, _)| *name == &text[at..])?.1;
        let nanos = match text[..at].parse::<u64>() {
            Ok(whole) => whole.checked_mul(unit)?,
            Err(_) => {
                let nanos = text[..at].parse::<f64>().ok()? * unit as f64;
                (0.0..9e18).contains(&nanos).then_some(nanos.round() as u64)?
            }
        };
        Some(Duration::from_nanos(nanos)).filter(|span| (self.0..=self.1).contains(span))
    }

    fn print(&self, value: &Duration) -> String {
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        let whole = |(_, unit): &&(&str, u64)| nanos.is_multiple_of(*unit);
        let (name, unit) = SPANS.iter().find(whole).unwrap_or(&SPANS[3]);
        format!("{}{}", nanos / unit, if nanos == 0 { "ms" } else { name })
    }

    fn allowed(&self) -> String {
        format!("a time from {} to {}, such as 5ms or 1.5s", self.print(&self.0), self.print(&self.1))
    }
}

/// A rate in bits per second: `100M`, `1.5G`.
#[derive(Clone, Copy, Debug)]
pub struct BitRate;

impl ValueFormat<Rate> for BitRate {
    fn parse(&self, text: &str) -> Option<Rate> {
        parse_rate(text)
    }

    fn print(&self, value: &Rate) -> String {
        rate_text(*value)
    }

    fn allowed(&self) -> String {
        "a rate in bits per second, such as 100M or 1.5G".into()
    }
}

/// An optional value: the inner form, or this word for `None`.
#[derive(Clone, Copy, Debug)]
pub struct Or<F>(pub &'static str, pub F);

impl<V, F: ValueFormat<V>> ValueFormat<Option<V>> for Or<F> {
    fn parse(&self, text: &str) -> Option<Option<V>> {
        if text == self.0 { Some(None) } else { self.1.parse(text).map(Some) }
    }

    fn print(&self, value: &Option<V>) -> String {
        value.as_ref().map_or_else(|| self.0.into(), |value| self.1.print(value))
    }

    fn allowed(&self) -> String {
        format!("{}, or {}", self.0, self.1.allowed())
    }
}

/// A type with `FromStr` and `Display`; the text describes its allowed values.
#[derive(Clone, Copy, Debug)]
pub struct Itself(pub &'static str);

impl<V: FromStr + Display> ValueFormat<V> for Itself {
    fn parse(&self, text: &str) -> Option<V> {
        text.parse().ok()
    }

    fn print(&self, value: &V) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        self.0.into()
    }
}

const UNITS: [(char, u64); 3] = [('G', 1_000_000_000), ('M', 1_000_000), ('k', 1000)];

/// A rate with the largest unit that divides it, so that it reads back exactly.
fn rate_text(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    let unit = UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit));
    unit.map_or_else(|| bits.to_string(), |(letter, unit)| format!("{}{letter}", bits / unit))
}

fn parse_rate(text: &str) -> Option<Rate> {
    let (digits, unit) =
        UNITS.iter().find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit))).unwrap_or((text, 1));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let bits = match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit)?,
        Err(_) => (digits.parse::<f64>().ok()? * unit as f64).round() as u64,
    };
    (bits > 0 && bits < u64::MAX).then(|| Rate::from_bits_per_second(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_themselves() {
        let span = Span(Duration::ZERO, Duration::from_secs(100));
        for (text, nanos) in
            [("250us", 250_000), ("5ms", 5_000_000), ("1500ms", 1_500_000_000), ("60s", 60_000_000_000)]
        {
            assert_eq!(span.parse(text), Some(Duration::from_nanos(nanos)));
            assert_eq!(span.print(&Duration::from_nanos(nanos)), text);
        }
        assert_eq!(span.parse("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(span.print(&Duration::ZERO), "0ms");
        let share = Share(0.0, 1.0);
        for (text, value) in [("5%", 0.05), ("2.5%", 0.025), ("100%", 1.0), ("0.1%", 0.001), ("0%", 0.0)] {
            assert_eq!(share.parse(text), Some(value));
            assert_eq!(share.print(&value), text);
        }
        assert_eq!(share.parse("0.07"), Some(0.07));
        for value in [1e-3, 1e-9, 1.0 / 3.0, 0.07, 0.29, 0.57] {
            assert_eq!(share.parse(&share.print(&value)), Some(value), "{value}");
        }
        let rates = [("100M", 100_000_000), ("1500k", 1_500_000), ("2G", 2_000_000_000), ("123456789", 123_456_789)];
        for (text, bits) in rates {
            assert_eq!(BitRate.parse(text), Some(Rate::from_bits_per_second(bits)));
            assert_eq!(BitRate.print(&Rate::from_bits_per_second(bits)), text);
        }
        assert_eq!(Or("none", BitRate).parse("none"), Some(None));
        assert_eq!(Or("none", BitRate).print(&Some(Rate::from_bits_per_second(5000))), "5k");
    }

    #[test]
    fn nonsense_is_no_value() {
        for rate in ["", "0", "fast", "-1M", "inf", "nan", "1e300", "1MM1", "1MM", "5kk", "20000000000G", "1MB/s"] {
            assert_eq!(BitRate.parse(rate), None, "{rate}");
        }
        let span = Span(Duration::from_millis(1), Duration::from_secs(1));
        for text in ["", "5", "ms", "-1ms", "2s", "0ms", "5 ms", "nans", "infs", "1e99s", "5mss"] {
            assert_eq!(span.parse(text), None, "{text}");
        }
        for text in ["", "%", "101%", "-1%", "1e", "nan", "inf%", "5%%"] {
            assert_eq!(Share(0.0, 1.0).parse(text), None, "{text}");
        }
        assert_eq!(<IntegerRange as ValueFormat<u8>>::parse(&IntegerRange(0, 1000), "256"), None);
        assert_eq!(<IntegerRange as ValueFormat<u32>>::parse(&IntegerRange(1, 3), "4"), None);
    }
}
