//! Configuration of a transfer's sessions, and one session from its connection to its end.

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use net::{Connection, EndpointOptions};
use transport::Profile;

use super::Events;
use super::checksums::List;
use super::figures::{Attempts, Summary};
use super::headway::Patience;
use super::mailbox::Mailbox;
use super::receiving::Receiving;
use super::scanning::Scan;
use super::sending::Sending;
use super::session::{Session, application};
use super::step::{Input, Origin, SessionConfig};
use super::switch::Switch;
use super::target::Target;
use super::trace::Trace;
use crate::error::{CloseCode, Error};
use crate::files::{ReceiveSpec, Root, ScanOptions};
use crate::path_cache::PathCache;
use crate::ticket::Role;

/// Configuration of every session of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct TransferConfig {
    pub(crate) task: Task,
    pub(crate) profile: Profile,
    pub(crate) handshake_timeout: Duration,
    pub(crate) endpoint: EndpointOptions,
    pub(crate) trace: Option<Trace>,
    /// What is known of paths; a sender begins with it, and adds what it learns.
    pub(crate) paths: Option<PathCache>,
    /// A list of all files with their BLAKE3, in b3sum's format.
    pub(crate) checksums: Option<List>,
    /// How long to keep reconnecting after a connection breaks, from when something was last received.
    pub(crate) retry_for: Option<Duration>,
    /// Whether the peer is found by a ticket that was passed on, rather than by running the same command again.
    pub(crate) by_ticket: bool,
    /// How long a peer that connected to this side may make no progress; `None` if the peer is this user's own process.
    pub(crate) patience: Option<Patience>,
}

/// The work to be done.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Send {
        roots: Vec<Root>,
        scan: ScanOptions,
        dry_run: bool,
    },
    Receive {
        spec: Arc<ReceiveSpec>,
        /// Whether the target was a directory when the transfer started.
        target_is_directory: bool,
        /// Write nothing before the user's consent.
        ask: bool,
    },
}

impl Task {
    /// Creates a task that receives according to `spec`.
    pub(crate) fn receive(spec: ReceiveSpec, ask: bool) -> Self {
        let target_is_directory = spec.target.is_dir();
        Self::Receive { spec: Arc::new(spec), target_is_directory, ask }
    }

    /// Returns the number of items of a sender.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::Send { roots, .. } => Some(roots.len() as u64),
            Self::Receive { .. } => None,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        match self {
            Self::Send { .. } => Role::Sends,
            Self::Receive { .. } => Role::Receives,
        }
    }
}

/// Source or destination of a session's bytes.
#[derive(Clone)]
pub(super) enum Store {
    Sources,
    Target(Arc<Target>),
}

impl Store {
    /// Creates the store of a task.
    ///
    /// # Errors
    /// A target that cannot be used.
    pub(super) fn new(task: &Task) -> Result<Self, Error> {
        Ok(match task {
            Task::Send { .. } => Self::Sources,
            Task::Receive { spec, target_is_directory, ask } => {
                Self::Target(Arc::new(Target::new(Arc::clone(spec), *target_is_directory, *ask)?))
            }
        })
    }

    /// Returns this side's application data for the handshake.
    pub(super) fn application(&self) -> Vec<u8> {
        match self {
            Self::Sources => application(Role::Sends, false, false),
            Self::Target(target) => application(Role::Receives, target.may_hold_some(), target.takes_again()),
        }
    }
}

/// A connection whose session can begin.
pub(super) struct Beginning {
    pub(super) connection: Connection,
    pub(super) inputs: (Mailbox, Receiver<Input>),
    pub(super) store: Store,
    pub(super) started: Instant,
}

/// The end of a session, and whether the peer was authenticated.
pub(super) struct Ended {
    pub(super) result: Result<Summary, Error>,
    pub(super) was_peer: bool,
    /// When something was last received from the peer.
    pub(super) heard: Option<Instant>,
    /// Cost and results of the attempt.
    pub(super) attempt: Attempts,
}

impl Ended {
    /// Creates the end of a session that never began.
    pub(super) fn at_once(error: Error, was_peer: bool) -> Self {
        Self { result: Err(error), was_peer, heard: None, attempt: Attempts::default() }
    }
}

impl TransferConfig {
    /// Checks that the list and the trace can be written, so that a failure does not show only when the peer is there.
    ///
    /// # Errors
    /// [`Error::OutputRefused`], [`Error::Checksums`], [`Error::Trace`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let trace = self.trace.as_ref().map(Trace::open).transpose()?;
        self.checksums.as_ref().map_or(Ok(()), |list| list.check(trace))
    }

    /// Returns the configuration where the number of items is known, unlike before.
    pub(super) fn for_items(&self, items: Option<u64>) -> Cow<'_, Self> {
        let Task::Receive { spec, target_is_directory, ask } = &self.task else { return Cow::Borrowed(self) };
        if items != Some(1) {
            return Cow::Borrowed(self);
        }
        let mut spec = ReceiveSpec::clone(spec);
        spec.requested.only_one_matches();
        let task = Task::Receive { spec: Arc::new(spec), target_is_directory: *target_is_directory, ask: *ask };
        Cow::Owned(Self { task, ..self.clone() })
    }

    /// Checks that the target can be used, without changing it.
    ///
    /// # Errors
    /// [`Error::Files`].
    pub(crate) fn check_target(&self) -> Result<(), Error> {
        Store::new(&self.task).map(drop)
    }

    /// Runs one session to its end; a panic also ends it.
    pub(super) fn run(&self, beginning: Beginning, origin: Origin, events: Events, switch: &Switch) -> Ended {
        let number = switch.add(&beginning.inputs.0);
        let connection = beginning.connection.clone();
        let ended = panic::catch_unwind(AssertUnwindSafe(|| self.run_alone(beginning, origin, events)));
        switch.remove(number);
        ended.unwrap_or_else(|_| {
            let error = Error::Internal("a session panicked");
            connection.close(CloseCode::Other as u32, error.to_string());
            Ended::at_once(error, true)
        })
    }

    fn run_alone(&self, beginning: Beginning, origin: Origin, events: Events) -> Ended {
        let Beginning { connection, inputs: (mailbox, receiver), store, started } = beginning;
        let config = SessionConfig {
            role: self.task.role(),
            origin,
            told: self.profile.fixed_rate(),
            knows_rate: self.profile.min_rate().is_some(),
            limit: self.profile.limit,
            trace: self.trace.clone(),
            paths: self.paths.clone(),
            by_ticket: self.by_ticket,
            patience: self.patience,
        };
        let session = match Session::new(connection.clone(), events, config, receiver, started) {
            Ok(session) => session,
            Err(error) => {
                connection.close(error.close_code() as u32, "it cannot write its trace");
                return Ended::at_once(error, true);
            }
        };
        let checksums = self.checksums.clone();
        let (mut session, result) = match (&self.task, store) {
            (Task::Send { roots, scan, dry_run }, Store::Sources) => {
                match Scan::start(roots.clone(), scan.clone(), &mailbox) {
                    Ok(scan) => Sending::new(session, mailbox, scan, *dry_run, checksums).run(),
                    Err(error) => (session, Err(error)),
                }
            }
            (Task::Receive { ask, .. }, Store::Target(target)) => match target.start(&mailbox) {
                Ok(settle) => {
                    mailbox.on_end(target.stopper());
                    Receiving::new(session, target, *ask, settle, checksums).run()
                }
                Err(error) => (session, Err(error)),
            },
            _ => (session, Err(Error::Internal("a store for the other role"))),
        };
        let result = session.conclude(result);
        Ended { result, was_peer: session.is_connected(), heard: session.heard(), attempt: session.attempt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{CommonOptions, ReceiveOptions, Transfer};
    use net::Endpoint;

    #[test]
    fn a_panic_in_a_session_is_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let task = Task::receive(ReceiveSpec::into_directory(folder.path()), false);
        let config = CommonOptions::default().config(task, ReceiveOptions::default().profile);
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let endpoint =
            Endpoint::over_pipes(ours.try_clone().unwrap().into(), ours.into(), &config.endpoint, ()).unwrap();
        let (mailbox, receiver) = Mailbox::new();
        let store = Store::new(&config.task).unwrap();
        let options = transport::ConnectOptions {
            profile: config.profile.clone(),
            application: store.application(),
            remotes: vec![net::PIPE_PEER],
            handshake_timeout: Duration::from_secs(10),
            peer_listens: false,
            qlog: false,
        };
        let connection = endpoint.connect([1; 32], options, Box::new(mailbox.events()));
        mailbox.put(Input::Verified(Vec::new()));
        let beginning = Beginning { connection, inputs: (mailbox, receiver), store, started: Instant::now() };
        // Sending events blocks, which panics inside an executor.
        let (events, transfer) = Transfer::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended = runtime.block_on(async { config.run(beginning, Origin::Accepted, events, &transfer.switch) });
        assert!(matches!(ended.result, Err(Error::Internal(_))), "{:?}", ended.result);
    }
}
