//! Sizes, times and counts in words.

use std::time::Duration;

use crate::rates::scaled;

/// `4.23 GB`: powers of ten, as everywhere in this program.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, "B")
}

/// `94.2 MB/s`.
pub(crate) fn bytes_per_second(rate: f64) -> String {
    scaled(rate.max(0.0), "B/s")
}

/// `0.96 s`, `39 s`, `4 min 05 s`, `2 h 09 min`.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 if seconds < 59.95 => format!("{seconds:.1} s"),
        0..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `24 s`, `4 min`, `2 h 09 min`: how long something will take, where tenths would flicker.
pub(crate) fn seconds_left(duration: Duration) -> String {
    let whole = duration.as_secs_f64().ceil() as u64;
    match whole {
        0..100 => format!("{whole} s"),
        100..3600 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `150 us`, `25.3 ms`, `1.2 s`.
pub(crate) fn milliseconds(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ 0..1000 => format!("{micros} us"),
        1000..10_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{:.0} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// `4.9 %`; a share of 0.049.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && percent > 0.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// `1 file`, `31 files`, `1,000,000 files`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (millis, text) in [
            (0, "0.00 s"),
            (960, "0.96 s"),
            (9994, "9.99 s"),
            (9996, "10.0 s"),
            (39_040, "39.0 s"),
            (59_960, "1 min 00 s"),
            (245_000, "4 min 05 s"),
            (7_740_000, "2 h 09 min"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
        for (millis, text) in
            [(0, "0 s"), (100, "1 s"), (99_000, "99 s"), (100_000, "2 min"), (7_740_000, "2 h 09 min")]
        {
            assert_eq!(seconds_left(Duration::from_millis(millis)), text);
        }
        for (micros, text) in [(150, "150 us"), (2500, "2.5 ms"), (100_000, "100 ms"), (1_200_000, "1.2 s")] {
            assert_eq!(milliseconds(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(1, "file", "files"), "1 file");
        assert_eq!(count(0, "file", "files"), "0 files");
        assert_eq!(count(999, "file", "files"), "999 files");
        assert_eq!(count(1_000_000, "file", "files"), "1,000,000 files");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.0494), "4.9 %");
        assert_eq!(percent(0.824), "82 %");
    }
}
