//! The room Live: growing and complete traces.

mod follow;
mod view;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use axum::extract::{DefaultBodyLimit, Path as Named, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::series;
use crate::trace::{MEASURED, TracedConnection};
use crate::web::background::in_background;
use crate::web::lock;
use crate::web::refusal::Refusal;
use follow::FollowedTrace;

/// The most followed files.
const MOST_FILES: usize = 16;
/// The most offered files: the newest of the directory.
const MOST_OFFERED: usize = 100;
/// The time for viewers to fetch the last update and the files to save before this program exits.
const LAST_REQUESTS_WITHIN: Duration = Duration::from_millis(1500);
/// The most steps of a course in one answer.
const MOST_STEPS: usize = 2000;
/// The most courses in one picture.
const MOST_DRAWN: usize = 4;
/// The longest request.
const BODY: usize = 4096;

/// The room.
#[derive(Debug)]
pub(super) struct Live {
    /// The directory of offered traces.
    directory: PathBuf,
    files: Mutex<Vec<Arc<FollowedTrace>>>,
}

impl Live {
    /// Starts to follow these files.
    ///
    /// # Errors
    /// Too many files, or a system without a thread for each.
    pub(super) fn new(files: &[PathBuf]) -> Result<Arc<Self>, String> {
        let directory = env::current_dir().unwrap_or_else(|_| ".".into());
        let live = Self { directory, files: Mutex::default() };
        for file in files {
            live.follow(file.clone())?;
        }
        Ok(Arc::new(live))
    }

    /// Reads all files for the last time. If one has viewers, returns after the time for their last requests.
    pub(super) async fn finish(&self) {
        let files = self.files().clone();
        files.iter().for_each(|file| file.finish());
        if files.iter().any(|file| file.topic.is_viewed()) {
            tokio::time::sleep(LAST_REQUESTS_WITHIN).await;
        }
    }

    pub(super) fn routes(self: Arc<Self>) -> Router {
        let room = Router::new()
            .route("/traces", get(traces))
            .route("/follow", post(follow))
            .route("/{id}/events", get(events))
            .route("/{id}/course", get(course))
            .route("/export.svg", get(svg))
            .route("/export.csv", get(csv))
            .layer(DefaultBodyLimit::max(BODY));
        Router::new().nest("/live", room.with_state(self))
    }

    fn files(&self) -> MutexGuard<'_, Vec<Arc<FollowedTrace>>> {
        lock(&self.files)
    }

    fn file(&self, id: usize) -> Result<Arc<FollowedTrace>, Refusal> {
        self.files().get(id).cloned().ok_or_else(|| Refusal::unknown("no such file is followed: reload the page"))
    }

    /// Follows a file, unless it is already followed; returns its number.
    fn follow(&self, path: PathBuf) -> Result<usize, String> {
        let mut files = self.files();
        if let Some(id) = files.iter().position(|file| file.is(&path)) {
            return Ok(id);
        }
        if files.len() == MOST_FILES {
            return Err(format!("limit of {MOST_FILES} followed files reached: restart the lab for others"));
        }
        files.push(FollowedTrace::start(path).map_err(|error| format!("cannot follow another file: {error}"))?);
        Ok(files.len() - 1)
    }
}

/// Returns the traces in a directory, the newest first, by their names.
fn offered(directory: &Path) -> Vec<(String, PathBuf)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_trace = path.extension().is_some_and(|kind| kind == "qlog");
        let Ok(metadata) = path.metadata() else { continue };
        if is_trace && metadata.is_file() {
            let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.insert((changed, entry.file_name()), path);
        }
    }
    let newest = found.into_iter().rev().take(MOST_OFFERED);
    newest.map(|((_, name), path)| (name.to_string_lossy().into_owned(), path)).collect()
}

/// Lists the followed and the offered files, and the quantities of courses.
async fn traces(State(live): State<Arc<Live>>) -> Result<Json<Value>, Refusal> {
    in_background(move || {
        let followed: Vec<Value> = live.files().iter().map(|file| json!(file.name)).collect();
        let names: Vec<String> = offered(&live.directory).into_iter().map(|(name, _)| name).collect();
        let measured =
            |each: &crate::trace::Measured| json!({ "key": each.key, "title": each.title, "unit": each.unit });
        Ok(Json(json!({
            "followed": followed,
            "offered": names,
            "quantities": MEASURED.iter().map(measured).collect::<Vec<_>>(),
        })))
    })
    .await
}

/// The name of an offered file.
#[derive(Debug, Deserialize)]
struct FollowRequest {
    name: String,
}

async fn follow(State(live): State<Arc<Live>>, Json(request): Json<FollowRequest>) -> Result<Json<usize>, Refusal> {
    in_background(move || {
        let path = offered(&live.directory).into_iter().find(|(name, _)| *name == request.name).map(|(_, path)| path);
        let path =
            path.ok_or_else(|| Refusal::unknown("no such trace in the lab's directory: it may have been removed"))?;
        live.follow(path).map(Json).map_err(Refusal::conflict)
    })
    .await
}

async fn events(
    State(live): State<Arc<Live>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    Ok(live.file(id)?.topic.watch(&headers))
}

/// The range of a course.
#[derive(Debug, Deserialize)]
struct CourseRange {
    connection: usize,
    from: f64,
    to: f64,
    /// Steps.
    most: usize,
}

async fn course(
    State(live): State<Arc<Live>>,
    Named(id): Named<usize>,
    Query(part): Query<CourseRange>,
) -> Result<Json<Value>, Refusal> {
    in_background(move || {
        let range = range(Some(part.from), Some(part.to))?.unwrap_or_default();
        let file = live.file(id)?;
        let state = file.state();
        let connection = connection(&state, part.connection)?;
        Ok(Json(view::course(connection, range, part.most.min(MOST_STEPS))))
    })
    .await
}

fn connection(state: &follow::TraceView, number: usize) -> Result<&TracedConnection, Refusal> {
    let at = number.checked_sub(state.trace.earlier());
    let connection = at.and_then(|at| state.trace.connections().get(at));
    connection.ok_or_else(|| Refusal::unknown("this connection was dropped: newer ones replaced it"))
}

fn range(from: Option<f64>, to: Option<f64>) -> Result<Option<[f64; 2]>, Refusal> {
    match (from, to) {
        (None, None) => Ok(None),
        (Some(from), Some(to)) if from.is_finite() && to.is_finite() && from < to => Ok(Some([from, to])),
        _ => Err(Refusal::bad("invalid interval of time")),
    }
}

/// The content of a file to save.
#[derive(Debug, Deserialize)]
struct Export {
    /// `FILE.CONNECTION`, with commas between them.
    traces: String,
    from: Option<f64>,
    to: Option<f64>,
}

async fn svg(State(live): State<Arc<Live>>, Query(export): Query<Export>) -> Result<Response, Refusal> {
    in_background(move || {
        let range = range(export.from, export.to)?;
        exported(&live, &export, |courses| {
            saved("image/svg+xml", "series.svg", series::picture(courses, &series::drawn(courses, range), range))
        })
    })
    .await
}

async fn csv(State(live): State<Arc<Live>>, Query(export): Query<Export>) -> Result<Response, Refusal> {
    in_background(move || {
        let range = range(export.from, export.to)?;
        exported(&live, &export, |courses| {
            saved("text/csv; charset=utf-8", "series.csv", series::table(courses, range).0)
        })
    })
    .await
}

fn exported(
    live: &Live,
    export: &Export,
    draw: impl FnOnce(&[series::NamedCourse<'_>]) -> Response,
) -> Result<Response, Refusal> {
    let chosen = |text: &str| {
        let (id, connection) = text.split_once('.')?;
        Some((id.parse::<usize>().ok()?, connection.parse::<usize>().ok()?))
    };
    let chosen: Option<Vec<_>> = export.traces.split(',').take(MOST_DRAWN).map(chosen).collect();
    let chosen = chosen.ok_or_else(|| Refusal::bad("write traces as FILE.CONNECTION"))?;
    // Each file is locked once, in a fixed order.
    let mut files: BTreeMap<usize, Arc<FollowedTrace>> = BTreeMap::new();
    for (id, _) in &chosen {
        files.insert(*id, live.file(*id)?);
    }
    let states: BTreeMap<usize, _> = files.iter().map(|(id, file)| (*id, file.state())).collect();
    let mut courses = Vec::new();
    for (id, number) in &chosen {
        let course = connection(&states[id], *number)?.course();
        courses.push(series::NamedCourse { name: &files[id].name, course });
    }
    Ok(draw(&courses))
}

fn saved(kind: &'static str, name: &'static str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    ([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, disposition)], text).into_response()
}
