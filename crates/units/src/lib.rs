//! Numbers with their units, as people read them: three digits, decimal prefixes, a space before the unit.

mod rate;

use std::fmt::Display;

pub use rate::{RateError, rate, whole_rate};

/// `4.23 GB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, "B")
}

/// `94.2 MB/s`; a negative rate is shown as 0.
#[must_use]
pub fn bytes_per_second(rate: f64) -> String {
    scaled(rate.max(0.0), "B/s")
}

/// A number with a decimal prefix and at most three digits: `12.5 MB/s`, `999 kbit/s`.
#[must_use]
pub fn scaled(number: f64, unit: &str) -> String {
    let mut scaled = number;
    let mut prefixes = ["", "k", "M", "G", "T", "P", "E"].into_iter().peekable();
    // 999.5 would print as 1000.
    while scaled >= 999.5 && prefixes.len() > 1 {
        scaled /= 1000.0;
        prefixes.next();
    }
    let prefix = prefixes.peek().copied().unwrap_or_default();
    let digits = match scaled {
        _ if prefix.is_empty() => format!("{scaled:.0}"),
        0.0..9.995 => trimmed(&format!("{scaled:.2}")).to_owned(),
        0.0..99.95 => trimmed(&format!("{scaled:.1}")).to_owned(),
        _ => format!("{scaled:.0}"),
    };
    format!("{digits} {prefix}{unit}")
}

/// `150 us`, `2.5 ms`, `850 ms`, `1.52 s`, `38.2 s`, `4 min 05 s`, `2 h 09 min`, `12 days`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        ..=0.0 => "0 s".to_owned(),
        ..0.000_999_5 => format!("{:.0} us", seconds * 1e6),
        ..0.009_95 => format!("{:.1} ms", seconds * 1e3),
        ..0.9995 => format!("{:.0} ms", seconds * 1e3),
        ..9.995 => format!("{seconds:.2} s"),
        ..99.95 => format!("{seconds:.1} s"),
        ..3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        ..172_800.0 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} days", whole / 86_400),
    }
}

/// `4.9 %` for a share of 0.049.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        ..=0.0 => 0,
        ..0.1 => 3,
        ..9.95 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$} %")
}

/// `1 file`, `31 files`, `1,000,000 files`.
#[must_use]
pub fn count(number: impl Display, one: &str, many: &str) -> String {
    let number = grouped(number);
    let noun = if number == "1" { one } else { many };
    format!("{number} {noun}")
}

/// A whole number in groups of three digits: `100,000`.
#[must_use]
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// At most three decimals, and no zeros at the end: `0.125`, `34.5`, `7`.
#[must_use]
pub fn number(number: f64) -> String {
    trimmed(&format!("{number:.3}")).to_owned()
}

fn trimmed(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_round_into_the_next_prefix() {
        for (number, text) in [
            (0.0, "0 B"),
            (999.4, "999 B"),
            (999.6, "1 kB"),
            (999_499.0, "999 kB"),
            (999_600.0, "1 MB"),
            (9_996_000.0, "10 MB"),
            (12_500_000.0, "12.5 MB"),
            (4_231_000_000.0, "4.23 GB"),
        ] {
            assert_eq!(scaled(number, "B"), text);
        }
        assert_eq!((bytes(1_500_000_000), bytes_per_second(-1.0)), ("1.5 GB".into(), "0 B/s".into()));
    }

    #[test]
    fn times_have_three_digits() {
        for (time, text) in [
            (0.0, "0 s"),
            (0.000_15, "150 us"),
            (0.0025, "2.5 ms"),
            (0.038, "38 ms"),
            (0.85, "850 ms"),
            (0.9996, "1.00 s"),
            (1.518, "1.52 s"),
            (9.996, "10.0 s"),
            (38.24, "38.2 s"),
            (60.0, "60.0 s"),
            (120.0, "2 min 00 s"),
            (245.0, "4 min 05 s"),
            (3599.7, "1 h 00 min"),
            (7740.0, "2 h 09 min"),
            (1_036_800.0, "12 days"),
        ] {
            assert_eq!(seconds(time), text, "{time}");
        }
    }

    #[test]
    fn shares_and_counts() {
        let shares = [(0.0, "0 %"), (0.0005, "0.050 %"), (0.0494, "4.9 %"), (0.824, "82 %")];
        for (share, text) in shares {
            assert_eq!(percent(share), text);
        }
        assert_eq!(count(1, "file", "files"), "1 file");
        assert_eq!(count(0_u64, "file", "files"), "0 files");
        assert_eq!(count(999_usize, "file", "files"), "999 files");
        assert_eq!(count(1_000_000, "file", "files"), "1,000,000 files");
        assert_eq!([7.0, 34.5, 0.1251].map(number), ["7", "34.5", "0.125"]);
    }
}
