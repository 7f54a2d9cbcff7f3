//! The connecting peer: finds the other one, runs a session with it, and reconnects after a lost connection for as long
//! as the user has configured.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use net::{Bind, Endpoint, PIPE_PEER};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::ConnectOptions;

use super::config::{Beginning, SessionEnd, SessionStorage, TransferConfig};
use super::control::TransferControl;
use super::input::Input;
use super::mailbox::Mailbox;
use super::session::Origin;
use super::summary::Attempts;
use super::{Events, TransferEvent};
use crate::error::{Context, Error, ErrorKind};
use crate::ticket::{Role, Ticket, TicketError};

/// The pause before the first reconnection; each following one is twice as long...
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// ... up to this.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Interval of checks whether the peer's program still runs; `DRAIN_STEPS` times this interval is allowed for its last
/// messages after it exited.
const LIFE_STEP: Duration = Duration::from_millis(200);
const DRAIN_STEPS: u32 = 10;

/// The route to the peer.
#[derive(Debug)]
pub(crate) enum Route {
    /// Over UDP.
    Udp {
        /// Key and addresses.
        ticket: Ticket,
        /// How long the peer may be silent before its first response.
        timeout: Duration,
        /// A pipe whose other end closes when the peer's program exits, independent of UDP.
        life: Option<OwnedFd>,
    },
    /// Over a pair of pipes.
    Pipe {
        /// The pipe to read from.
        read: OwnedFd,
        /// The pipe to write to.
        write: OwnedFd,
        /// Pre-shared key of the handshake.
        key: [u8; 32],
    },
}

/// Locates the peer. Its methods may block, on the network or on the user typing a password.
pub(crate) trait PeerLocator: Send {
    /// Returns the route to the peer, for the first or another attempt. Passes lines for the user to `on_note` while it
    /// takes long.
    fn locate(&mut self, switch: &TransferControl, on_note: &mut dyn FnMut(String)) -> Result<Route, Error>;

    /// Returns another route for the same attempt after `error`, and a line for the user.
    fn fallback(&mut self, error: &Error) -> Option<(Result<Route, Error>, TransferEvent)>;

    /// Translates `error`, which ended a session, into its meaning on this route.
    fn explain(&mut self, error: Error) -> Error {
        error
    }

    /// Returns whether it may find the peer again after a lost connection.
    fn can_repeat(&self) -> bool {
        true
    }

    /// Returns the number of links among the peer's sources that it has followed.
    fn links_followed(&self) -> u64 {
        0
    }

    /// Returns the number of items that the peer sends, if it reports that and it was unknown before.
    fn items(&self) -> Option<u64> {
        None
    }

    /// Releases the peer after an attempt. If the attempt `succeeded`, further messages of the peer do not matter.
    fn release(&mut self, succeeded: bool);
}

/// Locates the peer by a ticket.
struct TicketLocator {
    ticket: Ticket,
    timeout: Duration,
}

impl PeerLocator for TicketLocator {
    fn locate(&mut self, _: &TransferControl, _: &mut dyn FnMut(String)) -> Result<Route, Error> {
        Ok(Route::Udp { ticket: self.ticket.clone(), timeout: self.timeout, life: None })
    }

    fn fallback(&mut self, _: &Error) -> Option<(Result<Route, Error>, TransferEvent)> {
        None
    }

    fn release(&mut self, _: bool) {}
}

/// Starts the transfer with the peer that created `ticket`.
pub(super) fn connect(
    config: TransferConfig,
    ticket: Ticket,
    events: Events,
    switch: Arc<TransferControl>,
) -> Result<(), Error> {
    ticket.check_expiry(runtime::system_time())?;
    if matches!(ticket.listener, Role::Tunnel | Role::Streams) {
        return Err(TicketError::OtherUse(ticket.listener).into());
    }
    if ticket.listener == config.task.role() {
        return Err(Error::WrongRole { both: config.task.role() });
    }
    // Reports an unusable directory at once.
    SessionStorage::new(&config.task)?;
    let timeout = config.options.handshake_timeout;
    follow(config, Box::new(TicketLocator { ticket, timeout }), events, switch)
}

/// Starts the transfer with the peer that `locator` finds.
pub(crate) fn follow(
    config: TransferConfig,
    locator: Box<dyn PeerLocator>,
    events: Events,
    switch: Arc<TransferControl>,
) -> Result<(), Error> {
    let connecting = Connecting { config, locator, events, switch };
    runtime::spawn("downpour-session", move || connecting.run()).map_err(Error::OutOfResources)?;
    Ok(())
}

struct Connecting {
    config: TransferConfig,
    locator: Box<dyn PeerLocator>,
    events: Events,
    switch: Arc<TransferControl>,
}

impl Connecting {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut heard = None;
        let mut prior = Attempts::default();
        let result = loop {
            let ended = self.attempt();
            self.locator.release(ended.result.is_ok());
            if ended.heard.is_some() {
                (heard, pause) = (ended.heard, FIRST_PAUSE);
            }
            match ended.result {
                Err(error) if self.is_worth_another(&error, heard) => {
                    let seconds = pause.as_secs();
                    self.events.emit(TransferEvent::UserNote(format!("{error}; trying again in {seconds} s")));
                    self.switch.wait(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    prior.add(&ended.attempt);
                }
                Ok(mut summary) => {
                    summary.names.links_followed += self.locator.links_followed();
                    break Ok(summary.after(&prior, &ended.attempt));
                }
                Err(error) => break Err(error),
            }
        };
        self.events.emit(TransferEvent::Done(result));
    }

    /// Returns whether to reconnect after a lost connection: the peer was reached in this run and received from
    /// recently, and neither user has declined.
    fn is_worth_another(&self, error: &Error, heard: Option<Instant>) -> bool {
        let (Some(patience), Some(heard)) = (self.config.options.retry_for, heard) else { return false };
        self.switch.stopped().is_none()
            && runtime::since(heard) < patience
            && may_pass(error)
            && self.locator.can_repeat()
    }

    /// Makes one attempt: over the locator's route, or over its fallback if that one is blocked.
    fn attempt(&mut self) -> SessionEnd {
        let events = self.events.clone();
        let mut route = self.locator.locate(&self.switch, &mut |line| events.emit(TransferEvent::UserNote(line)));
        loop {
            let ended = match route {
                Ok(route) => self.session(route),
                Err(error) => SessionEnd::at_once(error, false),
            };
            if self.switch.stopped().is_some() {
                return self.explained(stopped(ended, &self.switch));
            }
            let other = ended.result.as_ref().err().and_then(|error| self.locator.fallback(error));
            let Some((other, event)) = other else { return self.explained(ended) };
            self.events.emit(event);
            route = other;
        }
    }

    fn explained(&mut self, ended: SessionEnd) -> SessionEnd {
        SessionEnd { result: ended.result.map_err(|error| self.locator.explain(error)), ..ended }
    }

    fn session(&self, route: Route) -> SessionEnd {
        let started = runtime::now();
        let over = Arc::new(AtomicBool::new(false));
        let config = self.config.for_items(self.locator.items());
        let begin = || {
            let store = SessionStorage::new(&config.task)?;
            let (mailbox, inputs) = Mailbox::new();
            let (endpoint, key, remotes, timeout, peer_listens) = match route {
                Route::Udp { ticket, timeout, life } => {
                    // Its program runs, and created the ticket when it listened.
                    let peer_listens = life.is_some();
                    let endpoint = Endpoint::builder()
                        .options(config.options.engine.endpoint)
                        .until_end(self.events.clone())
                        .bind(Bind::default())?;
                    if let Some(life) = life {
                        watch_life(life, &mailbox, Arc::clone(&over))?;
                    }
                    (endpoint, ticket.key, ticket.addresses, timeout, peer_listens)
                }
                Route::Pipe { read, write, key } => {
                    let endpoint = Endpoint::builder()
                        .options(config.options.engine.endpoint)
                        .until_end(self.events.clone())
                        .over_pipes(read, write)?;
                    (endpoint, key, vec![PIPE_PEER], config.options.handshake_timeout, false)
                }
            };
            let options = ConnectOptions::new(remotes.clone())
                .profile(config.options.engine.profile.clone())
                .application(store.application())
                .handshake_timeout(timeout)
                .peer_listens(peer_listens)
                .qlog(config.trace.is_some());
            let connection = endpoint.connect((key, options)).events(mailbox.events()).start();
            let origin = Origin::Connected { addresses: remotes, timeout };
            Ok((endpoint, Beginning { connection, inputs: (mailbox, inputs), store, started }, origin))
        };
        match begin() {
            Ok((endpoint, beginning, origin)) => {
                let ended = config.run(beginning, origin, self.events.clone(), &self.switch);
                over.store(true, Ordering::Relaxed);
                drop(endpoint);
                ended
            }
            Err(error) => SessionEnd::at_once(error, false),
        }
    }
}

/// Watches a pipe until the session is `over`. When the other end has closed, waits for the peer's last messages and
/// then informs the session.
fn watch_life(life: OwnedFd, session: &Mailbox, over: Arc<AtomicBool>) -> Result<(), Error> {
    let mailbox = session.clone();
    let work = move || {
        let step = Timespec::try_from(LIFE_STEP).ok();
        let mut closed = 0;
        while !over.load(Ordering::Relaxed) {
            // Even without requested events, `poll` reports that the other end has closed.
            let mut waiting = [PollFd::new(&life, PollFlags::empty())];
            match poll(&mut waiting, step.as_ref()) {
                Ok(0) | Err(_) => {}
                Ok(_) => {
                    closed += 1;
                    runtime::sleep(LIFE_STEP);
                }
            }
            if closed >= DRAIN_STEPS {
                mailbox.put(Input::End(Error::ConnectionLost));
                return;
            }
        }
    };
    session.spawn("downpour-life", work)
}

/// Replaces the error of an attempt that was stopped while searching the peer by the user's reason for stopping.
fn stopped(mut ended: SessionEnd, switch: &TransferControl) -> SessionEnd {
    let looked_only = matches!(
        ended.result,
        Err(Error::Ssh(_)
            | Error::NoDownpour { .. }
            | Error::NothingStarts { .. }
            | Error::LoginRefused { .. }
            | Error::Unreachable { .. })
    );
    if looked_only && let Some(why) = switch.stopped() {
        ended.result = Err(why.into());
    }
    ended
}

/// Returns whether a remote failure of this kind may disappear.
const fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Cancelled | ErrorKind::Terminated | ErrorKind::Busy | ErrorKind::Exhausted)
}

/// Returns whether another attempt may succeed.
fn may_pass(error: &Error) -> bool {
    match error {
        // Another program on the peer's host may still use the resources of this one.
        Error::ConnectionLost
        | Error::Exhausted(_)
        | Error::Unreachable { .. }
        | Error::Ssh(_)
        | Error::NoDownpour { .. }
        | Error::NothingStarts { .. } => true,
        Error::Within { context, source } => match context {
            Context::Peer { .. } => matches!(**source, Error::Stalled(_)) || is_temporary(source.kind()),
            // A release that lacks a feature will not have it soon.
            Context::Host(_)
                if matches!(**source, Error::Older(_) | Error::UnknownFields(_) | Error::VersionMismatch) =>
            {
                false
            }
            Context::Host(_) => source.kind() == ErrorKind::Other || is_temporary(source.kind()),
            Context::Kept { .. } => may_pass(source),
            Context::NoneComplete { .. } => false,
        },
        _ => false,
    }
}
