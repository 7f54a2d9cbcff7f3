//! Why a command did not end well: one line.

use std::fmt;

/// One line for stderr.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Creates one with this line.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }

    /// Returns a function for `map_err`: the attempted action, then the error.
    pub fn at<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
