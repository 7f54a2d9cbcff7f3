//! The errors of plans.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// A plan that cannot be read, or is invalid: `FILE:LINE: ERROR: ADVICE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    file: PathBuf,
    line: Option<usize>,
    message: String,
}

impl PlanError {
    /// Creates an error about a file, and about a line in it, counted from 1.
    pub(crate) fn new(file: &Path, line: Option<usize>, message: impl Into<String>) -> Self {
        // Messages of other libraries may have several lines; ours have one.
        let message = message.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { file: file.to_owned(), line, message }
    }
}

/// Returns the text of a plan's file.
pub(crate) fn read(file: &Path) -> Result<String, PlanError> {
    std::fs::read_to_string(file).map_err(|error| PlanError::new(file, None, format!("cannot read: {error}")))
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl std::error::Error for PlanError {}

/// A file's name and text, for locating errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanFile<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
}

impl PlanFile<'_> {
    /// Returns whether a table has this key at its top level, which distinguishes the kinds of plans. The reader of
    /// plans over links reports text that is not TOML.
    pub(crate) fn has(&self, key: &str) -> bool {
        toml::from_str::<toml::Table>(self.text).is_ok_and(|table| table.contains_key(key))
    }

    /// Parses the text.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, PlanError> {
        toml::from_str(self.text).map_err(|error| self.error(error.span(), error.message()))
    }

    /// Returns an error at this position.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> PlanError {
        let line = span.map(|span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        PlanError::new(self.file, line, message)
    }
}
