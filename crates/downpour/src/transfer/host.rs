//! Who runs the sessions of a transfer: one, towards the peer of a ticket, or one for each peer that comes with our ticket.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use transport::{AcceptOptions, ConnectOptions, Profile};

use super::addresses::reachable;
use super::figures::Summary;
use super::receiving::Receiving;
use super::sending::{Scan, Sending, Sources};
use super::session::{Session, application};
use super::step::{Facts, Input, Origin};
use super::target::Target;
use super::{Events, ListenOptions, TransferEvent};
use crate::driver::{Accepted, Driver, Link, LinkEvent, Storage};
use crate::error::{CloseCode, Error};
use crate::files::FilesError;
use crate::ticket::{Role, Ticket, fresh_key};

/// What every session of a transfer does.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) role: Role,
    pub(super) task: Task,
    pub(super) profile: Profile,
    pub(super) handshake_timeout: Duration,
    pub(super) dead_after: Duration,
    pub(super) trace: Option<PathBuf>,
}

/// The work itself.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Send { paths: Vec<PathBuf> },
    Receive { into: PathBuf, ask: bool },
}

/// Brings the user's decisions to the sessions that run.
#[derive(Debug, Default)]
pub(super) struct Switch {
    cancelled: AtomicBool,
    next_session: AtomicU64,
    sessions: Mutex<BTreeMap<u64, Sender<Input>>>,
    listener: Mutex<Option<Sender<Arrival>>>,
}

impl Switch {
    pub(super) fn accept(&self) {
        self.tell(|| Input::Accept);
    }

    pub(super) fn refuse(&self) {
        self.tell(|| Input::Refuse);
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.tell(|| Input::Cancel);
        if let Some(listener) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended.
            let _ = listener.send(Arrival::Cancel);
        }
    }

    fn tell(&self, input: impl Fn() -> Input) {
        for session in self.sessions.lock().unwrap_or_else(PoisonError::into_inner).values() {
            // One that has just ended decides nothing any more.
            let _ = session.send(input());
        }
    }

    /// Lets a session hear, until it is removed by the number that comes back.
    fn add(&self, session: &Sender<Input>) -> u64 {
        let number = self.next_session.fetch_add(1, Ordering::Relaxed);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(number, session.clone());
        if self.cancelled.load(Ordering::SeqCst) {
            // The session's own thread asks, so it cannot have ended.
            let _ = session.send(Input::Cancel);
        }
        number
    }

    fn remove(&self, number: u64) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
}

/// What a session's bytes come from or go to.
#[derive(Clone)]
enum Store {
    Sources(Arc<Sources>),
    Target(Arc<Target>),
}

impl Store {
    fn new(task: &Task) -> Self {
        match task {
            Task::Send { .. } => Self::Sources(Arc::default()),
            Task::Receive { .. } => Self::Target(Arc::default()),
        }
    }

    fn storage(&self) -> Arc<dyn Storage> {
        match self {
            Self::Sources(sources) => Arc::clone(sources) as _,
            Self::Target(target) => Arc::clone(target) as _,
        }
    }
}

/// A connection whose session can begin.
struct Beginning {
    link: Link,
    inputs: (Sender<Input>, Receiver<Input>),
    store: Store,
    started: Instant,
}

/// How a session ended, and whether the peer was one of ours.
struct Ended {
    result: Result<Summary, Error>,
    was_peer: bool,
}

impl Plan {
    fn run(&self, beginning: Beginning, origin: Origin, events: Events, switch: &Switch) -> Ended {
        let number = switch.add(&beginning.inputs.0);
        let ended = self.run_alone(beginning, origin, events);
        switch.remove(number);
        ended
    }

    fn run_alone(&self, beginning: Beginning, origin: Origin, events: Events) -> Ended {
        let Beginning { link, inputs: (sender, receiver), store, started } = beginning;
        let facts = Facts { role: self.role, origin, told: self.profile.told_rate(), trace: self.trace.clone() };
        let session = match Session::new(link.clone(), events, facts, receiver, started) {
            Ok(session) => session,
            Err(error) => {
                link.close(error.close_code() as u32, "it cannot write its trace");
                return Ended { result: Err(error), was_peer: true };
            }
        };
        let (session, result) = match (&self.task, store) {
            (Task::Send { paths }, Store::Sources(sources)) => match Scan::start(paths.clone(), sender) {
                Ok(scan) => Sending::new(session, sources, scan).run(),
                Err(error) => (session, Err(error)),
            },
            (Task::Receive { into, ask }, Store::Target(target)) => match target.open(into, sender) {
                Ok(settle) => Receiving::new(session, target, into.clone(), *ask, settle).run(),
                Err(error) => (session, Err(error)),
            },
            _ => (session, Err(Error::Internal("a store for the other role"))),
        };
        let was_peer = session.is_connected();
        Ended { result: session.conclude(result), was_peer }
    }
}

/// Starts the transfer with the peer that made `ticket`.
pub(super) fn connect(plan: Plan, ticket: &Ticket, events: Events, switch: Arc<Switch>) -> Result<(), Error> {
    ticket.check_expiry(SystemTime::now())?;
    if ticket.listener == plan.role {
        return Err(Error::WrongRole { both: plan.role });
    }
    let driver = Driver::start(None, plan.dead_after, events.clone())?;
    let inputs = channel();
    let store = Store::new(&plan.task);
    let sender = inputs.0.clone();
    // A session that has ended has no use for more.
    let sink = Box::new(move |event: LinkEvent| drop(sender.send(Input::Link(event))));
    let accepted = Accepted { events: sink, storage: store.storage() };
    let options = ConnectOptions {
        profile: plan.profile.clone(),
        application: application(plan.role),
        remotes: ticket.addresses.clone(),
        handshake_timeout: plan.handshake_timeout,
        qlog: plan.trace.is_some(),
    };
    let origin = Origin::Connected { addresses: ticket.addresses.clone(), timeout: plan.handshake_timeout };
    let started = Instant::now();
    let link = driver.connect(ticket.key, options, accepted);
    let work = move || {
        let ended = plan.run(Beginning { link, inputs, store, started }, origin, events.clone(), &switch);
        events.tell(TransferEvent::Done(ended.result));
        drop(driver);
    };
    thread::Builder::new().name("downpour-session".into()).spawn(work).map_err(Error::System)?;
    Ok(())
}

/// What the listener's thread is told.
enum Arrival {
    Peer(Beginning),
    Ended(Ended),
    Cancel,
}

impl std::fmt::Debug for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Peer(_) => "Peer",
            Self::Ended(_) => "Ended",
            Self::Cancel => "Cancel",
        })
    }
}

/// Starts to wait for peers with a new ticket.
pub(super) fn listen(
    plan: Plan,
    options: &ListenOptions,
    events: Events,
    switch: Arc<Switch>,
) -> Result<Ticket, Error> {
    let driver = Driver::start(options.address, plan.dead_after, events.clone())?;
    let addresses = reachable(driver.local_address()).map_err(Error::System)?;
    let expires = SystemTime::now() + options.valid_for;
    let ticket = Ticket { key: fresh_key()?, expires, addresses, listener: plan.role };
    let (sender, arrivals) = channel();
    *switch.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
    let task = plan.task.clone();
    let acceptor = Box::new({
        let sender = sender.clone();
        move |link| accept(&task, link, sender.clone())
    });
    let accept = AcceptOptions {
        profile: plan.profile.clone(),
        application: application(plan.role),
        qlog: plan.trace.is_some(),
    };
    driver.listen(ticket.key, expires, accept, acceptor);
    let listener = Listener {
        plan: Arc::new(plan),
        driver,
        events,
        switch,
        arrivals,
        sender,
        valid_for: options.valid_for,
        keep: options.keep,
        running: 0,
        cancelled: false,
        served: false,
        last: None,
    };
    thread::Builder::new().name("downpour-listen".into()).spawn(move || listener.run()).map_err(Error::System)?;
    Ok(ticket)
}

/// Takes a connection that has begun. The listener hears of it when the peer has proved that it has the key and answers now: one that
/// vanishes before, or only repeats what it has overheard, keeps nobody out.
fn accept(task: &Task, link: Link, listener: Sender<Arrival>) -> Accepted {
    let inputs = channel();
    let store = Store::new(task);
    let (storage, sender) = (store.storage(), inputs.0.clone());
    let mut beginning = Some(Beginning { link, inputs, store, started: Instant::now() });
    let events = Box::new(move |event: LinkEvent| {
        let proved = matches!(event, LinkEvent::Connected { .. });
        // A session that has ended has no use for more.
        let _ = sender.send(Input::Link(event));
        if proved && let Some(beginning) = beginning.take() {
            // A listener that has ended answers nobody; the driver is told so at the same time.
            let _ = listener.send(Arrival::Peer(beginning));
        }
    });
    Accepted { events, storage }
}

/// Whether another peer would be served no better: this side's user has decided, or this side's system fails.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Cancelled | Error::Declined | Error::Trace { .. } | Error::System(_) | Error::Internal(_) => true,
        // This side's own disk would refuse the next peer too.
        Error::Files(error) => matches!(
            error,
            FilesError::DiskFull { .. }
                | FilesError::Quota { .. }
                | FilesError::Permission { .. }
                | FilesError::TargetExists { .. }
        ),
        Error::Kept { error, .. } => is_final(error),
        _ => false,
    }
}

struct Listener {
    plan: Arc<Plan>,
    driver: Driver,
    events: Events,
    switch: Arc<Switch>,
    arrivals: Receiver<Arrival>,
    sender: Sender<Arrival>,
    valid_for: Duration,
    keep: bool,
    running: usize,
    cancelled: bool,
    /// A transfer was told as done.
    served: bool,
    /// Why the latest transfer failed.
    last: Option<Error>,
}

impl Listener {
    fn run(mut self) {
        let expires = Instant::now() + self.valid_for;
        loop {
            let arrival = match self.arrivals.recv_timeout(expires.saturating_duration_since(Instant::now())) {
                Ok(arrival) => arrival,
                // The driver no longer answers; those who came in time are served to their end.
                Err(_) if self.running > 0 => match self.arrivals.recv() {
                    Ok(arrival) => arrival,
                    Err(_) => return,
                },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return self.time_is_over(),
            };
            if self.take(arrival) {
                return;
            }
        }
    }

    /// True when there is nothing more to do.
    fn take(&mut self, arrival: Arrival) -> bool {
        match arrival {
            Arrival::Peer(beginning) => {
                // Two receivers would ask two questions at once, and two transfers would spend one ticket.
                if self.running > 0 && (!self.keep || self.plan.role == Role::Receives) {
                    beginning.link.close(CloseCode::Busy as u32, "another transfer with this ticket is under way");
                } else {
                    self.begin(beginning);
                }
                false
            }
            Arrival::Ended(ended) => {
                self.running -= 1;
                self.ended(ended)
            }
            Arrival::Cancel => {
                self.cancelled = true;
                self.driver.stop_listening();
                if self.running == 0 {
                    self.events.tell(TransferEvent::Done(Err(Error::Cancelled)));
                }
                self.running == 0
            }
        }
    }

    /// The ticket is good for one complete transfer, or with `keep` for any number: one that failed does not use it up. True when there
    /// is nothing more to do.
    fn ended(&mut self, Ended { result, was_peer }: Ended) -> bool {
        match result {
            Err(error) if !self.cancelled && !is_final(&error) => {
                if was_peer && self.keep {
                    self.served = true;
                    self.events.tell(TransferEvent::Done(Err(error)));
                } else {
                    let what = if was_peer { "a transfer failed" } else { "a peer came in vain" };
                    self.events.tell(TransferEvent::Note(format!("{what}: {error}; the ticket is still good")));
                    self.last = Some(error);
                }
                false
            }
            result => {
                self.served = true;
                self.events.tell(TransferEvent::Done(result));
                (!self.keep || self.cancelled) && self.running == 0
            }
        }
    }

    fn time_is_over(self) {
        if self.served {
            return;
        }
        let error = match self.last {
            None => Error::NobodyCame(self.valid_for),
            Some(last) => Error::NoneComplete { after: self.valid_for, last: Box::new(last) },
        };
        self.events.tell(TransferEvent::Done(Err(error)));
    }

    fn begin(&mut self, beginning: Beginning) {
        let (plan, events, switch, sender) =
            (Arc::clone(&self.plan), self.events.clone(), Arc::clone(&self.switch), self.sender.clone());
        let link = beginning.link.clone();
        let work = move || {
            let ended = plan.run(beginning, Origin::Accepted, events, &switch);
            // The listener waits for this.
            let _ = sender.send(Arrival::Ended(ended));
        };
        match thread::Builder::new().name("downpour-session".into()).spawn(work) {
            Ok(_) => self.running += 1,
            Err(error) => {
                link.close(CloseCode::Other as u32, "no thread left");
                self.events.tell(TransferEvent::Note(format!("a peer came in vain: {error}")));
            }
        }
    }
}
