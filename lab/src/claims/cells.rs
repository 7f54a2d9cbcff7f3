//! Lookup of results by name: the runs of a series at the points of a sweep.

use serde::de::DeserializeOwned;

use super::query::Term;
use super::value::{Cell, CellRuns};
use crate::codes;
use crate::picture::runs_at;
use crate::plan::{Quantity, parse_time};
use crate::results::Bound;
use crate::simulated::{self, SimPlan, SimQuantity, SimRecord, Vary};
use crate::tables::Measured;

impl Measured {
    /// Returns the number of points of a sweep.
    pub(super) fn points(&self, sweep: &str) -> Result<usize, String> {
        Ok(match self {
            Self::Links(plan, _) => named(&plan.sweeps, sweep, |sweep| &sweep.name)?.1.points.len(),
            Self::Codes(plan, _) => named(&plan.sweeps, sweep, |sweep| &sweep.name)?.1.points.len(),
            Self::Simulated(plan, _) => named(&plan.sweeps, sweep, |sweep| &sweep.name)?.1.points.len(),
        })
    }

    /// Returns the runs of a term, at one point or at each.
    pub(crate) fn cells(&self, term: &Term) -> Result<Vec<Cell>, String> {
        match self {
            Self::Links(plan, records) => {
                let (_, sweep) = named(&plan.sweeps, &term.sweep, |sweep| &sweep.name)?;
                let (_, peer) = named(&sweep.peers, &term.series, |peer| peer)?;
                let quantity = term.quantity.as_deref().map_or(Ok(plan.picture.y), quantity)?;
                let points = chosen(&sweep.points, &term.point, |point| &point.label)?;
                let cell = |index: usize| {
                    let point = &sweep.points[index];
                    let found = runs_at(plan, sweep, point, peer, records);
                    let (valid, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|record| record.is_valid());
                    let value = |bound: Bound| match quantity {
                        // A lower bound of a time is an upper bound of the goodput, which is not represented.
                        Quantity::Goodput if bound.is_bound() => None,
                        Quantity::Goodput => Some(Bound::Exactly(point.size as f64 * 8e-6 / bound.value())),
                        _ => Some(bound),
                    };
                    let of = |record: &crate::results::Record| {
                        let exact = record.value(quantity).map(Bound::Exactly);
                        exact.or_else(|| record.bound(quantity).map(Bound::AtLeast)).and_then(value)
                    };
                    let runs =
                        valid.iter().filter_map(|record| Some(CellRuns { id: record.id.clone(), value: of(record)? }));
                    Cell { x: point.x, runs: runs.collect(), invalid: others.len() }
                };
                Ok(points.into_iter().map(cell).collect())
            }
            Self::Codes(plan, records) => {
                let (_, sweep) = named(&plan.sweeps, &term.sweep, |sweep| &sweep.name)?;
                let (code, _) = named(&sweep.codes, &term.series, ToString::to_string)?;
                let quantity = term.quantity.as_deref().map_or(Ok(plan.y), quantity)?;
                let points = chosen(&sweep.points, &term.point, |(label, _)| label)?;
                let cell = |index| {
                    let (x, runs) = codes::found(plan, sweep, (code, index), quantity, records);
                    let runs = runs.into_iter().map(|(id, value)| CellRuns { id, value: Bound::Exactly(value) });
                    Cell { x, runs: runs.collect(), invalid: 0 }
                };
                Ok(points.into_iter().map(cell).collect())
            }
            Self::Simulated(plan, records) => simulated_cells(plan, records, term),
        }
    }
}

fn simulated_cells(plan: &SimPlan, records: &[SimRecord], term: &Term) -> Result<Vec<Cell>, String> {
    let (_, sweep) = named(&plan.sweeps, &term.sweep, |sweep| &sweep.name)?;
    let (series, _) = named(&plan.series, &term.series, |series| &series.name)?;
    let flow = match &term.flow {
        Some(flow) => named(&plan.base.flows, flow, |flow| &flow.name)?.0,
        None => sweep.picture.flows.first().copied().unwrap_or(0),
    };
    let quantity = term.quantity.as_deref().map_or(Ok(sweep.picture.y), quantity)?;
    let is_over_time = sweep.vary == Vary::Time;
    if is_over_time && term.quantity.is_some() && !quantity.is_of_time() && quantity != SimQuantity::LossEstimate {
        return Err(format!("{} is over time: only quantities over time are available", sweep.name));
    }
    let span = plan.span.as_secs_f64();
    let points = match (is_over_time, term.point.as_str()) {
        (true, "*") => {
            let spans = records.iter().flat_map(|record| &record.flows).map(|flow| flow.arrived.len());
            (0..spans.max().unwrap_or(0)).collect()
        }
        (true, moment) => {
            let moment = parse_time("the point", moment).map_err(|error| error.to_string())?;
            vec![(moment.as_secs_f64() / span) as usize]
        }
        (false, point) => chosen(&sweep.points, point, |point| &point.label)?,
    };
    let unit = sweep.picture.against.filter(|_| quantity == SimQuantity::Harm);
    let cell = |point: usize| {
        let (runs, invalid) = simulated::found(plan, sweep, (series, point), (flow, quantity), records);
        let mut runs: Vec<CellRuns> = runs.into_iter().map(|(id, value)| CellRuns { id, value }).collect();
        if let Some(other) = unit {
            let (others, _) = simulated::found(plan, sweep, (other, point), (flow, quantity), records);
            let median = crate::results::Times::of(others.into_iter().map(|(_, value)| value).collect());
            match median.map(|times| times.median) {
                Some(Bound::Exactly(unit)) => runs.iter_mut().for_each(|run| run.value = run.value.over(unit)),
                _ => runs.clear(),
            }
        }
        let x = if is_over_time { point as f64 * span } else { sweep.points[point].x };
        Cell { x, runs, invalid }
    };
    Ok(points.into_iter().map(cell).collect())
}

fn quantity<Q: DeserializeOwned>(name: &str) -> Result<Q, String> {
    serde_json::from_value(name.into()).map_err(|_| format!("unknown quantity {name:?}"))
}

/// Returns the item of this name, and its index.
fn named<'a, T, N: AsRef<str>>(items: &'a [T], name: &str, of: impl Fn(&'a T) -> N) -> Result<(usize, &'a T), String> {
    let found = items.iter().enumerate().find(|(_, item)| of(item).as_ref() == name);
    found.ok_or_else(|| {
        let all: Vec<String> = items.iter().map(|item| format!("'{}'", of(item).as_ref())).collect();
        format!("unknown name '{name}': one of {}", all.join(", "))
    })
}

/// Returns the indices of the points of this name, or of all.
fn chosen<'a, T>(points: &'a [T], name: &str, of: impl Fn(&'a T) -> &'a String) -> Result<Vec<usize>, String> {
    if name == "*" { Ok((0..points.len()).collect()) } else { Ok(vec![named(points, name, of)?.0]) }
}
