//! Drawing as SVG.

use std::fmt::Write as _;

use super::chart::{Chart, Mark, Series};
use super::style;
use crate::plan::Published;

const WIDTH: f64 = 980.0;
const LEFT: f64 = 76.0;
const TOP: f64 = 52.0;
const PLOT_WIDTH: f64 = 640.0;
const PLOT_HEIGHT: f64 = 400.0;
const LEGEND: f64 = LEFT + PLOT_WIDTH + 26.0;
const LEGEND_ROW: f64 = 20.0;
/// Characters of a legend's line, and of one of the caption.
const LEGEND_COLUMNS: usize = 28;
const CAPTION_COLUMNS: usize = 132;
const CAPTION_ROW: f64 = 17.0;
const MARKER: f64 = 4.6;
/// Ticks closer than this would overlap.
const TICK_GAP: f64 = 34.0;
const ARROW: f64 = 20.0;
/// Distance between series if there is room, and the largest share of the distance between two positions that they may
/// take.
const APART: f64 = 5.0;
const APART_SHARE: f64 = 0.6;
/// How far the floor at a position extends beyond its points.
const FLOOR_REACH: f64 = 12.0;

/// Returns a picture as SVG text: self-contained, and suitable for HTML, where its classes `paper`, `ink`, `soft` and
/// `grid` may be given other colours.
pub fn svg(chart: &Chart) -> String {
    let mut drawing = Drawing { chart, text: String::new() };
    drawing.grid();
    drawing.floor();
    drawing.published();
    for index in 0..chart.series.len() {
        drawing.series(index);
    }
    let legend_ends = drawing.legend();
    let ends = drawing.caption(legend_ends);
    let title = escaped(&chart.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{ends}\" viewBox=\"0 0 {WIDTH} {ends}\" role=\"img\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"13\"><title>{title}</title>\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
        drawing.text
    )
}

/// Escapes text for SVG and HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Drawing<'a> {
    chart: &'a Chart,
    text: String,
}

/// Where text is anchored.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing<'_> {
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{element}").expect("a string takes all");
    }

    fn words(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, size: f64, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let colour = if class == "soft" { "#555555" } else { "#1a1a1a" };
        let words = escaped(words);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + PLOT_WIDTH * self.chart.x.place(value)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (1.0 - self.chart.y.place(value))
    }

    /// Returns the distance between series at the same position, so that their points can be distinguished: wider if no
    /// line joins them.
    fn apart(&self) -> f64 {
        let mut places: Vec<f64> = self.chart.x.ticks.iter().map(|(x, _)| self.x(*x)).collect();
        places.sort_by(f64::total_cmp);
        let room = places.windows(2).map(|two| two[1] - two[0]).fold(PLOT_WIDTH / 2.0, f64::min);
        let most = if self.are_joined() { APART } else { f64::INFINITY };
        (room * APART_SHARE / self.chart.series.len().max(1) as f64).min(most)
    }

    /// Returns whether lines may join positions.
    fn are_joined(&self) -> bool {
        !self.chart.is_named && self.chart.x.ticks.len() > 1
    }

    fn grid(&mut self) {
        let chart = self.chart;
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
        self.words(LEFT, 26.0, Anchor::Start, "ink", 17.0, &chart.title);
        for (value, label) in &chart.y.ticks {
            let y = self.y(*value);
            self.put(format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>"
            ));
            self.words(LEFT - 8.0, y + 4.5, Anchor::End, "soft", 13.0, label);
        }
        let mut free_from = 0.0;
        for (value, label) in &chart.x.ticks {
            let x = self.x(*value);
            self.put(format_args!(
                "<line class=\"soft-line\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#777777\"/>",
                bottom + 5.0
            ));
            if x >= free_from {
                self.tick_label(x, bottom + 20.0, label);
                free_from = x + TICK_GAP;
            }
        }
        self.put(format_args!(
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{PLOT_WIDTH}\" height=\"{PLOT_HEIGHT}\" fill=\"none\" stroke=\"#777777\"/>"
        ));
        self.words(
            LEFT + PLOT_WIDTH / 2.0,
            bottom + 44.0 + self.extra_rows() * 14.0,
            Anchor::Middle,
            "ink",
            14.0,
            &chart.x.title,
        );
        let (x, y) = (20.0, TOP + PLOT_HEIGHT / 2.0);
        let title = escaped(&chart.y.title);
        self.put(format_args!(
            "<text class=\"ink\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"14\" fill=\"#1a1a1a\" transform=\"rotate(-90 {x} {y})\">{title}</text>"
        ));
    }

    /// Draws a label; names take several lines, one for each part of a link.
    fn tick_label(&mut self, x: f64, y: f64, label: &str) {
        if !self.chart.is_named {
            return self.words(x, y, Anchor::Middle, "soft", 13.0, label);
        }
        for (row, part) in label.split(',').enumerate() {
            self.words(x, y + row as f64 * 14.0, Anchor::Middle, "soft", 11.5, part);
        }
    }

    fn extra_rows(&self) -> f64 {
        if !self.chart.is_named {
            return 0.0;
        }
        let rows = self.chart.x.ticks.iter().map(|(_, label)| label.matches(',').count());
        rows.max().unwrap_or(0) as f64
    }

    fn line(&mut self, places: &[(f64, f64)], class: &str, colour: &str, width: f64, dashes: &str) {
        if places.len() > 1 {
            let places: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            self.put(format_args!(
                "<polyline class=\"{class}\" points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>",
                places.join(" ")
            ));
        }
    }

    fn floor(&mut self) {
        let places: Vec<_> = self.chart.floor.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        if self.are_joined() {
            return self.line(&places, "ink-line", "#1a1a1a", 1.6, "7 4");
        }
        // A step below all the points at a position.
        let half = self.apart() * self.chart.series.len() as f64 / 2.0 + FLOOR_REACH;
        for (x, y) in places {
            self.line(&[(x - half, y), (x + half, y)], "ink-line", "#1a1a1a", 1.6, "7 4");
        }
    }

    fn published(&mut self) {
        for (index, Published { points, .. }) in self.chart.published.iter().enumerate() {
            let mut places: Vec<_> = points.iter().map(|point| (self.x(point.x), self.y(point.y))).collect();
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.line(&places, "soft-line", "#777777", 1.2, "2 3");
            for point in points {
                let (x, y) = (self.x(point.x), self.y(point.y));
                if let Some(error) = point.error {
                    self.bar(x, self.y(point.y - error), self.y(point.y + error), "soft-line", "#777777");
                }
                self.hollow(index, x, y);
            }
        }
    }

    fn hollow(&mut self, index: usize, x: f64, y: f64) {
        let corners = style::marker(index, x, y, MARKER);
        self.put(format_args!(
            "<polygon class=\"hollow\" points=\"{corners}\" fill=\"#ffffff\" stroke=\"#555555\" stroke-width=\"1.6\"/>"
        ));
    }

    fn bar(&mut self, x: f64, low: f64, high: f64, class: &str, colour: &str) {
        if (low - high).abs() > 0.5 {
            let (left, right) = (x - 3.0, x + 3.0);
            self.put(format_args!(
                "<path class=\"{class}\" d=\"M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}\" fill=\"none\" stroke=\"{colour}\"/>"
            ));
        }
    }

    fn series(&mut self, index: usize) {
        let Series { style: style_index, marks, .. } = &self.chart.series[index];
        let colour = style::colour(*style_index);
        let apart = (index as f64 - (self.chart.series.len() as f64 - 1.0) / 2.0) * self.apart();
        let places: Vec<_> = marks.iter().map(|mark| (self.x(mark.x) + apart, self.y(mark.y))).collect();
        if self.are_joined() {
            self.line(&places, "series", colour, 1.8, "none");
        }
        for (mark, (x, y)) in marks.iter().zip(places) {
            let Mark { low, high, is_bound, bar_is_bound, .. } = *mark;
            self.bar(x, self.y(low), self.y(high), "series", colour);
            self.mark(*style_index, x, y);
            if is_bound {
                self.arrow(x, y, colour);
            } else if bar_is_bound {
                let end = if self.chart.bounds_are_lower { high } else { low };
                self.arrow(x, self.y(end), colour);
            }
        }
    }

    fn mark(&mut self, style_index: usize, x: f64, y: f64) {
        let (corners, colour) = (style::marker(style_index, x, y, MARKER), style::colour(style_index));
        self.put(format_args!(
            "<polygon class=\"mark\" points=\"{corners}\" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>"
        ));
    }

    /// Draws an arrow that says that the value lies beyond: up for times, down for goodput.
    fn arrow(&mut self, x: f64, y: f64, colour: &str) {
        let way = if self.chart.bounds_are_lower { -1.0 } else { 1.0 };
        let (start, end) = (y + way * MARKER, y + way * ARROW);
        let head = end - way * 6.0;
        let (left, right) = (x - 4.0, x + 4.0);
        self.put(format_args!(
            "<path class=\"series\" d=\"M{x:.1} {start:.1}V{end:.1}M{left:.1} {head:.1}L{x:.1} {end:.1}L{right:.1} {head:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        ));
    }

    /// Draws the legend, and returns where it ends.
    fn legend(&mut self) -> f64 {
        let mut y = TOP + 8.0;
        let chart = self.chart;
        for Series { name, style: style_index, .. } in &chart.series {
            self.line(&[(LEGEND, y), (LEGEND + 28.0, y)], "series", style::colour(*style_index), 1.8, "none");
            self.mark(*style_index, LEGEND + 14.0, y);
            y = self.legend_words(y, name);
        }
        if !chart.floor.is_empty() {
            self.line(&[(LEGEND, y), (LEGEND + 28.0, y)], "ink-line", "#1a1a1a", 1.6, "7 4");
            y = self.legend_words(y, "floor: nobody can be faster");
        }
        for (index, Published { label, section, .. }) in chart.published.iter().enumerate() {
            self.hollow(index, LEGEND + 14.0, y);
            y = self.legend_words(y, &format!("{label}, published ({section})"));
        }
        y
    }

    fn legend_words(&mut self, mut y: f64, words: &str) -> f64 {
        for (row, line) in wrapped(words, LEGEND_COLUMNS).iter().enumerate() {
            y += if row > 0 { 15.0 } else { 0.0 };
            self.words(LEGEND + 36.0, y + 4.5, Anchor::Start, "ink", 12.5, line);
        }
        y + LEGEND_ROW
    }

    /// Draws the caption, and returns where the picture ends.
    fn caption(&mut self, legend_ends: f64) -> f64 {
        let chart = self.chart;
        let mut y = (TOP + PLOT_HEIGHT + 72.0 + self.extra_rows() * 14.0).max(legend_ends + 10.0);
        for line in chart.caption.iter().flat_map(|line| wrapped(line, CAPTION_COLUMNS)) {
            self.words(LEFT, y, Anchor::Start, "soft", 12.0, &line);
            y += CAPTION_ROW;
        }
        y.ceil()
    }
}

/// Wraps text into lines of at most `columns` characters, broken at spaces.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
