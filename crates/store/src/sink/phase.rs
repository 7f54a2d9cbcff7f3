//! Whether a sink continues.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::FilesError;

/// Whether a sink accepts more, and whether its work is durable.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Whether something was created, moved or deleted that has to be made durable at the end.
    changed: AtomicBool,
    /// Whether the sink accepts nothing more.
    over: AtomicBool,
    /// Makes long operations end at once.
    stopped: AtomicBool,
}

impl Phase {
    /// Notes a change that has to be made durable at the end.
    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Whether there was such a change.
    pub(super) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Ends the sink: nothing more is accepted.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Checks that the sink accepts more.
    ///
    /// # Errors
    /// [`FilesError::Over`] after [`Phase::end`].
    pub(super) fn check_going(&self) -> Result<(), FilesError> {
        if self.over.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    /// Makes long operations end at once.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Returns the flag that makes long operations end.
    pub(super) const fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Checks that long operations may continue.
    ///
    /// # Errors
    /// [`FilesError::Over`] after [`Phase::stop`].
    pub(super) fn check_stopped(&self) -> Result<(), FilesError> {
        if self.stopped.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }
}
