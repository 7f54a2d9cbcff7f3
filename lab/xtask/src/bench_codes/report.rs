//! Tables in Markdown during the run, or all numbers as JSON at the end.

use std::fmt::Display;

use serde_json::{Value, json};

use xtask::measuring::Sample;
use xtask::measuring::Tally;

/// The report of all measurements.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Whether JSON is printed at the end instead of tables.
    json: bool,
    pub(super) tally: Tally,
    /// Columns of the current table.
    columns: Vec<String>,
    part: String,
    numbers: Vec<Value>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Text(String),
    Whole(u64),
    /// A number with this number of decimals.
    Number(f64, usize),
    /// A small number, with its power of ten.
    Exponent(f64),
    /// Median and quartiles, with this number of decimals.
    Spread(Sample, usize),
    /// The same; a table shows the median only.
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

    /// Prints text between the tables.
    pub(super) fn say(&self, text: impl Display) {
        if self.json { eprintln!("{text}") } else { println!("{text}") }
    }

    /// Starts a table.
    pub(super) fn table(&mut self, part: &str, title: impl Display, columns: &[&str]) {
        self.part = part.to_owned();
        self.columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.say(format_args!("\n**{title}**\n"));
        if !self.json {
            println!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[Cell]) {
        assert_eq!(cells.len(), self.columns.len(), "as many cells as columns");
        let shown: Vec<String> = cells.iter().map(Cell::shown).collect();
        self.say(format_args!("| {} |", shown.join(" | ")));
        let fields = self.columns.iter().cloned().zip(cells.iter().map(Cell::value));
        let mut object: serde_json::Map<String, Value> = [("part".to_owned(), json!(self.part))].into_iter().collect();
        object.extend(fields);
        self.numbers.push(Value::Object(object));
    }

    /// Returns the cells of a lower target, and whether it is met; `name` is for the list of missed targets.
    pub(super) fn at_least(&mut self, name: impl Display, number: f64, target: f64) -> [Cell; 2] {
        let mark = self.tally.at_least(name, number, target);
        [Cell::text(format_args!(">= {target}")), Cell::text(mark)]
    }

    /// Returns the cells of an upper target.
    pub(super) fn at_most(&mut self, name: impl Display, number: f64, target: f64) -> [Cell; 2] {
        let mark = self.tally.at_most(name, number, target);
        [Cell::text(format_args!("<= {target}")), Cell::text(mark)]
    }

    /// Prints the end of the report.
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
