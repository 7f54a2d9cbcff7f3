//! The receiver of a stream.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::{Bind, ConnectOptions, Connection, Endpoint, NetError, RecvStream};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::target::StreamTarget;
use super::{STREAM, close, frames};
use crate::block_on::Blocking;
use crate::error::{Closing, Error, PeerContext};
use crate::options::EngineOptions;
use crate::protocol::handshake;
use crate::ticket::{Role, Ticket, TicketError};
use crate::transfer::StopReason;

/// Time for the reading thread to end when the stream was stopped.
const TO_END: Duration = Duration::from_millis(500);

/// An offered stream. Nothing of it is read before [`StreamFetch::take`].
#[derive(Debug)]
pub struct StreamFetch {
    endpoint: Endpoint,
    connection: Connection,
    stream: RecvStream,
    name: Vec<u8>,
}

impl StreamFetch {
    /// Connects to the creator of a ticket within `patience`, and reads the name of the stream.
    ///
    /// # Errors
    /// [`Error::Unreachable`], those of the ticket and of the connection, and why it was stopped.
    pub async fn connect(
        ticket: &Ticket,
        options: EngineOptions,
        patience: Duration,
        stop: impl Future<Output = StopReason>,
    ) -> Result<Self, Error> {
        if ticket.listener != Role::Streams {
            return Err(TicketError::OtherUse(ticket.listener).into());
        }
        ticket.check_expiry(runtime::system_time())?;
        let endpoint = Endpoint::builder().options(options.endpoint).bind(Bind::default())?;
        let asked = ConnectOptions::new(ticket.addresses.clone())
            .profile(options.profile)
            .application(handshake::STREAM)
            .handshake_timeout(patience);
        let connection = endpoint.connect((ticket.key, asked)).start();
        let ended = |error| {
            Error::ended(error, &PeerContext { role: Role::Sender, tried: Some((&ticket.addresses, patience)) })
        };
        let begin = async {
            connection.established().await.map_err(ended)?;
            let stream = connection.accept_uni().await.map_err(ended)?;
            if stream.tag() != STREAM {
                return Err(Error::ProtocolViolation("unexpected stream tag".to_owned()));
            }
            done(read(stream, frames::read_name).await)
        };
        let begun = tokio::select! {
            begun = begin => begun,
            why = stop => Err(why.into()),
        };
        match begun {
            Ok((name, stream)) => Ok(Self { endpoint, connection, stream, name }),
            Err(error) => Err(instead(&connection, error).await),
        }
    }

    /// Returns the name that the peer gives it: one component of a path, and otherwise any bytes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Refuses the stream, and informs the peer, if the target cannot store it under its name.
    ///
    /// # Errors
    /// Those of [`StreamTarget::check`].
    pub async fn check(self, target: &StreamTarget) -> Result<Self, Error> {
        match target.check(&self.name).map_err(Error::from) {
            Ok(()) => Ok(self),
            Err(error) => {
                close(&self.connection, &error).await;
                Err(error)
            }
        }
    }

    /// Refuses the stream.
    pub async fn decline(self) {
        close(&self.connection, &Error::Declined).await;
        drop(self.endpoint);
    }

    /// Receives the stream, of at most `most` bytes; returns their number once the target has them all. Until then
    /// `arrived` counts them.
    ///
    /// # Errors
    /// [`Error::Stream`], the end of the connection, or why it was stopped. No file is then published at the target.
    pub async fn take(
        self,
        target: StreamTarget,
        most: Option<u64>,
        arrived: Arc<AtomicU64>,
        stop: impl Future<Output = StopReason>,
    ) -> Result<u64, Error> {
        let Self { endpoint, connection, stream, name } = self;
        let work = move |stream: &mut Blocking<RecvStream>| {
            let mut target = target.open(&name)?;
            let bytes = frames::receive(stream, most, |chunk| {
                target.write(chunk)?;
                arrived.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                Ok(())
            })?;
            target.finish()?;
            Ok(bytes)
        };
        let mut reading = read(stream, work);
        let taken = tokio::select! {
            taken = &mut reading => done(taken),
            why = stop => {
                let why = Error::from(why);
                close(&connection, &why).await;
                // The stream ends with it, and the staged file is removed, unless that takes too long.
                drop(timeout(TO_END, reading).await);
                return Err(why);
            }
        };
        match taken {
            Ok((bytes, _stream)) => {
                Closing::done().close(&connection);
                connection.closed().await;
                drop(endpoint);
                Ok(bytes)
            }
            Err(error) => Err(instead(&connection, error).await),
        }
    }
}

/// Reads from a stream on a thread that may block.
fn read<T: Send + 'static>(
    stream: RecvStream,
    work: impl FnOnce(&mut Blocking<RecvStream>) -> Result<T, Error> + Send + 'static,
) -> JoinHandle<Result<(T, RecvStream), Error>> {
    spawn_blocking(move || {
        let mut stream = Blocking(stream);
        work(&mut stream).map(|read| (read, stream.0))
    })
}

fn done<T>(ended: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    ended.map_err(|_| Error::Internal("the thread of the stream panicked"))?
}

/// Closes the connection because of `error`; returns the peer's reason if the peer closed it before.
async fn instead(connection: &Connection, error: Error) -> Error {
    match (close(connection, &error).await, error) {
        (end @ NetError::ClosedByPeer { .. }, Error::Stream(_)) => {
            Error::ended(end, &PeerContext { role: Role::Sender, tried: None })
        }
        (_, error) => error,
    }
}
