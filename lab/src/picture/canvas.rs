//! Elements of SVG.

use std::fmt::Write as _;

use super::series::Series;
use super::style;

/// A drawing that grows, element by element.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) text: String,
}

/// The anchor of a text.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The appearance of a line.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) class: &'static str,
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dashes: &'static str,
}

impl Stroke {
    /// The stroke of the floor.
    pub(super) const FLOOR: Self = Self { class: "ink-line", colour: "#1a1a1a", width: 1.6, dashes: "7 4" };

    /// Returns the stroke of a series.
    pub(super) fn of_series(style: usize) -> Self {
        Self { class: "series", colour: style::colour(style), width: 1.8, dashes: "none" }
    }

    /// The stroke of a series in the panel of another.
    pub(super) const BEHIND: Self = Self { class: "behind", colour: "#c4c4c4", width: 1.0, dashes: "none" };

    /// Returns the stroke of a law or a true value: each of several has other dashes; one of a series has its colour.
    pub(super) fn of_truth(style: Option<usize>, rank: usize) -> Self {
        let dashes = ["none", "9 3 2 3", "3 3"][rank % 3];
        Self { class: "truth", colour: style.map_or("#1a1a1a", style::colour), width: 0.9, dashes }
    }

    /// Returns the stroke of published values.
    pub(super) fn of_published(style: Option<usize>) -> Self {
        Self { class: "soft-line", colour: style.map_or("#777777", style::colour), width: 1.2, dashes: "2 3" }
    }
}

/// Escapes text for SVG and HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Canvas {
    pub(super) fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{element}").expect("a string takes all");
    }

    pub(super) fn words(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, size: f64, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let colour = if class == "ink" { "#1a1a1a" } else { "#555555" };
        let words = escaped(words);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// Writes a title from bottom to top, its middle at this position.
    pub(super) fn upwards(&mut self, x: f64, y: f64, words: &str) {
        let words = escaped(words);
        self.put(format_args!(
            "<text class=\"ink\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"14\" fill=\"#1a1a1a\" transform=\"rotate(-90 {x} {y})\">{words}</text>"
        ));
    }

    /// Joins positions, if there are several.
    pub(super) fn line(&mut self, places: &[(f64, f64)], stroke: Stroke) {
        if places.len() > 1 {
            let Stroke { class, colour, width, dashes } = stroke;
            let places = corners(places);
            self.put(format_args!(
                "<polyline class=\"{class}\" points=\"{places}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>"
            ));
        }
    }

    /// Fills an area so that lines behind it can be seen.
    pub(super) fn band(&mut self, places: &[(f64, f64)], colour: &str) {
        let places = corners(places);
        self.put(format_args!(
            "<polygon class=\"band\" points=\"{places}\" fill=\"{colour}\" fill-opacity=\"0.16\" stroke=\"none\"/>"
        ));
    }

    pub(super) fn mark(&mut self, style: usize, x: f64, y: f64, size: f64) {
        let (corners, colour) = (style::marker(style, x, y, size), style::colour(style));
        self.put(format_args!(
            "<polygon class=\"mark\" points=\"{corners}\" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>"
        ));
    }

    /// Draws a point of a series, with a description in words, and with the styles and the position by which a program
    /// finds its runs.
    pub(super) fn point(&mut self, series: &Series, value: f64, words: &str, [x, y]: [f64; 2], size: f64) {
        let (corners, colour) = (style::marker(series.style, x, y, size), style::colour(series.style));
        let (styles, words) = (series.styles(), escaped(words));
        self.put(format_args!(
            "<polygon class=\"mark\" data-series=\"{styles}\" data-x=\"{value}\" points=\"{corners}\" fill=\"{colour}\" stroke=\"#ffffff\" \
             stroke-width=\"0.8\"><title>{words}</title></polygon>"
        ));
    }

    /// Draws a published point: hollow, in the colour of a series or grey.
    pub(super) fn hollow(&mut self, marker: usize, of: Option<usize>, [x, y]: [f64; 2], size: f64) {
        let corners = style::marker(marker, x, y, size);
        match of.map(style::colour) {
            Some(colour) => self.put(format_args!(
                "<polygon class=\"open\" points=\"{corners}\" fill=\"#ffffff\" fill-opacity=\"0.7\" stroke=\"{colour}\" stroke-width=\"1.4\"/>"
            )),
            None => self.put(format_args!(
                "<polygon class=\"hollow\" points=\"{corners}\" fill=\"#ffffff\" stroke=\"#555555\" stroke-width=\"1.6\"/>"
            )),
        }
    }

    /// Draws an error bar whose ends have this width.
    pub(super) fn bar(&mut self, x: f64, [low, high]: [f64; 2], half: f64, stroke: Stroke) {
        if (low - high).abs() > 0.5 {
            let (Stroke { class, colour, .. }, left, right) = (stroke, x - half, x + half);
            self.put(format_args!(
                "<path class=\"{class}\" d=\"M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}\" fill=\"none\" stroke=\"{colour}\"/>"
            ));
        }
    }

    /// Draws an arrow from `start` to `end`, for a value that lies beyond.
    pub(super) fn arrow(&mut self, x: f64, [start, end]: [f64; 2], colour: &str) {
        let head = end - (end - start).signum() * 6.0;
        let (left, right) = (x - 4.0, x + 4.0);
        self.put(format_args!(
            "<path class=\"series\" d=\"M{x:.1} {start:.1}V{end:.1}M{left:.1} {head:.1}L{x:.1} {end:.1}L{right:.1} {head:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        ));
    }

    /// Draws a small cross, for a missing value.
    pub(super) fn cross(&mut self, x: f64, y: f64, colour: &str) {
        let (left, right, above, below) = (x - 3.0, x + 3.0, y - 3.0, y + 3.0);
        self.put(format_args!(
            "<path class=\"gap\" d=\"M{left:.1} {above:.1}L{right:.1} {below:.1}M{left:.1} {below:.1}L{right:.1} {above:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"/>"
        ));
    }
}

fn corners(places: &[(f64, f64)]) -> String {
    places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
