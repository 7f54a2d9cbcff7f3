//! Writes the trace of a session.

use std::time::Instant;

use serde_json::json;

use crate::error::Error;
use crate::transfer::bottleneck::Bottleneck;
use crate::transfer::progress::Progress;
use crate::transfer::trace::Trace;

/// The trace of a session, if requested. The transfer continues without it if it cannot be written.
#[derive(Debug)]
pub(in crate::transfer) struct Recording {
    trace: Option<Trace>,
    started: Instant,
    /// Whether the engine's header was written.
    has_begun: bool,
    /// Why it is incomplete.
    lost: Option<String>,
}

impl Recording {
    /// Opens the trace of a session that began at `started`.
    ///
    /// # Errors
    /// [`Error::Trace`] if its file cannot be opened.
    pub(super) fn open(trace: Option<Trace>, started: Instant) -> Result<Self, Error> {
        trace.as_ref().map_or(Ok(()), |trace| trace.open().map(drop))?;
        Ok(Self { trace, started, has_begun: false, lost: None })
    }

    /// Writes records of the engine, as far as possible.
    pub(super) fn write(&mut self, records: &[u8]) {
        let Some(trace) = self.trace.as_ref().filter(|_| self.lost.is_none()) else { return };
        self.has_begun = true;
        if let Err(error) = trace.write(records) {
            self.lost = Some(error.to_string());
        }
    }

    /// Writes the progress, so that viewers of the trace show the same values as this program: the remaining time and
    /// the bottleneck.
    pub(super) fn write_progress(&self, progress: &Progress) {
        let Some(trace) = self.trace.as_ref().filter(|_| self.has_begun) else { return };
        let time = runtime::since(self.started).as_secs_f64() * 1e3;
        let data = json!({
            "bytes": progress.bytes_arrived(),
            "known_bytes": progress.bytes_known,
            "known_is_all": progress.total_is_final,
            "files": progress.files_done,
            "known_files": progress.files_known,
            "goodput": progress.goodput,
            "left": progress.left().map(|left| left.as_secs_f64()),
            "limited_by": progress.limited_by.map(Bottleneck::name),
        });
        let record = json!({ "time": time, "name": "downpour:progress", "data": data });
        // A full file fails again with the next record of the engine.
        let _ = trace.write(format!("\u{1e}{record}\n").as_bytes());
    }

    /// Returns why the trace is incomplete, if it was requested and is.
    pub(super) fn lost(&self) -> Option<String> {
        self.lost.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn trace_unwritable_lost_transfer_continues() {
        let mut recording = Recording::open(Some(Trace::new(Path::new("/dev/full"))), Instant::now()).unwrap();
        assert_eq!(recording.lost(), None);
        recording.write(b"\x1e{}\n");
        let why = recording.lost().unwrap();
        recording.write(b"\x1e{}\n");
        assert_eq!(recording.lost(), Some(why));
        assert!(Recording::open(Some(Trace::new(Path::new("/dev/null/none"))), Instant::now()).is_err());
    }
}
