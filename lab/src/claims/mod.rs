//! Verdicts on the claims of a document, with numbers looked up in the results.
//!
//! `verdict.toml` is in the directory of results. A verdict follows from its own conditions by one rule ([`Outcome`]),
//! and every number in its text is an expression in braces, evaluated when the text is written: `{with loss
//! 5%}`. Neither can differ from the results.

mod cells;
mod passages;
mod query;
mod show;
mod stored;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use self::passages::passages;
pub(crate) use self::query::{Statistic, Term};
pub(crate) use self::show::{anchor, class, markdown, overview, section};
pub(crate) use self::stored::{StoredVerdict, TEXT, stored};
pub(crate) use self::value::Cell;
use self::value::NoValue;
use crate::exit::{Code, Failure};
use crate::results::Bound;
use crate::tables::Measured;

/// The file in the directory of results.
pub(crate) const FILE: &str = "verdict.toml";
/// The share of a published number by which a measured one may differ, where the document gives no spread.
const TOLERANCE: f64 = 0.2;

/// The verdicts on a plan's results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    /// The verdict on each claim.
    pub(crate) verdicts: Vec<ClaimVerdict>,
    /// Further paragraphs.
    pub(crate) text: Vec<Text>,
}

/// The verdict on one claim.
#[derive(Clone, Debug)]
pub(crate) struct ClaimVerdict {
    /// The figure or table, such as `arq 1`; empty for a claim of no document.
    pub(crate) item: String,
    pub(crate) claim: String,
    /// The measured system.
    pub(crate) system: String,
    pub(crate) measured: Text,
    pub(crate) outcome: Outcome,
    /// The reason.
    pub(crate) because: Text,
    /// For a claim for which its document is known: the result of `auto`, without and with a fixed rate.
    pub(crate) auto: Option<Text>,
}

/// Whether a claim was reproduced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Every number is within the document's own spread, or 20 % where it gives none, and every order and direction is
    /// as claimed.
    Reproduced,
    /// Every order and direction is as claimed, but a number is not.
    InKind,
    /// An order or direction is not as claimed; or no order was claimed, and a number is not.
    Not,
    /// There are not enough valid runs, with the reason.
    NotMeasured(String),
}

/// A text with inserted numbers.
pub(crate) type Text = Vec<TextPart>;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum TextPart {
    Words(String),
    /// A number and its expression.
    Number {
        query: String,
        shown: String,
    },
}

/// Results, and the short names of series in expressions.
pub(crate) struct Data<'a> {
    measured: &'a Measured,
    names: &'a BTreeMap<String, String>,
}

impl Data<'_> {
    fn cells(&self, term: &Term) -> Result<Vec<Cell>, String> {
        let series = self.names.get(&term.series).unwrap_or(&term.series).clone();
        self.measured.cells(&Term { series, ..term.clone() })
    }

    fn points(&self, sweep: &str) -> Result<usize, String> {
        self.measured.points(sweep)
    }
}

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    text: String,
    /// Series by their short names.
    #[serde(default)]
    names: BTreeMap<String, String>,
    #[serde(default)]
    verdict: Vec<VerdictText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictText {
    #[serde(default)]
    item: String,
    claim: String,
    system: String,
    measured: String,
    /// Orders and directions.
    #[serde(default)]
    holds: Vec<String>,
    /// Published numbers: `with loss 5% = 4.0`, or with the document's spread `with loss 5% = 4.0 +- 0.5`.
    #[serde(default)]
    equals: Vec<String>,
    #[serde(default)]
    because: String,
    auto: Option<String>,
}

/// Reads the verdicts on results, if there are any.
///
/// # Errors
/// A file that cannot be read, or an invalid expression in it.
pub(crate) fn read(directory: &Path, measured: &Measured) -> Result<Option<Verdicts>, Failure> {
    let path = directory.join(FILE);
    let Some(file) = file(&path)? else { return Ok(None) };
    let data = Data { measured, names: &file.names };
    let failed = |why: String| Failure::new(Code::Usage, format_args!("{}: {why}", path.display()));
    let verdicts =
        file.verdict.iter().map(|verdict| judge(verdict, &data)).collect::<Result<_, _>>().map_err(failed)?;
    let paragraphs = file.text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let text = paragraphs.map(|paragraph| filled(paragraph, &data)).collect::<Result<_, _>>().map_err(failed)?;
    Ok(Some(Verdicts { verdicts, text }))
}

/// Returns the runs behind an expression in the terms of a directory's verdicts: the ids of their records, and their
/// values.
///
/// # Errors
/// An invalid expression.
pub(crate) fn behind(query: &str, directory: &Path, measured: &Measured) -> Result<Vec<(String, Bound)>, Failure> {
    let file = file(&directory.join(FILE))?.unwrap_or_default();
    let data = Data { measured, names: &file.names };
    // The format after `|` is not part of the expression.
    let query = query.split_once('|').map_or(query, |(query, _)| query);
    let runs = value::runs(query, &data).map_err(|error| Failure::new(Code::Usage, error))?;
    Ok(runs.into_iter().map(|run| (run.id, run.value)).collect())
}

fn file(path: &Path) -> Result<Option<FileText>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::at(path)(error)),
    };
    let read = toml::from_str(&text);
    read.map(Some).map_err(|error| Failure::new(Code::Usage, format_args!("{}: {error}", path.display())))
}

fn judge(text: &VerdictText, data: &Data<'_>) -> Result<ClaimVerdict, String> {
    Ok(ClaimVerdict {
        item: text.item.clone(),
        claim: text.claim.clone(),
        system: text.system.clone(),
        measured: filled(&text.measured, data)?,
        outcome: outcome(text, data)?,
        because: filled(&text.because, data)?,
        auto: text.auto.as_deref().map(|auto| filled(auto, data)).transpose()?,
    })
}

fn outcome(text: &VerdictText, data: &Data<'_>) -> Result<Outcome, String> {
    let (mut orders_hold, mut numbers_hold) = (true, true);
    let mut why = None;
    let mut take = |held: Result<bool, NoValue>| match held {
        Ok(held) => Ok(held),
        Err(NoValue::NotMeasured(term)) => {
            why.get_or_insert(term);
            Ok(true)
        }
        Err(NoValue::Wrong(error)) => Err(error),
    };
    for order in &text.holds {
        orders_hold &= take(value::holds(order, data))?;
    }
    for number in &text.equals {
        numbers_hold &= take(is_met(number, data))?;
    }
    if let Some(why) = why {
        return Ok(Outcome::NotMeasured(why));
    }
    Ok(match (orders_hold, numbers_hold) {
        (true, true) if text.holds.is_empty() && text.equals.is_empty() => {
            return Err(format!("the claim {:?} has no condition: add holds or equals", text.claim));
        }
        (true, true) => Outcome::Reproduced,
        (true, false) if !text.holds.is_empty() => Outcome::InKind,
        _ => Outcome::Not,
    })
}

/// Returns whether a number is as published: `EXPRESSION = NUMBER [+- SPREAD]`.
fn is_met(text: &str, data: &Data<'_>) -> Result<bool, NoValue> {
    let wrong = || {
        NoValue::Wrong(format!(
            "invalid condition {text:?}: write EXPRESSION = NUMBER or EXPRESSION = NUMBER +- SPREAD"
        ))
    };
    let (query, published) = text.rsplit_once(" = ").ok_or_else(wrong)?;
    let (published, spread) = match published.split_once(" +- ") {
        Some((published, spread)) => (published, Some(spread)),
        None => (published, None),
    };
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    let published = number(published)?;
    let spread = spread.map_or(Ok(TOLERANCE * published.abs()), number)?;
    match value::number(query, data)? {
        Bound::Exactly(measured) => Ok((measured - published).abs() <= spread),
        Bound::AtLeast(least) if least > published + spread => Ok(false),
        Bound::AtLeast(_) => Err(NoValue::NotMeasured(query.to_owned())),
    }
}

/// Replaces the expressions in braces by their values.
fn filled(template: &str, data: &Data<'_>) -> Result<Text, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((words, after)) = rest.split_once('{') {
        let (inner, after) = after.split_once('}').ok_or_else(|| format!("missing '}}' after {after:?}"))?;
        pieces.push(TextPart::Words(words.to_owned()));
        let (query, form) = inner.split_once('|').map_or((inner, ""), |(query, form)| (query, form.trim()));
        let shown = match value::number(query, data) {
            Ok(value) => shown(value, form)?,
            Err(NoValue::NotMeasured(_)) => "(no valid run)".to_owned(),
            Err(NoValue::Wrong(error)) => return Err(error),
        };
        pieces.push(TextPart::Number { query: query.trim().to_owned(), shown });
        rest = after;
    }
    pieces.push(TextPart::Words(rest.to_owned()));
    Ok(pieces)
}

/// Formats a number: in three digits, with a fixed number of decimals (`.1`), or in percent (`%`).
fn shown(value: Bound, form: &str) -> Result<String, String> {
    let number = value.value();
    let text = match form {
        "" => units::number(rounded(number)),
        "%" => format!("{} %", units::number(rounded(number * 100.0))),
        _ => {
            let decimals = form.strip_prefix('.').and_then(|digits| digits.parse::<usize>().ok());
            let decimals = decimals.ok_or_else(|| format!("unknown format {form:?}: write .1 or %"))?;
            format!("{number:.decimals$}")
        }
    };
    Ok(if value.is_bound() { format!("over {text}") } else { text })
}

/// Rounds to three significant digits.
fn rounded(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(number.abs().log10().floor() - 2.0);
    // Multiples of powers of ten are not exact in binary: print and read them.
    format!("{:.12}", (number / unit).round() * unit).parse().unwrap_or(number)
}

/// Returns a text without its expressions.
pub(crate) fn plain(text: &Text) -> String {
    let words = text.iter().map(|piece| match piece {
        TextPart::Words(words) => words.as_str(),
        TextPart::Number { shown, .. } => shown.as_str(),
    });
    words.collect()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reproduced => f.write_str("reproduced"),
            Self::InKind => f.write_str("in kind"),
            Self::Not => f.write_str("not reproduced"),
            Self::NotMeasured(reason) => write!(f, "not measured: {reason}"),
        }
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ClaimVerdict { claim, system, measured, outcome, because, auto, .. } in &self.verdicts {
            writeln!(f, "Claim:    {claim}\nMeasured: {} ({system})\nVerdict:  {outcome}", plain(measured))?;
            if !plain(because).is_empty() {
                writeln!(f, "Because:  {}", plain(because))?;
            }
            if let Some(auto) = auto {
                writeln!(f, "auto:     {}", plain(auto))?;
            }
            writeln!(f)?;
        }
        let paragraphs: Vec<String> = self.text.iter().map(plain).collect();
        if paragraphs.is_empty() { Ok(()) } else { writeln!(f, "{}", paragraphs.join("\n\n")) }
    }
}
