//! Colours and markers that all readers can distinguish.

/// Colours of Okabe and Ito, distinguishable with any colour vision; without yellow and black, which are invisible on
/// white and on black, and with grey.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

/// Corners of markers around the origin, in units of their size. Their number has no divisor in common with that of the
/// colours, so that the first 56 series differ in one or the other, and neighbours in both.
const MARKERS: [&[(f64, f64)]; 8] = [
    &[(0.0, -1.1), (0.78, -0.78), (1.1, 0.0), (0.78, 0.78), (0.0, 1.1), (-0.78, 0.78), (-1.1, 0.0), (-0.78, -0.78)],
    &[(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
    &[(0.0, -1.4), (1.1, 0.0), (0.0, 1.4), (-1.1, 0.0)],
    &[(0.0, 1.2), (1.15, -0.85), (-1.15, -0.85)],
    &[
        (-1.0, -1.3),
        (0.0, -0.4),
        (1.0, -1.3),
        (1.3, -1.0),
        (0.4, 0.0),
        (1.3, 1.0),
        (1.0, 1.3),
        (0.0, 0.4),
        (-1.0, 1.3),
        (-1.3, 1.0),
        (-0.4, 0.0),
        (-1.3, -1.0),
    ],
    &[
        (-0.4, -1.3),
        (0.4, -1.3),
        (0.4, -0.4),
        (1.3, -0.4),
        (1.3, 0.4),
        (0.4, 0.4),
        (0.4, 1.3),
        (-0.4, 1.3),
        (-0.4, 0.4),
        (-1.3, 0.4),
        (-1.3, -0.4),
        (-0.4, -0.4),
    ],
    &[(-1.35, -0.6), (1.35, -0.6), (1.35, 0.6), (-1.35, 0.6)],
];

pub(super) fn colour(style: usize) -> &'static str {
    COLOURS[style % COLOURS.len()]
}

/// Returns the corners of a marker of a size around a position, in SVG syntax.
pub(super) fn marker(style: usize, x: f64, y: f64, size: f64) -> String {
    let corners = MARKERS[style % MARKERS.len()].iter();
    corners.map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * size, y + dy * size)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_56_series_differ() {
        let mut seen: Vec<_> = (0..56).map(|style| (colour(style), marker(style, 0.0, 0.0, 1.0))).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 56);
    }
}
