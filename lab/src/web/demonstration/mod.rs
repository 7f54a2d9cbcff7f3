//! The room Demonstration: one picture, sent by several systems at once, each over a link of its own.
//!
//! Each is a transfer ([`sim::ObservedTransfer`]) of the picture's bytes, simulated or over emulated links
//! ([`emulated`]), and viewers see the bytes of its receiver. Links with equal numbers and equal seeds lose the same
//! packets. A demonstration plays on a thread of its own, with or without viewers, and ends by itself; a few ended ones
//! are kept.

mod emulated;
mod play;
mod recording;
mod run;
mod setup;
mod systems;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::background::in_background;
use super::lock;
use super::lock::MeasurementLock;
use super::refusal::Refusal;
pub use emulated::demonstrate;
use run::DemoRun;
use setup::{Conditions, LARGEST_PICTURE, SetupRequest};
use systems::SYSTEMS;

/// The most demonstrations that play at once.
const PLAYING: usize = 2;
/// The most stored demonstrations, including playing ones.
const KEPT: usize = 4;

/// All demonstrations.
#[derive(Debug)]
pub(super) struct Demonstration {
    runs: Mutex<Runs>,
    measurement_lock: Arc<MeasurementLock>,
}

#[derive(Debug, Default)]
struct Runs {
    /// The number of runs so far.
    count: u32,
    /// The runs in the order of their start.
    kept: Vec<Arc<DemoRun>>,
}

type DemonstrationState = State<Arc<Demonstration>>;

impl Demonstration {
    pub(super) fn new(measurement_lock: Arc<MeasurementLock>) -> Arc<Self> {
        Arc::new(Self { runs: Mutex::default(), measurement_lock })
    }

    /// Returns its routes.
    pub(super) fn routes(self: Arc<Self>) -> Router {
        let routes = Router::new()
            .route("/systems", get(|| async { Json(SYSTEMS) }))
            .route("/runs", get(list).post(start))
            .route("/runs/{id}/events", get(events))
            .route("/runs/{id}/picture", get(picture))
            .route("/runs/{id}/conditions", post(change))
            .route("/runs/{id}/stop", post(stop))
            .route("/runs/{id}/recording", get(record))
            .layer(DefaultBodyLimit::max(LARGEST_PICTURE));
        Router::new().nest("/demonstration", routes.with_state(self))
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }

    fn run(&self, id: u32) -> Result<Arc<DemoRun>, Refusal> {
        let found = self.runs().kept.iter().find(|run| run.id() == id).cloned();
        found.ok_or_else(|| Refusal::unknown("this demonstration has expired: start a new one"))
    }

    /// Starts a demonstration, unless too many play. It replaces the oldest ended one.
    fn start(&self, asked: &SetupRequest, picture: &[u8]) -> Result<Arc<DemoRun>, Refusal> {
        let setup = asked.check(picture.len()).map_err(Refusal::bad)?;
        let turn = self.measurement_lock.play()?;
        let mut runs = self.runs();
        if runs.kept.iter().filter(|run| !run.is_over()).count() >= PLAYING {
            return Err(Refusal::conflict("two demonstrations are playing: wait for one, or stop it"));
        }
        let run = Arc::new(DemoRun::new(runs.count + 1, setup, picture.into()));
        let playing = Arc::clone(&run);
        thread::Builder::new()
            .name("demonstration".to_owned())
            .spawn(move || {
                playing.play();
                drop(turn);
            })
            .map_err(|error| Refusal::failed(format_args!("cannot start a thread: {error}")))?;
        runs.count += 1;
        if runs.kept.len() >= KEPT
            && let Some(oldest) = runs.kept.iter().position(|run| run.is_over())
        {
            runs.kept.remove(oldest);
        }
        runs.kept.push(Arc::clone(&run));
        Ok(run)
    }
}

async fn list(State(room): DemonstrationState) -> Json<Value> {
    let runs = room.runs();
    let one = |run: &Arc<DemoRun>| {
        let systems: Vec<&str> = run.setup().systems.iter().map(|system| system.label).collect();
        json!({ "id": run.id(), "systems": systems, "over": run.is_over() })
    };
    Json(runs.kept.iter().map(one).collect())
}

async fn start(
    State(room): DemonstrationState,
    Query(asked): Query<SetupRequest>,
    picture: Bytes,
) -> Result<Json<Value>, Refusal> {
    let run = in_background(move || room.start(&asked, &picture)).await?;
    Ok(Json(json!({ "id": run.id() })))
}

async fn events(State(room): DemonstrationState, Path(id): Path<u32>, headers: HeaderMap) -> Result<Response, Refusal> {
    Ok(room.run(id)?.topic().watch(&headers))
}

async fn picture(State(room): DemonstrationState, Path(id): Path<u32>) -> Result<Response, Refusal> {
    let picture = room.run(id)?.picture().to_vec();
    Ok(([(CONTENT_TYPE, "application/octet-stream")], picture).into_response())
}

async fn change(
    State(room): DemonstrationState,
    Path(id): Path<u32>,
    Json(conditions): Json<Conditions>,
) -> Result<Json<Value>, Refusal> {
    conditions.check().map_err(Refusal::bad)?;
    room.run(id)?.set_conditions(conditions);
    Ok(Json(json!({})))
}

async fn stop(State(room): DemonstrationState, Path(id): Path<u32>) -> Result<Json<Value>, Refusal> {
    room.run(id)?.stop();
    Ok(Json(json!({})))
}

/// Answers with a page that plays the demonstration again, alone.
async fn record(State(room): DemonstrationState, Path(id): Path<u32>) -> Result<Response, Refusal> {
    let run = room.run(id)?;
    let page = in_background(move || Ok(recording::page(&run.events()))).await?;
    let name = format!("attachment; filename=\"downpour-demonstration-{id}.html\"");
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, page).into_response())
}

#[cfg(test)]
mod tests {
    use super::setup::tests::asked;
    use super::*;
    use crate::web::experiment_index::ExperimentIndex;

    #[test]
    fn two_demonstrations_play_at_once() {
        let experiments = ExperimentIndex::of(None, "there are no results".into());
        let room = Demonstration::new(MeasurementLock::new(Arc::new(experiments)));
        let picture = [7; 4 * 4 * 3];
        let start = |seed: &str| room.start(&asked(seed, (4, 4), 0.0), &picture).map(|run| run.id());
        assert!(start("auto").is_err(), "one system");
        // These entries have ended, or never will.
        let put = |id: u32, is_over: bool| {
            let setup = asked("auto,linux-tcp", (4, 4), 0.0).check(picture.len()).expect("a demonstration");
            let run = Arc::new(DemoRun::new(id, setup, picture.into()));
            if is_over {
                run.stop();
                run.play();
            }
            let mut runs = room.runs();
            runs.kept.push(run);
            runs.count = id;
        };
        put(1, false);
        put(2, true);
        put(3, true);
        put(4, true);
        assert_eq!(start("auto,linux-tcp").expect("a second one"), 5);
        assert_eq!(room.runs().kept.iter().map(|run| run.id()).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert!(room.run(2).is_err() && room.run(1).is_ok());
        put(6, false);
        assert!(start("auto,linux-tcp").is_err(), "two play");
    }

    #[test]
    fn demonstration_ends_with_its_systems_or_stop() {
        for (is_stopped, why) in [(false, "every system has ended"), (true, "stopped")] {
            let setup = asked("auto,linux-tcp", (4, 4), 0.0).check(48).expect("a demonstration");
            let run = DemoRun::new(1, setup, [0; 48].into());
            if is_stopped {
                run.stop();
            }
            run.play();
            assert!(run.is_over());
            let events: Vec<Value> =
                run.events().iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
            assert_eq!(events[0]["start"]["width"], 4);
            assert_eq!(events.last(), Some(&json!({ "over": { "why": why } })));
            assert!(events[1..events.len() - 1].iter().all(|event| event["frame"].is_object()));
        }
    }
}
