//! The legend, whose entries are placed beside the ends of their lines if possible.

use super::canvas::{Anchor, Canvas, Stroke};
use super::plot::Plot;
use super::series::MarkStyle;

/// Characters of a legend's line.
const COLUMNS: usize = 28;
/// Height of a line of words, and the space below an entry.
const LINE: f64 = 15.0;
const SPACE: f64 = 5.0;
const MARKER: f64 = 4.6;
/// A line that ends farther than this from the last position has no entry beside its end.
const NEAR: f64 = 1.0;

/// One entry.
pub(super) struct LegendEntry {
    swatch: Swatch,
    words: Vec<String>,
    /// The end of its line.
    end: Option<(f64, f64)>,
}

/// A sample of an entry's graphic.
#[derive(Clone, Copy)]
enum Swatch {
    Series(usize),
    Floor,
    Truth(Option<usize>, usize),
    Published(Option<usize>, usize),
}

impl LegendEntry {
    fn height(&self) -> f64 {
        self.words.len() as f64 * LINE + SPACE
    }
}

/// Returns the entries of a plot's series.
pub(super) fn of_series(plot: &Plot<'_>) -> Vec<LegendEntry> {
    let last = plot.chart.series.iter().filter_map(|series| Some(series.marks.last()?.x)).fold(f64::MIN, f64::max);
    let has_ends = plot.are_joined() && plot.shown.iter().all(|series| series.form == MarkStyle::Joined);
    let entry = |series: &&super::Series| {
        let end = series.marks.last().filter(|mark| has_ends && plot.x(last) - plot.x(mark.x) < NEAR);
        LegendEntry {
            swatch: Swatch::Series(series.style),
            words: wrapped(&series.name, COLUMNS),
            end: end.map(|mark| (plot.x(mark.x) + MARKER + 3.0, plot.y(mark.y))),
        }
    };
    plot.shown.iter().map(entry).collect()
}

/// Returns the entries of everything else.
pub(super) fn of_others(plot: &Plot<'_>, columns: usize) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    if let Some((x, y)) = plot.chart.floor.last() {
        let end = plot.are_joined().then(|| (plot.x(*x) + 3.0, plot.y(*y)));
        entries.push(LegendEntry {
            swatch: Swatch::Floor,
            words: wrapped("floor: nobody can be faster", columns),
            end,
        });
    }
    for truth in &plot.chart.truths {
        let end = plot.law(truth).last().and_then(|stretch| stretch.last().copied());
        let end = end.filter(|(x, _)| plot.right() - x < NEAR);
        entries.push(LegendEntry {
            swatch: Swatch::Truth(truth.style, truth.rank),
            words: wrapped(&truth.line.label, columns),
            end,
        });
    }
    let all = &plot.chart.published;
    for (index, published) in all.iter().enumerate() {
        let is_same = |other: &&super::chart::Overlay| other.label == published.label;
        if all[..index].iter().any(|other| is_same(&other)) {
            continue;
        }
        // One document, in the colours of several series.
        let style = published.style.filter(|_| all.iter().filter(is_same).count() == 1);
        let swatch = Swatch::Published(style, published.marker);
        entries.push(LegendEntry { swatch, words: wrapped(&published.label, columns), end: None });
    }
    entries
}

/// Draws entries one below the other, and those of lines that end at the right beside these ends if all of them fit.
/// Returns the lower end.
pub(super) fn draw(canvas: &mut Canvas, entries: &[LegendEntry], left: f64, top: f64, bottom: f64) -> f64 {
    let mut order: Vec<&LegendEntry> = entries.iter().collect();
    let fits = entries.iter().map(LegendEntry::height).sum::<f64>() <= bottom - top;
    let beside = |entry: &LegendEntry| entry.end.filter(|_| fits);
    if fits {
        let rank = |entry: &LegendEntry| entry.end.map_or(f64::INFINITY, |(_, y)| y);
        order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    }
    let wanted: Vec<_> = order.iter().map(|entry| (beside(entry).map(|(_, y)| y), entry.height())).collect();
    let places = spread(&wanted, top, if fits { bottom } else { f64::INFINITY });
    let mut ends = top;
    for (entry, y) in order.iter().zip(places) {
        if let Some((x, end)) = beside(entry) {
            let stroke = Stroke { class: "leader", width: 0.7, ..colour(entry.swatch) };
            canvas.line(&[(x, end), (left - 14.0, y), (left - 4.0, y)], stroke);
        }
        swatch(canvas, entry.swatch, left, y);
        for (row, line) in entry.words.iter().enumerate() {
            canvas.words(left + 36.0, y + 4.5 + row as f64 * LINE, Anchor::Start, "ink", 12.5, line);
        }
        ends = y + entry.height();
    }
    ends
}

/// Returns the positions of entries of these heights, as near as possible to their preferred ones without overlap.
fn spread(wanted: &[(Option<f64>, f64)], top: f64, bottom: f64) -> Vec<f64> {
    let mut free = top;
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for (place, height) in wanted {
        let place = place.unwrap_or(free).max(free);
        places.push(place);
        free = place + height;
    }
    let mut limit = bottom;
    for (place, (_, height)) in places.iter_mut().zip(wanted).rev() {
        *place = place.min(limit - height);
        limit = *place;
    }
    places
}

fn colour(swatch: Swatch) -> Stroke {
    match swatch {
        Swatch::Series(style) => Stroke::of_series(style),
        Swatch::Floor => Stroke::FLOOR,
        Swatch::Truth(style, rank) => Stroke::of_truth(style, rank),
        Swatch::Published(style, _) => Stroke::of_published(style),
    }
}

fn swatch(canvas: &mut Canvas, swatch: Swatch, x: f64, y: f64) {
    canvas.line(&[(x, y), (x + 28.0, y)], colour(swatch));
    match swatch {
        Swatch::Series(style) => canvas.mark(style, x + 14.0, y, MARKER),
        Swatch::Published(style, marker) => canvas.hollow(marker, style, [x + 14.0, y], MARKER),
        Swatch::Floor | Swatch::Truth(..) => {}
    }
}

/// Wraps text into lines of at most `columns` characters, broken at spaces, and longer words after commas.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_long = word.chars().count() > columns;
        let parts: Vec<&str> = if is_long { word.split_inclusive(',').collect() } else { vec![word] };
        for (index, part) in parts.into_iter().enumerate() {
            let space = if index == 0 { " " } else { "" };
            match lines.last_mut() {
                Some(line) if line.chars().count() + space.len() + part.chars().count() <= columns => {
                    line.push_str(space);
                    line.push_str(part);
                }
                _ => lines.push(part.to_owned()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legend_entries_do_not_overlap() {
        let at = |place: f64| (Some(place), 20.0);
        assert_eq!(spread(&[at(60.0), at(90.0), (None, 35.0)], 50.0, 400.0), [60.0, 90.0, 110.0]);
        assert_eq!(spread(&[at(60.0), at(61.0), at(62.0)], 50.0, 400.0), [60.0, 80.0, 100.0]);
        assert_eq!(spread(&[at(380.0), at(390.0), at(395.0)], 50.0, 400.0), [340.0, 360.0, 380.0], "from below");
        assert_eq!(spread(&[at(0.0), (None, 20.0)], 50.0, f64::INFINITY), [50.0, 70.0]);
    }

    #[test]
    fn wrapped_breaks_at_spaces() {
        assert_eq!(wrapped("TCP, published (figure 10(a))", 14), ["TCP, published", "(figure 10(a))"]);
        assert_eq!(wrapped("hysteria-brutal", 5), ["hysteria-brutal"]);
        assert_eq!(wrapped("a b=1,c=2,d=3", 8), ["a b=1,", "c=2,d=3"]);
    }
}
