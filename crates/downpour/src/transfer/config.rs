//! Configuration of a transfer's sessions, and one session from its connection to its end.

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use net::Connection;

use super::Events;
use super::checksums::List;
use super::control::TransferControl;
use super::input::Input;
use super::mailbox::Mailbox;
use super::options::{SendSpec, TransferOptions};
use super::peer_progress::ProgressTimeouts;
use super::receiving::Receiving;
use super::scanning::Scan;
use super::sending::Sending;
use super::session::{Acquaintance, Origin, Session, SessionConfig, application};
use super::summary::{Attempts, Summary};
use super::target::Target;
use super::trace::Trace;
use crate::error::{Closing, Error};
use crate::files::{LocalSource, ReceiveRequest};
use crate::ticket::Role;

/// Configuration of every session of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct TransferConfig {
    pub(crate) task: Task,
    pub(crate) options: TransferOptions,
    pub(super) acquaintance: Acquaintance,
    /// The trace of [`TransferOptions::qlog`].
    pub(super) trace: Option<Trace>,
    /// The list of [`TransferOptions::checksums`].
    pub(crate) list: Option<List>,
}

/// The task of a transfer.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Send {
        spec: SendSpec,
        dry_run: bool,
    },
    Receive {
        spec: Arc<ReceiveRequest>,
        /// Whether the target was a directory when the transfer started.
        target_is_directory: bool,
        /// Write nothing before the user's consent.
        ask: bool,
    },
}

impl Task {
    /// Creates a task that receives according to `spec`.
    pub(crate) fn receive(spec: ReceiveRequest, ask: bool) -> Self {
        let target_is_directory = spec.target.is_dir();
        Self::Receive { spec: Arc::new(spec), target_is_directory, ask }
    }

    /// Returns the number of items of a sender.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::Send { spec, .. } => Some(spec.roots.len() as u64),
            Self::Receive { .. } => None,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        match self {
            Self::Send { .. } => Role::Sender,
            Self::Receive { .. } => Role::Receiver,
        }
    }
}

/// Source or destination of a session's bytes.
#[derive(Clone)]
pub(super) enum SessionStorage {
    Sources,
    Target(Arc<Target>),
}

impl SessionStorage {
    /// Creates the store of a task.
    ///
    /// # Errors
    /// An unusable target.
    pub(super) fn new(task: &Task) -> Result<Self, Error> {
        Ok(match task {
            Task::Send { .. } => Self::Sources,
            Task::Receive { spec, target_is_directory, ask } => {
                Self::Target(Arc::new(Target::new(Arc::clone(spec), *target_is_directory, *ask)?))
            }
        })
    }

    /// Returns the local application data for the handshake.
    pub(super) fn application(&self) -> Vec<u8> {
        match self {
            Self::Sources => application(Role::Sender, false, false),
            Self::Target(target) => application(Role::Receiver, target.may_hold_some(), target.takes_again()),
        }
    }
}

/// A connection whose session can begin.
pub(super) struct Beginning {
    pub(super) connection: Connection,
    pub(super) inputs: (Mailbox, Receiver<Input>),
    pub(super) store: SessionStorage,
    pub(super) started: Instant,
}

/// The end of a session, and whether the peer was authenticated.
pub(super) struct SessionEnd {
    pub(super) result: Result<Summary, Error>,
    pub(super) was_peer: bool,
    /// When the peer was last received from.
    pub(super) heard: Option<Instant>,
    /// Cost and results of the attempt.
    pub(super) attempt: Attempts,
}

impl SessionEnd {
    /// Creates the end of a session that never began.
    pub(super) fn at_once(error: Error, was_peer: bool) -> Self {
        Self { result: Err(error), was_peer, heard: None, attempt: Attempts::default() }
    }
}

impl TransferConfig {
    /// Creates the configuration of a transfer with a peer that is found by a ticket.
    pub(crate) fn by_ticket(task: Task, options: TransferOptions) -> Self {
        Self::new(task, options, Acquaintance::Ticket(ProgressTimeouts::default()))
    }

    /// Creates the configuration of a transfer with a peer that this user's own login has started.
    pub(crate) fn by_login(task: Task, options: TransferOptions) -> Self {
        Self::new(task, options, Acquaintance::Login)
    }

    fn new(task: Task, options: TransferOptions, acquaintance: Acquaintance) -> Self {
        let trace = options.qlog.as_deref().map(Trace::new);
        let list = options.checksums.clone().map(List::new);
        Self { task, options, acquaintance, trace, list }
    }

    /// Checks that the list and the trace can be written, so that a failure appears before the peer connects.
    ///
    /// # Errors
    /// [`Error::OutputRefused`], [`Error::Checksums`], [`Error::Trace`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let trace = self.trace.as_ref().map(Trace::open).transpose()?;
        self.list.as_ref().map_or(Ok(()), |list| list.check(trace))
    }

    /// Returns the configuration with a number of items that was unknown before.
    pub(super) fn for_items(&self, items: Option<u64>) -> Cow<'_, Self> {
        let Task::Receive { spec, target_is_directory, ask } = &self.task else { return Cow::Borrowed(self) };
        if items != Some(1) {
            return Cow::Borrowed(self);
        }
        let mut spec = ReceiveRequest::clone(spec);
        spec.requested.only_one_matches();
        let task = Task::Receive { spec: Arc::new(spec), target_is_directory: *target_is_directory, ask: *ask };
        Cow::Owned(Self { task, ..self.clone() })
    }

    /// Checks that the target is usable, without changing it.
    ///
    /// # Errors
    /// [`Error::Files`].
    pub(crate) fn check_target(&self) -> Result<(), Error> {
        SessionStorage::new(&self.task).map(drop)
    }

    /// Runs one session to its end; a panic also ends it.
    pub(super) fn run(
        &self,
        beginning: Beginning,
        origin: Origin,
        events: Events,
        switch: &TransferControl,
    ) -> SessionEnd {
        let number = switch.add(&beginning.inputs.0);
        let connection = beginning.connection.clone();
        let ended = panic::catch_unwind(AssertUnwindSafe(|| self.run_alone(beginning, origin, events)));
        switch.remove(number);
        ended.unwrap_or_else(|_| {
            let error = Error::Internal("a session panicked");
            Closing::of(&error, false).close(&connection);
            SessionEnd::at_once(error, true)
        })
    }

    fn run_alone(&self, beginning: Beginning, origin: Origin, events: Events) -> SessionEnd {
        let Beginning { connection, inputs: (mailbox, receiver), store, started } = beginning;
        let config = SessionConfig {
            role: self.task.role(),
            origin,
            options: self.options.clone(),
            trace: self.trace.clone(),
            acquaintance: self.acquaintance,
        };
        let session = match Session::new(connection.clone(), events, config, receiver, started) {
            Ok(session) => session,
            Err(error) => {
                Closing::as_text(error.kind(), "cannot write the trace").close(&connection);
                return SessionEnd::at_once(error, true);
            }
        };
        let checksums = self.list.clone();
        let (mut session, result) = match (&self.task, store) {
            (Task::Send { spec, dry_run }, SessionStorage::Sources) => {
                let source = LocalSource::new(spec.roots.clone(), spec.scan.clone(), *dry_run).map_err(Error::from);
                match source.and_then(|source| Scan::start(Arc::new(source), &spec.scan, &mailbox)) {
                    Ok(scan) => Sending::new(session, mailbox, scan, *dry_run, checksums).run(),
                    Err(error) => (session, Err(error)),
                }
            }
            (Task::Receive { ask, .. }, SessionStorage::Target(target)) => match target.start(&mailbox) {
                Ok(settler) => {
                    mailbox.on_end(target.stopper());
                    Receiving::new(session, target, *ask, settler, checksums).run()
                }
                Err(error) => (session, Err(error)),
            },
            _ => (session, Err(Error::Internal("a store for the other role"))),
        };
        let result = session.conclude(result);
        let was_peer = session.peer.address().is_some();
        SessionEnd { result, was_peer, heard: session.liveness.heard(), attempt: session.attempt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use net::Endpoint;

    use crate::transfer::Transfer;
    use crate::transfer::input::SideInput;

    #[test]
    fn a_panic_in_a_session_is_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let task = Task::receive(ReceiveRequest::into_directory(directory.path()), false);
        let config = TransferConfig::by_ticket(task, TransferOptions::default());
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let endpoint = Endpoint::builder()
            .options(config.options.engine.endpoint)
            .over_pipes(ours.try_clone().unwrap().into(), ours.into())
            .unwrap();
        let (mailbox, receiver) = Mailbox::new();
        let store = SessionStorage::new(&config.task).unwrap();
        let options = transport::ConnectOptions::new(vec![net::PIPE_PEER])
            .profile(config.options.engine.profile.clone())
            .application(store.application());
        let connection = endpoint.connect(([1; 32], options)).events(mailbox.events()).start();
        mailbox.put(Input::Step(SideInput::Verified(Vec::new())));
        let beginning = Beginning { connection, inputs: (mailbox, receiver), store, started: Instant::now() };
        // Sending events blocks, which panics inside an executor.
        let (events, transfer) = Transfer::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended = runtime.block_on(async { config.run(beginning, Origin::Accepted, events, &transfer.switch) });
        assert!(matches!(ended.result, Err(Error::Internal(_))), "{:?}", ended.result);
    }
}
