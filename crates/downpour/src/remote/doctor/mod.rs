//! `doctor`: what is between this machine and another, what each of them can do, how long a transfer will take, and what would make it
//! faster.

mod advice;
mod attend;
mod checkup;
mod disk;
mod examine;
mod machine;
mod meter;
mod probe;
mod show;
#[cfg(test)]
mod tests;
mod verdict;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use transport::Profile;

use super::SshOptions;
use crate::error::Error;
use crate::transfer::{Stop, Switch};
use net::Family;

pub use advice::Advice;
pub(super) use attend::attend;
pub use checkup::{Checkup, Finding, Side, Udp};
pub use disk::Disk;
pub use machine::{Core, Machine};
pub use meter::{ThreadShare, Traffic};
pub use net::{BufferFacts, SocketFacts};
pub use verdict::{Bottleneck, Forecast, Speed, Verdict};

/// Events that wait for the program at most: there are fewer.
const MAX_EVENTS: usize = 64;

/// How long the other side of a probe may be silent.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Whom to examine, and how.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// What ssh is given: `[user@]host`.
    pub host: String,
    /// How ssh is called.
    pub ssh: SshOptions,
    /// UDP ports that the remote side may take.
    pub ports: Option<RangeInclusive<u16>>,
    /// IP versions that may be used.
    pub family: Family,
    /// The folder over there whose disk is measured, or one that will be made in it; the home if there is none.
    pub target: Option<PathBuf>,
    /// The same on this machine; the current folder if there is none.
    pub local: Option<PathBuf>,
    /// How the engine sends, in both directions; with a told rate at that rate.
    pub profile: Profile,
    /// For how long bytes flow in each direction. Where a round trip is long, up to 15 s all the same: a controller needs 20 of them.
    pub probe_time: Duration,
    /// Bytes of the transfer whose time is wanted; some usual ones if there is none.
    pub size: Option<u64>,
}

impl Doctor {
    /// Examines `host` as [`copy`](super::copy) would reach it without any option.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ssh: SshOptions::default(),
            ports: None,
            family: Family::Any,
            target: None,
            local: None,
            profile: Profile::auto(),
            probe_time: Duration::from_secs(3),
            size: None,
        }
    }
}

/// What happens during an examination.
#[derive(Debug)]
pub enum DoctorEvent {
    /// Something was found out. The checkup has it too.
    Finding(Finding),
    /// The last event.
    Done(Result<Box<Checkup>, Error>),
}

/// Examines; takes some ten seconds, and longer where the user types a password.
///
/// # Errors
/// A host that ssh would take for an option; [`Error::System`] when the system gives no thread. What else goes wrong comes with
/// [`DoctorEvent::Done`]: UDP that is closed does not, it is a finding.
pub fn doctor(doctor: Doctor) -> Result<Examination, Error> {
    if doctor.host.is_empty() || doctor.host.starts_with('-') {
        return Err(Error::Copy(format!("not a host: {:?}", doctor.host)));
    }
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let switch = Arc::<Switch>::default();
    let reporter = Reporter { events: sender, switch: Arc::clone(&switch) };
    let work = move || {
        let result = examine::through_ssh(&doctor, &reporter);
        reporter.tell(DoctorEvent::Done(result.map(Box::new)));
    };
    thread::Builder::new().name("downpour-doctor".into()).spawn(work).map_err(Error::System)?;
    Ok(Examination { events, switch })
}

/// An examination that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Examination {
    events: mpsc::Receiver<DoctorEvent>,
    switch: Arc<Switch>,
}

impl Examination {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<DoctorEvent> {
        self.events.recv().await
    }

    /// Ends it soon. What was written for the sake of figures is gone when [`DoctorEvent::Done`] comes.
    pub fn stop(&self, why: Stop) {
        self.switch.stop(why);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Why there is no checkup.
    pub async fn finish(mut self) -> Result<Checkup, Error> {
        while let Some(event) = self.next().await {
            if let DoctorEvent::Done(result) = event {
                return result.map(|checkup| *checkup);
            }
        }
        Err(Error::Internal("an examination without an end"))
    }
}

impl Drop for Examination {
    fn drop(&mut self) {
        self.stop(Stop::Cancelled);
    }
}

/// The program's end of an examination.
#[derive(Debug)]
struct Reporter {
    events: mpsc::Sender<DoctorEvent>,
    switch: Arc<Switch>,
}

impl Reporter {
    /// A program that has dropped its [`Examination`] hears nothing.
    fn tell(&self, event: DoctorEvent) {
        let _ = self.events.blocking_send(event);
    }

    fn found(&self, finding: Finding) {
        self.tell(DoctorEvent::Finding(finding));
    }

    /// # Errors
    /// What the user ends it with.
    fn stopped(&self) -> Result<(), Error> {
        self.switch.stopped().map_or(Ok(()), |why| Err(why.into()))
    }
}
