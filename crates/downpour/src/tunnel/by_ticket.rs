//! Tunnels between two hosts without a login: one listens and creates a ticket, and its holder connects.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::{AcceptOptions, Bind, ConnectOptions, Endpoint, Incoming, NetError};
use tokio::task::JoinSet;

use super::events::{ConnectionEvent, Note, Notes, TunnelEvent};
use super::grammar::Permit;
use super::listener::raise_descriptor_limit;
use super::near_end::{Forwarding, LocalEnd};
use super::session::{Permitted, Session};
use crate::error::{Closing, Error, ErrorKind, PeerContext};
use crate::options::EngineOptions;
use crate::protocol::handshake::TUNNEL;
use crate::ticket::{Role, Ticket, TicketError, fresh_key};
use crate::transfer::{StopReason, reachable};

/// Maximum number of connected peers.
const MOST_GUESTS: usize = 64;

/// Opens a tunnel to the creator of a ticket, without [`Forwarding::remote`], and keeps it open until `stop`, until it
/// was idle for [`Forwarding::persist`], or until its connection ends. Connecting takes at most `patience`.
///
/// # Errors
/// [`Error::Listen`] if a local address is in use, [`Error::Unreachable`], those of the ticket and of the connection,
/// and why it was stopped.
pub async fn connect(
    ticket: Ticket,
    forwarding: Forwarding,
    options: EngineOptions,
    patience: Duration,
    on_event: impl Fn(TunnelEvent) + Send + Sync + 'static,
    stop: impl Future<Output = StopReason>,
) -> Result<(), Error> {
    if ticket.listener != Role::Tunnel {
        return Err(TicketError::OtherUse(ticket.listener).into());
    }
    ticket.check_expiry(runtime::system_time())?;
    // The peer has no request to listen.
    let near = LocalEnd::listen(Forwarding { remote: Vec::new(), ..forwarding }, on_event)?;
    let endpoint = Endpoint::builder().options(options.endpoint).bind(Bind::default())?;
    let asked = ConnectOptions::new(ticket.addresses.clone())
        .profile(options.profile)
        .application(TUNNEL)
        .handshake_timeout(patience);
    let connection = endpoint.connect((ticket.key, asked)).start();
    let ended = |error| match error {
        NetError::ClosedLocally | NetError::Exhausted { .. } => Error::ConnectionLimit,
        error => Error::ended(error, &PeerContext { role: Role::Tunnel, tried: Some((&ticket.addresses, patience)) }),
    };
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        established = connection.established() => established.map_err(ended)?,
        why = &mut stop => return Err(why.into()),
    }
    near.serve(&connection, std::future::pending(), stop, ended).await
}

/// An event of the creator of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// A holder of the ticket has connected: the first, the second and so on.
    Joined(u64),
    /// An event of a program's connection, with this number, through the tunnel of this peer.
    Connection(u64, u64, ConnectionEvent),
    /// The tunnel of this peer has ended, for this reason.
    Left(u64, String),
    /// The ticket has expired; open tunnels stay open.
    Expired,
}

/// A listener for tunnels.
#[derive(Debug)]
pub struct TicketListener {
    endpoint: Endpoint,
    incoming: Incoming,
    permitted: Arc<[Permit]>,
    ticket: Ticket,
    valid_for: Duration,
}

impl TicketListener {
    /// Listens for the holders of the ticket, which is valid for `valid_for`. They may connect to the permitted
    /// addresses.
    ///
    /// # Errors
    /// [`Error::Net`] if the address cannot be bound; [`Error::OutOfResources`], [`Error::Ticket`].
    pub fn listen(
        bind: Option<SocketAddr>,
        valid_for: Duration,
        permitted: Vec<Permit>,
        options: EngineOptions,
    ) -> Result<Self, Error> {
        raise_descriptor_limit();
        let endpoint = Endpoint::builder().options(options.endpoint).bind(bind)?;
        let addresses = reachable(endpoint.local_address()).map_err(Error::OutOfResources)?;
        let expires = runtime::system_time() + valid_for;
        let ticket = Ticket { key: fresh_key()?, expires, addresses, listener: Role::Tunnel };
        let accepting = AcceptOptions::default().profile(options.profile).application(TUNNEL);
        let incoming = endpoint.incoming(ticket.key, expires, accepting);
        Ok(Self { endpoint, incoming, permitted: permitted.into(), ticket, valid_for })
    }

    /// Returns the ticket.
    #[must_use]
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Serves all peers until `stop`, or until the ticket has expired and the last of them has closed.
    ///
    /// # Errors
    /// Why it was stopped; [`Error::TicketExpired`].
    pub async fn serve(
        self,
        on_event: impl Fn(PeerEvent) + Send + Sync + 'static,
        stop: impl Future<Output = StopReason>,
    ) -> Result<(), Error> {
        let Self { endpoint, incoming, permitted, valid_for, .. } = self;
        let (on_event, mut joined) = (Arc::new(on_event), 0);
        let (mut sessions, mut guests) = (JoinSet::new(), HashMap::new());
        let mut incoming = Some(incoming);
        let accept = async |incoming: &mut Option<Incoming>| match incoming {
            Some(incoming) => incoming.accept().await,
            None => std::future::pending().await,
        };
        let mut stop = std::pin::pin!(stop);
        let why = loop {
            tokio::select! {
                connection = accept(&mut incoming) => match connection {
                    Some(connection) if guests.len() >= MOST_GUESTS => {
                        Closing::as_text(ErrorKind::Busy, "tunnel limit reached").close(&connection);
                    }
                    Some(connection) => {
                        joined += 1;
                        let number = joined;
                        on_event(PeerEvent::Joined(number));
                        let notes = notes(number, Arc::clone(&on_event));
                        let permitted = Permitted::Some(Arc::clone(&permitted));
                        let session = Session::new(connection.clone(), permitted, false, notes);
                        let task = sessions.spawn(async move { session.run().await });
                        guests.insert(task.id(), (number, connection));
                    }
                    None => {
                        // Peers with the key are rejected from now on.
                        incoming = None;
                        on_event(PeerEvent::Expired);
                    }
                },
                Some(left) = sessions.join_next_with_id() => {
                    let (task, why) = match left {
                        Ok((task, error)) => (task, words(error)),
                        Err(error) => (error.id(), Error::Internal("a tunnel panicked").to_string()),
                    };
                    if let Some((number, connection)) = guests.remove(&task) {
                        Closing::as_text(ErrorKind::Other, why.clone()).close(&connection);
                        on_event(PeerEvent::Left(number, why));
                    }
                },
                why = &mut stop => break Error::from(why),
            }
            if incoming.is_none() && sessions.is_empty() {
                return match joined {
                    0 => Err(Error::TicketExpired(valid_for)),
                    _ => Ok(()),
                };
            }
        };
        for (_, connection) in guests.values() {
            Closing::of(&why, false).close(connection);
        }
        for (_, connection) in guests.into_values() {
            drop(connection.closed().await);
        }
        drop(endpoint);
        Err(why)
    }
}

fn notes(number: u64, on_event: Arc<impl Fn(PeerEvent) + Send + Sync + 'static>) -> Notes {
    Notes(Arc::new(move |note| {
        if let Note::Connection(connection, event) = note {
            on_event(PeerEvent::Connection(number, connection, event));
        }
    }))
}

/// Returns the reason for the end of a tunnel.
fn words(error: NetError) -> String {
    match error {
        NetError::ClosedByPeer { reason, .. } => reason,
        NetError::ClosedLocally | NetError::Exhausted { .. } => Error::ConnectionLimit.to_string(),
        error => Error::from(error).to_string(),
    }
}
