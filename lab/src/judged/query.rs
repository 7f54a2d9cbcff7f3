//! Numbers by name: expressions over the results of one plan.
//!
//! ```text
//! with loss 5%                         the median of the series `with` in the sweep `loss` at the point `5%`
//! max with loss 5%                     a statistic: min, q1, median, q3, max, or the number of runs or invalid runs
//! with loss 5% wire                    another quantity than the drawn one
//! with loss 5% of tcp                  of the flow `tcp`
//! with loss * / without loss *         at every point
//! least(...), most(...), mean(...)     of the values at all points
//! count(a loss * > b loss *)           the number of points at which it holds
//! points(loss)                         the number of points
//! fit(with loss), r2(with loss)        the nearest line through the origin, and how much of the variance it explains
//! rises(...), falls(...)               whether each value is above, or below, the one before it
//! ```
//!
//! Operators have spaces around them. A comparison of values at every point holds if it does at each.

use std::fmt;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Cell(Term),
    Binary(Box<Self>, Operator, Box<Self>),
    Call(Function, Box<Self>),
    /// The number of points of a sweep.
    Points(String),
    /// A property of the line through a series.
    Line(LineOf, Term),
}

/// The results of a series at a point, or at all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) statistic: Statistic,
    pub(crate) series: String,
    pub(crate) flow: Option<String>,
    pub(crate) sweep: String,
    /// `*` for all.
    pub(crate) point: String,
    pub(crate) quantity: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    Min,
    FirstQuartile,
    Median,
    ThirdQuartile,
    Max,
    Runs,
    Invalid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Least,
    Most,
    Mean,
    Count,
    Rises,
    Falls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineOf {
    Factor,
    Explained,
}

impl Operator {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Returns how strongly it binds: comparisons least.
    fn strength(self) -> u8 {
        match self {
            Self::Multiply | Self::Divide => 2,
            Self::Add | Self::Subtract => 1,
            _ => 0,
        }
    }
}

impl Statistic {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "min" => Self::Min,
            "q1" => Self::FirstQuartile,
            "median" => Self::Median,
            "q3" => Self::ThirdQuartile,
            "max" => Self::Max,
            "runs" => Self::Runs,
            "invalid" => Self::Invalid,
            _ => return None,
        })
    }
}

/// Why an expression cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("cannot read {text:?}: {why}")]
pub(crate) struct QueryError {
    text: String,
    why: String,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expression, QueryError> {
    let failed = |why: String| QueryError { text: text.to_owned(), why };
    let words = words(text).map_err(failed)?;
    let mut parser = Parser { words: &words, at: 0 };
    let read = parser.binary(0).map_err(failed)?;
    match parser.next() {
        None => Ok(read),
        Some(word) => Err(failed(format!("{word} is too much"))),
    }
}

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Text(String),
    /// In quotes: never an operator or a function.
    Quoted(String),
    Open,
    Close,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Quoted(text) => write!(f, "'{text}'"),
            Self::Open => f.write_str("'('"),
            Self::Close => f.write_str("')'"),
        }
    }
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => {
                words.push(if first == '(' { Word::Open } else { Word::Close });
                1
            }
            '\'' => {
                let inner = rest[1..].find('\'').ok_or("a quote is not closed")?;
                words.push(Word::Quoted(rest[1..=inner].to_owned()));
                inner + 2
            }
            _ => {
                let length = rest.find(|next: char| next.is_whitespace() || "()'".contains(next)).unwrap_or(rest.len());
                words.push(Word::Text(rest[..length].to_owned()));
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

struct Parser<'a> {
    words: &'a [Word],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Word> {
        self.words.get(self.at)
    }

    fn next(&mut self) -> Option<&'a Word> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn operator(&self) -> Option<Operator> {
        match self.peek()? {
            Word::Text(text) => Operator::of(text),
            _ => None,
        }
    }

    /// Reads operations that bind at least this strongly.
    fn binary(&mut self, least: u8) -> Result<Expression, String> {
        let mut left = self.atom()?;
        while let Some(operator) = self.operator().filter(|operator| operator.strength() >= least) {
            self.at += 1;
            let right = self.binary(operator.strength() + 1)?;
            left = Expression::Binary(Box::new(left), operator, Box::new(right));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression, String> {
        let first = self.next().ok_or("it ends too early")?;
        match first {
            Word::Open => self.closed(|parser| parser.binary(0)),
            Word::Close => Err("')' without '('".to_owned()),
            Word::Text(name) if self.peek() == Some(&Word::Open) => self.call(name),
            Word::Text(text) => match text.parse::<f64>() {
                Ok(number) => Ok(Expression::Number(number)),
                Err(_) => {
                    self.at -= 1;
                    self.term().map(Expression::Cell)
                }
            },
            Word::Quoted(_) => {
                self.at -= 1;
                self.term().map(Expression::Cell)
            }
        }
    }

    fn closed<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let read = inner(self)?;
        match self.next() {
            Some(Word::Close) => Ok(read),
            _ => Err("')' is missing".to_owned()),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        self.at += 1;
        let function = match name {
            "least" => Function::Least,
            "most" => Function::Most,
            "mean" => Function::Mean,
            "count" => Function::Count,
            "rises" => Function::Rises,
            "falls" => Function::Falls,
            "points" => return self.closed(|parser| parser.name("a sweep").map(Expression::Points)),
            "fit" | "r2" => {
                let of = if name == "fit" { LineOf::Factor } else { LineOf::Explained };
                return self.closed(|parser| Ok(Expression::Line(of, parser.place("*".to_owned())?)));
            }
            _ => return Err(format!("there is no function '{name}'")),
        };
        let argument = self.closed(|parser| parser.binary(0))?;
        Ok(Expression::Call(function, Box::new(argument)))
    }

    /// Reads a series and a sweep.
    fn place(&mut self, point: String) -> Result<Term, String> {
        let (series, sweep) = (self.name("a series")?, self.name("a sweep")?);
        Ok(Term { statistic: Statistic::Median, series, flow: None, sweep, point, quantity: None })
    }

    fn term(&mut self) -> Result<Term, String> {
        let statistic = match self.peek() {
            Some(Word::Text(text)) => Statistic::of(text),
            _ => None,
        };
        self.at += usize::from(statistic.is_some());
        let place = self.place(String::new())?;
        let point = self.name("a point, or *")?;
        let is_quantity = |text: &str| text != "of" && Operator::of(text).is_none();
        let quantity = match self.peek() {
            Some(Word::Text(text)) if is_quantity(text) => {
                self.at += 1;
                Some(text.clone())
            }
            _ => None,
        };
        let has_flow = self.peek() == Some(&Word::Text("of".to_owned()));
        self.at += usize::from(has_flow);
        let flow = if has_flow { Some(self.name("a flow")?) } else { None };
        Ok(Term { statistic: statistic.unwrap_or(Statistic::Median), point, quantity, flow, ..place })
    }

    fn name(&mut self, what: &str) -> Result<String, String> {
        match self.next() {
            Some(Word::Text(text) | Word::Quoted(text)) => Ok(text.clone()),
            Some(word) => Err(format!("{word} stands where {what} should")),
            None => Err(format!("{what} is missing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(series: &str, point: &str) -> Term {
        Term {
            statistic: Statistic::Median,
            series: series.to_owned(),
            flow: None,
            sweep: "loss".to_owned(),
            point: point.to_owned(),
            quantity: None,
        }
    }

    #[test]
    fn terms_and_how_operators_bind() {
        let cell = |series, point| Box::new(Expression::Cell(term(series, point)));
        assert_eq!(parse("with loss 5%"), Ok(*cell("with", "5%")));
        let full = Term {
            statistic: Statistic::Max,
            flow: Some("tcp".to_owned()),
            quantity: Some("wire".to_owned()),
            ..term("a b", "0.1% / 0%")
        };
        let quoted = parse("max 'a b' loss '0.1% / 0%' wire of tcp");
        assert_eq!(quoted, Ok(Expression::Cell(full)));
        let ratio = Expression::Binary(cell("a", "*"), Operator::Divide, cell("b", "*"));
        assert_eq!(parse("a loss * / b loss *"), Ok(ratio.clone()));
        let sum = Expression::Binary(Box::new(Expression::Number(1.0)), Operator::Subtract, Box::new(ratio));
        assert_eq!(parse("1 - a loss * / b loss *"), Ok(sum));
        let least = parse("least(a loss * - 2) > 3");
        let inner = Expression::Binary(cell("a", "*"), Operator::Subtract, Box::new(Expression::Number(2.0)));
        let call = Expression::Call(Function::Least, Box::new(inner));
        assert_eq!(least, Ok(Expression::Binary(Box::new(call), Operator::Greater, Box::new(Expression::Number(3.0)))));
        assert_eq!(parse("r2(a loss)"), Ok(Expression::Line(LineOf::Explained, term("a", "*"))));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, why) in [
            ("", "it ends too early"),
            ("with loss", "a point, or * is missing"),
            ("with loss 5% wire more", "'more' is too much"),
            ("with loss 'a", "a quote is not closed"),
            ("largest(with loss *)", "there is no function 'largest'"),
            ("least(with loss *", "')' is missing"),
            ("with loss 5% /", "it ends too early"),
            (")", "')' without '('"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.why, why, "{text}");
        }
    }
}
