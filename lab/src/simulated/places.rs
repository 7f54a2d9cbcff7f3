//! Positions of a sweep's values on its axis.

/// Returns the positions of values on an axis, and their unit: numbers of one kind, or one after the other if they are
/// names.
pub(super) fn coordinates(values: &[Option<&str>]) -> Result<(Vec<f64>, &'static str), String> {
    let read: Vec<Option<(f64, &'static str)>> = values.iter().map(|value| value.and_then(number)).collect();
    if read.iter().any(Option::is_none) {
        return Ok(((0..values.len()).map(|index| index as f64).collect(), ""));
    }
    let read: Vec<(f64, &'static str)> = read.into_iter().flatten().collect();
    match read.iter().find(|(_, unit)| *unit != read[0].1) {
        Some((_, unit)) => Err(format!("values with units {unit:?} and {:?}: use one unit", read[0].1)),
        None => Ok((read.iter().map(|(x, _)| *x).collect(), read[0].1)),
    }
}

/// Parses a number and its unit: `1%`, `20ms`, `10MB`, `5M`, `3`. Of two directions the forward one counts.
pub(super) fn number(text: &str) -> Option<(f64, &'static str)> {
    const UNITS: [(&str, &str, f64); 14] = [
        ("%", "%", 1.0),
        ("us", "ms", 1e-3),
        ("ns", "ms", 1e-6),
        ("ms", "ms", 1.0),
        ("s", "ms", 1e3),
        ("GB", "MB", 1e3),
        ("MB", "MB", 1.0),
        ("KB", "MB", 1e-3),
        ("B", "MB", 1e-6),
        ("G", "Mbit/s", 1e3),
        ("M", "Mbit/s", 1.0),
        ("k", "Mbit/s", 1e-3),
        ("bdp", "bdp", 1.0),
        ("", "", 1.0),
    ];
    let text = text.split(" / ").next()?.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (_, unit, scale) = UNITS.iter().find(|(name, ..)| *name == &text[digits.len()..])?;
    // Rounded, since 0.07 * 100 is not 7.
    Some(((digits.parse::<f64>().ok()? * scale * 1e9).round() / 1e9, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_of_values_and_units() {
        for (text, expected) in [
            ("7%", Some((7.0, "%"))),
            ("1% / 0%", Some((1.0, "%"))),
            ("500us", Some((0.5, "ms"))),
            ("1s", Some((1000.0, "ms"))),
            ("300KB", Some((0.3, "MB"))),
            ("2.5M", Some((2.5, "Mbit/s"))),
            ("3", Some((3.0, ""))),
            ("cubic:beta=0.5", None),
            ("", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
