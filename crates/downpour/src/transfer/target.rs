//! The target of a receiving session, shared by the driver's workers and the settling thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use net::Sink;

use super::input::{Input, SideInput};
use super::mailbox::Mailbox;
use crate::error::Error;
use crate::files::{Entry, FileSink, FilesError, ReceiveRequest, SourceId, TreeTarget};

/// How long to wait while another process uses the staging directory: longer than one that has lost its peer takes to
/// exit.
const PATIENCE: Duration = Duration::from_secs(6);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// The destination of received blocks.
#[derive(Debug)]
pub(super) struct Target {
    files: Box<dyn TreeTarget>,
    /// Whether the user decides about an offer first.
    asks: bool,
    started: AtomicBool,
    /// Whether the session has ended.
    stopped: Mutex<bool>,
    on_stop: Condvar,
}

impl Target {
    /// Examines the target without changing it.
    ///
    /// # Errors
    /// An unusable target.
    pub(super) fn new(spec: Arc<ReceiveRequest>, target_is_directory: bool, asks: bool) -> Result<Self, Error> {
        Ok(Self {
            files: Box::new(FileSink::with_target(spec, target_is_directory)?),
            asks,
            started: AtomicBool::new(false),
            stopped: Mutex::new(false),
            on_stop: Condvar::new(),
        })
    }

    /// Sets the source, before anything else is requested.
    ///
    /// # Errors
    /// The reason why an earlier transfer cannot be resumed; [`FilesError::Over`] after [`Target::stop`].
    pub(super) fn begin(&self, source: SourceId) -> Result<(), Error> {
        Ok(self.patiently(|| self.files.begin(source))?)
    }

    /// Decides where the items are written, which may depend on the first entry; `None` if there is none, or none soon.
    ///
    /// # Errors
    /// A target that must be a directory and cannot be one; those of [`Target::begin`].
    pub(super) fn decide(&self, entry: Option<&Entry>) -> Result<(), Error> {
        Ok(self.patiently(|| self.files.decide(entry))?)
    }

    /// Returns whether the sender must wait for the wanted ranges of each batch. Nothing is wanted before the user has
    /// consented.
    pub(super) fn may_hold_some(&self) -> bool {
        self.asks || self.files.may_have_data()
    }

    /// Returns whether changed files may be resent, with other sizes. They may not where a user has accepted a list of
    /// names and sizes.
    pub(super) const fn takes_again(&self) -> bool {
        !self.asks
    }

    /// Starts a thread that settles files.
    ///
    /// # Errors
    /// The thread cannot be spawned.
    pub(super) fn start(self: &Arc<Self>, session: &Mailbox) -> Result<Settler, Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::Internal("a directory is opened twice"));
        }
        let (settler, requests) = channel();
        let (target, mailbox) = (Arc::clone(self), session.clone());
        session.spawn("downpour-settle", move || settle_files(&target, &requests, &mailbox))?;
        Ok(Settler { requests: settler, due: 0 })
    }

    /// Returns whether [`Target::start`] was called.
    pub(super) fn is_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    /// Makes long operations (comparing, deleting, waiting for another process) end soon with [`FilesError::Over`].
    /// Received data can still be synced.
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.on_stop.notify_all();
        self.files.stop();
    }

    /// Returns a function that calls [`Target::stop`] if the target still exists.
    pub(super) fn stopper(self: &Arc<Self>) -> impl FnMut() + Send + 'static {
        let target = Arc::downgrade(self);
        move || target.upgrade().into_iter().for_each(|target| target.stop())
    }

    /// Returns whether [`Target::stop`] was called.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retries while another process uses the staging directory: the same transfer, interrupted a moment ago, may still
    /// be ending.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, FilesError>) -> Result<T, FilesError> {
        let deadline = runtime::now() + PATIENCE;
        loop {
            match attempt() {
                Err(FilesError::Busy { .. }) if runtime::now() < deadline => {
                    if self.stops_within(BETWEEN_ATTEMPTS) {
                        return Err(FilesError::Over);
                    }
                }
                result => return result,
            }
        }
    }

    /// Waits for `time`, or until [`Target::stop`] was called, and returns whether it was.
    fn stops_within(&self, time: Duration) -> bool {
        runtime::wait(Some(runtime::now() + time), |left| {
            let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.on_stop.wait_timeout_while(stopped, left.unwrap_or_default(), |stopped| !*stopped);
            *waited.unwrap_or_else(PoisonError::into_inner).0
        })
    }

    /// Returns the tree of the target.
    pub(super) fn files(&self) -> &dyn TreeTarget {
        &*self.files
    }
}

/// The destination of one batch's blocks.
#[derive(Debug)]
pub(super) struct BatchSink {
    pub(super) target: Arc<Target>,
    pub(super) batch: u32,
}

impl Sink for BatchSink {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        Ok(self.target.files().write(self.batch, offset, bytes).map_err(Error::from)?)
    }
}

/// Converts a tag to a batch number.
pub(super) fn batch_number(tag: u64) -> Result<u32, Error> {
    u32::try_from(tag).map_err(|_| Error::ProtocolViolation(format!("object {tag} is not a batch")))
}

/// The session's handle to the thread that settles files.
#[derive(Debug)]
pub(super) struct Settler {
    requests: Sender<()>,
    /// Requests without an answer.
    due: usize,
}

impl Settler {
    /// Requests that files are settled, at least once from now on.
    pub(super) fn request(&mut self) {
        self.due += 1;
        // The thread ends only after an error, which it has reported.
        let _ = self.requests.send(());
    }

    /// Handles the answer to this many requests.
    pub(super) const fn on_settled(&mut self, requests: usize) {
        self.due -= requests;
    }

    /// Returns whether it has answered all requests.
    pub(super) const fn is_idle(&self) -> bool {
        self.due == 0
    }
}

/// Maximum number of published files in a report.
const MAX_REPORTED_FILES: usize = 256;

/// Settles verified files, which waits for the disk, on each request.
fn settle_files(target: &Target, requests: &Receiver<()>, session: &Mailbox) {
    while runtime::recv(requests).is_ok() {
        // One call settles everything that is ready.
        let count = 1 + requests.try_iter().count();
        let mut files = Vec::new();
        let result = target.files().publish_ready(&mut |path, bytes| {
            files.push((path.to_vec(), bytes));
            if files.len() >= MAX_REPORTED_FILES {
                session.put(Input::Step(SideInput::Verified(std::mem::take(&mut files))));
            }
        });
        if !files.is_empty() {
            session.put(Input::Step(SideInput::Verified(files)));
        }
        match result {
            Ok(()) => session.put(Input::Step(SideInput::Settled(count))),
            Err(error) => {
                session.put(Input::End(error.into()));
                return;
            }
        };
    }
}
