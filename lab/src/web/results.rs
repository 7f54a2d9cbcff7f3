//! The room `results`: all stored experiments, their verdicts, and the runs behind their numbers.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::experiment_index::{Experiment, ExperimentIndex};
use super::lock;
use super::refusal::Refusal;
use crate::claims::{self, StoredVerdict, Verdicts};
use crate::picture::svg;
use crate::plan::read_text;
use crate::tables::{CellPosition, Measured, RunEntry};

/// The longest evaluated expression, and the most brackets in it.
const LONGEST_QUERY: usize = 2_000;
const MOST_BRACKETS: usize = 50;
/// The most listed runs behind a number.
const MOST_RUNS: usize = 1_000;

type ApiResult = Result<Json<Value>, Refusal>;

/// Returns the routes of the room.
pub(super) fn routes(experiments: Arc<ExperimentIndex>) -> Router {
    let room = Router::new()
        .route("/list", get(list))
        .route("/open", get(open))
        .route("/at", get(at))
        .route("/behind", get(behind))
        .route("/record", get(record));
    Router::new().nest("/results", room.with_state(experiments))
}

/// The query for one experiment.
#[derive(Debug, Deserialize)]
struct ResultsQuery {
    name: String,
}

/// An experiment in the list.
#[derive(Debug, Serialize)]
struct ExperimentItem {
    name: String,
    title: String,
    has_results: bool,
    verdicts: Vec<StoredVerdict>,
}

async fn list(State(experiments): State<Arc<ExperimentIndex>>) -> ApiResult {
    let of = Arc::clone(&experiments);
    let entries = experiments.work(move || Ok(of.list().iter().map(entry).collect::<Vec<_>>())).await?;
    Ok(Json(json!({ "entries": entries })))
}

fn entry(experiment: &Experiment) -> ExperimentItem {
    let plan = read_text(&experiment.plan).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let title = plan.as_ref().and_then(|plan| plan.get("title")?.as_str());
    ExperimentItem {
        name: experiment.name.clone(),
        title: title.unwrap_or(&experiment.name).to_owned(),
        has_results: experiment.has_results,
        verdicts: claims::stored(&experiment.directory),
    }
}

async fn open(
    State(experiments): State<Arc<ExperimentIndex>>,
    Query(ResultsQuery { name }): Query<ResultsQuery>,
) -> ApiResult {
    let of = Arc::clone(&experiments);
    let opened = move || {
        let experiment = of.find(&name)?;
        let reading = of.read(&experiment)?;
        let reading = lock(&reading);
        Ok(Json(opened(&experiment, reading.measured())))
    };
    experiments.work(opened).await
}

/// Returns an experiment without its single runs.
fn opened(experiment: &Experiment, measured: &Measured) -> Value {
    let (title, _) = measured.title_and_name();
    let claims: Vec<_> =
        measured.claims().iter().map(|(text, section)| json!({ "text": text, "section": section })).collect();
    let (judged, judged_not) = match claims::read(&experiment.directory, measured) {
        Ok(judged) => (judged, None),
        Err(failure) => (None, Some(failure.message)),
    };
    let Verdicts { verdicts, text } = judged.unwrap_or_default();
    let verdict = |verdict: &claims::ClaimVerdict| {
        json!({
            "item": verdict.item, "claim": verdict.claim, "system": verdict.system, "measured": verdict.measured,
            "verdict": verdict.outcome.to_string(), "class": claims::class(&verdict.outcome), "because": verdict.because,
            "auto": verdict.auto,
        })
    };
    json!({
        "name": experiment.name, "title": title, "plan": experiment.source.display().to_string(), "claims": claims,
        "verdicts": verdicts.iter().map(verdict).collect::<Vec<_>>(), "text": text, "unjudged": judged_not,
        "tables": measured.tables(), "pictures": pictures(measured), "records": measured.count(), "stale": measured.stale(),
    })
}

/// Returns the picture of each sweep as SVG.
pub(super) fn pictures(measured: &Measured) -> Vec<String> {
    measured.charts().iter().map(|(_, chart)| svg(chart)).collect()
}

/// A position in the tables of an experiment.
#[derive(Debug, Deserialize)]
struct CellLink {
    name: String,
    sweep: usize,
    row: usize,
    point: usize,
}

async fn at(State(experiments): State<Arc<ExperimentIndex>>, Query(asked): Query<CellLink>) -> ApiResult {
    let of = Arc::clone(&experiments);
    let found = move || {
        let CellLink { name, sweep, row, point } = asked;
        let experiment = of.find(&name)?;
        let reading = of.read(&experiment)?;
        let runs = lock(&reading).measured().runs_at(CellPosition { sweep, row, point });
        Ok(listed(&experiment, runs.ok_or_else(|| Refusal::unknown("no such point: reload the page"))?))
    };
    experiments.work(found).await
}

#[derive(Debug, Deserialize)]
struct CellQuery {
    name: String,
    query: String,
}

async fn behind(
    State(experiments): State<Arc<ExperimentIndex>>,
    Query(CellQuery { name, query }): Query<CellQuery>,
) -> ApiResult {
    if query.len() > LONGEST_QUERY || query.matches('(').count() > MOST_BRACKETS {
        return Err(Refusal::bad("this expression is too long"));
    }
    let of = Arc::clone(&experiments);
    let found = move || {
        let experiment = of.find(&name)?;
        let reading = of.read(&experiment)?;
        let reading = lock(&reading);
        let runs = claims::behind(&query, &experiment.directory, reading.measured());
        let values: HashMap<_, _> = runs.map_err(|failure| Refusal::bad(failure.message))?.into_iter().collect();
        Ok(listed(&experiment, reading.measured().runs_with(|id| values.contains_key(id), &values)))
    };
    experiments.work(found).await
}

/// Returns runs with the commands that repeat them.
fn listed(experiment: &Experiment, runs: Vec<RunEntry>) -> Json<Value> {
    let all = runs.len();
    let with_command = |run: RunEntry| {
        let command = experiment.command(&run.label);
        let mut run = json!(run);
        run["command"] = command.into();
        run
    };
    let runs: Vec<Value> = runs.into_iter().take(MOST_RUNS).map(with_command).collect();
    Json(json!({ "runs": runs, "all": all }))
}

#[derive(Debug, Deserialize)]
struct Indexed {
    name: String,
    index: usize,
}

async fn record(
    State(experiments): State<Arc<ExperimentIndex>>,
    Query(Indexed { name, index }): Query<Indexed>,
) -> ApiResult {
    let of = Arc::clone(&experiments);
    let found = move || {
        let reading = of.read(&of.find(&name)?)?;
        let record = lock(&reading).measured().record(index);
        record.map(Json).ok_or_else(|| Refusal::unknown("no such record: reload the page"))
    };
    experiments.work(found).await
}
