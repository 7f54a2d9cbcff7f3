//! Transfers: paths on one side, a folder on the other.
//!
//! [`send`] and [`receive`] start threads and return at once; a [`Transfer`] tells what happens and takes the user's decisions. Its
//! futures run on any executor.

mod addresses;
mod checksums;
mod config;
mod connect;
mod figures;
#[cfg(test)]
mod hostile;
mod listen;
mod mailbox;
mod receiving;
mod scanning;
mod sending;
mod session;
mod step;
mod switch;
mod target;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use transport::{Profile, Rate};

use crate::error::{Error, ErrorKind};
use crate::files::{Failed, NoticeKind, ReceiveSpec, Root, ScanOptions, Scanner};
use crate::ticket::Ticket;
pub(crate) use addresses::reachable;
pub(crate) use checksums::List;
pub(crate) use config::{Task, TransferConfig};
pub(crate) use connect::{PeerLocator, Route, follow};
pub use figures::{Bytes, Progress, Summary};
use listen::ListenCarrier;
use net::{Bind, Endpoint};
pub use receiving::Offer;
pub use switch::Stop;
pub(crate) use switch::Switch;

/// Events that wait for the program at most. A program that does not read them stops its transfer, but never its network.
const MAX_EVENTS: usize = 256;

/// How the two sides find each other.
#[derive(Clone, Debug)]
pub enum Peer {
    /// By a ticket that the other side made.
    Connect(Ticket),
    /// We make the ticket and wait.
    Listen(ListenOptions),
}

/// How a side that can be reached waits.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Where; by default any port of every address of this host.
    pub bind: Bind,
    /// How long the ticket is good. Who comes in time is served to the end.
    pub valid_for: Duration,
    /// Whether it is good for more than one complete transfer. One that fails uses up neither.
    pub keep: bool,
    /// Whether it is good for one attempt only, whatever becomes of that.
    pub once: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { bind: Bind::default(), valid_for: Duration::from_secs(3600), keep: false, once: false }
    }
}

/// How files are sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// How the engine behaves.
    pub profile: Profile,
    /// What of the sources takes part.
    pub scan: ScanOptions,
    /// What both sides have in common.
    pub common: CommonOptions,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), scan: ScanOptions::default(), common: CommonOptions::default() }
    }
}

/// How files are received.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// How the engine behaves.
    pub profile: Profile,
    /// Whether nothing is written before [`Transfer::accept`] has been called for what [`TransferEvent::Offer`] shows.
    pub confirm: bool,
    /// What both sides have in common.
    pub common: CommonOptions,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), confirm: false, common: CommonOptions::default() }
    }
}

/// What both sides of a transfer may be told.
#[derive(Clone, Debug)]
pub struct CommonOptions {
    /// How long a peer that we connect to may be silent at first.
    pub handshake_timeout: Duration,
    /// How long a peer may be silent later on.
    pub dead_after: Duration,
    /// For how long a connection that broke is made again, counted from the last time that something arrived. A listener does not look
    /// for its peer: it waits.
    pub retry_for: Option<Duration>,
    /// A file that gets the BLAKE3 of every file, in b3sum's format. A receiver lists the paths below its target, a sender those that it
    /// sends. Only files that the sender's scan has hashed are in it: see [`ScanOptions::hash`].
    pub checksums: Option<PathBuf>,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
}

impl Default for CommonOptions {
    fn default() -> Self {
        Self {
            handshake_timeout: HANDSHAKE_TIMEOUT,
            dead_after: DEAD_AFTER,
            retry_for: None,
            checksums: None,
            qlog: None,
        }
    }
}

impl CommonOptions {
    fn config(self, task: Task, profile: Profile) -> TransferConfig {
        TransferConfig {
            task,
            profile,
            handshake_timeout: self.handshake_timeout,
            dead_after: self.dead_after,
            trace: self.qlog,
            checksums: self.checksums.map(|path| List { path, rename: None }),
            retry_for: self.retry_for,
            by_ticket: true,
        }
    }
}

/// Nobody who can be reached needs longer, and nobody who cannot is worth a longer wait.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// See docs/design/recovery.md.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// What happens during a transfer. Names and texts are raw: a program escapes them before it shows them.
#[derive(Debug)]
pub enum TransferEvent {
    /// A peer with the right key is there.
    Connected {
        /// Where; `None` over pipes, those of ssh or within this process.
        peer: Option<SocketAddr>,
    },
    /// What the sender wants to send, at the receiver. With [`ReceiveOptions::confirm`] it waits for an answer.
    Offer(Offer),
    /// How far it is. Left out when the program does not keep up.
    Progress(Progress),
    /// Files are across, each with its path in the transfer and its length in bytes. At the receiver they have
    /// their final names; at the sender the receiver has every byte of their batch.
    Files(Vec<(Vec<u8>, u64)>),
    /// What becomes of a name at the receiver: in a dry run, what would.
    Notice {
        /// What.
        kind: NoticeKind,
        /// The name.
        path: Vec<u8>,
    },
    /// A name that the sender left out on purpose, such as a socket.
    LeftOut(Failed),
    /// Something that the user may want to know. It may quote what the other side said.
    Note(String),
    /// At a listener without [`ListenOptions::keep`]: an attempt has failed, and the ticket is still good.
    Attempt {
        /// What became of it, in one line.
        message: String,
        /// What kind of failure it was.
        kind: ErrorKind,
    },
    /// The last event; with [`ListenOptions::keep`] the last of each peer.
    Done(Result<Summary, Error>),
}

/// Events on their way to the program.
#[derive(Clone, Debug)]
pub(crate) struct Events(mpsc::Sender<TransferEvent>);

impl Events {
    /// Waits for room; a program that has dropped its [`Transfer`] hears nothing.
    fn tell(&self, event: TransferEvent) {
        let _ = self.0.blocking_send(event);
    }

    /// Leaves the event out where there is no room.
    fn try_tell(&self, event: TransferEvent) {
        let _ = self.0.try_send(event);
    }
}

/// Sends files, folders and links.
///
/// # Errors
/// A path that does not exist, a ticket that is expired or for a sender, an address that cannot be had.
pub fn send(roots: impl IntoIterator<Item: Into<Root>>, peer: Peer, options: SendOptions) -> Result<Transfer, Error> {
    let roots: Vec<Root> = roots.into_iter().map(Into::into).collect();
    // Looks at every path, so that a wrong one is told at once.
    Scanner::new(roots.clone(), options.scan.clone())?;
    let task = Task::Send { roots, scan: options.scan, dry_run: false };
    start(peer, options.common.config(task, options.profile))
}

/// Receives what a sender sends, as the [`ReceiveSpec`] says. A path alone is a directory to receive into, where nothing that exists is
/// replaced.
///
/// # Errors
/// A folder that cannot be used, a ticket that is expired or for a receiver, an address that cannot be had.
pub fn receive(spec: impl Into<ReceiveSpec>, peer: Peer, options: ReceiveOptions) -> Result<Transfer, Error> {
    let task = Task::receive(spec.into(), options.confirm);
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
            let carrier = ListenCarrier::Udp(Endpoint::bind(&options.bind, config.dead_after, events.clone())?);
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

/// Starts a transfer with the peer that comes with `key` through a pair of pipes.
pub(crate) fn start_over(
    read: OwnedFd,
    write: OwnedFd,
    key: [u8; 32],
    config: TransferConfig,
) -> Result<Transfer, Error> {
    let (events, transfer) = Transfer::new();
    let carrier = ListenCarrier::Pipe(Endpoint::over_pipes(read, write, config.dead_after, events.clone())?);
    listen::listen(config, carrier, Some(key), &ListenOptions::default(), events, Arc::clone(&transfer.switch))?;
    Ok(transfer)
}

/// A transfer that runs. It needs its events to be read; dropping it cancels it.
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

    /// What the other side needs, where we listen.
    #[must_use]
    pub const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// The next event; `None` when the connections are closed and nothing is left to do.
    pub async fn next(&mut self) -> Option<TransferEvent> {
        self.events.recv().await
    }

    /// Takes what is offered.
    pub fn accept(&self) {
        self.switch.accept();
    }

    /// Does not take what is offered; the sender is told.
    pub fn refuse(&self) {
        self.switch.refuse();
    }

    /// Caps the rate at which the files are sent, from now on and whatever controls it; `None` takes the cap away. A receiver asks the
    /// sender for it.
    pub fn set_limit(&self, limit: Option<Rate>) {
        self.switch.limit(limit);
    }

    /// Ends everything. The peer is told; what a receiver has verified is kept, so that the same transfer goes on from there another time.
    pub fn stop(&self, why: Stop) {
        self.switch.stop(why);
    }

    /// Ends the ssh that was started for it, if any, at once: for a process that ends before this has. The peer is not told.
    pub fn abandon(&self) {
        self.switch.abandon();
    }

    /// The next event, for a thread of its own.
    pub(crate) fn next_blocking(&mut self) -> Option<TransferEvent> {
        self.events.blocking_recv()
    }

    /// Waits for the end, taking what is offered. After a failure that takes until the peer has had several chances to hear of it; a
    /// listener then waits for the next peer, as long as its ticket is good.
    ///
    /// # Errors
    /// Why the transfer (with [`ListenOptions::keep`], the last one) did not succeed.
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
