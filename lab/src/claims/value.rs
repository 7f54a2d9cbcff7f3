//! The values of expressions.

use super::Data;
use super::query::{Expression, Function, LineOf, Operator, Statistic, Term, parse};
use crate::results::{Bound, Times, line_through_origin};

/// One run, or the runs in a record of timed codes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellRuns {
    /// The id of its record.
    pub(crate) id: String,
    pub(crate) value: Bound,
}

/// The runs of a series at one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Its position on the axis.
    pub(crate) x: f64,
    /// The valid runs.
    pub(crate) runs: Vec<CellRuns>,
    /// The number of invalid runs.
    pub(crate) invalid: usize,
}

/// The value of an expression: one, or one at each point of a sweep. `None` where nothing valid was measured.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    One(Option<Bound>),
    Each(Vec<Option<Bound>>),
    Truth(Vec<Option<bool>>),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum NoValue {
    /// It cannot be read, or contains a name that the plan does not have.
    #[error("{0}")]
    Wrong(String),
    /// There are no valid runs.
    #[error("{0}: no valid run")]
    NotMeasured(String),
}

impl Cell {
    fn statistic(&self, statistic: Statistic) -> Option<Bound> {
        let times = || Times::of(self.runs.iter().map(|run| run.value).collect());
        match statistic {
            Statistic::Runs => Some(Bound::Exactly(self.runs.len() as f64)),
            Statistic::Invalid => Some(Bound::Exactly(self.invalid as f64)),
            Statistic::Min => Some(times()?.min),
            Statistic::FirstQuartile => Some(times()?.first_quartile),
            Statistic::Median => Some(times()?.median),
            Statistic::ThirdQuartile => Some(times()?.third_quartile),
            Statistic::Max => Some(times()?.max),
        }
    }
}

/// Returns the value of an expression.
pub(crate) fn number(text: &str, of: &Data<'_>) -> Result<Bound, NoValue> {
    match evaluate(&read(text)?, of).map_err(NoValue::Wrong)? {
        Value::One(Some(value)) => Ok(value),
        Value::One(None) => Err(NoValue::NotMeasured(text.to_owned())),
        Value::Each(_) => Err(NoValue::Wrong(format!("{text:?} has several values: use least, most or mean"))),
        Value::Truth(_) => Err(NoValue::Wrong(format!("{text:?} is a comparison: use count() for a number"))),
    }
}

/// Returns whether a comparison holds, at every point if it has several.
pub(crate) fn holds(text: &str, of: &Data<'_>) -> Result<bool, NoValue> {
    let Value::Truth(all) = evaluate(&read(text)?, of).map_err(NoValue::Wrong)? else {
        return Err(NoValue::Wrong(format!("{text:?} is not a comparison")));
    };
    match all.iter().copied().collect::<Option<Vec<bool>>>() {
        Some(all) if !all.is_empty() => Ok(all.into_iter().all(|holds| holds)),
        _ => Err(NoValue::NotMeasured(text.to_owned())),
    }
}

/// Returns the runs behind an expression: those of each of its terms, at each point.
pub(crate) fn runs(text: &str, of: &Data<'_>) -> Result<Vec<CellRuns>, NoValue> {
    let mut terms = Vec::new();
    collect(&read(text)?, &mut terms);
    let mut found: Vec<CellRuns> = Vec::new();
    for term in terms {
        for cell in of.cells(&term).map_err(NoValue::Wrong)? {
            found.extend(cell.runs);
        }
    }
    Ok(found)
}

fn read(text: &str) -> Result<Expression, NoValue> {
    parse(text).map_err(|error| NoValue::Wrong(error.to_string()))
}

fn collect(expression: &Expression, terms: &mut Vec<Term>) {
    match expression {
        Expression::Number(_) | Expression::Points(_) => {}
        Expression::Cell(term) | Expression::Line(_, term) => terms.push(term.clone()),
        Expression::Binary(left, _, right) => {
            collect(left, terms);
            collect(right, terms);
        }
        Expression::Call(_, argument) => collect(argument, terms),
    }
}

fn evaluate(expression: &Expression, of: &Data<'_>) -> Result<Value, String> {
    match expression {
        Expression::Number(number) => Ok(Value::One(Some(Bound::Exactly(*number)))),
        Expression::Cell(term) => {
            let values: Vec<_> = of.cells(term)?.iter().map(|cell| cell.statistic(term.statistic)).collect();
            Ok(if term.point == "*" { Value::Each(values) } else { Value::One(values.into_iter().next().flatten()) })
        }
        Expression::Points(sweep) => Ok(Value::One(Some(Bound::Exactly(of.points(sweep)? as f64)))),
        Expression::Line(line, term) => {
            let cells = of.cells(term)?;
            let median = |cell: &Cell| Some((cell.x, cell.statistic(Statistic::Median)?.value()));
            let points: Vec<_> = cells.iter().filter_map(median).collect();
            let line_of = |(factor, explained)| match line {
                LineOf::Factor => factor,
                LineOf::Explained => explained,
            };
            Ok(Value::One(line_through_origin(&points).map(line_of).map(Bound::Exactly)))
        }
        Expression::Binary(left, operator, right) => combine(evaluate(left, of)?, *operator, evaluate(right, of)?),
        Expression::Call(function, argument) => call(*function, evaluate(argument, of)?),
    }
}

fn combine(left: Value, operator: Operator, right: Value) -> Result<Value, String> {
    let (left, right, is_one) = match (left, right) {
        (Value::Truth(_), _) | (_, Value::Truth(_)) => {
            return Err("a comparison is not a number: use count()".to_owned());
        }
        (Value::One(left), Value::One(right)) => (vec![left], vec![right], true),
        (Value::Each(left), Value::One(right)) => (left.clone(), vec![right; left.len()], false),
        (Value::One(left), Value::Each(right)) => (vec![left; right.len()], right, false),
        (Value::Each(left), Value::Each(right)) if left.len() == right.len() => (left, right, false),
        (Value::Each(left), Value::Each(right)) => {
            return Err(format!("{} points compared with {}", left.len(), right.len()));
        }
    };
    let pairs = left.into_iter().zip(right).map(|(left, right)| left.zip(right));
    if let Some(compare) = comparison(operator) {
        return Ok(Value::Truth(pairs.map(|pair| pair.and_then(|(left, right)| compare(left, right))).collect()));
    }
    let mut values: Vec<_> =
        pairs.map(|pair| pair.and_then(|(left, right)| arithmetic(left, operator, right))).collect();
    Ok(if is_one { Value::One(values.pop().flatten()) } else { Value::Each(values) })
}

/// Compares two numbers; `None` if a bound leaves the result open.
fn comparison(operator: Operator) -> Option<fn(Bound, Bound) -> Option<bool>> {
    /// Returns whether the first is less, if known.
    fn less(left: Bound, right: Bound, or_equal: bool) -> Option<bool> {
        let holds = if or_equal { left.value() <= right.value() } else { left.value() < right.value() };
        match (left, right) {
            (Bound::Exactly(_), Bound::Exactly(_)) => Some(holds),
            (Bound::Exactly(_), Bound::AtLeast(_)) => holds.then_some(true),
            (Bound::AtLeast(_), Bound::Exactly(_)) => (!holds).then_some(false),
            (Bound::AtLeast(_), Bound::AtLeast(_)) => None,
        }
    }
    Some(match operator {
        Operator::Less => |left, right| less(left, right, false),
        Operator::LessOrEqual => |left, right| less(left, right, true),
        Operator::Greater => |left, right| less(right, left, false),
        Operator::GreaterOrEqual => |left, right| less(right, left, true),
        _ => return None,
    })
}

/// Returns a bound if an operand bounds the result from below, and `None` if the result has no bound.
fn arithmetic(left: Bound, operator: Operator, right: Bound) -> Option<Bound> {
    let (a, b) = (left.value(), right.value());
    let value = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return None,
    };
    let grows_with_right = matches!(operator, Operator::Add | Operator::Multiply);
    match (left.is_bound(), right.is_bound()) {
        (_, true) if !grows_with_right => None,
        (false, false) => Some(Bound::Exactly(value)),
        _ => Some(Bound::AtLeast(value)),
    }
    .filter(|value| value.value().is_finite())
}

fn call(function: Function, argument: Value) -> Result<Value, String> {
    if function == Function::Count {
        let Value::Truth(all) = argument else { return Err("count() takes a comparison".to_owned()) };
        // Over time, a comparison does not hold at moments after a run's end.
        let count = all.into_iter().filter(|holds| *holds == Some(true)).count();
        return Ok(Value::One(Some(Bound::Exactly(count as f64))));
    }
    let Value::Each(all) = argument else {
        return Err("this function needs the values at all points: write NAME SWEEP *".to_owned());
    };
    let order = |a: &Bound, b: &Bound| a.value().total_cmp(&b.value());
    let found = || all.iter().copied().flatten();
    Ok(match function {
        Function::Least => Value::One(found().min_by(order)),
        // Unfinished runs count as the longest.
        Function::Most => Value::One(found().max_by(|a, b| a.is_bound().cmp(&b.is_bound()).then(order(a, b)))),
        Function::Mean => {
            let sum = found().map(Bound::value).sum::<f64>() / found().count() as f64;
            let mean = if found().any(Bound::is_bound) { Bound::AtLeast(sum) } else { Bound::Exactly(sum) };
            Value::One(Some(mean).filter(|mean| mean.value().is_finite()))
        }
        Function::Rises | Function::Falls => {
            let steps = all.windows(2).map(|pair| pair[0].zip(pair[1])).map(|pair| {
                let (first, second) = pair?;
                let compare = comparison(if function == Function::Rises { Operator::Less } else { Operator::Greater });
                compare.and_then(|compare| compare(first, second))
            });
            Value::Truth(steps.collect())
        }
        Function::Count => unreachable!("handled above"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(values: &[f64]) -> Value {
        Value::Each(values.iter().map(|value| Some(Bound::Exactly(*value))).collect())
    }

    #[test]
    fn functions_of_values_at_all_points() {
        let half = combine(each(&[1.0, 4.0]), Operator::Divide, each(&[2.0, 4.0]));
        assert_eq!(half, Ok(each(&[0.5, 1.0])));
        assert_eq!(call(Function::Least, each(&[0.5, 1.0])), Ok(Value::One(Some(Bound::Exactly(0.5)))));
        assert_eq!(call(Function::Mean, each(&[0.5, 1.0])), Ok(Value::One(Some(Bound::Exactly(0.75)))));
        let longer = combine(each(&[1.0, 4.0]), Operator::Less, Value::One(Some(Bound::Exactly(2.0))));
        assert_eq!(longer, Ok(Value::Truth(vec![Some(true), Some(false)])));
        assert_eq!(call(Function::Count, longer.expect("truths")), Ok(Value::One(Some(Bound::Exactly(1.0)))));
        let ended = call(Function::Count, Value::Truth(vec![Some(true), None]));
        assert_eq!(ended, Ok(Value::One(Some(Bound::Exactly(1.0)))));
        assert_eq!(call(Function::Rises, each(&[1.0, 2.0, 2.0])), Ok(Value::Truth(vec![Some(true), Some(false)])));
        assert!(combine(each(&[1.0]), Operator::Less, each(&[1.0, 2.0])).is_err());
    }

    #[test]
    fn unfinished_run_leaves_comparison_open() {
        let (two, late) = (Bound::Exactly(2.0), Bound::AtLeast(60.0));
        let compare = |left, operator, right| comparison(operator).expect("a comparison")(left, right);
        assert_eq!(compare(two, Operator::Less, late), Some(true));
        assert_eq!(compare(late, Operator::Greater, two), Some(true));
        assert_eq!(compare(late, Operator::Less, two), Some(false));
        assert_eq!(compare(Bound::Exactly(70.0), Operator::Less, late), None);
        assert_eq!(compare(late, Operator::Less, late), None);
        assert_eq!(arithmetic(late, Operator::Divide, two), Some(Bound::AtLeast(30.0)));
        assert_eq!(arithmetic(two, Operator::Divide, late), None, "only an upper bound is known");
        assert_eq!(arithmetic(late, Operator::Divide, late), None);
        assert_eq!(arithmetic(two, Operator::Multiply, late), Some(Bound::AtLeast(120.0)));
        assert_eq!(arithmetic(two, Operator::Divide, Bound::Exactly(0.0)), None);
    }
}
