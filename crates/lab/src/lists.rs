//! Numbers, and lists of texts, as people read them.

use std::collections::BTreeSet;

/// `850 ms`, `1.52 s`, `38.2 s`, `4 min 05 s`, `2 h 09 min`.
pub(crate) fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        ..0.9995 => format!("{:.0} ms", seconds * 1e3),
        ..9.995 => format!("{seconds:.2} s"),
        ..99.95 => format!("{seconds:.1} s"),
        ..3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `10 MB`, `1.5 GB`, `999 B`: powers of ten.
pub(crate) fn bytes(bytes: u64) -> String {
    let (scale, unit) = match bytes {
        0..1_000 => (1, "B"),
        1_000..1_000_000 => (1_000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    format!("{} {unit}", number(bytes as f64 / f64::from(scale)))
}

/// At most three digits after the point, and none that say nothing.
pub(crate) fn number(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `1 run`, `12 runs`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `3 runs` where all are alike, `1 to 3 runs`; nothing where there are none.
pub(crate) fn counts(numbers: impl Iterator<Item = usize>, one: &str, many: &str) -> Option<String> {
    let (least, most) = numbers.fold((usize::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
    match least {
        _ if least > most => None,
        _ if least == most => Some(count(least, one, many)),
        _ => Some(format!("{least} to {most} {many}")),
    }
}

/// Each of these texts once, in their order, and none that is empty.
pub(crate) fn each_once<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let once: BTreeSet<&str> = texts.filter(|text| !text.is_empty()).collect();
    once.into_iter().collect::<Vec<_>>().join(", ")
}

/// The first and the last of these texts: `2026-01-02T03:04:05Z, 2026-01-03T04:05:06Z`.
pub(crate) fn from_to<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("{}, {}", texts.clone().min().unwrap_or_default(), texts.max().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        let times = [(0.0, "0 ms"), (0.85, "850 ms"), (0.9996, "1.00 s"), (1.518, "1.52 s"), (38.24, "38.2 s")];
        let longer = [(120.0, "2 min 00 s"), (245.0, "4 min 05 s"), (3599.7, "1 h 00 min"), (7740.0, "2 h 09 min")];
        for (number, words) in times.into_iter().chain(longer) {
            assert_eq!(seconds(number), words);
        }
        assert_eq!([1, 10_000_000, 1_500_000_000].map(bytes), ["1 B", "10 MB", "1.5 GB"]);
        assert_eq!([count(1, "run", "runs"), count(0, "run", "runs")], ["1 run", "0 runs"]);
        let runs = |numbers: &[usize]| counts(numbers.iter().copied(), "run", "runs");
        assert_eq!(
            [runs(&[]), runs(&[1, 1]), runs(&[3, 1, 2])],
            [None, Some("1 run".into()), Some("1 to 3 runs".into())]
        );
    }

    #[test]
    fn lists_of_texts() {
        let texts = ["b", "", "a", "b"];
        assert_eq!(
            (each_once(texts.into_iter()), from_to(["b", "a", "c"].into_iter())),
            ("a, b".into(), "a, c".into())
        );
        assert_eq!(from_to([].into_iter()), ", ");
    }
}
