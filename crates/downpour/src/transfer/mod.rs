//! Transfers from paths on one side to a folder on the other.
//!
//! [`send`] and [`receive`] start threads and return at once; a [`Transfer`] reports events and takes the user's
//! decisions. Its futures run on any executor.

mod addresses;
mod bottleneck;
mod changed;
mod checksums;
mod config;
mod connect;
mod events;
mod figures;
mod headway;
#[cfg(test)]
mod hostile;
mod listen;
mod listening;
mod lister;
mod mailbox;
mod receiving;
mod removing;
mod scanning;
mod sending;
mod session;
mod step;
mod stop;
mod switch;
mod target;
mod trace;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use transport::{Profile, Rate};

use crate::error::Error;
use crate::files::{Outputs, ReceiveSpec, Root, ScanOptions, Scanner};
use crate::path_cache::PathCache;
use crate::ticket::Ticket;
pub(crate) use addresses::reachable;
pub use bottleneck::Bottleneck;
pub(crate) use checksums::List;
pub(crate) use config::{Task, TransferConfig};
pub(crate) use connect::{LONGEST_PAUSE, PeerLocator, Route, follow};
pub(crate) use events::Events;
use events::MAX_EVENTS;
pub use events::{Offer, TransferEvent};
pub use figures::{Bound, Bytes, Progress, Summary};
pub(crate) use headway::Patience;
use listen::ListenCarrier;
pub use listening::ListenOptions;
use net::{Endpoint, EndpointOptions};
pub use stop::Stop;
pub(crate) use switch::Switch;
pub(crate) use trace::Trace;

/// How the two sides find each other.
#[derive(Clone, Debug)]
pub enum Peer {
    /// Connect, with a ticket created by the other side.
    Connect(Ticket),
    /// Create a ticket and listen.
    Listen(ListenOptions),
}

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Profile of the engine.
    pub profile: Profile,
    /// Which parts of the sources are sent.
    pub scan: ScanOptions,
    /// Options of both sides.
    pub common: CommonOptions,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), scan: ScanOptions::default(), common: CommonOptions::default() }
    }
}

/// Options of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Profile of the engine.
    pub profile: Profile,
    /// Whether to write nothing before [`Transfer::accept`] is called for the [`TransferEvent::Offer`].
    pub confirm: bool,
    /// Options of both sides.
    pub common: CommonOptions,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), confirm: false, common: CommonOptions::default() }
    }
}

/// Options that senders and receivers have in common.
#[derive(Clone, Debug)]
pub struct CommonOptions {
    /// How long a peer that we connect to may be silent before its first response.
    pub handshake_timeout: Duration,
    /// How long a peer may be silent after that, and what this side may buffer.
    pub endpoint: EndpointOptions,
    /// How long to keep reconnecting after a connection breaks, from when something was last received. A listener does
    /// not reconnect: it waits.
    pub retry_for: Option<Duration>,
    /// A file for the BLAKE3 hashes of all files, in b3sum's format. A receiver lists the paths below its target, a
    /// sender those that it sends. It contains only files that the sender's scan has hashed: see [`ScanOptions::hash`].
    pub checksums: Option<PathBuf>,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
    /// Where a sender finds what earlier transfers have learned of the path, and keeps what it learns; `None` by
    /// default.
    pub paths: Option<PathCache>,
}

impl Default for CommonOptions {
    fn default() -> Self {
        Self {
            handshake_timeout: HANDSHAKE_TIMEOUT,
            endpoint: EndpointOptions::new(DEAD_AFTER),
            retry_for: None,
            checksums: None,
            qlog: None,
            paths: None,
        }
    }
}

impl CommonOptions {
    /// Returns the files that are written about the transfer.
    fn outputs(&self) -> Outputs {
        Outputs::new(self.checksums.as_deref(), self.qlog.as_deref())
    }

    fn config(self, task: Task, profile: Profile) -> TransferConfig {
        TransferConfig {
            task,
            profile,
            handshake_timeout: self.handshake_timeout,
            endpoint: self.endpoint,
            trace: self.qlog.as_deref().map(Trace::new),
            paths: self.paths,
            checksums: self.checksums.map(List::new),
            retry_for: self.retry_for,
            by_ticket: true,
            patience: Some(Patience::default()),
        }
    }
}

/// No reachable peer needs longer, and an unreachable one is not worth a longer wait.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// See docs/design/recovery.md.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Sends files, folders and links.
///
/// # Errors
/// A path that does not exist, a ticket that has expired or is for a sender, an address that cannot be bound.
pub fn send(
    roots: impl IntoIterator<Item: Into<Root>>,
    peer: Peer,
    mut options: SendOptions,
) -> Result<Transfer, Error> {
    let roots: Vec<Root> = roots.into_iter().map(Into::into).collect();
    options.scan.outputs = options.common.outputs();
    // Checks every path, so that a wrong one is reported at once.
    Scanner::new(roots.clone(), options.scan.clone())?;
    let task = Task::Send { roots, scan: options.scan, dry_run: false };
    start(peer, options.common.config(task, options.profile))
}

/// Receives from a sender according to the [`ReceiveSpec`]. A bare path is a directory to receive into, in which
/// nothing that exists is replaced.
///
/// # Errors
/// A folder that cannot be used, a ticket that has expired or is for a receiver, an address that cannot be bound.
pub fn receive(spec: impl Into<ReceiveSpec>, peer: Peer, options: ReceiveOptions) -> Result<Transfer, Error> {
    let spec = ReceiveSpec { outputs: options.common.outputs(), ..spec.into() };
    let task = Task::receive(spec, options.confirm);
    start(peer, options.common.config(task, options.profile))
}

/// Starts a transfer with `peer`.
pub(crate) fn start(peer: Peer, config: TransferConfig) -> Result<Transfer, Error> {
    config.check()?;
    let (events, mut transfer) = Transfer::new();
    let switch = Arc::clone(&transfer.switch);
    match peer {
        Peer::Connect(ticket) => connect::connect(config, ticket, events, switch)?,
        Peer::Listen(options) => {
            let carrier = ListenCarrier::Udp(Endpoint::bind(&options.bind, &config.endpoint, events.clone())?);
            transfer.keep = options.keep;
            transfer.ticket = Some(listen::listen(config, carrier, None, &options, events, switch)?);
        }
    }
    Ok(transfer)
}

/// Starts a transfer with the peer that `locator` finds.
pub(crate) fn start_via(locator: Box<dyn PeerLocator>, config: TransferConfig) -> Result<Transfer, Error> {
    config.check()?;
    let (events, transfer) = Transfer::new();
    follow(config, locator, events, Arc::clone(&transfer.switch))?;
    Ok(transfer)
}

/// Starts a transfer with the peer that connects with `key` through a pair of pipes.
pub(crate) fn start_over(
    read: OwnedFd,
    write: OwnedFd,
    key: [u8; 32],
    config: TransferConfig,
) -> Result<Transfer, Error> {
    let (events, transfer) = Transfer::new();
    let carrier = ListenCarrier::Pipe(Endpoint::over_pipes(read, write, &config.endpoint, events.clone())?);
    listen::listen(config, carrier, Some(key), &ListenOptions::default(), events, Arc::clone(&transfer.switch))?;
    Ok(transfer)
}

/// A running transfer. Its events must be read; dropping it cancels it.
#[derive(Debug)]
pub struct Transfer {
    ticket: Option<Ticket>,
    keep: bool,
    events: mpsc::Receiver<TransferEvent>,
    switch: Arc<Switch>,
}

impl Transfer {
    fn new() -> (Events, Self) {
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        (Events(sender), Self { ticket: None, keep: false, events, switch: Arc::default() })
    }

    /// Starts a transfer between two other machines, of which `work` tells.
    pub(crate) fn elsewhere(
        work: impl FnOnce(Events, Arc<Switch>) -> Result<Summary, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (events, transfer) = Self::new();
        let switch = Arc::clone(&transfer.switch);
        let work = move || events.tell(TransferEvent::Done(work(events.clone(), switch)));
        thread::Builder::new().name("downpour-session".into()).spawn(work).map_err(Error::System)?;
        Ok(transfer)
    }

    /// Returns what passes the user's decisions on, for other threads.
    pub(crate) fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.switch)
    }

    /// Returns the ticket for the other side, if this side listens.
    #[must_use]
    pub const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// Returns the next event; `None` when the connections are closed and nothing is left to do.
    pub async fn next(&mut self) -> Option<TransferEvent> {
        self.events.recv().await
    }

    /// Accepts the offer.
    pub fn accept(&self) {
        self.switch.accept();
    }

    /// Declines the offer; the sender is informed.
    pub fn refuse(&self) {
        self.switch.refuse();
    }

    /// Caps the rate at which the files are sent, from now on and with any congestion controller; `None` removes the
    /// cap. A receiver requests it from the sender.
    pub fn set_limit(&self, limit: Option<Rate>) {
        self.switch.limit(limit);
    }

    /// Ends everything and informs the peer. A receiver keeps what it has verified, so that the same transfer can
    /// resume later.
    pub fn stop(&self, why: Stop) {
        self.switch.stop(why);
    }

    /// Kills at once the ssh that was started for the transfer, if any: for a process that exits before the transfer
    /// has ended. The peer is not informed.
    pub fn abandon(&self) {
        self.switch.abandon();
    }

    /// Returns the next event, for use on a thread of its own.
    pub(crate) fn next_blocking(&mut self) -> Option<TransferEvent> {
        self.events.blocking_recv()
    }

    /// Waits for the end, accepting any offer. After a failure it waits until the peer has had several chances to learn
    /// of it; a listener then waits for the next peer, as long as its ticket is valid.
    ///
    /// # Errors
    /// The reason why the transfer (with [`ListenOptions::keep`], the last one) failed.
    pub async fn finish(mut self) -> Result<Summary, Error> {
        let mut last = Err(Error::Internal("a transfer without an end"));
        while let Some(event) = self.next().await {
            match event {
                TransferEvent::Offer(_) => self.accept(),
                TransferEvent::Done(Ok(summary)) if !self.keep => return Ok(summary),
                TransferEvent::Done(result) => last = result,
                _ => {}
            }
        }
        last
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop(Stop::Cancelled);
    }
}
