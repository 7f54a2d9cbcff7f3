//! `doctor`: examines the path between the local host and a remote one, and both hosts; forecasts transfer times, and
//! advises how to make transfers faster.

mod checkup;
mod disk;
mod examine;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod machine;
mod meter;
mod probe;
mod remote;
mod show;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{PathOptions, SshOptions};
use crate::error::{CopyError, Error};
use crate::options::EngineOptions;
use crate::transfer::{StopReason, TransferControl};
use net::EndpointOptions;

pub use checkup::{Checkup, DoctorVerdict, Finding, Forecast, ForecastLimit, Side, Speed, Udp};
pub use disk::Disk;
pub use machine::{Core, Machine};
pub use meter::{ThreadShare, Traffic};
pub use net::{BufferFacts, SocketInfo};
pub(super) use remote::attend;

/// Maximum number of queued events; there are fewer.
const MAX_EVENTS: usize = 64;

/// Time without a packet after which a probe fails.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Description of an examination.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// Argument for ssh: `[user@]host`.
    pub host: String,
    /// How to call ssh.
    pub ssh: SshOptions,
    /// Path of the probes: UDP, and ssh if that is blocked, independent of [`PathOptions::via`].
    pub path: PathOptions,
    /// The remote directory whose disk is measured, which need not exist; the home if `None`.
    pub target: Option<PathBuf>,
    /// The same on the local host; the current directory if `None`.
    pub local: Option<PathBuf>,
    /// The sending profile and buffer limits of both sides.
    pub engine: EngineOptions,
    /// Sending time in each direction. Extended to up to 15 s for long round-trip times: a controller needs 20 of them.
    pub probe_time: Duration,
    /// Bytes of the transfer to forecast; some usual sizes if `None`.
    pub size: Option<u64>,
}

impl DoctorOptions {
    /// Creates an examination of `host` with the defaults of [`copy`](super::copy).
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ssh: SshOptions::default(),
            path: PathOptions::default(),
            target: None,
            local: None,
            engine: EngineOptions { endpoint: EndpointOptions::new(DEAD_AFTER), ..EngineOptions::default() },
            probe_time: Duration::from_secs(3),
            size: None,
        }
    }
}

/// An event of an examination.
#[derive(Debug)]
pub enum DoctorEvent {
    /// A finding, which the checkup will contain too.
    Finding(Finding),
    /// The last event.
    Done(Result<Box<Checkup>, Error>),
}

/// Starts an examination; it takes about nine seconds, and longer if the RTT is long or the user types a password.
///
/// # Errors
/// A host that ssh would take for an option; [`Error::OutOfResources`] if a thread cannot be spawned. Other errors are
/// reported by [`DoctorEvent::Done`]. Blocked UDP is not an error, but a finding.
pub fn doctor(doctor: DoctorOptions) -> Result<RunningDoctor, Error> {
    if doctor.host.is_empty() || doctor.host.starts_with('-') {
        return Err(CopyError::NotAHost(doctor.host.clone()).into());
    }
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let switch = Arc::<TransferControl>::default();
    let reporter = Reporter { events: sender, switch: Arc::clone(&switch) };
    let work = move || {
        let result = examine::through_ssh(&doctor, &reporter);
        reporter.emit(DoctorEvent::Done(result.map(Box::new)));
    };
    runtime::spawn("downpour-doctor", work).map_err(Error::OutOfResources)?;
    Ok(RunningDoctor { events, switch })
}

/// A running examination. Dropping it ends it.
#[derive(Debug)]
pub struct RunningDoctor {
    events: mpsc::Receiver<DoctorEvent>,
    switch: Arc<TransferControl>,
}

impl RunningDoctor {
    /// Returns the next event; `None` after the last.
    pub async fn next(&mut self) -> Option<DoctorEvent> {
        self.events.recv().await
    }

    /// Ends the examination soon. Files written for measurements are removed before [`DoctorEvent::Done`].
    pub fn stop(&self, why: StopReason) {
        self.switch.stop(why);
    }

    /// Waits for the end.
    ///
    /// The reason for a missing checkup.
    /// The reason why there is no checkup.
    pub async fn finish(mut self) -> Result<Checkup, Error> {
        while let Some(event) = self.next().await {
            if let DoctorEvent::Done(result) = event {
                return result.map(|checkup| *checkup);
            }
        }
        Err(Error::Internal("an examination without an end"))
    }
}

impl Drop for RunningDoctor {
    fn drop(&mut self) {
        self.stop(StopReason::Cancelled);
    }
}

/// The user's side of an examination.
#[derive(Debug)]
struct Reporter {
    events: mpsc::Sender<DoctorEvent>,
    switch: Arc<TransferControl>,
}

impl Reporter {
    /// Sends an event; does nothing if the program has dropped its [`RunningDoctor`].
    fn emit(&self, event: DoctorEvent) {
        let _ = self.events.blocking_send(event);
    }

    fn found(&self, finding: Finding) {
        self.emit(DoctorEvent::Finding(finding));
    }

    /// Checks whether the user has stopped the examination.
    ///
    /// # Errors
    /// The user's reason for stopping.
    fn stopped(&self) -> Result<(), Error> {
        self.switch.stopped().map_or(Ok(()), |why| Err(why.into()))
    }
}
