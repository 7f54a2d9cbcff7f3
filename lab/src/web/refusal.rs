//! A request that is refused.

use std::fmt::{self, Display};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// A status and one line that says what to do.
#[derive(Debug)]
pub(super) struct Refusal(StatusCode, String);

impl Refusal {
    /// What was asked for makes no sense.
    pub(super) fn bad(why: impl Display) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    /// There is no such thing.
    pub(super) fn unknown(what: impl Display) -> Self {
        Self(StatusCode::NOT_FOUND, what.to_string())
    }

    /// It cannot be done now.
    pub(super) fn conflict(why: impl Display) -> Self {
        Self(StatusCode::CONFLICT, why.to_string())
    }

    /// It failed here.
    pub(super) fn failed(why: impl Display) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}
