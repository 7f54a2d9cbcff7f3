//! One plot: axes, and the content between them.

use super::canvas::{Anchor, Canvas, Stroke};
use super::chart::{Chart, Overlay, Truth};
use super::series::{Mark, MarkStyle, Series};
use super::style;

/// Ticks closer than this would overlap.
const TICK_GAP: f64 = 34.0;
/// Distance of the rows that count the valid runs at gaps, and of two counts in a row.
pub(super) const GAP_ROW: f64 = 13.0;
const GAP_COUNT: f64 = 22.0;
/// Length of an arrow in sizes of a marker, and its largest extension beyond the axes.
const ARROW: f64 = 4.3;
const BEYOND: f64 = 5.0;
/// The largest share of the distance between two names that the series beside each other may take.
const APART_SHARE: f64 = 0.6;
/// The extension of the floor beyond the points at a name.
const FLOOR_REACH: f64 = 12.0;
/// Markers of a course, which only distinguish it from others.
const COURSE_MARKERS: usize = 8;
/// Positions at which a law is evaluated.
const LAW_STEPS: u32 = 161;

/// A chart in a rectangle.
pub(super) struct Plot<'a> {
    pub(super) chart: &'a Chart,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The series in their colours; the others are grey.
    pub(super) shown: Vec<&'a Series>,
    /// Size of markers.
    pub(super) marker: f64,
}

impl<'a> Plot<'a> {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.chart.x.place(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.chart.y.place(value))
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Returns whether lines may join positions.
    pub(super) fn are_joined(&self) -> bool {
        !self.chart.is_named && self.chart.x.ticks.len() > 1
    }

    /// Returns the distance between series at the same name, so that their points can be distinguished. On an axis of
    /// numbers all points are at their own positions.
    fn apart(&self) -> f64 {
        if self.are_joined() {
            return 0.0;
        }
        let mut places: Vec<f64> = self.chart.x.ticks.iter().map(|(x, _)| self.x(*x)).collect();
        places.sort_by(f64::total_cmp);
        let room = places.windows(2).map(|two| two[1] - two[0]).fold(self.width / 2.0, f64::min);
        room * APART_SHARE / self.shown.len().max(1) as f64
    }

    /// Draws everything between the axes.
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        for series in &self.chart.series {
            if !self.shown.iter().any(|shown| std::ptr::eq(*shown, series)) {
                self.behind(canvas, series);
            }
        }
        self.floor(canvas);
        for truth in self.truths() {
            for stretch in self.law(truth) {
                canvas.line(&stretch, Stroke::of_truth(truth.style, truth.rank));
            }
        }
        for series in self.shown.iter().filter(|series| series.form == MarkStyle::Course) {
            self.band(canvas, series);
        }
        for rank in 0..self.shown.len() {
            self.series(canvas, rank);
        }
        for published in self.published() {
            self.overlay(canvas, published);
        }
    }

    /// Draws the axes. Of several plots side by side, not all have labels. `name` shortens names.
    pub(super) fn grid(
        &self,
        canvas: &mut Canvas,
        [x_labels, y_labels]: [bool; 2],
        size: f64,
        name: impl Fn(usize, &str) -> String,
    ) {
        let (left, right, top, bottom) = (self.left, self.right(), self.top, self.bottom());
        for (value, label) in &self.chart.y.ticks {
            let y = self.y(*value);
            canvas.put(format_args!(
                "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>"
            ));
            if y_labels {
                canvas.words(left - 8.0, y + 4.5, Anchor::End, "soft", size, label);
            }
        }
        let mut free_from = 0.0;
        for (index, (value, label)) in self.chart.x.ticks.iter().enumerate() {
            let (x, end) = (self.x(*value), bottom + 5.0);
            canvas.put(format_args!(
                "<line class=\"soft-line\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{end}\" stroke=\"#777777\"/>"
            ));
            if x >= free_from && x_labels {
                self.tick_label(canvas, x, bottom + 7.0 + size, size, &name(index, label));
                free_from = x + TICK_GAP;
            }
        }
        let (width, height) = (self.width, self.height);
        canvas.put(format_args!(
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\" fill=\"none\" stroke=\"#777777\"/>"
        ));
    }

    /// Draws a label; names take several lines, one for each part of a link.
    fn tick_label(&self, canvas: &mut Canvas, x: f64, y: f64, size: f64, label: &str) {
        if !self.chart.is_named {
            return canvas.words(x, y, Anchor::Middle, "soft", size, label);
        }
        for (row, part) in label.split(',').enumerate() {
            canvas.words(x, y + row as f64 * 14.0, Anchor::Middle, "soft", size.min(11.5), part);
        }
    }

    /// Draws a row for each series with gaps: the number of valid runs, below a cross on the axis.
    pub(super) fn gaps(&self, canvas: &mut Canvas, first: f64) {
        let with_gaps = self.shown.iter().filter(|series| !series.gaps.is_empty());
        for (row, series) in with_gaps.enumerate() {
            let (y, colour) = (first + row as f64 * GAP_ROW, style::colour(series.style));
            if self.shown.len() > 1 {
                canvas.mark(series.style, self.left - 10.0, y - 3.5, 3.2);
            }
            let mut free_from = 0.0;
            for gap in &series.gaps {
                let x = self.x(gap.x);
                canvas.cross(x, self.bottom(), colour);
                if x >= free_from {
                    canvas.words(x, y, Anchor::Middle, "soft", 10.0, &format!("{}/{}", gap.valid, gap.planned));
                    free_from = x + GAP_COUNT;
                }
            }
        }
    }

    /// Returns the height of those rows.
    pub(super) fn gap_rows(&self) -> f64 {
        self.shown.iter().filter(|series| !series.gaps.is_empty()).count() as f64 * GAP_ROW
    }

    fn floor(&self, canvas: &mut Canvas) {
        let places: Vec<_> = self.chart.floor.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        if self.are_joined() {
            return canvas.line(&places, Stroke::FLOOR);
        }
        // A step below all the points at a position.
        let half = self.apart() * self.shown.len() as f64 / 2.0 + FLOOR_REACH;
        for (x, y) in places {
            canvas.line(&[(x - half, y), (x + half, y)], Stroke::FLOOR);
        }
    }

    /// Returns the laws of this plot.
    pub(super) fn truths(&self) -> impl Iterator<Item = &'a Truth> {
        self.chart.truths.iter().filter(|truth| self.has(truth.style))
    }

    /// Returns the published values of this plot.
    pub(super) fn published(&self) -> impl Iterator<Item = &'a Overlay> {
        self.chart.published.iter().filter(|published| self.has(published.style))
    }

    fn has(&self, style: Option<usize>) -> bool {
        style.is_none_or(|style| self.shown.iter().any(|series| series.style == style))
    }

    /// Returns the parts of a law within the axes.
    pub(super) fn law(&self, truth: &Truth) -> Vec<Vec<(f64, f64)>> {
        let values: Vec<(f64, f64)> = self.chart.x.spread(LAW_STEPS).map(|x| (x, truth.line.at(x))).collect();
        let stretches = values.chunk_by(|a, b| self.chart.y.shows(a.1) && self.chart.y.shows(b.1));
        let place = |stretch: &[(f64, f64)]| stretch.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect::<Vec<_>>();
        stretches.filter(|stretch| stretch.len() > 1).map(place).collect()
    }

    fn overlay(&self, canvas: &mut Canvas, published: &Overlay) {
        let Overlay { style, marker, points, .. } = published;
        let places: Vec<_> = points.iter().map(|point| (self.x(point.x), self.y(point.y))).collect();
        let stroke = Stroke::of_published(*style);
        if self.are_joined() {
            canvas.line(&places, stroke);
        }
        for (point, (x, y)) in points.iter().zip(places) {
            if let Some(error) = point.error {
                canvas.bar(x, [self.y(point.y - error), self.y(point.y + error)], 3.0, stroke);
            }
            canvas.hollow(*marker, *style, [x, y], self.marker);
        }
    }

    /// Returns the position of a point.
    fn place(&self, mark: &Mark) -> (f64, f64) {
        (self.x(mark.x), self.y(mark.y))
    }

    /// Draws a series of another plot.
    fn behind(&self, canvas: &mut Canvas, series: &Series) {
        if !self.are_joined() || series.form == MarkStyle::Scattered {
            for (x, y) in series.marks.iter().map(|mark| self.place(mark)) {
                canvas.put(format_args!(
                    "<circle class=\"behind\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\" fill=\"{}\"/>",
                    Stroke::BEHIND.colour
                ));
            }
            return;
        }
        for stroke in series.strokes() {
            canvas.line(&stroke.iter().map(|mark| self.place(mark)).collect::<Vec<_>>(), Stroke::BEHIND);
        }
    }

    /// Draws the spread of a course, if there is any.
    fn band(&self, canvas: &mut Canvas, series: &Series) {
        for stroke in series.strokes() {
            if stroke.iter().any(|mark| mark.low < mark.high) {
                let above = stroke.iter().map(|mark| (self.x(mark.x), self.y(mark.high)));
                let below = stroke.iter().rev().map(|mark| (self.x(mark.x), self.y(mark.low)));
                canvas.band(&above.chain(below).collect::<Vec<_>>(), style::colour(series.style));
            }
        }
    }

    fn series(&self, canvas: &mut Canvas, rank: usize) {
        let series = self.shown[rank];
        let stroke = Stroke::of_series(series.style);
        let apart = (rank as f64 - (self.shown.len() as f64 - 1.0) / 2.0) * self.apart();
        if self.are_joined() {
            for joined in series.strokes() {
                canvas.line(&joined.iter().map(|mark| self.place(mark)).collect::<Vec<_>>(), stroke);
            }
        }
        if series.form == MarkStyle::Course {
            let every = series.marks.len().div_ceil(COURSE_MARKERS).max(1);
            // Not at the positions of another's markers.
            for mark in series.marks.iter().skip((2 * rank + 1) * every / 6 % every).step_by(every) {
                let (x, y) = self.place(mark);
                canvas.point(series, mark.x, &self.description(series, mark), [x, y], self.marker);
            }
            return;
        }
        for mark in &series.marks {
            let (x, y) = self.place(mark);
            let x = x + apart;
            // Bars at the same position have ends of different widths.
            canvas.bar(x, [self.y(mark.low), self.y(mark.high)], 3.0 + 1.5 * rank as f64, stroke);
            canvas.point(series, mark.x, &self.description(series, mark), [x, y], self.marker);
            if mark.is_bound {
                self.beyond(canvas, x, y, stroke.colour);
            } else if mark.bar_is_bound {
                let end = if self.chart.bounds_are_lower { mark.high } else { mark.low };
                self.beyond(canvas, x, self.y(end), stroke.colour);
            }
        }
    }

    /// Returns the description of a point: `auto, 5: 1.23 (1.1 to 1.4)`.
    fn description(&self, series: &Series, mark: &Mark) -> String {
        let tick = self.chart.x.ticks.iter().find(|(x, _)| *x == mark.x);
        let at = tick.map_or_else(|| short(mark.x), |(_, label)| label.clone());
        let over = if mark.is_bound { "beyond " } else { "" };
        let bar = match mark.low < mark.high {
            true => format!(
                " ({} to {}{})",
                short(mark.low),
                if mark.bar_is_bound { "beyond " } else { "" },
                short(mark.high)
            ),
            false => String::new(),
        };
        format!("{}, {at}: {over}{}{bar}", series.name, short(mark.y))
    }

    /// Draws an arrow for a value that lies beyond: up for times, down for goodput.
    fn beyond(&self, canvas: &mut Canvas, x: f64, y: f64, colour: &str) {
        let sign = if self.chart.bounds_are_lower { -1.0 } else { 1.0 };
        let end = (y + sign * ARROW * self.marker).clamp(self.top - BEYOND, self.bottom() + BEYOND);
        canvas.arrow(x, [y + sign * self.marker, end], colour);
    }
}

/// Returns a number in up to four digits.
fn short(number: f64) -> String {
    let digits = if number == 0.0 { 0 } else { number.abs().log10().floor() as i32 };
    let unit = 10_f64.powi(digits - 3);
    // Multiples of powers of ten are not exact in binary: print and read them.
    format!("{:.12}", (number / unit).round() * unit).parse().unwrap_or(number).to_string()
}
