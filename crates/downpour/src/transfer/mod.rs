//! Transfers from paths of one host to a directory of another.
//!
//! [`send`] and [`receive`] start threads and return at once; a [`Transfer`] reports events and takes the user's
//! decisions. Its futures run on any executor.

mod addresses;
mod announcements;
mod bottleneck;
mod checksums;
mod config;
mod connect;
mod connection_figures;
mod control;
mod events;
#[cfg(test)]
mod hostile;
mod input;
mod listen;
mod listening;
mod lister;
mod local_copy;
mod mailbox;
mod memory_ticks;
mod options;
mod pace;
mod peer_progress;
mod progress;
mod receiving;
mod removing;
mod resend;
mod scanning;
mod sending;
mod session;
mod stop;
mod summary;
mod target;
mod totals;
mod trace;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::mpsc;
use transport::Rate;

use crate::error::Error;
use crate::files::{ReceiveRequest, Scanner};
use crate::ticket::Ticket;
pub(crate) use addresses::reachable;
pub use bottleneck::Bottleneck;
pub(crate) use config::{Task, TransferConfig};
pub(crate) use connect::{LONGEST_PAUSE, PeerLocator, Route, follow};
pub use connection_figures::ConnectionFigures;
pub(crate) use control::TransferControl;
pub(crate) use events::Events;
use events::MAX_EVENTS;
pub use events::{Offer, TransferEvent};
use listen::ListenCarrier;
pub use listening::ListenOptions;
pub(crate) use local_copy::start_within;
pub use memory_ticks::Side;
use net::Endpoint;
pub use options::{SendSpec, TransferOptions};
pub use progress::Progress;
pub use stop::StopReason;
pub use summary::{ByteCounts, DisplayBytes, Failures, NameCounts, Summary};

/// How the two peers find each other.
#[derive(Clone, Debug)]
pub enum Rendezvous {
    /// Connect, with a ticket created by the peer.
    Connect(Ticket),
    /// Create a ticket and listen.
    Listen(ListenOptions),
}

impl From<Ticket> for Rendezvous {
    fn from(ticket: Ticket) -> Self {
        Self::Connect(ticket)
    }
}

impl From<ListenOptions> for Rendezvous {
    fn from(options: ListenOptions) -> Self {
        Self::Listen(options)
    }
}

/// Sends files, directories and links. Bare paths are sent as they are: see
/// [`SourceOptions`](crate::files::SourceOptions).
///
/// # Errors
/// A path that does not exist, a ticket that has expired or is for a sender, an address that cannot be bound.
pub fn send(
    spec: impl Into<SendSpec>,
    peer: impl Into<Rendezvous>,
    options: TransferOptions,
) -> Result<Transfer, Error> {
    let mut spec = spec.into();
    spec.scan.outputs = options.outputs();
    // Checks every path, so that a wrong one is reported at once.
    Scanner::new(spec.roots.clone(), spec.scan.clone())?;
    start(peer.into(), TransferConfig::by_ticket(Task::Send { spec, dry_run: false }, options))
}

/// Receives from a sender according to the [`ReceiveRequest`]. A bare path is a directory to receive into, in which
/// existing files are kept.
///
/// # Errors
/// An unusable directory, a ticket that has expired or is for a receiver, an address that cannot be bound.
pub fn receive(
    spec: impl Into<ReceiveRequest>,
    peer: impl Into<Rendezvous>,
    options: TransferOptions,
) -> Result<Transfer, Error> {
    let spec = ReceiveRequest { outputs: options.outputs(), ..spec.into() };
    start(peer.into(), TransferConfig::by_ticket(Task::receive(spec, options.confirm), options))
}

/// Starts a transfer with `peer`.
pub(crate) fn start(peer: Rendezvous, config: TransferConfig) -> Result<Transfer, Error> {
    config.check()?;
    let (events, mut transfer) = Transfer::new();
    let switch = Arc::clone(&transfer.switch);
    match peer {
        Rendezvous::Connect(ticket) => connect::connect(config, ticket, events, switch)?,
        Rendezvous::Listen(options) => {
            let carrier = ListenCarrier::Udp(
                Endpoint::builder()
                    .options(config.options.engine.endpoint)
                    .until_end(events.clone())
                    .bind(&options.bind)?,
            );
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
    let carrier = ListenCarrier::Pipe(
        Endpoint::builder()
            .options(config.options.engine.endpoint)
            .until_end(events.clone())
            .over_pipes(read, write)?,
    );
    listen::listen(config, carrier, Some(key), &ListenOptions::default(), events, Arc::clone(&transfer.switch))?;
    Ok(transfer)
}

/// A running transfer. Its events must be read; dropping it cancels it.
#[derive(Debug)]
pub struct Transfer {
    ticket: Option<Ticket>,
    keep: bool,
    events: mpsc::Receiver<TransferEvent>,
    switch: Arc<TransferControl>,
}

impl Transfer {
    fn new() -> (Events, Self) {
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        (Events(sender), Self { ticket: None, keep: false, events, switch: Arc::default() })
    }

    /// Starts a transfer without a session of its own, which `work` runs.
    pub(crate) fn run_by(
        work: impl FnOnce(Events, Arc<TransferControl>) -> Result<Summary, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (events, transfer) = Self::new();
        let switch = Arc::clone(&transfer.switch);
        let work = move || events.emit(TransferEvent::Done(work(events.clone(), switch)));
        runtime::spawn("downpour-session", work).map_err(Error::OutOfResources)?;
        Ok(transfer)
    }

    /// Returns the handle that relays the user's decisions, for other threads.
    pub(crate) fn switch(&self) -> Arc<TransferControl> {
        Arc::clone(&self.switch)
    }

    /// Returns the ticket for the peer, if this side listens.
    #[must_use]
    pub const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// Returns the next event; `None` when the connections are closed and everything is done.
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

    /// Ends everything and informs the peer. A receiver keeps its verified data, so that the same transfer can resume
    /// later.
    pub fn stop(&self, why: StopReason) {
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
        self.stop(StopReason::Cancelled);
    }
}
