//! Transfers: paths on one side, a folder on the other.
//!
//! [`send`] and [`receive`] start threads and return at once; a [`Transfer`] tells what happens and takes the user's decisions. Its
//! futures run on any executor.

mod addresses;
mod figures;
mod host;
#[cfg(test)]
mod hostile;
mod receiving;
mod sending;
mod session;
mod step;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use transport::Profile;

use crate::error::Error;
use crate::files::{ReceiveSettings, Receiving as Files, Scanner};
use crate::ticket::{Role, Ticket};
pub use figures::{Bytes, Progress, Summary};
use host::{Plan, Switch, Task};
pub use receiving::Offer;

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
    pub address: Option<SocketAddr>,
    /// How long the ticket is good. Who comes in time is served to the end.
    pub valid_for: Duration,
    /// Whether it is good for more than one complete transfer. One that fails uses up neither.
    pub keep: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { address: None, valid_for: Duration::from_secs(3600), keep: false }
    }
}

/// How paths are sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// How the engine behaves.
    pub profile: Profile,
    /// How long a peer that we connect to may be silent at first.
    pub handshake_timeout: Duration,
    /// How long a peer may be silent later on.
    pub dead_after: Duration,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), handshake_timeout: HANDSHAKE_TIMEOUT, dead_after: DEAD_AFTER, qlog: None }
    }
}

/// How files are received.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// How the engine behaves.
    pub profile: Profile,
    /// Whether nothing is written before [`Transfer::accept`] has been called for what [`TransferEvent::Offer`] shows.
    pub confirm: bool,
    /// How long a peer that we connect to may be silent at first.
    pub handshake_timeout: Duration,
    /// How long a peer may be silent later on.
    pub dead_after: Duration,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self {
            profile: Profile::auto(),
            confirm: false,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            dead_after: DEAD_AFTER,
            qlog: None,
        }
    }
}

/// Nobody who can be reached needs longer, and nobody who cannot is worth a longer wait.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Design section 10.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// What happens during a transfer.
#[derive(Debug)]
pub enum TransferEvent {
    /// A peer with the right key is there.
    Connected {
        /// Where.
        peer: SocketAddr,
    },
    /// What the sender wants to send, at the receiver. With [`ReceiveOptions::confirm`] it waits for an answer.
    Offer(Offer),
    /// How far it is. Left out when the program does not keep up.
    Progress(Progress),
    /// A file is across. At the receiver it is verified: every byte is written and matches its digest; it takes its final name
    /// with all others at the end. At the sender the receiver has every byte of its batch.
    File {
        /// Its path in the transfer, escaped for a terminal.
        path: String,
        /// Its length in bytes.
        bytes: u64,
    },
    /// Something that the user may want to know: a name left out, or at a listener without [`ListenOptions::keep`] a transfer that failed
    /// and leaves the ticket good.
    Note(String),
    /// The last event; with [`ListenOptions::keep`] the last of each peer.
    Done(Result<Summary, Error>),
}

/// Events on their way to the program.
#[derive(Clone, Debug)]
struct Events(mpsc::Sender<TransferEvent>);

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
pub fn send(paths: Vec<PathBuf>, peer: Peer, options: SendOptions) -> Result<Transfer, Error> {
    // Looks at every path, so that a wrong one is told at once.
    Scanner::new(paths.clone())?;
    start(
        peer,
        Plan {
            role: Role::Sends,
            task: Task::Send { paths },
            profile: options.profile,
            handshake_timeout: options.handshake_timeout,
            dead_after: options.dead_after,
            trace: options.qlog,
        },
    )
}

/// Receives into the folder `into`, which is made if only it is missing.
///
/// # Errors
/// A folder that cannot be used, a ticket that is expired or for a receiver, an address that cannot be had.
pub fn receive(into: PathBuf, peer: Peer, options: ReceiveOptions) -> Result<Transfer, Error> {
    Files::new(ReceiveSettings::new(&into))?;
    start(
        peer,
        Plan {
            role: Role::Receives,
            task: Task::Receive { into, ask: options.confirm },
            profile: options.profile,
            handshake_timeout: options.handshake_timeout,
            dead_after: options.dead_after,
            trace: options.qlog,
        },
    )
}

fn start(peer: Peer, plan: Plan) -> Result<Transfer, Error> {
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let keep = matches!(&peer, Peer::Listen(options) if options.keep);
    let switch = Arc::new(Switch::default());
    let ticket = match peer {
        Peer::Connect(ticket) => {
            host::connect(plan, &ticket, Events(sender), Arc::clone(&switch))?;
            None
        }
        Peer::Listen(options) => Some(host::listen(plan, &options, Events(sender), Arc::clone(&switch))?),
    };
    Ok(Transfer { ticket, keep, events, switch })
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

    /// Ends everything. The peer is told, and what a receiver has written is removed.
    pub fn cancel(&self) {
        self.switch.cancel();
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
        self.cancel();
    }
}
