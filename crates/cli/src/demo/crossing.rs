//! One transfer through the relay: two endpoints of this process, over real UDP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use downpour::{
    ConnectionStats, Context, EngineOptions, Error, ListenOptions, Profile, Progress, Rendezvous, StopReason, Summary,
    Transfer, TransferEvent, TransferOptions,
};
use linkrelay::{Relay, RelayReport};
use netsim::Duplex;

use crate::escape;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalEvent};
use crate::output::Output;

/// Longer than any demo.
const TICKET_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// File bytes in a full packet.
const SYMBOL: u64 = 1408;
/// Bytes of the headers of the protocol, UDP and IP.
const HEADERS: u64 = 43 + 28;

/// A transfer of the demo.
pub(super) struct Crossing<'a> {
    /// A file or directory.
    pub(super) source: &'a Path,
    /// The directory to receive into.
    pub(super) into: &'a Path,
    /// The network in between.
    pub(super) link: &'a Duplex,
    /// Profile of both sides.
    pub(super) profile: Profile,
}

/// Result of the transfer.
#[derive(Clone, Debug)]
pub(super) struct CrossingResult {
    /// Time from the first datagram to the receiver's last byte.
    pub(super) took: Duration,
    /// Bytes of files at the receiver.
    pub(super) bytes: u64,
    /// The relay's report at that time.
    pub(super) relay: RelayReport,
}

impl Crossing<'_> {
    /// Sends, and shows the progress.
    pub(super) async fn run(
        self,
        output: &mut Output,
        attention: &mut Attention<'_>,
    ) -> Result<CrossingResult, Failure> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // There is no other sender to wait for after a failure.
        let listen = ListenOptions::default().bind(loopback).valid_for(TICKET_LIFETIME).once(true);
        let engine = EngineOptions::default().profile(self.profile);
        let options = TransferOptions::default().engine(engine);
        let mut receiver = downpour::receive(self.into.to_owned(), listen, options.clone())?;
        let mut ticket = receiver.ticket().cloned().ok_or_else(|| internal("listener without a ticket"))?;
        let server = *ticket.addresses.first().ok_or_else(|| internal("ticket without an address"))?;
        let relay = Relay::start(server, self.link.clone()).map_err(|error| Failure::new(Code::Other, error))?;
        ticket.addresses = vec![relay.address()];
        let mut sender = downpour::send(vec![self.source.to_owned()], Rendezvous::Connect(ticket), options)?;
        Pair { sender: &mut sender, receiver: &mut receiver, relay: &relay, bytes: 0, arrived: None, peer_error: None }
            .follow(output, attention)
            .await
    }
}

/// Both transfers and their state.
struct Pair<'a> {
    sender: &'a mut Transfer,
    receiver: &'a mut Transfer,
    relay: &'a Relay,
    bytes: u64,
    /// When the last file had arrived, and the relay's report at that time.
    arrived: Option<(Instant, RelayReport)>,
    /// The receiver's error as the sender reports it.
    peer_error: Option<Error>,
}

impl Pair<'_> {
    async fn follow(mut self, output: &mut Output, attention: &mut Attention<'_>) -> Result<CrossingResult, Failure> {
        let (mut sent, mut received) = (false, false);
        while !(sent && received) {
            tokio::select! {
                event = self.sender.next(), if !sent => sent = self.show(event, output)?,
                event = self.receiver.next(), if !received => received = self.note(event)?,
                signal = attention.next_event() => match signal {
                    SignalEvent::HangUp => output.hang_up(),
                    SignalEvent::Progress => output.print_progress(),
                    SignalEvent::Stop(stop) => {
                        self.stop(attention).await;
                        return Err(Failure::stopped(stop));
                    }
                },
            }
        }
        if let Some(error) = self.peer_error {
            return Err(error.into());
        }
        let (at, relay) = self.arrived.ok_or_else(|| internal("transfer complete without files"))?;
        let took = relay.first.map(|first| at - first).unwrap_or_default();
        Ok(CrossingResult { took, bytes: self.bytes, relay })
    }

    /// Shows an event of the sender, which measures the path, with the receiver's bytes; returns whether the sender is
    /// done.
    fn show(&mut self, event: Option<TransferEvent>, output: &mut Output) -> Result<bool, Failure> {
        match event {
            Some(TransferEvent::Progress(progress)) => {
                output.progress(Progress { bytes_done: progress.bytes_done.max(self.bytes), ..progress });
            }
            Some(TransferEvent::UserNote(note) | TransferEvent::AttemptFailed { message: note, .. }) => {
                output.detail(note)
            }
            Some(TransferEvent::Done(Err(error @ Error::Within { context: Context::Peer { .. }, .. }))) => {
                self.peer_error = Some(error);
                return Ok(true);
            }
            Some(TransferEvent::Done(result)) => return check_complete(&result?).map(|()| true),
            Some(_) => {}
            None => return Err(internal("the sender ended without a result")),
        }
        Ok(false)
    }

    /// Handles an event of the receiver; returns whether it is done.
    fn note(&mut self, event: Option<TransferEvent>) -> Result<bool, Failure> {
        match event {
            Some(TransferEvent::Progress(progress)) => {
                let arrived = payload(&progress.connection, SYMBOL).min(progress.bytes_known);
                self.bytes = self.bytes.max(progress.bytes_done).max(arrived);
            }
            Some(TransferEvent::Files(_)) => self.arrived = Some((Instant::now(), self.relay.report())),
            Some(TransferEvent::Done(result)) => {
                self.bytes = match result {
                    // The partial data is removed with the demo.
                    Err(Error::Within { context: Context::Kept { .. }, source }) => return Err((*source).into()),
                    result => result?.bytes.total,
                };
                self.arrived.get_or_insert_with(|| (Instant::now(), self.relay.report()));
                return Ok(true);
            }
            Some(_) => {}
            None => return Err(internal("the receiver ended without a result")),
        }
        Ok(false)
    }

    /// Stops both transfers. A second signal ends the process.
    async fn stop(&mut self, attention: &mut Attention<'_>) {
        for transfer in [&mut *self.sender, &mut *self.receiver] {
            transfer.stop(StopReason::Cancelled);
            loop {
                tokio::select! {
                    event = transfer.next() => match event {
                        Some(TransferEvent::Done(_)) | None => break,
                        Some(_) => {}
                    },
                    stop = attention.next() => process::exit(i32::from(Code::from(stop) as u8)),
                }
            }
        }
    }
}

/// Returns the file bytes in the received packets of up to `symbol` bytes each, accurate to one or two packets. Written
/// bytes would be too few for a slow transfer stopped before its first complete block.
pub(super) fn payload(connection: &ConnectionStats, symbol: u64) -> u64 {
    let symbols = (connection.packets.bytes_received / (symbol + HEADERS)).saturating_sub(connection.symbols.surplus);
    symbols * symbol
}

/// Refuses a partial transfer: its time cannot be compared.
fn check_complete(summary: &Summary) -> Result<(), Failure> {
    match summary.failures.listed.first() {
        Some(first) => {
            let (path, reason) = (escape::name(&first.path), &first.reason);
            let message =
                format!("{} names were not transferred, the first is {path}: {reason}", summary.failures.count);
            Err(Failure::new(Code::Partial, message))
        }
        None => Ok(()),
    }
}

fn internal(message: &str) -> Failure {
    Failure::new(Code::Other, format!("internal error: {message}"))
}
