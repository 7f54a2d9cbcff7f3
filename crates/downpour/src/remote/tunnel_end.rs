//! The remote side of a tunnel, which ssh has started.

use std::sync::Arc;
use std::time::Duration;

use net::{Endpoint, NetError};
use tokio::task::JoinSet;
use transport::AcceptOptions;

use super::CarrierChoice;
use super::asked::{VALID_FOR, ticket};
use super::request::Request;
use super::signals::Signals;
use super::standard_io::{FallBackToSsh, answer, listen_to_stdin, pipes_to_ssh, refuse};
use crate::error::{Closing, Error};
use crate::protocol::handshake::TUNNEL;
use crate::ticket::{Role, Ticket};
use crate::tunnel::{ForwardAddress, Listener, Notes, Permitted, Session, raise_descriptor_limit};

/// How long after the end of the login the last packet of the handshake may arrive.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// Serves a tunnel that also listens at `places`, until the peer closes it or is lost, or a signal.
///
/// # Errors
/// A failed start, which was reported to the peer; the end of the connection, unless it was closed.
pub(super) async fn run(request: &Request, places: &[ForwardAddress]) -> Result<(), Error> {
    raise_descriptor_limit();
    let (listeners, endpoint, ticket) = prepare(request, places).inspect_err(refuse)?;
    let mut signals = Signals::install().map_err(Error::OutOfResources).inspect_err(refuse)?;
    let mut words = listen_to_stdin().inspect_err(refuse)?;
    answer(&ticket.to_text()?);
    let options = || AcceptOptions::default().profile(request.engine().profile).application(TUNNEL);
    let mut incoming = endpoint.as_ref().map(|endpoint| endpoint.incoming(ticket.key, ticket.expires, options()));
    let over_udp = async {
        match &mut incoming {
            Some(incoming) => incoming.accept().await.ok_or(Error::TicketExpired(VALID_FOR)),
            None => std::future::pending().await,
        }
    };
    let mut over_udp = std::pin::pin!(over_udp);
    // The endpoint has to live as long as the connection.
    let (connection, _endpoint) = tokio::select! {
        connection = &mut over_udp => (connection?, endpoint.clone()),
        word = words.recv() => match word {
            Some(FallBackToSsh) => {
                let endpoint = over_ssh(request)?;
                let mut incoming = endpoint.incoming(ticket.key, runtime::system_time() + VALID_FOR, options());
                (incoming.accept().await.ok_or(Error::ConnectionLost)?, Some(endpoint))
            }
            // A tunnel in the background ends the login as soon as it has connected.
            None => match tokio::time::timeout(ON_ITS_WAY, over_udp).await {
                Ok(connection) => (connection?, endpoint.clone()),
                Err(_) => return Err(Error::Cancelled),
            },
        },
        () = signals.next() => return Err(Error::Terminated),
    };
    let session = Session::new(connection.clone(), Permitted::Places, !listeners.is_empty(), Notes(Arc::new(drop)));
    let mut tasks = JoinSet::new();
    for (number, listener) in (0..).zip(listeners) {
        tasks.spawn(Arc::clone(&session).listen_for(listener, number));
    }
    let mut is_asked = false;
    loop {
        tokio::select! {
            error = session.run() => return ended(error),
            // ssh may have exited alone: then the peer answers, and the tunnel continues.
            word = words.recv(), if !is_asked => if word.is_none() {
                is_asked = true;
                connection.ping();
            },
            () = signals.next() => {
                Closing::of(&Error::Terminated, false).close(&connection);
                drop(connection.closed().await);
                return Err(Error::Terminated);
            }
        }
    }
}

fn prepare(request: &Request, places: &[ForwardAddress]) -> Result<(Vec<Listener>, Option<Endpoint>, Ticket), Error> {
    let listen = |place: &ForwardAddress| {
        Listener::bind(place).map_err(|source| Error::Listen { address: place.to_string(), source })
    };
    let listeners = places.iter().map(listen).collect::<Result<_, _>>()?;
    let is_udp = request.via != CarrierChoice::Ssh;
    let endpoint =
        is_udp.then(|| Endpoint::builder().options(request.engine().endpoint).bind(request.bind())).transpose()?;
    let ticket = ticket(endpoint.as_ref(), Role::Receiver)?;
    Ok((listeners, endpoint, ticket))
}

fn over_ssh(request: &Request) -> Result<Endpoint, Error> {
    let (read, write) = pipes_to_ssh()?;
    Ok(Endpoint::builder().options(request.engine().endpoint).over_pipes(read, write)?)
}

fn ended(error: NetError) -> Result<(), Error> {
    match error {
        NetError::ClosedByPeer { .. } => Ok(()),
        NetError::ClosedLocally | NetError::Exhausted { .. } => Err(Error::ConnectionLimit),
        other => Err(other.into()),
    }
}
