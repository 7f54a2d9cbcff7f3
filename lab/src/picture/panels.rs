//! Small pictures one below the other, over the same time axis.

use std::fmt::Write as _;

use super::ruler::Ruler;
use super::style;
use super::svg::escaped;
use crate::plan::Scale;

const WIDTH: f64 = 980.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 20.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;
const TITLE: f64 = 40.0;
const PANEL: f64 = 120.0;
const GAP: f64 = 30.0;
const LEGEND: f64 = 24.0;
/// Number of points above which several fall on one pixel, of which the lowest and highest are drawn.
const MOST_POINTS: usize = 2 * PLOT_WIDTH as usize;

/// One of the pictures: a quantity, and its course in each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The quantity, and its unit.
    pub title: String,
    /// The points of each run, in ascending order of time.
    pub courses: Vec<Vec<(f64, f64)>>,
}

/// Returns panels as SVG text; `runs` has the names of the courses, and the time axis shows `range`, or all from 0 on.
pub fn panels(title: &str, runs: &[String], panels: &[Panel], range: Option<[f64; 2]>) -> String {
    let height = TITLE + LEGEND + panels.len() as f64 * (PANEL + GAP) + GAP;
    let ends = panels.iter().flat_map(|panel| panel.courses.iter().filter_map(|course| course.last()));
    let time = match range {
        Some(range) => Ruler::of_range("Time, s", range),
        None => Ruler::of_values("Time, s", Scale::Linear, ends.map(|(time, _)| *time).collect()),
    };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"12\"><title>{0}</title>\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text class=\"ink\" x=\"{LEFT}\" y=\"26\" font-size=\"17\" fill=\"#1a1a1a\">{0}</text>\n",
        escaped(title)
    );
    legend(&mut text, runs);
    for (index, panel) in panels.iter().enumerate() {
        let top = TITLE + LEGEND + index as f64 * (PANEL + GAP);
        draw(&mut text, panel, top, &time, index + 1 == panels.len());
    }
    text + "</svg>\n"
}

fn legend(text: &mut String, runs: &[String]) {
    let mut x = LEFT;
    for (style, run) in runs.iter().enumerate() {
        let colour = style::colour(style);
        _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"44\" x2=\"{:.1}\" y2=\"44\" stroke=\"{colour}\" stroke-width=\"3\"/>\
             <text class=\"ink\" x=\"{:.1}\" y=\"48\" fill=\"#1a1a1a\">{}</text>",
            x + 18.0,
            x + 24.0,
            escaped(run)
        );
        x += 50.0 + 7.5 * run.chars().count() as f64;
    }
}

fn draw(text: &mut String, panel: &Panel, top: f64, time: &Ruler, is_last: bool) {
    let values = panel.courses.iter().flatten().map(|(_, value)| *value).collect();
    let value = Ruler::of_values(&panel.title, Scale::Linear, values);
    let bottom = top + PANEL;
    _ = writeln!(
        text,
        "<text class=\"ink\" x=\"{LEFT}\" y=\"{:.1}\" fill=\"#1a1a1a\">{}</text>",
        top - 5.0,
        escaped(&panel.title)
    );
    let every = value.ticks.len().div_ceil(4);
    for (at, label) in value.ticks.iter().step_by(every) {
        let y = bottom - PANEL * value.place(*at);
        _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555555\">{label}</text>",
            LEFT + PLOT_WIDTH,
            LEFT - 8.0,
            y + 4.0
        );
    }
    for (at, label) in time.ticks.iter().filter(|_| is_last) {
        let x = LEFT + PLOT_WIDTH * time.place(*at);
        let y = bottom + 16.0;
        _ = writeln!(
            text,
            "<text class=\"soft\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#555555\">{label}</text>"
        );
    }
    if is_last {
        let (x, y) = (LEFT + PLOT_WIDTH / 2.0, bottom + 34.0);
        _ = writeln!(
            text,
            "<text class=\"ink\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#1a1a1a\">{}</text>",
            time.title
        );
    }
    for (style, course) in panel.courses.iter().enumerate() {
        let points = thinned(course)
            .into_iter()
            .map(|(at, y)| format!("{:.1},{:.1}", LEFT + PLOT_WIDTH * time.place(at), bottom - PANEL * value.place(y)));
        let points: Vec<String> = points.collect();
        let colour = style::colour(style);
        _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>",
            points.join(" ")
        );
    }
    _ = writeln!(
        text,
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{top}\" width=\"{PLOT_WIDTH}\" height=\"{PANEL}\" fill=\"none\" stroke=\"#777777\"/>"
    );
}

/// Returns the lowest and the highest point of each interval, in order, which keeps all peaks.
fn thinned(course: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if course.len() <= MOST_POINTS {
        return course.to_vec();
    }
    let stretch = course.len().div_ceil(MOST_POINTS / 2);
    let extremes = |points: &[(f64, f64)]| {
        let low = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut both: Vec<(f64, f64)> = low.into_iter().chain(high).collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    };
    course.chunks(stretch).flat_map(extremes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::png;

    #[test]
    fn thinned_keeps_peaks() {
        let mut course: Vec<(f64, f64)> = (0..50_000).map(|at| (f64::from(at), 1.0)).collect();
        course[31_117].1 = 9.0;
        course[40_001].1 = 0.5;
        let thin = thinned(&course);
        assert!(thin.len() <= MOST_POINTS + 2, "{}", thin.len());
        assert!(thin.contains(&(31_117.0, 9.0)) && thin.contains(&(40_001.0, 0.5)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(thinned(&course[..100]), course[..100]);
    }

    #[test]
    fn panels_draw_every_course() {
        let course = vec![(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)];
        let panel = |title: &str| Panel { title: title.into(), courses: vec![course.clone(), course.clone()] };
        let drawn = panels("Two <runs>", &["a".into(), "b".into()], &[panel("Window, kB"), panel("Loss, %")], None);
        assert_eq!(drawn.matches("<polyline").count(), 4);
        assert!(drawn.contains("Two &lt;runs&gt;") && drawn.contains("Window, kB") && drawn.contains("Time, s"));
        assert!(png(&drawn).expect("a picture").len() > 1_000);
        let zoomed = panels("A part", &["a".into()], &[panel("Window, kB")], Some([1.0, 1.5]));
        assert!(zoomed.contains(">1.2</text>") && zoomed.contains(">1.5</text>"), "{zoomed}");
    }
}
