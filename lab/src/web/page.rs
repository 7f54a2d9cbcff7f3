//! The page, whose files are part of the program.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files by their paths.
const FILES: [(&str, &str, &str); 17] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/style.css", CSS, include_str!("page/style.css")),
    ("/lab.js", SCRIPT, include_str!("page/lab.js")),
    ("/wire.js", SCRIPT, include_str!("page/wire.js")),
    ("/table.js", SCRIPT, include_str!("page/table.js")),
    ("/measured.js", SCRIPT, include_str!("page/measured.js")),
    ("/form.js", SCRIPT, include_str!("page/form.js")),
    ("/plan.js", SCRIPT, include_str!("page/plan.js")),
    ("/testing.js", SCRIPT, include_str!("page/testing.js")),
    ("/results.js", SCRIPT, include_str!("page/results.js")),
    ("/demonstration.js", SCRIPT, include_str!("page/demonstration.js")),
    ("/demonstration_picture.js", SCRIPT, include_str!("page/demonstration_picture.js")),
    ("/demonstration_playback.js", SCRIPT, include_str!("page/demonstration_playback.js")),
    ("/demonstration_show.js", SCRIPT, include_str!("page/demonstration_show.js")),
    ("/demonstration_video.js", SCRIPT, include_str!("page/demonstration_video.js")),
    ("/live.js", SCRIPT, include_str!("page/live.js")),
    ("/charts.js", SCRIPT, include_str!("page/charts.js")),
];

/// Returns the routes of the page's own files.
pub(super) fn routes() -> Router {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { answer(kind, text) }))
    })
}

/// Returns the text of one of the files.
pub(super) fn text(path: &str) -> &'static str {
    FILES.iter().find(|(name, ..)| *name == path).map_or("", |(.., text)| text)
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}
