//! The sender of a stream.

use std::future::Future;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use net::{AcceptOptions, Connection, Endpoint, Incoming, NetError, SendStream};
use tokio::sync::oneshot;

use super::error::StreamError;
use super::stdin::StreamSource;
use super::{STREAM, close, frames};
use crate::block_on::Blocking;
use crate::error::{Error, PeerContext, is_done};
use crate::options::EngineOptions;
use crate::protocol::handshake;
use crate::ticket::{Role, Ticket, fresh_key};
use crate::transfer::{StopReason, TransferControl, reachable};

/// A sender with a stream, for the first peer that connects with its ticket.
#[derive(Debug)]
pub struct StreamOffer {
    endpoint: Endpoint,
    incoming: Incoming,
    ticket: Ticket,
    valid_for: Duration,
    name: Vec<u8>,
}

impl StreamOffer {
    /// Listens for the holder of the ticket, which is valid for `valid_for`. The receiver gets the name, which must be
    /// [that of a file](super::is_name).
    ///
    /// # Errors
    /// [`Error::Net`] if the address cannot be bound; [`Error::OutOfResources`], [`Error::Ticket`].
    pub fn listen(
        name: Vec<u8>,
        bind: Option<SocketAddr>,
        valid_for: Duration,
        options: EngineOptions,
    ) -> Result<Self, Error> {
        let endpoint = Endpoint::builder().options(options.endpoint).bind(bind)?;
        let addresses = reachable(endpoint.local_address()).map_err(Error::OutOfResources)?;
        let expires = runtime::system_time() + valid_for;
        let ticket = Ticket { key: fresh_key()?, expires, addresses, listener: Role::Streams };
        let accepting = AcceptOptions::default().profile(options.profile).application(handshake::STREAM);
        let incoming = endpoint.incoming(ticket.key, expires, accepting);
        Ok(Self { endpoint, incoming, ticket, valid_for, name })
    }

    /// Returns the ticket.
    #[must_use]
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Sends the data to the first peer, until the receiver has it completely; returns the number of its bytes. An end
    /// of standard input by a signal to this process group is an error. `taken` counts the bytes that were read.
    ///
    /// # Errors
    /// [`Error::TicketExpired`], [`Error::Stream`], the end of the connection, or why it was stopped.
    pub async fn serve(
        self,
        source: StreamSource,
        taken: Arc<AtomicU64>,
        stop: impl Future<Output = StopReason>,
    ) -> Result<u64, Error> {
        let Self { endpoint, mut incoming, valid_for, name, .. } = self;
        let mut stop = pin!(stop);
        let connection = tokio::select! {
            connection = incoming.accept() => connection.ok_or(Error::TicketExpired(valid_for))?,
            why = &mut stop => return Err(why.into()),
        };
        // Data read from a pipe can be sent to one peer only.
        drop(incoming);
        let switch = Arc::<TransferControl>::default();
        let input = source.open(Arc::clone(&switch), taken);
        let result = tokio::select! {
            result = deliver(&connection, name, input) => result,
            why = stop => {
                switch.stop(why);
                Err(why.into())
            }
        };
        if let Err(error) = &result {
            close(&connection, error).await;
        }
        drop(endpoint);
        result
    }
}

/// Sends a stream, and waits until the receiver confirms it.
async fn deliver(connection: &Connection, name: Vec<u8>, input: Box<dyn Read + Send>) -> Result<u64, Error> {
    let stream = connection.open_uni_with(STREAM).await.map_err(ended)?;
    let (done, mut sent) = oneshot::channel();
    // On a thread of its own: reading cannot be cancelled.
    let work = move || drop(done.send(send(&name, input, stream)));
    runtime::spawn("downpour-stream", work).map_err(Error::OutOfResources)?;
    let sent = tokio::select! {
        sent = &mut sent => sent,
        end = connection.closed() => match is_done(&end) {
            // The receiver has the whole stream, so the thread is about to report that it has sent it.
            true => sent.await,
            false => return Err(ended(end)),
        },
    };
    match sent.map_err(|_| Error::Internal("the thread of the stream panicked"))? {
        Ok((bytes, stream)) => {
            let end = connection.closed().await;
            drop(stream);
            if is_done(&end) { Ok(bytes) } else { Err(ended(end)) }
        }
        // The connection has ended, and has the reason.
        Err(StreamError::BrokenOff(_)) => Err(ended(connection.closed().await)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the finished stream, too: dropping it early would reset it.
fn send(name: &[u8], mut input: impl Read, mut stream: SendStream) -> Result<(u64, SendStream), StreamError> {
    let broken = |_: io::Error| StreamError::BrokenOff(0);
    frames::write_name(name, &mut Blocking(&mut stream)).map_err(broken)?;
    let bytes = frames::send(&mut input, &mut Blocking(&mut stream))?;
    stream.finish();
    Ok((bytes, stream))
}

fn ended(error: NetError) -> Error {
    Error::ended(error, &PeerContext { role: Role::Receiver, tried: None })
}
