//! The check for emulated links, used by two rooms.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::sync::Mutex;

use super::background::in_background;
use super::refusal::Refusal;

/// The time limit of a trial link.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The state of the check.
#[derive(Debug)]
struct LinkProbe {
    /// The program for a trial link: this one.
    program: PathBuf,
    /// The last result. Locked during a check.
    found: Mutex<Option<LinkSupport>>,
}

/// Whether links can be emulated, and if not, the advice.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkSupport {
    is_ready: bool,
    why: String,
}

/// Returns the route of the check.
pub(super) fn routes(program: &Path) -> Router {
    let links = LinkProbe { program: program.to_owned(), found: Mutex::default() };
    Router::new().route("/links", get(answer)).with_state(Arc::new(links))
}

async fn answer(State(links): State<Arc<LinkProbe>>) -> Result<Json<LinkSupport>, Refusal> {
    let mut known = links.found.lock().await;
    // A missing requirement may be met by now.
    if let Some(found) = known.as_ref().filter(|found| found.is_ready) {
        return Ok(Json(found.clone()));
    }
    let program = links.program.clone();
    let found = in_background(move || Ok(probe(&program))).await?;
    Ok(Json(known.insert(found).clone()))
}

/// Checks with an unused link. There is no other way, and since the check enters a user namespace, it needs a process
/// of its own.
fn probe(program: &Path) -> LinkSupport {
    let failed = |why: String| LinkSupport { is_ready: false, why };
    let mut command = Command::new(program);
    command.arg0(crate::NAME).args(["link", "--quiet", "--", "true"]);
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut process = match started {
        Ok(process) => process,
        Err(error) => return failed(format!("cannot start {}: {error}", program.display())),
    };
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match process.try_wait() {
            Ok(Some(status)) if status.success() => return LinkSupport { is_ready: true, why: String::new() },
            Ok(None) => thread::sleep(LOOK_EVERY),
            Ok(Some(_)) | Err(_) => {
                let said = process.wait_with_output().map(|output| output.stderr).unwrap_or_default();
                let said = String::from_utf8_lossy(&said).trim().to_owned();
                return failed(said.strip_prefix("downpour-lab: ").unwrap_or(&said).to_owned());
            }
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    failed(format!("a trial link was not ready within {} s", PATIENCE.as_secs()))
}
