//! A sweep as a table: systems at points.

use serde::Serialize;

use super::{CellPosition, Measured};
use crate::claims::{Cell, Statistic, Term};
use crate::plan::Axis;
use crate::results::{Bound, Mean, Times};
use crate::simulated::{self, Vary};

/// A sweep's numbers: a row for each line of its picture, and a column for each point.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Titles of the axes, with their units.
    pub(crate) x: String,
    pub(crate) y: String,
    /// Whether the picture is over time, with a single point without numbers.
    pub(crate) is_over_time: bool,
    pub(crate) points: Vec<Point>,
    pub(crate) rows: Vec<Row>,
}

/// A value of the axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) label: String,
    pub(crate) x: f64,
}

/// A system, series, flow or code.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Its style in the picture.
    pub(crate) style: usize,
    pub(crate) cells: Vec<Numbers>,
}

/// The numbers of the runs of a row at a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Numbers {
    /// Runs in the plan.
    pub(crate) planned: usize,
    /// Valid runs that have a value; mean, deviation and interval are of them.
    pub(crate) runs: usize,
    /// Valid runs that did not finish, which are not in the mean.
    pub(crate) unfinished: usize,
    /// Invalid runs, which are not counted.
    pub(crate) invalid: usize,
    pub(crate) mean: Option<f64>,
    pub(crate) deviation: Option<f64>,
    /// The bounds of the mean with 95 % confidence.
    pub(crate) interval: Option<[f64; 2]>,
    /// Order statistics of all valid runs; those that did not finish are the longest.
    pub(crate) median: Option<Number>,
    pub(crate) min: Option<Number>,
    pub(crate) max: Option<Number>,
}

/// A number, or a bound of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Number {
    pub(crate) value: f64,
    pub(crate) is_bound: bool,
}

impl From<Bound> for Number {
    fn from(bound: Bound) -> Self {
        Self { value: bound.value(), is_bound: bound.is_bound() }
    }
}

impl Numbers {
    pub(crate) fn of(values: Vec<Bound>, invalid: usize, planned: usize) -> Self {
        let (mean, valid) = (Mean::of(&values), values.len());
        let runs = mean.map_or(0, |mean| mean.runs);
        let times = Times::of(values);
        Self {
            planned,
            runs,
            unfinished: valid - runs,
            invalid,
            mean: mean.map(|mean| mean.mean),
            deviation: mean.and_then(|mean| mean.deviation),
            interval: mean.and_then(|mean| mean.interval),
            median: times.map(|times| times.median.into()),
            min: times.map(|times| times.min.into()),
            max: times.map(|times| times.max.into()),
        }
    }
}

/// A row without its numbers: its name in expressions of verdicts.
struct RowLabel {
    name: String,
    style: usize,
    series: String,
    flow: Option<String>,
}

impl Measured {
    /// Returns the tables of all sweeps.
    pub(crate) fn tables(&self) -> Vec<Table> {
        (0..self.heads().len()).map(|sweep| self.table(sweep)).collect()
    }

    fn table(&self, sweep: usize) -> Table {
        let mut table = self.heads().swap_remove(sweep);
        for (row, line) in self.lines(sweep).into_iter().enumerate() {
            let numbers = |(point, cell): (usize, Cell)| {
                let planned = self.planned(CellPosition { sweep, row, point });
                let values = cell.runs.into_iter().map(|run| run.value).collect();
                let numbers = Numbers::of(values, cell.invalid, planned);
                match table.is_over_time {
                    true => Numbers { planned, runs: numbers.runs, invalid: numbers.invalid, ..Numbers::default() },
                    false => numbers,
                }
            };
            let cells = self.found(sweep, &line, None).into_iter().enumerate().map(numbers).collect();
            table.rows.push(Row { name: line.name, style: line.style, cells });
        }
        table
    }

    /// Returns the planned number of runs at a position.
    fn planned(&self, place: CellPosition) -> usize {
        match self {
            Self::Codes(plan, _) => plan.sweeps.get(place.sweep).map_or(0, |sweep| sweep.runs as usize),
            _ => self.cases(place).map_or(0, |cases| cases.len()),
        }
    }

    /// Returns the valid runs at a point of a row, or at each of its points.
    pub(super) fn found_at(&self, place: CellPosition) -> Vec<Cell> {
        let lines = self.lines(place.sweep);
        lines.get(place.row).map_or_else(Vec::new, |line| self.found(place.sweep, line, Some(place.point)))
    }

    fn found(&self, sweep: usize, line: &RowLabel, point: Option<usize>) -> Vec<Cell> {
        let Some(head) = self.heads().into_iter().nth(sweep) else { return Vec::new() };
        if head.is_over_time {
            // Each moment has values of its own; the runs are those of its beginning.
            let cells = self.cells(&line.term(&head.name, "0s"));
            return cells.unwrap_or_default();
        }
        let all = self.cells(&line.term(&head.name, "*")).unwrap_or_default();
        match point {
            Some(point) => all.into_iter().nth(point).into_iter().collect(),
            None => all,
        }
    }

    /// Returns the tables without rows.
    fn heads(&self) -> Vec<Table> {
        let head = |name: &str, title: &str, x: String, y: &str, points: Vec<Point>| Table {
            name: name.to_owned(),
            title: title.to_owned(),
            x,
            y: y.to_owned(),
            is_over_time: false,
            points,
            rows: Vec::new(),
        };
        match self {
            Self::Links(plan, _) => {
                let of = |sweep: &crate::plan::Sweep| {
                    let points = sweep.points.iter().map(|point| Point { label: point.label.clone(), x: point.x });
                    let x = match sweep.axis {
                        Axis::Link => sweep.axis.title().to_owned(),
                        axis => format!("{}, {}", axis.title(), axis.unit()),
                    };
                    head(&sweep.name, &sweep.title, x, plan.picture.y.title(), points.collect())
                };
                plan.sweeps.iter().map(of).collect()
            }
            Self::Codes(plan, _) => {
                let of = |sweep: &crate::codes::CodeSweep| {
                    let point = |(label, setting): &(String, crate::codes::Setting)| Point {
                        label: label.clone(),
                        x: sweep.vary.coordinate(setting),
                    };
                    let points = sweep.points.iter().map(point).collect();
                    head(&sweep.name, &sweep.title, sweep.vary.title().to_owned(), plan.y.title(), points)
                };
                plan.sweeps.iter().map(of).collect()
            }
            Self::Simulated(plan, _) => {
                let of = |sweep: &simulated::SimSweep| {
                    let points = sweep.points.iter().map(|point| Point { label: point.label.clone(), x: point.x });
                    let (picture, is_over_time) = (&sweep.picture, sweep.vary == Vary::Time);
                    let head =
                        head(&sweep.name, &picture.title, picture.x.clone(), picture.y.title(), points.collect());
                    Table { is_over_time, ..head }
                };
                plan.sweeps.iter().map(of).collect()
            }
        }
    }

    /// Returns the rows of a sweep's table, in the order of its picture.
    fn lines(&self, sweep: usize) -> Vec<RowLabel> {
        let line =
            |name: &str, style: usize| RowLabel { name: name.to_owned(), style, series: name.to_owned(), flow: None };
        match self {
            Self::Links(plan, _) => {
                let peers = plan.sweeps.get(sweep).map_or(&[][..], |sweep| &sweep.peers);
                let style = |index: usize| plan.peers.iter().position(|peer| *peer == peers[index]).unwrap_or(index);
                peers.iter().enumerate().map(|(index, peer)| line(peer, style(index))).collect()
            }
            Self::Codes(plan, _) => {
                let codes = plan.sweeps.get(sweep).map_or(&[][..], |sweep| &sweep.codes);
                let style = |code| plan.codes.iter().position(|other| other == code).unwrap_or(0);
                codes.iter().map(|code| line(&code.to_string(), style(code))).collect()
            }
            Self::Simulated(plan, _) => {
                let Some(sweep) = plan.sweeps.get(sweep) else { return Vec::new() };
                let of = |(style, line): (usize, simulated::PlotSeries)| RowLabel {
                    name: line.name,
                    style,
                    series: plan.series[line.series].name.clone(),
                    flow: Some(plan.base.flows[line.flow].name.clone()),
                };
                simulated::lines(plan, sweep).into_iter().enumerate().map(of).collect()
            }
        }
    }
}

impl RowLabel {
    fn term(&self, sweep: &str, point: &str) -> Term {
        Term {
            statistic: Statistic::Median,
            series: self.series.clone(),
            flow: self.flow.clone(),
            sweep: sweep.to_owned(),
            point: point.to_owned(),
            quantity: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::results::Bound::{AtLeast, Exactly};
    use crate::results::tests::record;
    use crate::results::{Ending, Record};

    const PLAN: &str = r#"
        name = "e"
        title = "1 MB over loss"
        link = "rate=10M,delay=5ms"
        size = "1MB"
        peers = ["b", "a"]
        repeats = 4
        cap = "60s"
        [[sweep]]
        name = "loss"
        vary = "loss"
        values = ["0%", "10%"]
        [[sweep]]
        name = "again"
        vary = "loss"
        values = ["10%"]
        peers = ["a"]
    "#;

    /// `b` takes 1, 2, 3 and 4 s without loss. With loss the second run does not finish, and the third is invalid and
    /// repeated in 7 s.
    fn measured() -> Measured {
        let Ok(Measured::Links(plan, _)) = Measured::parse(Path::new("p.toml"), PLAN, None) else { panic!("a plan") };
        let mut records: Vec<Record> = Vec::new();
        for case in plan.cases().into_iter().filter(|case| case.peer == "b") {
            let mut made = record(f64::from(case.repeat) + 1.0);
            (made.id, made.case) = (case.id(), case);
            if made.case.link.contains("loss=10%") && made.case.repeat == 1 {
                made.outcome.ending = Ending::NotFinished;
            }
            if made.case.link.contains("loss=10%") && made.case.repeat == 2 {
                let mut late = made.clone();
                late.outcome.verdict.reasons.push("late".to_owned());
                records.push(late);
                made.outcome.ending = Ending::Finished { seconds: 7.0 };
            }
            records.push(made);
        }
        Measured::Links(plan, records)
    }

    #[test]
    fn table_has_the_numbers_of_the_records() {
        let measured = measured();
        let tables = measured.tables();
        let [loss, again] = &tables[..] else { panic!("two sweeps") };
        assert_eq!((loss.x.as_str(), loss.points[1].x), ("Packets lost at random, %", 10.0));
        let [b, a] = &loss.rows[..] else { panic!("two peers") };
        let without = &b.cells[0];
        assert_eq!((without.runs, without.planned, without.mean), (4, 4, Some(2.5)));
        assert_eq!(without.deviation, Some((5.0_f64 / 3.0).sqrt()));
        let lossy = &b.cells[1];
        assert_eq!((lossy.runs, lossy.unfinished, lossy.invalid), (3, 1, 1));
        // 1, 7 and 4 s; of the four the median lies between 4 and 7.
        assert_eq!((lossy.mean, lossy.median.map(|median| median.value)), (Some(4.0), Some(5.5)));
        assert_eq!(lossy.max, Some(Number { value: 60.0, is_bound: true }));
        assert_eq!(a.cells[0], Numbers { planned: 4, ..Numbers::default() });
        // Styles are those of the plan, as in pictures.
        assert_eq!((b.style, a.style, again.rows[0].style, again.rows[0].name.as_str()), (0, 1, 1, "a"));
    }

    #[test]
    fn runs_at_lists_all_runs_of_the_cases() {
        let measured = measured();
        let at = |row, point| measured.runs_at(CellPosition { sweep: 0, row, point });
        let runs = at(0, 1).expect("a place");
        let said: Vec<_> =
            runs.iter().map(|run| (run.seed, run.is_valid, run.value.map(|value| value.value))).collect();
        let expected =
            [(1, true, Some(1.0)), (2, true, Some(60.0)), (3, false, None), (3, true, Some(7.0)), (4, true, Some(4.0))];
        assert_eq!(said, expected);
        assert_eq!((runs[2].reasons.as_slice(), runs[2].ended.as_str()), (&["late".to_owned()][..], "3.00 s"));
        assert_eq!(runs[0].label, "e/loss b 1000000 B over rate=10M,delay=5ms,loss=10%,seed=1 #0");
        assert_eq!(at(1, 0).map(|runs| runs.len()), Some(0));
        assert!(at(2, 0).is_none() && at(0, 2).is_none());
        assert_eq!(measured.record(runs[3].index).expect("it exists")["ending"]["seconds"], 7.0);
        assert!(measured.record(99).is_none());
    }

    #[test]
    fn numbers_count_runs_and_bounds() {
        let numbers = Numbers::of(vec![Exactly(1.0), AtLeast(60.0), Exactly(3.0)], 2, 5);
        assert_eq!((numbers.planned, numbers.runs, numbers.unfinished, numbers.invalid), (5, 2, 1, 2));
        assert_eq!((numbers.mean, numbers.deviation), (Some(2.0), Some(2.0_f64.sqrt())));
        let number = |value, is_bound| Some(Number { value, is_bound });
        assert_eq!(
            (numbers.min, numbers.median, numbers.max),
            (number(1.0, false), number(3.0, false), number(60.0, true))
        );
        assert_eq!(Numbers::of(Vec::new(), 1, 5), Numbers { planned: 5, invalid: 1, ..Numbers::default() });
    }
}
