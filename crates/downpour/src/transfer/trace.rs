//! The file of the engine's trace.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// Where the engine's trace is appended (qlog, JSON text sequences). It is opened once for all attempts: it may be a pipe,
/// whose reader sees an end when it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    file: Arc<OnceLock<File>>,
}

impl Trace {
    /// Creates a trace that is not open yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: Arc::default() }
    }

    /// Opens it, unless it is open. Waits for a reader if it is a pipe.
    ///
    /// # Errors
    /// [`Error::Trace`].
    pub(super) fn open(&self) -> Result<&File, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let opened = File::options().create(true).append(true).open(&self.path);
        let file = opened.map_err(|source| Error::Trace { path: self.path.clone(), source })?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Appends to it.
    ///
    /// # Errors
    /// [`Error::Trace`].
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.open()?.write_all(bytes).map_err(|source| Error::Trace { path: self.path.clone(), source })
    }
}
