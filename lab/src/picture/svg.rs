//! Drawing as SVG: one plot, or small ones beside each other where there are many series.

use super::canvas::{Anchor, Canvas};
use super::chart::Chart;
use super::labels::{self, wrapped};
use super::plot::Plot;
use super::series::{MarkStyle, Series};

pub(crate) use super::canvas::escaped;

const WIDTH: f64 = 980.0;
const LEFT: f64 = 76.0;
const TOP: f64 = 52.0;
const PLOT_WIDTH: f64 = 640.0;
const PLOT_HEIGHT: f64 = 400.0;
const LEGEND: f64 = LEFT + PLOT_WIDTH + 26.0;
/// Characters of a legend's line, and of one of the caption.
const LEGEND_COLUMNS: usize = 28;
const CAPTION_COLUMNS: usize = 132;
const CAPTION_ROW: f64 = 17.0;
const MARKER: f64 = 4.6;
/// More series than this cannot be distinguished in one plot.
const MOST_IN_ONE: usize = 6;
/// The same for courses with bands, which cover each other.
const MOST_BANDS: usize = 3;
/// Small plots: the most side by side, the space between them, their shape, and the smaller markers.
const MOST_BESIDE: usize = 4;
const SMALL_SPACE: f64 = 14.0;
const SMALL_SHAPE: f64 = 0.62;
const SMALL_MARKER: f64 = 3.4;
const SMALL_ROW: f64 = 14.0;
const SMALL_RIGHT: f64 = 18.0;

/// Returns a picture as SVG text: self-contained, and suitable for HTML, where its classes `paper`, `ink`, `soft` and
/// `grid` may be given other colours.
pub fn svg(chart: &Chart) -> String {
    let mut canvas = Canvas::default();
    canvas.words(LEFT, 26.0, Anchor::Start, "ink", 17.0, &chart.title);
    let below = if are_many(&chart.series) { many(&mut canvas, chart) } else { one(&mut canvas, chart) };
    let ends = caption(&mut canvas, chart, below);
    let title = escaped(&chart.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{ends}\" viewBox=\"0 0 {WIDTH} {ends}\" role=\"img\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"13\"><title>{title}</title>\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
        canvas.text
    )
}

/// Returns whether the series cannot be distinguished in one plot.
fn are_many(all: &[Series]) -> bool {
    let has_band = |series: &Series| series.marks.iter().any(|mark| mark.low < mark.high);
    let bands = all.iter().filter(|series| series.form == MarkStyle::Course && has_band(series)).count();
    all.len() > MOST_IN_ONE || bands > MOST_BANDS
}

/// Draws all series in one plot, and returns the top of the caption.
fn one(canvas: &mut Canvas, chart: &Chart) -> f64 {
    let shown = chart.series.iter().collect();
    let (width, height) = (PLOT_WIDTH, PLOT_HEIGHT);
    let plot = Plot { chart, left: LEFT, top: TOP, width, height, shown, marker: MARKER };
    plot.grid(canvas, [true, true], 13.0, |_, name| name.to_owned());
    plot.draw(canvas);
    let below = plot.bottom() + extra_rows(chart) * 14.0;
    plot.gaps(canvas, below + 36.0);
    let below = below + plot.gap_rows();
    canvas.words(LEFT + PLOT_WIDTH / 2.0, below + 44.0, Anchor::Middle, "ink", 14.0, &chart.x.title);
    canvas.upwards(20.0, TOP + PLOT_HEIGHT / 2.0, &chart.y.title);
    let mut entries = labels::of_series(&plot);
    entries.extend(labels::of_others(&plot, LEGEND_COLUMNS));
    let legend_ends = labels::draw(canvas, &entries, LEGEND, TOP + 8.0, plot.bottom());
    (below + 72.0).max(legend_ends + 10.0)
}

/// Draws a small plot for each system, with the same axes and the other series in grey, and returns the top of the
/// caption.
fn many(canvas: &mut Canvas, chart: &Chart) -> f64 {
    let systems = systems(&chart.series);
    let beside = match systems.len() {
        5 | 6 => 3,
        count => count.min(MOST_BESIDE),
    };
    let width = (WIDTH - LEFT - SMALL_RIGHT - (beside - 1) as f64 * SMALL_SPACE) / beside as f64;
    let plot = |top: f64, index: usize| {
        let left = LEFT + (index % beside) as f64 * (width + SMALL_SPACE);
        let (height, shown) = ((width * SMALL_SHAPE).round(), systems[index].clone());
        Plot { chart, left, top, width, height, shown, marker: SMALL_MARKER }
    };
    let others = labels::of_others(&plot(0.0, 0), CAPTION_COLUMNS);
    // Without room beside lines, they are placed one below the other.
    let mut top = if others.is_empty() { TOP } else { labels::draw(canvas, &others, LEFT, TOP - 6.0, 0.0) + 8.0 };
    let first = top;
    let mut ends = top;
    for row in 0..systems.len().div_ceil(beside) {
        let indices = row * beside..systems.len().min((row + 1) * beside);
        // Letters of this size are 6.3 units wide.
        let columns = (width / 6.3) as usize;
        let names = |index: usize| names_of(&systems[index], columns);
        let lines = indices.clone().map(|index| names(index).len()).max().unwrap_or(0);
        let plots_top = top + lines as f64 * SMALL_ROW + 2.0;
        for index in indices {
            let plot = plot(plots_top, index);
            for (line, (style, name)) in names(index).into_iter().enumerate() {
                let y = top + line as f64 * SMALL_ROW;
                if let Some(style) = style {
                    canvas.mark(style, plot.left + 5.0, y - 4.0, SMALL_MARKER);
                }
                canvas.words(plot.left + 13.0, y, Anchor::Start, "ink", 11.5, &name);
            }
            let is_last = index + beside >= systems.len();
            plot.grid(canvas, [is_last, index % beside == 0], 11.0, |tick, name| short(chart, tick, name));
            plot.draw(canvas);
            plot.gaps(canvas, plot.bottom() + if is_last { 32.0 } else { 15.0 });
            ends = ends.max(plot.bottom() + plot.gap_rows() + 26.0);
        }
        top = ends;
    }
    canvas.words((LEFT + WIDTH - SMALL_RIGHT) / 2.0, ends + 18.0, Anchor::Middle, "ink", 14.0, &chart.x.title);
    canvas.upwards(20.0, (first + ends) / 2.0, &chart.y.title);
    let below = ends + 46.0;
    if !chart.is_named {
        return below;
    }
    let ticks = chart.x.ticks.iter().enumerate();
    let key: Vec<String> = ticks.map(|(tick, (_, name))| format!("{}: {name}", short(chart, tick, name))).collect();
    words(canvas, &key.join("; "), below)
}

/// Returns the label of a tick of a small plot: letters for names, which do not fit.
fn short(chart: &Chart, tick: usize, name: &str) -> String {
    match chart.is_named {
        true => char::from(b'a' + (tick % 26) as u8).to_string(),
        false => name.to_owned(),
    }
}

/// Returns the series of each system; each series by itself if too many would be in one plot.
fn systems(all: &[Series]) -> Vec<Vec<&Series>> {
    let mut systems: Vec<Vec<&Series>> = Vec::new();
    for series in all {
        match systems.iter_mut().find(|system| system[0].system() == series.system()) {
            Some(system) => system.push(series),
            None => systems.push(vec![series]),
        }
    }
    match systems.iter().any(|system| system.len() > MOST_IN_ONE) {
        true => all.iter().map(|series| vec![series]).collect(),
        false => systems,
    }
}

/// Returns the lines above a small plot: the names of its series, and the style of each at its first line.
fn names_of(shown: &[&Series], columns: usize) -> Vec<(Option<usize>, String)> {
    let lines = |series: &&Series| {
        let style = series.style;
        let words = wrapped(&series.name, columns).into_iter().enumerate();
        words.map(move |(line, words)| ((line == 0).then_some(style), words)).collect::<Vec<_>>()
    };
    shown.iter().flat_map(lines).collect()
}

/// Returns the number of lines beyond one of the longest name on an axis of names.
fn extra_rows(chart: &Chart) -> f64 {
    if !chart.is_named {
        return 0.0;
    }
    let rows = chart.x.ticks.iter().map(|(_, label)| label.matches(',').count());
    rows.max().unwrap_or(0) as f64
}

/// Draws the caption, and returns the lower end of the picture.
fn caption(canvas: &mut Canvas, chart: &Chart, y: f64) -> f64 {
    chart.caption.iter().fold(y, |y, line| words(canvas, line, y)).ceil()
}

/// Draws a paragraph of the caption, and returns its lower end.
fn words(canvas: &mut Canvas, text: &str, mut y: f64) -> f64 {
    for line in wrapped(text, CAPTION_COLUMNS) {
        canvas.words(LEFT, y, Anchor::Start, "soft", 12.0, &line);
        y += CAPTION_ROW;
    }
    y
}

#[cfg(test)]
mod tests;
