//! Short descriptions of lists of numbers and texts.

use std::collections::BTreeSet;

/// Returns `3 runs` if all are equal, otherwise `1 to 3 runs`; `None` if there are none.
pub(crate) fn counts(numbers: impl Iterator<Item = usize>, one: &str, many: &str) -> Option<String> {
    let (least, most) = numbers.fold((usize::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
    match least {
        _ if least > most => None,
        _ if least == most => Some(units::count(least, one, many)),
        _ => Some(format!("{least} to {most} {many}")),
    }
}

/// Returns each distinct non-empty text once, in order.
pub(crate) fn each_once<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let once: BTreeSet<&str> = texts.filter(|text| !text.is_empty()).collect();
    once.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns the first and the last of these texts: `2026-01-02T03:04:05Z, 2026-01-03T04:05:06Z`.
pub(crate) fn from_to<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("{}, {}", texts.clone().min().unwrap_or_default(), texts.max().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_counts() {
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
