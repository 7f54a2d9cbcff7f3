//! The listening peer: one session for each peer that connects with its ticket.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use net::{Connection, Endpoint, Event, EventHandler};
use transport::AcceptOptions;

use super::addresses::reachable;
use super::config::{Beginning, SessionEnd, SessionStorage, TransferConfig};
use super::control::TransferControl;
use super::input::Input;
use super::mailbox::Mailbox;
use super::session::Origin;
use super::stop::StopReason;
use super::{Events, ListenOptions, TransferEvent};
use crate::error::{Closing, Context, Error, ErrorKind};
use crate::files::FilesError;
use crate::ticket::{Role, Ticket, fresh_key};

/// How long a second peer waits for the place of the first, which may prove that it is alive or send its last messages.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(6);

/// Inputs of the listener's thread.
enum ListenerEvent {
    Peer(Beginning),
    /// The current peer has sent something, after another requested its place.
    FirstAlive,
    Ended(Box<SessionEnd>),
    Stop(StopReason),
    /// No more peers can connect.
    Closed(Error),
}

/// The carrier over which peers connect.
pub(super) enum ListenCarrier {
    /// UDP; the addresses under which this host can be reached.
    Udp(Endpoint),
    /// A pair of pipes, over which only one peer can connect.
    Pipe(Endpoint),
}

/// Starts to listen for peers, with a new ticket unless there is a key already.
pub(super) fn listen(
    config: TransferConfig,
    carrier: ListenCarrier,
    key: Option<[u8; 32]>,
    options: &ListenOptions,
    events: Events,
    switch: Arc<TransferControl>,
) -> Result<Ticket, Error> {
    let (listener, ticket) = prepare(config, carrier, key, options, events, switch)?;
    listener.answer();
    runtime::spawn("downpour-listen", move || listener.run()).map_err(Error::OutOfResources)?;
    Ok(ticket)
}

/// Creates a listener that does not accept connections yet, and the sender of its events.
fn prepare(
    config: TransferConfig,
    carrier: ListenCarrier,
    key: Option<[u8; 32]>,
    options: &ListenOptions,
    events: Events,
    switch: Arc<TransferControl>,
) -> Result<(Listener, Ticket), Error> {
    let (endpoint, addresses, only_one) = match carrier {
        ListenCarrier::Udp(endpoint) => {
            let addresses = reachable(endpoint.local_address()).map_err(Error::OutOfResources)?;
            (endpoint, addresses, options.once)
        }
        ListenCarrier::Pipe(endpoint) => (endpoint, Vec::new(), true),
    };
    let expires = runtime::system_time() + options.valid_for;
    let key = key.map_or_else(fresh_key, Ok)?;
    let ticket = Ticket { key, expires, addresses, listener: config.task.role() };
    let (sender, arrivals) = channel();
    let store = Arc::new(Mutex::new(SessionStorage::new(&config.task)?));
    let watch = switch.watch(Box::new({
        let sender = sender.clone();
        // The listener may have ended.
        move |why| drop(sender.send(ListenerEvent::Stop(why)))
    }));
    let listener = Listener {
        config: Arc::new(config),
        endpoint,
        key,
        expires,
        store,
        events,
        switch,
        watch,
        arrivals,
        sender,
        valid_for: options.valid_for,
        keep: options.keep,
        only_one,
        running: 0,
        current: None,
        waiting: None,
        stopped: None,
        served: false,
        last: None,
    };
    Ok((listener, ticket))
}

/// Accepts a new connection, whose handshake described this store.
fn accept(store: SessionStorage, connection: Connection, listener: Sender<ListenerEvent>) -> EventHandler {
    let (mailbox, inputs) = Mailbox::new();
    let mut events = mailbox.events();
    let mut beginning = Some(Beginning { connection, inputs: (mailbox, inputs), store, started: runtime::now() });
    Box::new(move |event| {
        let proved = matches!(event, Event::Connected { .. });
        events(event);
        if proved && let Some(beginning) = beginning.take() {
            // Fails if the listener has ended; the endpoint then stops accepting, too.
            let _ = listener.send(ListenerEvent::Peer(beginning));
        }
    })
}

/// Rejects a peer because another transfer is running.
fn refuse(beginning: &Beginning) {
    Closing::as_text(ErrorKind::Busy, "another transfer with this ticket is running").close(&beginning.connection);
}

/// Rejects a peer because the target has changed since the handshake described it; its next attempt gets a new
/// description.
fn refuse_late(beginning: &Beginning) {
    Closing::as_text(ErrorKind::Busy, "another transfer with this ticket was first").close(&beginning.connection);
}

/// Held by the acceptor of peers: reports to the listener when it is dropped without a successor.
struct UntilClosed {
    listener: Sender<ListenerEvent>,
    /// Dropped after the first peer, if only one may connect.
    only_one: bool,
}

impl Drop for UntilClosed {
    fn drop(&mut self) {
        let why = match thread::panicking() {
            true => Error::Internal("the network thread has ended"),
            false if self.only_one => Error::ConnectionLost,
            // Another acceptor is in place, or the listener has ended.
            false => return,
        };
        // Fails if the listener has ended.
        let _ = self.listener.send(ListenerEvent::Closed(why));
    }
}

/// Returns whether serving another peer would fail too: the local user has decided, or the local system fails.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Cancelled
        | Error::Terminated
        | Error::Declined
        | Error::Trace { .. }
        | Error::OutOfResources(_)
        | Error::Internal(_) => true,
        // A failing local disk would fail for the next peer too.
        Error::Files(FilesError::NotPermitted { .. }) => false,
        Error::Files(error) => matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Permission | ErrorKind::Exists),
        Error::Within { context: Context::Kept { .. }, source } => is_final(source),
        _ => false,
    }
}

struct Listener {
    config: Arc<TransferConfig>,
    endpoint: Endpoint,
    key: [u8; 32],
    expires: SystemTime,
    /// Store of the next session.
    store: Arc<Mutex<SessionStorage>>,
    events: Events,
    switch: Arc<TransferControl>,
    /// The number of the listener's watcher.
    watch: u64,
    arrivals: Receiver<ListenerEvent>,
    sender: Sender<ListenerEvent>,
    valid_for: Duration,
    keep: bool,
    /// Whether only one peer may connect.
    only_one: bool,
    running: usize,
    /// The session that began last.
    current: Option<Mailbox>,
    /// A second peer, and until when it waits for the place of the first.
    waiting: Option<(Beginning, Instant)>,
    stopped: Option<StopReason>,
    /// Whether a transfer was reported as done.
    served: bool,
    /// Error of the latest failed transfer.
    last: Option<Error>,
}

impl Listener {
    /// Accepts peers from now on, describing in the handshake the store of the next one.
    fn answer(&self) {
        let store = lock(&self.store).clone();
        let sender = self.sender.clone();
        let application = store.application();
        let until_closed = UntilClosed { listener: self.sender.clone(), only_one: self.only_one };
        let acceptor = Box::new(move |connection| {
            let _ = &until_closed;
            accept(store.clone(), connection, sender.clone())
        });
        let profile = self.config.options.engine.profile.clone();
        let options =
            AcceptOptions::default().profile(profile).application(application).qlog(self.config.trace.is_some());
        self.endpoint.listen(self.key, self.expires, options, acceptor);
    }

    fn run(mut self) {
        let expires = runtime::now() + self.valid_for;
        loop {
            let Some(arrival) = self.next(expires) else {
                self.time_is_over();
                break;
            };
            if self.take(arrival) {
                break;
            }
        }
        self.switch.unwatch(self.watch);
    }

    /// Waits for the next input; `None` once the time has expired. Peers that connected in time are served to the end.
    fn next(&mut self, expires: Instant) -> Option<ListenerEvent> {
        loop {
            let until = self.waiting.as_ref().map(|(_, until)| *until).or((self.running == 0).then_some(expires));
            let arrival = match until {
                Some(until) => {
                    runtime::recv_timeout(&self.arrivals, until.saturating_duration_since(runtime::now())).ok()
                }
                None => runtime::recv(&self.arrivals).ok(),
            };
            if arrival.is_some() {
                return arrival;
            }
            let (second, _) = self.waiting.take()?;
            refuse(&second);
        }
    }

    /// Handles a second peer. The first may have been killed, and its user may be trying again: then it does not prove
    /// that it is alive.
    fn second(&mut self, beginning: Beginning) {
        if let Some(first) = &self.current {
            let sender = self.sender.clone();
            // The listener waits for the session, so it exists.
            first.put(Input::Takeover(Box::new(move || drop(sender.send(ListenerEvent::FirstAlive)))));
        }
        // A second peer must not take over the target of a running receiver; it may connect again.
        let may_wait = self.config.task.role() == Role::Sender && !self.only_one;
        if may_wait && self.waiting.is_none() {
            self.waiting = Some((beginning, runtime::now() + TAKEOVER_TIMEOUT));
        } else {
            refuse(&beginning);
        }
    }

    /// Handles an input; returns true when there is nothing left to do.
    fn take(&mut self, arrival: ListenerEvent) -> bool {
        match arrival {
            ListenerEvent::Peer(beginning) => {
                // Two receivers would ask two questions at once, and two transfers would use one ticket.
                if self.running > 0 && (!self.keep || self.config.task.role() == Role::Receiver) {
                    self.second(beginning);
                } else if self.is_current(&beginning.store) {
                    self.begin(beginning);
                } else {
                    refuse_late(&beginning);
                    if self.is_used_up() {
                        self.renew();
                    }
                }
                false
            }
            ListenerEvent::FirstAlive => {
                self.waiting.take().into_iter().for_each(|(second, _)| refuse(&second));
                false
            }
            ListenerEvent::Ended(ended) => {
                self.running -= 1;
                let over = self.ended(*ended);
                match self.waiting.take() {
                    Some((second, _)) if over => refuse(&second),
                    Some((second, _)) => self.begin(second),
                    None if !over && self.config.task.role() == Role::Receiver => self.renew(),
                    None => {}
                }
                over
            }
            ListenerEvent::Closed(why) => {
                let over = self.running == 0 && !self.served;
                if over {
                    self.events.emit(TransferEvent::Done(Err(why)));
                }
                over
            }
            ListenerEvent::Stop(why) => {
                self.stopped = Some(why);
                self.endpoint.stop_listening();
                if self.running == 0 {
                    self.events.emit(TransferEvent::Done(Err(why.into())));
                }
                self.running == 0
            }
        }
    }

    /// Returns whether a session may begin with `store`. A connection gets its store before its peer is authenticated;
    /// another session may have written to that store and ended in the meantime.
    fn is_current(&self, store: &SessionStorage) -> bool {
        match (store, &*lock(&self.store)) {
            (SessionStorage::Target(given), SessionStorage::Target(current)) => {
                Arc::ptr_eq(given, current) && !current.is_started()
            }
            _ => true,
        }
    }

    /// Returns whether examining the directory again after the last session failed.
    fn is_used_up(&self) -> bool {
        matches!(&*lock(&self.store), SessionStorage::Target(target) if target.is_started())
    }

    /// Examines the directory again for the next peer, since it has changed. If that fails, it is tried again when that
    /// peer connects.
    fn renew(&self) {
        match SessionStorage::new(&self.config.task) {
            Ok(store) => {
                *lock(&self.store) = store;
                self.answer();
            }
            Err(error) => self.events.emit(TransferEvent::UserNote(format!("cannot use the destination: {error}"))),
        }
    }

    /// Handles the end of a session. The ticket is valid for one complete transfer, or with `keep` for any number; a
    /// failed transfer does not use it up. Returns true when there is nothing left to do.
    fn ended(&mut self, SessionEnd { result, was_peer, .. }: SessionEnd) -> bool {
        match result {
            Err(error) if self.stopped.is_none() && !self.only_one && !is_final(&error) => {
                if was_peer && self.keep {
                    self.served = true;
                    self.events.emit(TransferEvent::Done(Err(error)));
                } else {
                    let failure = if was_peer { "transfer failed" } else { "connection attempt failed" };
                    let message = format!("{failure}: {error}; ticket still valid");
                    self.events.emit(TransferEvent::AttemptFailed { message, kind: error.kind() });
                    self.last = Some(error);
                }
                false
            }
            result => {
                self.served = true;
                self.events.emit(TransferEvent::Done(result));
                (!self.keep || self.stopped.is_some()) && self.running == 0
            }
        }
    }

    fn time_is_over(&mut self) {
        if self.served {
            return;
        }
        let error = match self.last.take() {
            None => Error::TicketExpired(self.valid_for),
            Some(last) => last.within(Context::NoneComplete { after: self.valid_for }),
        };
        self.events.emit(TransferEvent::Done(Err(error)));
    }

    fn begin(&mut self, beginning: Beginning) {
        let (config, events, switch, sender) =
            (Arc::clone(&self.config), self.events.clone(), Arc::clone(&self.switch), self.sender.clone());
        let connection = beginning.connection.clone();
        self.current = Some(beginning.inputs.0.clone());
        let work = move || {
            let ended = config.run(beginning, Origin::Accepted, events, &switch);
            // The listener waits for this.
            let _ = sender.send(ListenerEvent::Ended(Box::new(ended)));
        };
        match runtime::spawn("downpour-session", work) {
            Ok(_) => self.running += 1,
            Err(error) => {
                Closing::as_text(ErrorKind::Other, "no thread available").close(&connection);
                self.events.emit(TransferEvent::UserNote(format!("connection attempt failed: {error}")));
            }
        }
    }
}

fn lock(store: &Mutex<SessionStorage>) -> std::sync::MutexGuard<'_, SessionStorage> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
