//! The content of pictures, in numbers.

use std::collections::HashMap;

use super::ruler::Ruler;
use crate::lists;
use crate::plan::{Axis, LinkPlan, Point, Published, Quantity, Scale, Spread, Sweep, work};
use crate::results::{Bound, PointSummary, Record, of_one_build};

/// A sweep and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// One line above the picture.
    pub title: String,
    /// Notes for the reader, below it.
    pub caption: Vec<String>,
    pub(super) x: Ruler,
    pub(super) y: Ruler,
    /// Whether the positions of the x axis are names, which no line joins.
    pub(super) is_named: bool,
    /// Whether bounds are lower ones, as for times; for goodput they are upper ones.
    pub(super) bounds_are_lower: bool,
    /// One for each peer.
    pub series: Vec<Series>,
    /// The theoretical optimum: positions and values.
    pub floor: Vec<(f64, f64)>,
    /// Published values.
    pub(super) published: Vec<Published>,
}

/// One peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Index of colour and marker: that of the peer's position in the plan.
    pub(super) style: usize,
    /// Its points, from left to right.
    pub marks: Vec<Mark>,
}

/// One point: the median, and the ends of its error bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Position on the axis.
    pub x: f64,
    /// The median of the valid runs.
    pub y: f64,
    /// Lower end of the bar.
    pub low: f64,
    /// Upper end of the bar.
    pub high: f64,
    /// Whether half of the runs did not finish: the true value lies beyond `y`.
    pub is_bound: bool,
    /// Whether the run at the end of the bar did not finish: the true end lies beyond.
    pub bar_is_bound: bool,
}

/// Lines over numbers, for pictures that do not show a sweep over links.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// One line above the picture.
    pub title: String,
    /// Notes for the reader, below it.
    pub caption: Vec<String>,
    /// Title and scale of the horizontal axis.
    pub x: (String, Scale),
    /// Its ticks: positions and labels. Round numbers if there are none.
    pub ticks: Vec<(f64, String)>,
    /// Title and scale of the vertical axis.
    pub y: (String, Scale),
    /// Names, and their points from left to right.
    pub series: Vec<(String, Vec<Mark>)>,
}

/// Returns the summary of a quantity for each peer at each point of a sweep, in the plan's order: of all records with the
/// id of one of its cases, made by the build that made the last one.
pub(crate) fn summaries<'a>(
    plan: &'a LinkPlan,
    sweep: &'a Sweep,
    records: &'a [Record],
    quantity: Quantity,
) -> Vec<(&'a Point, Vec<(&'a str, PointSummary)>)> {
    let by_id = by_id(records);
    let of_peer = |point: &'a Point, peer: &'a String| {
        (peer.as_str(), PointSummary::of(runs(plan, sweep, point, peer, &by_id), quantity))
    };
    let at = |point| (point, sweep.peers.iter().map(|peer| of_peer(point, peer)).collect());
    sweep.points.iter().map(at).collect()
}

/// Records by their ids.
type ById<'a> = HashMap<&'a str, Vec<&'a Record>>;

fn by_id(records: &[Record]) -> ById<'_> {
    let mut by_id: ById<'_> = HashMap::new();
    for record in records {
        by_id.entry(&record.id).or_default().push(record);
    }
    by_id
}

/// Returns the runs of a peer at a point of a sweep, of the build that made the last one.
fn runs<'a>(plan: &LinkPlan, sweep: &Sweep, point: &Point, peer: &str, by_id: &ById<'a>) -> Vec<&'a Record> {
    let ids: Vec<String> = plan.cases_at(sweep, point, peer).map(|case| case.id()).collect();
    let found = ids.iter().filter_map(|id| by_id.get(id.as_str())).flat_map(|records| counted(records));
    let mut found = found.collect();
    of_one_build(&mut found, |record: &Record| (&record.date, record.made.as_ref()));
    found
}

/// Returns the runs of a peer at a point of a sweep that count, and the invalid ones.
pub(crate) fn runs_at<'a>(
    plan: &LinkPlan,
    sweep: &Sweep,
    point: &Point,
    peer: &str,
    records: &'a [Record],
) -> Vec<&'a Record> {
    runs(plan, sweep, point, peer, &by_id(records))
}

/// Iterates over the invalid runs of one case and its last valid one: a run that did not finish is repeated when more
/// time is given.
fn counted<'a>(records: &[&'a Record]) -> impl Iterator<Item = &'a Record> {
    let last = records.iter().rposition(|record| record.is_valid());
    let counts = move |(index, record): &(usize, &'a Record)| !record.is_valid() || Some(*index) == last;
    records.iter().copied().enumerate().filter(counts).map(|(_, record)| record)
}

impl Chart {
    /// Creates the picture of a sweep, as its plan specifies.
    pub fn new(plan: &LinkPlan, sweep: &Sweep, records: &[Record]) -> Self {
        let drawn = plan.picture;
        let all = summaries(plan, sweep, records, drawn.y);
        let series: Vec<Series> = (0..sweep.peers.len())
            .map(|index| {
                let name = sweep.peers[index].clone();
                let style = plan.peers.iter().position(|peer| *peer == name).unwrap_or(index);
                let marks = all.iter().filter_map(|(point, peers)| mark(drawn.y, drawn.spread, point, &peers[index].1));
                Series { style, marks: sorted(marks.collect()), name }
            })
            .filter(|series| !series.marks.is_empty())
            .collect();
        let floor: Vec<(f64, f64)> = drawn.floor.map_or_else(Vec::new, |floor| {
            let of = |point: &Point| Some((point.x, quantity(drawn.y, point.size, point.floor(floor)?)));
            let mut floor: Vec<_> = sweep.points.iter().filter_map(of).collect();
            floor.sort_by(|a, b| a.0.total_cmp(&b.0));
            floor
        });
        let published: Vec<Published> = plan
            .published
            .iter()
            .filter(|published| published.sweep == sweep.name && !published.points.is_empty())
            .cloned()
            .collect();
        let points = published.iter().flat_map(|published| &published.points);
        let marks = || series.iter().flat_map(|series| &series.marks);
        let values = marks().flat_map(|mark| [mark.y, mark.low, mark.high]).chain(floor.iter().map(|(_, y)| *y)).chain(
            points
                .clone()
                .flat_map(|point| [point.y - point.error.unwrap_or(0.0), point.y + point.error.unwrap_or(0.0)]),
        );
        let is_named = sweep.axis == Axis::Link;
        Self {
            title: sweep.title.clone(),
            caption: caption(plan, sweep, &all),
            x: Ruler::of_places(sweep, points.map(|point| point.x)),
            y: Ruler::of_values(drawn.y.title(), drawn.y_scale, values.collect()),
            is_named,
            bounds_are_lower: !drawn.y.is_rate(),
            series,
            floor,
            published,
        }
    }
}

impl From<Lines> for Chart {
    fn from(lines: Lines) -> Self {
        let Lines { title, caption, x, ticks, y, series } = lines;
        let marks = || series.iter().flat_map(|(_, marks)| marks);
        let places = marks().map(|mark| mark.x);
        let values = marks().flat_map(|mark| [mark.y, mark.low, mark.high]).collect();
        Self {
            title,
            caption,
            x: match ticks.is_empty() {
                true => Ruler::of_values(&x.0, x.1, places.collect()),
                false => Ruler::of_ticks(&x.0, x.1, ticks, places),
            },
            y: Ruler::of_values(&y.0, y.1, values),
            is_named: false,
            bounds_are_lower: true,
            series: series
                .into_iter()
                .enumerate()
                .map(|(style, (name, marks))| Series { name, style, marks })
                .filter(|series| !series.marks.is_empty())
                .collect(),
            floor: Vec::new(),
            published: Vec::new(),
        }
    }
}

impl Mark {
    /// Creates a point without a bar.
    pub fn at(x: f64, y: f64) -> Self {
        Self::with_bar(x, y, [y, y])
    }

    /// Creates a point with a bar between two values.
    pub fn with_bar(x: f64, y: f64, [low, high]: [f64; 2]) -> Self {
        Self { x, y, low, high, is_bound: false, bar_is_bound: false }
    }
}

fn sorted(mut marks: Vec<Mark>) -> Vec<Mark> {
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    marks
}

/// Returns what is drawn for a value of a summary, of which goodput is a time.
fn quantity(quantity: Quantity, size: u64, value: f64) -> f64 {
    match quantity {
        Quantity::Goodput => size as f64 * 8e-6 / value,
        _ => value,
    }
}

fn mark(drawn: Quantity, spread: Spread, point: &Point, summary: &PointSummary) -> Option<Mark> {
    let times = summary.times?;
    let of = |bound: Bound| quantity(drawn, point.size, bound.value());
    let [first, last] = times.bar(spread);
    let ends = [of(first), of(last)];
    Some(Mark {
        x: point.x,
        y: of(times.median),
        low: ends[0].min(ends[1]),
        high: ends[0].max(ends[1]),
        is_bound: times.median.is_bound(),
        bar_is_bound: last.is_bound(),
    })
}

fn caption(plan: &LinkPlan, sweep: &Sweep, all: &[(&Point, Vec<(&str, PointSummary)>)]) -> Vec<String> {
    let summaries = || all.iter().flat_map(|(_, peers)| peers.iter().map(|(_, summary)| summary));
    let runs = summaries().map(PointSummary::valid).filter(|runs| *runs > 0);
    let Some(runs) = lists::counts(runs, "valid run", "valid runs") else {
        return vec!["Nothing has been measured yet.".to_owned()];
    };
    let bars = match plan.picture.spread {
        Spread::Range if plan.writes.is_some() => "the least to the most",
        Spread::Range => "the shortest to the longest",
        Spread::Quartiles => "the first to the third quartile",
    };
    let base = match sweep.axis {
        Axis::Size => sweep.points[0].link.text.clone(),
        _ => format!(
            "{} over {}",
            work(sweep.points[0].size, plan.writes.as_ref()),
            without(&sweep.points[0].link.text, sweep.axis.name())
        ),
    };
    let mut lines = vec![format!("{base}. Median of {runs} at each point, bars from {bars} of them.")];
    if summaries().any(|summary| summary.not_finished + summary.failed > 0) {
        let arrow = if plan.picture.y.is_rate() { "down" } else { "up" };
        let cap = units::seconds(sweep.cap.as_secs_f64());
        lines.push(format!(
            "Arrow {arrow}: half of the runs or more did not finish within {cap}, the value lies beyond."
        ));
    }
    lines
}

/// Returns the link without the varied part.
fn without(link: &str, key: &str) -> String {
    let direction = |text: &str| {
        let other = |part: &&str| part.split_once('=').is_none_or(|(name, _)| name != key);
        text.split(',').filter(other).collect::<Vec<_>>().join(",")
    };
    link.split(" / ").map(direction).collect::<Vec<_>>().join(" / ")
}
