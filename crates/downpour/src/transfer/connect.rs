//! The connecting side: finds the peer, runs a session with it, and does so again when the connection breaks and the user has the patience.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::ConnectOptions;

use super::figures::Spent;
use super::mailbox::Mailbox;
use super::plan::{Beginning, Ended, Plan, Store};
use super::step::{Input, Origin};
use super::switch::Switch;
use super::{Events, TransferEvent};
use crate::driver::{Accepted, Bind, Driver, PIPE_PEER};
use crate::error::{CloseCode, Error};
use crate::ticket::Ticket;

/// The first pause before a connection is made again; each next one is twice as long...
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// ... up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often the peer's life is looked at, and how many times longer than that its last words may take.
const LIFE_STEP: Duration = Duration::from_millis(200);
const LAST_WORDS: u32 = 10;

/// How the peer is reached.
#[derive(Debug)]
pub(crate) enum Way {
    /// By UDP.
    Udp {
        /// Key and addresses.
        ticket: Ticket,
        /// How long it may be silent at first.
        timeout: Duration,
        /// A pipe whose other end closes when the peer's program ends, whatever UDP still says.
        life: Option<OwnedFd>,
    },
    /// By a pair of pipes.
    Pipe {
        /// What is read from.
        read: OwnedFd,
        /// What is written to.
        write: OwnedFd,
        /// Pre-shared key of the handshake.
        key: [u8; 32],
    },
}

/// Knows how to find the peer. Its calls may wait: for a network, or for the user to type a password.
pub(crate) trait Guide: Send {
    /// The way to the peer, for a first or another attempt. `told` gets lines for the user while it takes long.
    fn find(&mut self, switch: &Switch, told: &mut dyn FnMut(String)) -> Result<Way, Error>;

    /// Another way for the same attempt after `error`, and a line for the user.
    fn instead(&mut self, error: &Error) -> Option<(Result<Way, Error>, String)>;

    /// What `error`, which ended a session, means on this way.
    fn explain(&self, error: Error) -> Error {
        error
    }

    /// The attempt is over.
    fn leave(&mut self);
}

/// A ticket leads to where it says.
struct ByTicket {
    ticket: Ticket,
    timeout: Duration,
}

impl Guide for ByTicket {
    fn find(&mut self, _: &Switch, _: &mut dyn FnMut(String)) -> Result<Way, Error> {
        Ok(Way::Udp { ticket: self.ticket.clone(), timeout: self.timeout, life: None })
    }

    fn instead(&mut self, _: &Error) -> Option<(Result<Way, Error>, String)> {
        None
    }

    fn leave(&mut self) {}
}

/// Starts the transfer with the peer that made `ticket`.
pub(super) fn connect(plan: Plan, ticket: Ticket, events: Events, switch: Arc<Switch>) -> Result<(), Error> {
    ticket.check_expiry(SystemTime::now())?;
    if ticket.listener == plan.task.role() {
        return Err(Error::WrongRole { both: plan.task.role() });
    }
    // A folder that cannot be used is told at once.
    Store::new(&plan.task)?;
    let timeout = plan.handshake_timeout;
    follow(plan, Box::new(ByTicket { ticket, timeout }), events, switch)
}

/// Starts the transfer with the peer that `guide` finds.
pub(crate) fn follow(plan: Plan, guide: Box<dyn Guide>, events: Events, switch: Arc<Switch>) -> Result<(), Error> {
    let connecting = Connecting { plan, guide, events, switch };
    thread::Builder::new().name("downpour-session".into()).spawn(move || connecting.run()).map_err(Error::System)?;
    Ok(())
}

struct Connecting {
    plan: Plan,
    guide: Box<dyn Guide>,
    events: Events,
    switch: Arc<Switch>,
}

impl Connecting {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut heard = None;
        let mut earlier = Spent::default();
        let result = loop {
            let ended = self.attempt();
            self.guide.leave();
            if ended.heard.is_some() {
                (heard, pause) = (ended.heard, FIRST_PAUSE);
            }
            match ended.result {
                Err(error) if self.is_worth_another(&error, heard) => {
                    let seconds = pause.as_secs();
                    self.events.tell(TransferEvent::Note(format!("{error}; trying again in {seconds} s")));
                    self.switch.wait(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    earlier.add(&ended.spent);
                }
                Ok(summary) => {
                    let began = ended.spent.since.unwrap_or_else(Instant::now);
                    break Ok(summary.after(&earlier, began));
                }
                Err(error) => break Err(error),
            }
        };
        self.events.tell(TransferEvent::Done(result));
    }

    /// Whether a broken connection is to be made again: the peer was there in this run, it is not long ago, and nobody has said no.
    fn is_worth_another(&self, error: &Error, heard: Option<Instant>) -> bool {
        let (Some(patience), Some(heard)) = (self.plan.retry_for, heard) else { return false };
        self.switch.stopped().is_none() && heard.elapsed() < patience && may_pass(error)
    }

    /// One attempt: by the way the guide knows, or by another if that is closed.
    fn attempt(&mut self) -> Ended {
        let events = self.events.clone();
        let mut way = self.guide.find(&self.switch, &mut |line| events.tell(TransferEvent::Note(line)));
        loop {
            let ended = match way {
                Ok(way) => self.session(way),
                Err(error) => Ended::at_once(error, false),
            };
            let ended = Ended { result: ended.result.map_err(|error| self.guide.explain(error)), ..ended };
            if self.switch.stopped().is_some() {
                return stopped(ended, &self.switch);
            }
            match &ended.result {
                Err(error) => match self.guide.instead(error) {
                    Some((other, told)) => {
                        self.events.tell(TransferEvent::Note(told));
                        way = other;
                    }
                    None => return ended,
                },
                Ok(_) => return ended,
            }
        }
    }

    fn session(&self, way: Way) -> Ended {
        let started = Instant::now();
        let over = Arc::new(AtomicBool::new(false));
        let begin = || {
            let store = Store::new(&self.plan.task)?;
            let (mailbox, inputs) = Mailbox::new();
            let (driver, key, remotes, timeout) = match way {
                Way::Udp { ticket, timeout, life } => {
                    let driver = Driver::start(&Bind::default(), self.plan.dead_after, self.events.clone())?;
                    if let Some(life) = life {
                        watch_life(life, &mailbox, Arc::clone(&over))?;
                    }
                    (driver, ticket.key, ticket.addresses, timeout)
                }
                Way::Pipe { read, write, key } => {
                    let driver = Driver::start_over(read, write, self.plan.dead_after, self.events.clone())?;
                    (driver, key, vec![PIPE_PEER], self.plan.handshake_timeout)
                }
            };
            let accepted = Accepted { events: Box::new(mailbox.sink()), storage: store.storage() };
            let options = ConnectOptions {
                profile: self.plan.profile.clone(),
                application: store.application(),
                remotes: remotes.clone(),
                handshake_timeout: timeout,
                qlog: self.plan.trace.is_some(),
            };
            let link = driver.connect(key, options, accepted);
            let origin = Origin::Connected { addresses: remotes, timeout };
            Ok((driver, Beginning { link, inputs: (mailbox, inputs), store, started }, origin))
        };
        match begin() {
            Ok((driver, beginning, origin)) => {
                let ended = self.plan.run(beginning, origin, self.events.clone(), &self.switch);
                over.store(true, Ordering::Relaxed);
                drop(driver);
                ended
            }
            Err(error) => Ended::at_once(error, false),
        }
    }
}

/// Watches a pipe until the session is `over`; tells it when the other end has closed, after the time that last words may take.
fn watch_life(life: OwnedFd, session: &Mailbox, over: Arc<AtomicBool>) -> Result<(), Error> {
    let mailbox = session.clone();
    let work = move || {
        let step = Timespec::try_from(LIFE_STEP).ok();
        let mut closed = 0;
        while !over.load(Ordering::Relaxed) {
            // Asked for nothing, the system still tells of the other end's closing.
            let mut waiting = [PollFd::new(&life, PollFlags::empty())];
            match poll(&mut waiting, step.as_ref()) {
                Ok(0) | Err(_) => {}
                Ok(_) => {
                    closed += 1;
                    thread::sleep(LIFE_STEP);
                }
            }
            if closed >= LAST_WORDS {
                mailbox.put(Input::Gone);
                return;
            }
        }
    };
    session.spawn("downpour-life", work)
}

/// An attempt that was ended while it looked for the peer ends as the user wanted it.
fn stopped(mut ended: Ended, switch: &Switch) -> Ended {
    let looked_only = matches!(ended.result, Err(Error::Ssh(_) | Error::Unreachable { .. }));
    if looked_only && let Some(why) = switch.stopped() {
        ended.result = Err(why.into());
    }
    ended
}

/// Whether another attempt may end better.
fn may_pass(error: &Error) -> bool {
    match error {
        // Another program over there may still have what this one needs.
        Error::Vanished | Error::Unreachable { .. } | Error::Ssh(_) | Error::Remote { exit_code: 1 | 75, .. } => true,
        Error::Peer { code, .. } => matches!(code, CloseCode::Interrupted | CloseCode::Terminated | CloseCode::Busy),
        Error::Kept { error, .. } => may_pass(error),
        _ => false,
    }
}
