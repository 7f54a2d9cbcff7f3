//! The folder of a receiving session, as the driver's workers and the settling thread see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::step::Input;
use crate::driver::Storage;
use crate::error::Error;
use crate::files::{FilesError, ReceiveSettings, Receiving as Files, SourceId, display_name};

/// How long another process may have the staging folder: longer than one that has lost its peer takes to end.
const PATIENCE: Duration = Duration::from_secs(6);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Where received blocks are written.
#[derive(Debug)]
pub(super) struct Target {
    files: Files,
    /// The same beside the target, for a transfer that has made the target itself.
    earlier: Option<Files>,
    /// The transfer has begun, and goes on there.
    is_earlier: AtomicBool,
    started: AtomicBool,
}

impl Target {
    /// Looks at the folder; touches nothing.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub(super) fn new(settings: ReceiveSettings, earlier: Option<ReceiveSettings>) -> Result<Self, Error> {
        Ok(Self {
            files: Files::new(settings)?,
            // Where it cannot be looked for, it did not begin.
            earlier: earlier.and_then(|settings| Files::new(settings).ok()),
            is_earlier: AtomicBool::new(false),
            started: AtomicBool::new(false),
        })
    }

    /// What is sent is known. Nothing was asked of the files before.
    ///
    /// # Errors
    /// What keeps an earlier transfer from going on.
    pub(super) fn begin(&self, source: SourceId) -> Result<(), Error> {
        if let Some(earlier) = &self.earlier {
            match patiently(|| earlier.goes_on(source)) {
                Ok(goes_on) => self.is_earlier.store(goes_on, Ordering::Release),
                Err(error @ FilesError::Busy { .. }) => return Err(error.into()),
                // Nothing can be found there, so nothing goes on there.
                Err(_) => {}
            }
        }
        Ok(patiently(|| self.files().begin(source))?)
    }

    /// Whether the sender is to wait for what is wanted of each batch.
    pub(super) fn may_hold_some(&self) -> bool {
        self.files.may_hold_some() || self.earlier.as_ref().is_some_and(Files::may_go_on)
    }

    /// Starts a thread that settles files: once for each `()` it is sent, or once for several.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn start(self: &Arc<Self>, inputs: Sender<Input>) -> Result<Sender<()>, Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::Internal("a folder is opened twice"));
        }
        let (settle, requests) = channel();
        let target = Arc::clone(self);
        let work = move || settle_files(&target, &requests, &inputs);
        thread::Builder::new().name("downpour-settle".into()).spawn(work).map_err(Error::System)?;
        Ok(settle)
    }

    /// The files.
    pub(super) fn files(&self) -> &Files {
        match &self.earlier {
            Some(earlier) if self.is_earlier.load(Ordering::Acquire) => earlier,
            _ => &self.files,
        }
    }
}

/// Tries again while another process has what is needed: the same transfer, broken a moment ago, may still be telling its end.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, FilesError>) -> Result<T, FilesError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(FilesError::Busy { .. }) if Instant::now() < deadline => thread::sleep(BETWEEN_ATTEMPTS),
            result => return result,
        }
    }
}

impl Storage for Target {
    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Internal("a receiver reads"))
    }

    fn write(&self, tag: u64, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.files().write(batch_number(tag)?, offset, bytes)?)
    }
}

/// Tags are batch numbers.
pub(super) fn batch_number(tag: u64) -> Result<u32, Error> {
    u32::try_from(tag).map_err(|_| Error::Violation(format!("it sends an object {tag}, which is no batch")))
}

/// Settles verified files, which waits for the disk, whenever there may be some.
fn settle_files(target: &Target, requests: &Receiver<()>, inputs: &Sender<Input>) {
    while requests.recv().is_ok() {
        // One call settles all there is.
        let count = 1 + requests.try_iter().count();
        // A session that has ended hears nothing, and the settling ends below.
        let mut files = Vec::new();
        let result = target.files().settle(|path, bytes| files.push((display_name(path), bytes)));
        let failed = result.is_err();
        let told = files.is_empty() || inputs.send(Input::Verified(files)).is_ok();
        if inputs.send(Input::Settled(result.map(|()| count).map_err(Error::from))).is_err() || failed || !told {
            return;
        }
    }
}
