//! Tables in Markdown as they come, or all numbers as JSON at the end.

use std::fmt::Display;

use serde_json::{Value, json};

use xtask::measuring::Sample;
use xtask::measuring::Tally;

/// What is measured goes here.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Whether tables are left out, and all is told at the end.
    json: bool,
    pub(super) tally: Tally,
    /// Columns of the table that rows go to.
    columns: Vec<String>,
    part: String,
    numbers: Vec<Value>,
}

/// What stands in one place of a table.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Text(String),
    Whole(u64),
    /// A number with so many digits after the point.
    Number(f64, usize),
    /// A small number, with its power of ten.
    Exponent(f64),
    /// Median, and between which two lies the middle half, with so many digits.
    Spread(Sample, usize),
    /// The same, of which a table shows the median only.
    Median(Sample, usize),
    /// Not measured.
    None,
}

impl Cell {
    pub(super) fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number, digits) => format!("{number:.digits$}"),
            Self::Exponent(0.0) => "0".to_owned(),
            Self::Exponent(number) => format!("{number:.1e}"),
            Self::Spread(sample, digits) => format!(
                "{:.digits$} ({:.digits$}-{:.digits$})",
                sample.median(),
                sample.quantile(0.25),
                sample.quantile(0.75)
            ),
            Self::Median(sample, digits) => format!("{:.digits$}", sample.median()),
            Self::None => "-".to_owned(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Whole(number) => json!(number),
            Self::Number(number, _) | Self::Exponent(number) => json!(number),
            Self::Spread(sample, _) | Self::Median(sample, _) => json!({
                "median": sample.median(),
                "quartiles": [sample.quantile(0.25), sample.quantile(0.75)],
                "range": [sample.least(), sample.largest()],
            }),
            Self::None => Value::Null,
        }
    }
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, ..Self::default() }
    }

    /// Words between the tables.
    pub(super) fn say(&self, text: impl Display) {
        if self.json { eprintln!("{text}") } else { println!("{text}") }
    }

    /// A table begins.
    pub(super) fn table(&mut self, part: &str, title: impl Display, columns: &[&str]) {
        self.part = part.to_owned();
        self.columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.say(format_args!("\n**{title}**\n"));
        if !self.json {
            println!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
        }
    }

    /// One row of it.
    pub(super) fn row(&mut self, cells: &[Cell]) {
        assert_eq!(cells.len(), self.columns.len(), "as many cells as columns");
        let shown: Vec<String> = cells.iter().map(Cell::shown).collect();
        self.say(format_args!("| {} |", shown.join(" | ")));
        let fields = self.columns.iter().cloned().zip(cells.iter().map(Cell::value));
        let mut object: serde_json::Map<String, Value> = [("part".to_owned(), json!(self.part))].into_iter().collect();
        object.extend(fields);
        self.numbers.push(Value::Object(object));
    }

    /// A target of at least so much, and whether it is met; `what` names it in the list of those that are not.
    pub(super) fn at_least(&mut self, what: impl Display, number: f64, target: f64) -> [Cell; 2] {
        let mark = self.tally.at_least(what, number, target);
        [Cell::text(format_args!(">= {target}")), Cell::text(mark)]
    }

    /// A target of at most so much.
    pub(super) fn at_most(&mut self, what: impl Display, number: f64, target: f64) -> [Cell; 2] {
        let mark = self.tally.at_most(what, number, target);
        [Cell::text(format_args!("<= {target}")), Cell::text(mark)]
    }

    /// The last words.
    pub(super) fn finish(self, machine: &str, seed: u64) {
        if self.json {
            let (met, short) = self.tally.outcome();
            let targets = json!({ "met": met, "short": short });
            println!("{}", json!({ "machine": machine, "seed": seed, "rows": self.numbers, "targets": targets }));
        } else {
            println!("\n{}", self.tally);
        }
    }
}
