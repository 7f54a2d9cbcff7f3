//! Records of runs with flows as pictures, as tables, and as a part of the page.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use super::{ProgramRecord, SimCase, SimEnding, SimPlan, SimPoint, SimQuantity, SimRecord, SimSweep, Vary};
use crate::lists;
use crate::picture::{Chart, Gap, Lines, Mark, MarkStyle, Series, escaped};
use crate::plan::{ReferenceCurve as Law, Scale, Spread};
use crate::results::{Bound, Times, line_through_origin, of_one_build};

/// Records by their cases; for several of one case with other caps, the last.
type ById<'a> = HashMap<&'a str, &'a SimRecord>;

fn by_id(records: &[SimRecord]) -> ById<'_> {
    records.iter().map(|record| (record.id.as_str(), record)).collect()
}

/// Returns the drawn runs of a series at a point: those of the build of the last one.
fn runs<'a>(ids: impl IntoIterator<Item = impl AsRef<str>>, records: &ById<'a>) -> Vec<&'a SimRecord> {
    let found = ids.into_iter().filter_map(|id| records.get(id.as_ref()).copied());
    let mut found = found.filter(|record| record.ending != SimEnding::Failed && record.is_valid()).collect();
    of_one_build(&mut found, |record| (&record.date, record.made.as_ref()));
    found
}

/// Returns the valid runs of a series at a point of a sweep, with a flow's value of a quantity, and the number of
/// invalid ones. Over time the point is a span.
pub(crate) fn found(
    plan: &SimPlan,
    sweep: &SimSweep,
    (series, point): (usize, usize),
    (flow, quantity): (usize, SimQuantity),
    records: &[SimRecord],
) -> (Vec<(String, Bound)>, usize) {
    let all = by_id(records);
    let is_over_time = sweep.vary == Vary::Time;
    let at = &sweep.points[if is_over_time { 0 } else { point }];
    let value = |record: &SimRecord| {
        if !is_over_time {
            return quantity.of(record, flow);
        }
        let flow = record.flows.get(flow)?;
        let exact = |value: &f64| Bound::Exactly(*value);
        match quantity.course(flow) {
            Some(course) => course.get(point).map(exact),
            None => Some(Bound::Exactly(*flow.arrived.get(point)? as f64 * 8e-6 / record.case.span_seconds)),
        }
    };
    let ids: Vec<String> = plan.ids_at(at, series).collect();
    let valid = runs(&ids, &all);
    let values = valid.iter().filter_map(|record| Some((record.id.clone(), value(record)?))).collect();
    let cases: HashSet<String> = ids.into_iter().collect();
    let invalid = records.iter().filter(|record| cases.contains(&record.id) && !record.is_valid()).count();
    (values, invalid)
}

/// One line of a picture: a series, a flow of it, and its name.
pub(crate) struct PlotSeries {
    pub(crate) series: usize,
    pub(crate) flow: usize,
    pub(crate) name: String,
}

/// Returns the lines of a sweep's picture, in the order of their styles.
pub(crate) fn lines(plan: &SimPlan, sweep: &SimSweep) -> Vec<PlotSeries> {
    let of_flows = sweep.vary == Vary::Time || sweep.picture.y.is_of_flows();
    let flows = if of_flows { &sweep.picture.flows[..] } else { &[0] };
    let name = |series: usize, flow: usize| {
        let (series, flow) = (&plan.series[series].name, &plan.base.flows[flow].name);
        match (of_flows && flows.len() > 1, plan.series.len() > 1) {
            (true, true) => format!("{series}: {flow}"),
            (true, false) => flow.clone(),
            (false, _) => series.clone(),
        }
    };
    let all = (0..plan.series.len()).flat_map(|series| flows.iter().map(move |flow| (series, *flow)));
    all.map(|(series, flow)| PlotSeries { series, flow, name: name(series, flow) }).collect()
}

/// The summary of the runs of one line at one point: the median and its bar.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    median: Bound,
    low: Bound,
    high: Bound,
    runs: usize,
}

fn cell(plan: &SimPlan, sweep: &SimSweep, line: &PlotSeries, point: &SimPoint, records: &ById<'_>) -> Option<Cell> {
    let values = |series: usize| -> Vec<Bound> {
        let runs = runs(plan.ids_at(point, series), records);
        runs.iter().filter_map(|record| sweep.picture.y.of(record, line.flow)).collect()
    };
    let mut all = values(line.series);
    if let Some(other) = sweep.picture.against {
        let Bound::Exactly(unit) = Times::of(values(other))?.median else { return None };
        all = all.into_iter().map(|bound| bound.over(unit)).collect();
    }
    let runs = all.len();
    let times = Times::of(all)?;
    let [low, high] = times.bar(sweep.picture.spread);
    Some(Cell { median: times.median, low, high, runs })
}

/// Returns the picture of a sweep.
pub(crate) fn picture(plan: &SimPlan, sweep: &SimSweep, records: &[SimRecord]) -> Chart {
    let records = by_id(records);
    let over_time = sweep.vary == Vary::Time;
    let lines = lines(plan, sweep);
    let series = lines.iter().enumerate().map(|(style, line)| {
        if over_time {
            let runs = runs(plan.ids_at(&sweep.points[0], line.series), &records);
            let course = course(&runs, line.flow, sweep.picture.y, sweep.picture.spread);
            return Series::new(&line.name, style, course.into_iter().map(Ok)).drawn(MarkStyle::Course);
        }
        let points = sweep.points.iter().map(|point| mark(plan, sweep, line, point, &records));
        let form = if sweep.picture.fit { MarkStyle::Scattered } else { MarkStyle::Joined };
        Series::new(&line.name, style, points).drawn(form)
    });
    let series: Vec<Series> = series.collect();
    let fits: Vec<_> = series.iter().filter(|_| sweep.picture.fit).enumerate().filter_map(fitted).collect();
    let caption = std::iter::once(caption(plan, sweep, &records)).chain(fits.iter().map(|(said, _)| said.clone()));
    let label = |point: &SimPoint| match sweep.picture.is_named {
        true => point.label.clone(),
        false => units::number(point.x),
    };
    let is_ticked = sweep.picture.is_ticked && !over_time;
    let ticks = sweep.points.iter().filter(|_| is_ticked).map(|point| (point.x, label(point))).collect();
    let is_course = sweep.picture.y.is_of_time() || sweep.picture.y == SimQuantity::LossEstimate;
    let y = if over_time && !is_course { "Throughput, Mbit/s of IP" } else { sweep.picture.y.title() };
    Lines {
        title: sweep.picture.title.clone(),
        caption: caption.collect(),
        sweep: sweep.name.clone(),
        x: (sweep.picture.x.clone(), if over_time { Scale::Linear } else { sweep.picture.x_scale }),
        ticks,
        is_named: sweep.picture.is_named,
        y: (y.to_owned(), sweep.picture.y_scale),
        series,
        published: plan.published.clone(),
        lines: plan.lines.clone(),
        fits: fits.into_iter().map(|(_, fit)| fit).collect(),
    }
    .into()
}

/// Returns the point of a line, or the gap where too few runs have a value.
fn mark(
    plan: &SimPlan,
    sweep: &SimSweep,
    line: &PlotSeries,
    point: &SimPoint,
    records: &ById<'_>,
) -> Result<Mark, Gap> {
    let cell = cell(plan, sweep, line, point, records);
    let mark = cell.map(|cell| {
        let [median, low, high] = [cell.median, cell.low, cell.high].map(Bound::value);
        let mark = Mark::with_bar(point.x, median, [low, high]);
        Mark { is_bound: cell.median.is_bound(), bar_is_bound: cell.high.is_bound(), ..mark }
    });
    Mark::of_enough(mark, point.x, cell.map_or(0, |cell| cell.runs), plan.seeds.len())
}

/// Returns the line nearest to a series, and its text in the caption.
fn fitted((style, series): (usize, &Series)) -> Option<(String, (usize, Law))> {
    let (factor, share) = fit(&series.marks)?;
    let said = format!("{}: nearest to {factor:.2} times the axis, R^2 = {share:.3}.", series.name);
    let label = format!("fit of {}: c = {factor:.2}", series.name);
    Some((said, (style, Law { sweep: None, label, factor, power: 1.0 })))
}

/// Returns the straight line through the origin with the least squares, and the share of the variance that it explains.
fn fit(marks: &[Mark]) -> Option<(f64, f64)> {
    line_through_origin(&marks.iter().map(|mark| (mark.x, mark.y)).collect::<Vec<_>>())
}

/// Returns a flow's course, span by span: the median of the runs that still continue, and their spread.
fn course(runs: &[&SimRecord], flow: usize, quantity: SimQuantity, spread: Spread) -> Vec<Mark> {
    let of = |record: &&SimRecord| quantity.course(record.flows.get(flow)?).map(<[f64]>::to_vec);
    let Some(courses) = runs.iter().map(of).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()) else {
        return throughput(runs, flow, spread);
    };
    let longest = courses.iter().map(Vec::len).max().unwrap_or(0);
    let mark = |span: usize| {
        let values = courses.iter().filter_map(|course| course.get(span).copied());
        spanned(span as f64 * runs[0].case.span_seconds, values, spread)
    };
    (0..longest).filter_map(mark).collect()
}

/// Returns a flow's arrivals in each span, in Mbit/s, over all runs. The last span of a run is ignored, as it may be
/// incomplete.
fn throughput(runs: &[&SimRecord], flow: usize, spread: Spread) -> Vec<Mark> {
    let spans = |record: &&SimRecord| record.flows.get(flow).map_or(0, |flow| flow.arrived.len().saturating_sub(1));
    let longest = runs.iter().map(spans).max().unwrap_or(0);
    let mark = |span: usize| {
        let bytes = runs.iter().map(|run| if span < spans(run) { run.flows[flow].arrived[span] } else { 0 });
        let length = runs[0].case.span_seconds;
        spanned((span as f64 + 0.5) * length, bytes.map(|bytes| bytes as f64 * 8e-6 / length), spread)
    };
    (0..longest).filter_map(mark).collect()
}

/// Returns the point of a course at a time.
fn spanned(time: f64, values: impl Iterator<Item = f64>, spread: Spread) -> Option<Mark> {
    let values = Times::of(values.map(Bound::Exactly).collect())?;
    Some(Mark::with_bar(time, values.median.value(), values.bar(spread).map(Bound::value)))
}

/// Describes the drawn runs, from their records.
fn caption(plan: &SimPlan, sweep: &SimSweep, records: &ById<'_>) -> String {
    let each = |point| (0..plan.series.len()).map(move |series| runs(plan.ids_at(point, series), records));
    let drawn: Vec<Vec<&SimRecord>> = sweep.points.iter().flat_map(each).filter(|runs| !runs.is_empty()).collect();
    let Some(count) = lists::counts(drawn.iter().map(Vec::len), "run", "runs") else {
        return "Nothing has been run yet.".to_owned();
    };
    let most = drawn.iter().map(Vec::len).max().unwrap_or(0);
    let cases = || drawn.iter().flatten().map(|record| &record.case);
    let seconds = |of: fn(&SimCase) -> f64| {
        let mut all: Vec<f64> = cases().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all.into_iter().map(units::seconds).collect::<Vec<_>>().join(" or ")
    };
    let texts = |of: for<'a> fn(&'a SimCase) -> Option<&'a str>| lists::each_once(cases().filter_map(of));
    let spread = match sweep.picture.spread {
        Spread::Range => "from the least to the most",
        Spread::Quartiles => "from the first to the third quartile",
    };
    let content = match &sweep.vary {
        Vary::Time => {
            let band = if most > 1 { format!(", and a band {spread}") } else { String::new() };
            format!("median of {count} in spans of {}{band}", seconds(|case| case.span_seconds))
        }
        Vary::Path(_) => format!("median of {count}, bars {spread}"),
    };
    let axis = match &sweep.vary {
        Vary::Path(path) => path.strip_prefix("link."),
        Vary::Time => None,
    };
    let link = lists::links(cases().map(|case| case.scenario.link.as_str()), axis);
    let is_emulated = drawn.iter().flatten().all(|record| record.emulation.is_some());
    let how = if is_emulated { "Emulated" } else { "Simulated" };
    let warm_up = match texts(|case| case.scenario.warm_up.as_ref().map(|warm_up| warm_up.0.as_str())) {
        none if none.is_empty() => none,
        warm_up => format!(", the first {warm_up} not counted"),
    };
    let access = match texts(|case| Some(case.scenario.access.as_str()).filter(|access| *access != "perfect")) {
        none if none.is_empty() => none,
        access => format!(", each host behind {access}"),
    };
    format!("{how}: {link}{access}; {content}; ended at {}{warm_up}.", seconds(|case| case.cap_seconds))
}

/// Returns one line for each flow of each record, below a line of names.
pub(crate) fn csv(records: &[SimRecord]) -> String {
    let mut text = "id,experiment,sweep,series,point,seed,ending,flow,seconds,ended_at,written,wire_bytes,packets_sent,packets_lost,loss_estimate,symbol_bytes,\
                    encode_seconds,decode_seconds,throughput,queue_p95,congestion,failure,valid,reasons,queue_drops,random_drops,\
                    packets,took_seconds,date,version\n"
        .to_owned();
    let quoted = |field: &str| match field.contains([',', '"']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    };
    let known = |time: Option<f64>| time.map_or_else(String::new, |time| time.to_string());
    for record in records {
        let SimRecord { id, case, ending, queue_drops, random_drops, packets, took_seconds, date, version, .. } =
            record;
        let ending = match ending {
            SimEnding::Finished => "finished",
            SimEnding::NotFinished => "not-finished",
            SimEnding::GaveUp => "gave-up",
            SimEnding::Failed => "failed",
        };
        let reasons = record.emulation.as_ref().map_or_else(String::new, |run| run.verdict.reasons.join("; "));
        for flow in &record.flows {
            let program = flow.program.as_ref();
            writeln!(
                text,
                "{id},{},{},{},{},{},{ending},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{queue_drops},{random_drops},{packets},{took_seconds},{date},{version}",
                case.experiment,
                case.sweep,
                quoted(&case.series),
                quoted(&case.point),
                case.seed,
                quoted(&flow.name),
                known(flow.seconds),
                known(flow.ended_at),
                flow.written,
                flow.wire_bytes,
                flow.packets_sent,
                flow.packets_lost,
                known(flow.loss_estimate),
                flow.symbol_bytes,
                flow.coding_seconds[0],
                flow.coding_seconds[1],
                known(flow.throughput),
                known(record.queue_p95),
                program.and_then(|program| program.congestion.as_deref()).unwrap_or_default(),
                quoted(program.and_then(|program| program.failure.as_deref()).unwrap_or_default()),
                record.is_valid(),
                quoted(&reasons),
            )
            .expect("a string takes all");
        }
    }
    text
}

/// Returns pictures and tables of all sweeps, and the scenarios, as HTML.
pub(crate) fn body(plan: &SimPlan, records: &[SimRecord], pictures: &[String]) -> String {
    let mut html = String::new();
    let found = by_id(records);
    for (sweep, picture) in plan.sweeps.iter().zip(pictures) {
        let title = escaped(&sweep.picture.title);
        write!(html, "<h2>{title}</h2>\n<figure>{picture}</figure>\n").expect("a string takes all");
        if sweep.vary != Vary::Time {
            table(&mut html, plan, sweep, &found);
        }
    }
    let base = serde_json::to_string(&plan.base).expect("plain values have a JSON form");
    write!(
        html,
        "<h2>{} scenario</h2>\n<table class=\"words\">\n<tr><td>Version</td><td>{}</td></tr>\n\
         <tr><td>From, to</td><td>{}</td></tr>\n<tr><td>Runs</td><td>{}</td></tr>\n<tr><td>Base</td><td>{}</td></tr>\n</table>\n",
        if plan.base.is_emulated() { "Emulated" } else { "Simulated" },
        escaped(&lists::each_once(records.iter().map(|record| record.version.as_str()))),
        lists::from_to(records.iter().map(|record| record.date.as_str())),
        records.len(),
        escaped(&base)
    )
    .expect("a string takes all");
    if plan.base.is_emulated() {
        environment(&mut html, records);
    }
    html
}

/// Writes the environment of programs, and the accuracy of the emulator.
fn environment(html: &mut String, records: &[SimRecord]) {
    let mut put = |line: String| writeln!(html, "{line}").expect("a string takes all");
    let runs = || records.iter().filter_map(|record| record.emulation.as_ref());
    let invalid = runs().filter(|run| !run.verdict.is_valid()).count();
    let latest = runs().filter(|run| run.verdict.is_valid()).map(|run| run.verdict.lateness.p99_us);
    let rows = [
        ("Kernel", lists::each_once(runs().map(|run| run.kernel.as_str()))),
        ("Emulator", lists::each_once(runs().map(|run| run.back_end.as_str()))),
        ("Invalid", format!("{invalid} runs, not counted above")),
        ("Lateness", format!("99 % of packets at most {:.0} us late in every valid run", latest.fold(0.0, f64::max))),
    ];
    put("<table class=\"words\">".to_owned());
    for (name, value) in rows {
        put(format!("<tr><td>{name}</td><td>{}</td></tr>", escaped(&value)));
    }
    put("</table>\n<h3>Programs</h3>\n<div class=\"wide\"><table class=\"words\">".to_owned());
    put("<tr><th>Peer</th><th>Versions</th><th>Congestion control</th><th>Encrypted</th></tr>".to_owned());
    let flows = records.iter().flat_map(|record| record.case.scenario.flows.iter().zip(&record.flows));
    let by_peer: BTreeMap<String, &ProgramRecord> =
        flows.filter_map(|(text, flow)| Some((text.peer_name()?, flow.program.as_ref()?))).collect();
    for (peer, program) in by_peer {
        let versions: Vec<_> = program.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let congestion = program.congestion.clone().unwrap_or_default();
        let encrypted = if program.encrypted { "yes" } else { "no" }.to_owned();
        let cells = [peer, versions.join(", "), congestion, encrypted];
        put(format!("<tr>{}</tr>", cells.map(|cell| format!("<td>{}</td>", escaped(&cell))).concat()));
    }
    put("</table></div>".to_owned());
}

fn table(html: &mut String, plan: &SimPlan, sweep: &SimSweep, records: &ById<'_>) {
    let heads: String = sweep.points.iter().map(|point| format!("<th>{}</th>", escaped(&point.label))).collect();
    let mut put = |line: String| writeln!(html, "{line}").expect("a string takes all");
    put(format!("<div class=\"wide\"><table>\n<tr><th>{}</th>{heads}</tr>", escaped(&sweep.picture.x)));
    let number = |bound: Bound| {
        let sign = if bound.is_bound() { "&ge; " } else { "" };
        format!("{sign}{}", units::number(bound.value()))
    };
    for line in lines(plan, sweep) {
        let cell = |point: &SimPoint| {
            let Some(cell) = cell(plan, sweep, &line, point, records) else {
                return "<td>-</td>".to_owned();
            };
            let Cell { median, low, high, runs } = cell;
            let runs = units::count(runs, "run", "runs");
            format!(
                "<td>{}<small>{} &ndash; {}</small><small>{runs}</small></td>",
                number(median),
                number(low),
                number(high)
            )
        };
        let cells: String = sweep.points.iter().map(cell).collect();
        put(format!("<tr><td>{}</td>{cells}</tr>", escaped(&line.name)));
    }
    put(format!("</table></div>\n<p><small>{}: median and spread.</small></p>", sweep.picture.y.title()));
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::super::record::tests::{emulated, record};
    use super::*;
    use crate::picture::svg;

    /// Returns a record of each seed at a point of the first sweep, in which the flows take these seconds.
    fn records(plan: &SimPlan, point: usize, series: usize, seconds: [Option<f64>; 2]) -> Vec<SimRecord> {
        let sweep = &plan.sweeps[0];
        let cases = plan.cases_at(sweep, &sweep.points[point], series);
        cases
            .zip(seconds)
            .map(|(case, seconds)| {
                let mut record = SimRecord { id: case.id(), case, ..record() };
                record.flows[1].seconds = seconds;
                record
            })
            .collect()
    }

    #[test]
    fn sim_records_become_marks_rows_and_lines() {
        let mut plan = plan();
        plan.sweeps[0].picture.y = super::super::SimQuantity::Seconds;
        plan.sweeps[0].picture.flows = vec![1];
        let all = [records(&plan, 0, 0, [Some(4.0), Some(2.0)]), records(&plan, 1, 0, [Some(9.0), None])].concat();
        let chart = picture(&plan, &plan.sweeps[0], &all);
        let [cubic, fixed] = &chart.series[..] else { panic!("two series") };
        let gap = |x| Gap { x, valid: 0, planned: 2 };
        assert_eq!((&fixed.marks[..], &fixed.gaps[..]), (&[][..], &[gap(0.0), gap(20.0)][..]), "it has no runs");
        assert_eq!(cubic.name, "cubic");
        let bound = Mark { is_bound: true, bar_is_bound: true, ..Mark::with_bar(20.0, 34.5, [9.0, 60.0]) };
        assert_eq!(cubic.marks, [Mark::with_bar(0.0, 3.0, [2.0, 4.0]), bound]);
        assert!(chart.caption[0].contains("median of 2 runs"), "{:?}", chart.caption);
        let drawn = svg(&chart);
        assert!(drawn.contains(">20<") && !drawn.contains("20ms"), "the axis has the unit");
        assert_eq!(drawn.matches(">0/2<").count(), 2);
        assert_eq!(drawn.matches("<polyline class=\"series\"").count(), 3, "one of two points, two in the legend");
        let html = body(&plan, &all, &["<svg/>".to_owned(), "<svg/>".to_owned()]);
        assert!(html.contains("<td>&ge; 34.5<small>9 &ndash; &ge; 60</small><small>2 runs</small></td>"), "{html}");
        let table = csv(&all[..1]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 1 + 2);
        assert!(lines.iter().all(|line| line.split(',').count() == 30), "{table}");
    }

    #[test]
    fn harm_is_relative_to_the_median_of_against() {
        let mut plan = plan();
        let picture_of = &mut plan.sweeps[0].picture;
        (picture_of.y, picture_of.flows, picture_of.against) = (SimQuantity::Harm, vec![1], Some(1));
        let all = [
            records(&plan, 0, 0, [Some(6.0), Some(9.0)]),
            records(&plan, 0, 1, [Some(4.0), Some(2.0)]),
            records(&plan, 1, 0, [Some(6.0), Some(9.0)]),
            records(&plan, 1, 1, [None, None]),
        ]
        .concat();
        let chart = picture(&plan, &plan.sweeps[0], &all);
        let marks: Vec<_> = chart.series.iter().map(|series| series.marks.clone()).collect();
        let expected = [Mark::with_bar(0.0, 2.5, [2.0, 3.0]), Mark::with_bar(0.0, 1.0, [2.0 / 3.0, 4.0 / 3.0])];
        assert_eq!(marks, expected.map(|mark| vec![mark]), "no value relative to unfinished runs");
    }

    #[test]
    fn invalid_runs_are_not_drawn() {
        let mut plan = plan();
        plan.sweeps[0].picture.y = SimQuantity::QueueP95;
        let mut all: Vec<SimRecord> = records(&plan, 0, 0, [Some(1.0); 2]).into_iter().map(emulated).collect();
        let drawn = |all: &[SimRecord]| picture(&plan, &plan.sweeps[0], all).caption[0].clone();
        assert!(drawn(&all).contains("median of 2 runs"), "{}", drawn(&all));
        all[0].emulation.as_mut().expect("emulated").verdict.reasons.push("late".to_owned());
        assert!(drawn(&all).contains("median of 1 run,"), "{}", drawn(&all));
        let table = csv(&all[..1]);
        assert!(table.lines().nth(1).is_some_and(|line| line.contains(",false,late,")), "{table}");
    }

    #[test]
    fn at_positions_and_fit_line() {
        let mut plan = plan();
        let picture_of = &mut plan.sweeps[0].picture;
        (picture_of.y, picture_of.flows) = (super::super::SimQuantity::Seconds, vec![1]);
        (picture_of.is_ticked, picture_of.fit) = (false, true);
        plan.sweeps[0].points[0].x = 5.0;
        let all = [records(&plan, 0, 0, [Some(3.0), Some(3.0)]), records(&plan, 1, 0, [Some(8.0), Some(8.0)])].concat();
        let chart = picture(&plan, &plan.sweeps[0], &all);
        // (5 * 3 + 20 * 8) / (25 + 400); off by 0.94 and 0.24, where the mean is off by 2.5 each time.
        assert_eq!(chart.caption[1], "cubic: nearest to 0.41 times the axis, R^2 = 0.925.");
        let drawn = svg(&chart);
        assert_eq!(drawn.matches("<polyline class=\"truth\"").count(), 2, "the fit, and in the legend");
        assert_eq!(drawn.matches("<polyline class=\"series\"").count(), 2, "only in the legend, not a course");
        assert_eq!(fit(&[Mark::at(5.0, 3.0)]), None, "one point has no variance");
    }

    #[test]
    fn courses_are_medians_with_their_spread() {
        let (first, mut second) = (record(), record());
        second.flows[0].arrived = vec![300, 300];
        let marks = throughput(&[&first, &second], 0, Spread::Range);
        let bytes = |rate: f64| (rate * 1e6 / 8.0).round();
        let rates: Vec<_> = marks.iter().map(|mark| (mark.x, [mark.low, mark.y, mark.high].map(bytes))).collect();
        // 100, 100, 100 of one run and 300 of the other; the last span of each is incomplete.
        let after = [0.0, 50.0, 100.0];
        assert_eq!(rates, [(0.5, [100.0, 200.0, 300.0]), (1.5, after), (2.5, after)]);
        second.flows[0].rate = vec![6.0, 2.0, 1.0];
        let marks = course(&[&first, &second], 0, SimQuantity::SendingRate, Spread::Range);
        let rates: Vec<(f64, f64)> = marks.iter().map(|mark| (mark.x, mark.y)).collect();
        assert_eq!(rates, [(0.0, 7.0), (1.0, 3.0), (2.0, 1.0)], "of the continuing runs");
        assert_eq!([marks[0].low, marks[0].high], [6.0, 8.0]);
    }
}
