//! Why a plan is refused.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// A plan that cannot be read, or makes no sense: `FILE:LINE: what is wrong: what to write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    file: PathBuf,
    line: Option<usize>,
    message: String,
}

impl PlanError {
    /// What is wrong with a file, and in which line, counted from 1.
    pub(crate) fn new(file: &Path, line: Option<usize>, message: impl Into<String>) -> Self {
        // What others say may take several lines; an error of ours takes one.
        let message = message.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { file: file.to_owned(), line, message }
    }
}

/// The text of a plan's file.
pub(crate) fn read(file: &Path) -> Result<String, PlanError> {
    std::fs::read_to_string(file).map_err(|error| PlanError::new(file, None, format!("cannot be read: {error}")))
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

/// A file's name and text, to say where something is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// Whether a table has this key at its top, which tells the kinds of plans apart. What is no TOML at all is said by those who read plans
    /// over links.
    pub(crate) fn has(&self, key: &str) -> bool {
        toml::from_str::<toml::Table>(self.text).is_ok_and(|table| table.contains_key(key))
    }

    /// What is written there.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, PlanError> {
        toml::from_str(self.text).map_err(|error| self.error(error.span(), error.message()))
    }

    /// Something is wrong there.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> PlanError {
        let line = span.map(|span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        PlanError::new(self.file, line, message)
    }
}
