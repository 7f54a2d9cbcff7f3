//! Short descriptions of lists of numbers and texts.

use std::collections::BTreeSet;

/// The most values of a part that are listed.
const MOST: usize = 4;

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

/// Returns the parts of these links in their text form, without the part on an axis:
/// `rate=20M,queue=1bdp|2bdp` if some differ in the queue.
pub(crate) fn links<'a>(links: impl Iterator<Item = &'a str>, axis: Option<&str>) -> String {
    let links: Vec<Vec<&str>> = links.map(|link| link.split(" / ").collect()).collect();
    let directions = links.iter().map(Vec::len).max().unwrap_or(0);
    // A link with one direction is alike in both.
    let direction =
        |at: usize| parts(&links.iter().map(|link| *link.get(at).unwrap_or(&link[0])).collect::<Vec<_>>(), axis);
    (0..directions).map(direction).collect::<Vec<_>>().join(" / ")
}

fn parts(links: &[&str], axis: Option<&str>) -> String {
    let of = |link: &'_ str| -> Vec<(String, String)> {
        let parts = link.split(',').map(|part| part.split_once('=').unwrap_or((part, "")));
        parts.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let links: Vec<_> = links.iter().map(|link| of(link)).collect();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in links.iter().flatten() {
        if !keys.contains(&key.as_str()) && axis != Some(key) {
            keys.push(key);
        }
    }
    let part = |key: &str| {
        let mut values: Vec<&str> = Vec::new();
        for link in &links {
            let value = link.iter().find(|(other, _)| other == key).map_or("none", |(_, value)| value);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match &values[..] {
            [""] => key.to_owned(),
            values if values.len() > MOST => format!("{key}: {} values", values.len()),
            values => format!("{key}={}", values.join("|")),
        }
    };
    keys.into_iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lists_differing_values() {
        let of = |texts: &[&str], axis| links(texts.iter().copied(), axis);
        assert_eq!(of(&["rate=20M,queue=1bdp", "rate=20M,queue=2bdp"], None), "rate=20M,queue=1bdp|2bdp");
        assert_eq!(of(&["rate=20M,queue=1bdp", "rate=20M,queue=2bdp"], Some("queue")), "rate=20M");
        assert_eq!(of(&["rate=1M,loss=1%", "rate=1M"], None), "rate=1M,loss=1%|none");
        assert_eq!(of(&["rate=1M / rate=2M", "rate=1M"], None), "rate=1M / rate=2M|1M");
        let delays = ["delay=1ms", "delay=2ms", "delay=3ms", "delay=4ms", "delay=5ms"];
        assert_eq!(of(&delays, None), "delay: 5 values");
        assert_eq!(of(&["perfect"], None), "perfect");
        assert_eq!(of(&[], None), "");
    }

    #[test]
    fn counts_as_range() {
        let runs = |numbers: &[usize]| counts(numbers.iter().copied(), "run", "runs");
        assert_eq!(
            [runs(&[]), runs(&[1, 1]), runs(&[3, 1, 2])],
            [None, Some("1 run".into()), Some("1 to 3 runs".into())]
        );
    }

    #[test]
    fn texts_once_and_from_to() {
        let texts = ["b", "", "a", "b"];
        assert_eq!(
            (each_once(texts.into_iter()), from_to(["b", "a", "c"].into_iter())),
            ("a, b".into(), "a, c".into())
        );
        assert_eq!(from_to([].into_iter()), ", ");
    }
}
