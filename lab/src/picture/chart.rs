//! The content of pictures, in numbers.

use std::collections::HashMap;

use super::ruler::Ruler;
use super::series::{Mark, Series, joined};
use crate::lists;
use crate::plan::{
    Axis, LinkPlan, Point, Published, PublishedPoint, Quantity, ReferenceCurve, Scale, Spread, Sweep, work,
};
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
    /// Whether bounds are lower ones, as for times, and not upper ones, as for goodput.
    pub(super) bounds_are_lower: bool,
    /// One series for each peer, or for several equal ones.
    pub series: Vec<Series>,
    /// The theoretical optimum: positions and values.
    pub floor: Vec<(f64, f64)>,
    /// Published values.
    pub(super) published: Vec<Overlay>,
    /// Laws and true values.
    pub(super) truths: Vec<Truth>,
}

/// A line to compare the series with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Truth {
    pub(super) line: ReferenceCurve,
    /// The style of the fitted series, if there is one.
    pub(super) style: Option<usize>,
    /// Its position among those of no series.
    pub(super) rank: usize,
}

/// A document's points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overlay {
    /// The text in the legend.
    pub(super) label: String,
    /// The style of the series to compare with, if there is one.
    pub(super) style: Option<usize>,
    /// The shape of the points: that of this series, or another one.
    pub(super) marker: usize,
    /// From left to right.
    pub(super) points: Vec<PublishedPoint>,
}

/// Lines over numbers, for pictures that do not show a sweep over links.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// One line above the picture.
    pub title: String,
    /// Notes for the reader, below it.
    pub caption: Vec<String>,
    /// The name of the sweep, by which published values and lines are selected.
    pub sweep: String,
    /// Title and scale of the horizontal axis.
    pub x: (String, Scale),
    /// Its ticks: positions and labels. Round numbers if there are none.
    pub ticks: Vec<(f64, String)>,
    /// Whether the ticks are names, which no line joins.
    pub is_named: bool,
    /// Title and scale of the vertical axis.
    pub y: (String, Scale),
    /// The series; those without any point or gap are not drawn.
    pub series: Vec<Series>,
    /// Published values.
    pub published: Vec<Published>,
    /// Lines to compare them with.
    pub lines: Vec<ReferenceCurve>,
    /// Lines fitted to series, by the styles of these.
    pub fits: Vec<(usize, ReferenceCurve)>,
}

impl Lines {
    /// Creates lines with these points each, between axes with round numbers, without anything else.
    pub fn new(title: String, caption: String, [x, y]: [(&str, Scale); 2], series: Vec<(String, Vec<Mark>)>) -> Self {
        let axis = |(title, scale): (&str, Scale)| (title.to_owned(), scale);
        let drawn = series.into_iter().enumerate();
        let drawn = drawn.map(|(style, (name, marks))| Series::new(name, style, marks.into_iter().map(Ok)));
        Self {
            title,
            caption: vec![caption],
            sweep: String::new(),
            x: axis(x),
            ticks: Vec::new(),
            is_named: false,
            y: axis(y),
            series: drawn.collect(),
            published: Vec::new(),
            lines: Vec::new(),
            fits: Vec::new(),
        }
    }
}

/// Returns the summary of a quantity for each peer at each point of a sweep, in the plan's order: of all records with
/// the id of one of its cases, made by the build that made the last one.
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

/// Returns the counting and the invalid runs of a peer at a point of a sweep.
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
    /// Returns whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.marks.is_empty())
    }

    /// Creates the picture of a sweep, as its plan specifies.
    pub fn new(plan: &LinkPlan, sweep: &Sweep, records: &[Record]) -> Self {
        let drawn = plan.picture;
        let all = summaries(plan, sweep, records, drawn.y);
        let series = sweep.peers.iter().enumerate().map(|(index, peer)| {
            let style = plan.peers.iter().position(|other| other == peer).unwrap_or(index);
            let points = all.iter().map(|(point, peers)| {
                let (_, summary) = &peers[index];
                let planned = plan.cases_at(sweep, point, peer).count();
                Mark::of_enough(mark(drawn.y, drawn.spread, point, summary), point.x, summary.valid(), planned)
            });
            Series::new(peer, style, points)
        });
        let contents = Contents::new(series.collect(), &plan.published, &plan.lines, &sweep.name);
        let floor: Vec<(f64, f64)> = drawn.floor.map_or_else(Vec::new, |floor| {
            let of = |point: &Point| Some((point.x, quantity(drawn.y, point.size, point.floor(floor)?)));
            let mut floor: Vec<_> = sweep.points.iter().filter_map(of).collect();
            floor.sort_by(|a, b| a.0.total_cmp(&b.0));
            floor
        });
        let values = contents.values().into_iter().chain(floor.iter().map(|(_, y)| *y)).collect();
        let mut caption = caption(plan, sweep, &all);
        caption.extend(contents.note());
        Self {
            title: sweep.title.clone(),
            caption,
            x: Ruler::of_places(sweep, contents.published_places()),
            y: Ruler::of_values(drawn.y.title(), drawn.y_scale, values),
            is_named: sweep.axis == Axis::Link,
            bounds_are_lower: !drawn.y.is_rate(),
            series: contents.series,
            floor,
            published: contents.published,
            truths: contents.truths,
        }
    }
}

impl From<Lines> for Chart {
    fn from(lines: Lines) -> Self {
        let Lines { title, mut caption, sweep, x, ticks, is_named, y, series, published, lines, fits } = lines;
        let mut drawn = Contents::new(series, &published, &lines, &sweep);
        let is_drawn = |(style, _): &(usize, ReferenceCurve)| drawn.series.iter().any(|series| series.style == *style);
        let fits = fits.into_iter().filter(is_drawn).map(|(style, line)| Truth { line, style: Some(style), rank: 0 });
        drawn.truths.extend(fits.collect::<Vec<_>>());
        caption.extend(drawn.note());
        let places = drawn.places();
        Self {
            title,
            caption,
            x: match ticks.is_empty() {
                _ if is_named => Ruler::of_names(&x.0, ticks),
                true => Ruler::of_values(&x.0, x.1, places),
                false => Ruler::of_ticks(&x.0, x.1, ticks, places.into_iter()),
            },
            y: Ruler::of_values(&y.0, y.1, drawn.values()),
            is_named,
            bounds_are_lower: true,
            series: drawn.series,
            floor: Vec::new(),
            published: drawn.published,
            truths: drawn.truths,
        }
    }
}

/// The content of a picture, without its axes.
struct Contents {
    series: Vec<Series>,
    published: Vec<Overlay>,
    truths: Vec<Truth>,
}

impl Contents {
    /// Selects the content of a sweep. Without any measurement, there is no series.
    fn new(mut series: Vec<Series>, published: &[Published], lines: &[ReferenceCurve], sweep: &str) -> Self {
        series.retain(|series| !series.marks.is_empty() || !series.gaps.is_empty());
        if series.iter().all(|series| series.marks.is_empty() && series.gaps.iter().all(|gap| gap.valid == 0)) {
            series.clear();
        }
        let drawn = joined(series.clone());
        let style = |name: &String| {
            let own = series.iter().find(|series| series.name == *name)?;
            let same = drawn.iter().find(|other| (&other.marks, &other.gaps) == (&own.marks, &own.gaps));
            Some(same.filter(|_| !own.marks.is_empty()).map_or(own.style, |same| same.style))
        };
        let overlay = |(index, published): (usize, &Published)| {
            let Published { label, section, of, points, .. } = published;
            let mut points = points.clone();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            let style = of.as_ref().and_then(style);
            let label = format!("{label}, published ({section})");
            Overlay { label, style, marker: style.unwrap_or(series.len() + index), points }
        };
        let is_here = |published: &&Published| published.sweep == sweep && !published.points.is_empty();
        let published = published.iter().filter(is_here).enumerate().map(overlay).collect();
        let is_here = |line: &&ReferenceCurve| line.sweep.as_ref().is_none_or(|name| name == sweep);
        let truth = |(rank, line): (usize, &ReferenceCurve)| Truth { line: line.clone(), style: None, rank };
        let truths = lines.iter().filter(is_here).enumerate().map(truth).collect();
        Self { series: drawn, published, truths }
    }

    fn published_places(&self) -> impl Iterator<Item = f64> {
        self.published.iter().flat_map(|published| &published.points).map(|point| point.x)
    }

    /// Returns all positions on the horizontal axis.
    fn places(&self) -> Vec<f64> {
        let marks = self.series.iter().flat_map(|series| series.marks.iter().map(|mark| mark.x));
        let gaps = self.series.iter().flat_map(|series| series.gaps.iter().map(|gap| gap.x));
        marks.chain(gaps).chain(self.published_places()).collect()
    }

    /// Returns all values on the vertical axis. Lines count if there is a measurement.
    fn values(&self) -> Vec<f64> {
        let marks = self.series.iter().flat_map(|series| &series.marks);
        let marks = marks.flat_map(|mark| [mark.y, mark.low, mark.high]);
        let published = self.published.iter().flat_map(|published| &published.points);
        let published = published.flat_map(|point| {
            let error = point.error.unwrap_or(0.0);
            [point.y - error, point.y + error]
        });
        let places = self.places();
        let truths = self.truths.iter().flat_map(|truth| places.iter().map(|x| truth.line.at(*x)));
        marks.chain(published).chain(truths).collect()
    }

    /// Returns the caption's text about gaps.
    fn note(&self) -> Option<String> {
        let has_gaps = self.series.iter().any(|series| !series.gaps.is_empty());
        has_gaps.then(|| "Below the axis, n/m: only n of m runs have a valid value, too few for a point.".to_owned())
    }
}

/// Returns the drawn value for a value of a summary, in which goodput is a time.
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
    let link = lists::links(sweep.points.iter().map(|point| point.link.text.as_str()), Some(sweep.axis.name()));
    let base = match sweep.axis {
        Axis::Size => link,
        _ => format!("{} over {link}", work(sweep.points[0].size, plan.writes.as_ref())),
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
