//! A refused request.

use std::fmt::{self, Display};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// A status, and one line with the reason and advice.
#[derive(Debug)]
pub(super) struct Refusal(StatusCode, String);

impl Refusal {
    /// Creates the refusal of an invalid request.
    pub(super) fn bad(why: impl Display) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    /// Creates the refusal of an unknown name.
    pub(super) fn unknown(message: impl Display) -> Self {
        Self(StatusCode::NOT_FOUND, message.to_string())
    }

    /// Creates the refusal of a request that is not possible now.
    pub(super) fn conflict(why: impl Display) -> Self {
        Self(StatusCode::CONFLICT, why.to_string())
    }

    /// Creates the refusal of a failed request.
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
