//! Numbers by name: expressions over the results of one plan.
//!
//! ```text
//! with loss 5%                         the median of the series `with` in the sweep `loss` at the point `5%`
//! max with loss 5%                     a statistic: min, q1, median, q3, max, or the number of runs or invalid runs
//! with loss 5% wire                    another quantity than the drawn one
//! with loss 5% of tcp                  of the flow `tcp`
//! with loss * / without loss *         at every point
//! least(...), most(...), mean(...)     of the values at all points
//! count(a loss * > b loss *)           the number of points at which the comparison holds
//! points(loss)                         the number of points
//! fit(with loss), r2(with loss)        the nearest line through the origin, and how much of the variance it explains
//! rises(...), falls(...)               whether each value is above, or below, the one before it
//! ```
//!
//! Operators have spaces around them. A comparison of values at every point holds if it holds at each point.

use winnow::combinator::{alt, cut_err, delimited, eof, fail, opt, preceded, separated_foldl1, seq, terminated};
use winnow::error::ContextError;
use winnow::prelude::*;
use winnow::token::{take_till, take_while};

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
    /// The strength of the operators that bind most tightly.
    const STRONGEST: u8 = 2;

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

    /// Returns its binding strength: comparisons have the least.
    fn strength(self) -> u8 {
        match self {
            Self::Multiply | Self::Divide => 2,
            Self::Add | Self::Subtract => 1,
            _ => 0,
        }
    }
}

impl Function {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "least" => Self::Least,
            "most" => Self::Most,
            "mean" => Self::Mean,
            "count" => Self::Count,
            "rises" => Self::Rises,
            "falls" => Self::Falls,
            _ => return None,
        })
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

/// The element expected where parsing failed.
type ParseContext = ContextError<&'static str>;
type Read<T> = ModalResult<T, ParseContext>;

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expression, QueryError> {
    let whole = delimited(space, operations(0), eof.context("an operator")).parse(text);
    whole.map_err(|error| {
        let wanted = error.inner().context().next().unwrap_or(&"a different text");
        let why = match &text[error.offset()..] {
            "" => format!("expected {wanted} at the end"),
            rest => format!("expected {wanted} instead of {rest:?}"),
        };
        QueryError { text: text.to_owned(), why }
    })
}

/// Reads operations that bind at least this strongly.
fn operations<'a>(strength: u8) -> impl ModalParser<&'a str, Expression, ParseContext> {
    move |input: &mut &'a str| {
        if strength > Operator::STRONGEST {
            return cut_err(atom).parse_next(input);
        }
        let operator = word.verify_map(Operator::of).verify(|operator| operator.strength() == strength);
        let joined = |left, operator, right| Expression::Binary(Box::new(left), operator, Box::new(right));
        separated_foldl1(operations(strength + 1), operator, joined).parse_next(input)
    }
}

fn atom(input: &mut &str) -> Read<Expression> {
    let in_parentheses = delimited(token("("), operations(0), closed);
    let number = word.parse_to().map(Expression::Number);
    alt((in_parentheses, call, number, term.map(Expression::Cell))).parse_next(input)
}

fn call(input: &mut &str) -> Read<Expression> {
    let start = input.checkpoint();
    let called = terminated(word, token("(")).parse_next(input)?;
    let line = |of| place.map(move |term| Expression::Line(of, term));
    let read = match (called, Function::of(called)) {
        (_, Some(function)) => operations(0).map(|of| Expression::Call(function, Box::new(of))).parse_next(input),
        ("points", _) => cut_err(name("a sweep")).map(Expression::Points).parse_next(input),
        ("fit", _) => line(LineOf::Factor).parse_next(input),
        ("r2", _) => line(LineOf::Explained).parse_next(input),
        _ => {
            input.reset(&start);
            cut_err(fail.context("a function")).parse_next(input)
        }
    };
    let read = read?;
    closed(input)?;
    Ok(read)
}

/// Reads a series and a sweep, for the line through all points.
fn place(input: &mut &str) -> Read<Term> {
    let (series, sweep) = cut_err((name("a series"), name("a sweep"))).parse_next(input)?;
    Ok(Term { statistic: Statistic::Median, series, flow: None, sweep, point: "*".to_owned(), quantity: None })
}

fn term(input: &mut &str) -> Read<Term> {
    let is_quantity = |word: &str| word != "of" && Operator::of(word).is_none();
    seq!(Term {
        statistic: opt(word.verify_map(Statistic::of)).map(|found| found.unwrap_or(Statistic::Median)),
        series: name("a series"),
        sweep: name("a sweep"),
        point: name("a point or *"),
        quantity: opt(word.verify(is_quantity).map(str::to_owned)),
        flow: opt(preceded(word.verify(|word: &str| word == "of"), cut_err(name("a flow")))),
    })
    .parse_next(input)
}

/// Reads a name. In quotes it is never an operator or a function.
fn name<'a>(description: &'static str) -> impl ModalParser<&'a str, String, ParseContext> {
    let quote = cut_err("'".context("a closing quote"));
    let quoted = token(delimited("'", take_till(0.., '\''), quote));
    alt((quoted, word)).map(str::to_owned).context(description)
}

fn word<'a>(input: &mut &'a str) -> Read<&'a str> {
    token(take_till(1.., |next: char| next.is_whitespace() || "()'".contains(next))).parse_next(input)
}

fn closed<'a>(input: &mut &'a str) -> Read<&'a str> {
    cut_err(token(")").context("an operator or ')'")).parse_next(input)
}

fn token<'a, O>(parser: impl ModalParser<&'a str, O, ParseContext>) -> impl ModalParser<&'a str, O, ParseContext> {
    terminated(parser, space)
}

fn space<'a>(input: &mut &'a str) -> Read<&'a str> {
    take_while(0.., char::is_whitespace).parse_next(input)
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
    fn parse_terms_and_precedence() {
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
    fn parse_error_names_expected_element() {
        for (text, why) in [
            ("", "expected a series at the end"),
            ("with loss", "expected a point or * at the end"),
            ("with loss 5% wire more", "expected an operator instead of \"more\""),
            ("with loss 'a", "expected a closing quote at the end"),
            ("largest(with loss *)", "expected a function instead of \"largest(with loss *)\""),
            ("least(with loss *", "expected an operator or ')' at the end"),
            ("with loss 5% /", "expected a series at the end"),
            (")", "expected a series instead of \")\""),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.why, why, "{text}");
        }
    }
}
