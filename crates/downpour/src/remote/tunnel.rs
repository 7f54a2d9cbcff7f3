//! The end of a tunnel on the machine of its user.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use net::{Bind, Connection, Endpoint, NetError};
use tokio::task::{JoinSet, spawn_blocking};
use transport::ConnectOptions;

use super::locator::{UDP_TIMEOUT, from_there};
use super::request::RemoteTask;
use super::ssh::Remote;
use super::{Reach, Via};
use crate::error::{CloseCode, Error, Other};
use crate::protocol::handshake::TUNNEL;
use crate::ticket::Role;
use crate::transfer::{Stop, Switch};
use crate::tunnel::control::{self, ControlFolder};
use crate::tunnel::{
    ConnectionEvent, Forward, Listener, Note, Notes, Permitted, Place, Proxied, Session, raise_descriptor_limit,
    serve_metrics,
};

/// What is forwarded through which machine.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// Connections taken here, which go on from there.
    pub local: Vec<Forward>,
    /// Connections taken there, which go on from here.
    pub remote: Vec<Forward>,
    /// The programs of a SOCKS proxy here are told at once that they are connected, so that their first bytes need not
    /// wait for the other side. What it refuses is reset.
    pub is_eager: bool,
    /// Where Prometheus finds its figures, by HTTP.
    pub metrics: Option<Place>,
    /// Ends the tunnel once no connection has been open for so long.
    pub persist: Option<Duration>,
    /// Ends the login once the tunnel is open over UDP. Otherwise whoever reads what this process prints would wait for the
    /// end of ssh, which prints to the same place, when this process has left it.
    pub is_detached: bool,
    /// Others find it by its host ([`ControlFolder::tunnels_to`]).
    pub is_found: bool,
    /// The machine.
    pub reach: Reach,
}

/// An event of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// A line for the user.
    Note(String),
    /// This one of the local forwards listens; at this port, where the system has chosen it.
    Listening(Forward, Option<u16>),
    /// This one of the remote forwards listens over there.
    ListeningThere(Forward),
    /// The figures are here; at this port, where the system has chosen it.
    Metrics(Place, Option<u16>),
    /// The tunnel is open.
    Open,
    /// Something happens to the connection of this number.
    Connection(u64, ConnectionEvent),
}

/// Opens a tunnel and keeps it open until `stop`, until nobody has used it for [`Tunnel::persist`], or until its connection
/// ends.
///
/// # Errors
/// [`Error::Listen`] if a place of this machine or the other is taken; those of ssh and of the connection; why it was
/// stopped.
pub async fn tunnel(
    tunnel: Tunnel,
    told: impl Fn(TunnelEvent) + Send + Sync + 'static,
    stop: impl Future<Output = Stop>,
) -> Result<(), Error> {
    let told = Arc::new(told);
    raise_descriptor_limit();
    let listeners = tunnel.listen()?;
    let metrics = tunnel.metrics.as_ref().map(listen).transpose()?;
    let mut stop = std::pin::pin!(stop);
    let notes = {
        let told = Arc::clone(&told);
        Notes(Arc::new(move |note| {
            told(match note {
                Note::Line(line) => TunnelEvent::Note(line),
                Note::Connection(number, event) => TunnelEvent::Connection(number, event),
            });
        }))
    };
    let switch = Arc::<Switch>::default();
    let remote = {
        let (tunnel, notes, switch) = (tunnel.clone(), notes.clone(), Arc::clone(&switch));
        spawn_blocking(move || tunnel.log_in(&switch, &notes))
    };
    let mut remote = tokio::select! {
        remote = remote => remote.map_err(|_| Error::Internal("the login panicked"))??,
        why = &mut stop => {
            switch.stop(why);
            return Err(why.into());
        }
    };
    let (connection, endpoint) = tokio::select! {
        connected = tunnel.connect(&mut remote, &notes) => connected?,
        why = &mut stop => return Err(why.into()),
    };
    let destinations = tunnel.remote.iter().map(|forward| forward.to.clone()).collect();
    let session = Session::new(connection.clone(), Permitted::Listeners(destinations), !listeners.is_empty(), notes);
    let mut tasks = JoinSet::new();
    for (listener, forward) in listeners.into_iter().zip(&tunnel.local) {
        told(TunnelEvent::Listening(forward.clone(), listener.port()));
        let proxied = if tunnel.is_eager { Proxied::Eagerly } else { Proxied::Answered };
        tasks.spawn(Arc::clone(&session).listen(listener, forward.to.clone(), proxied));
    }
    for forward in &tunnel.remote {
        told(TunnelEvent::ListeningThere(forward.clone()));
    }
    if let Some((listener, place)) = metrics.zip(tunnel.metrics.clone()) {
        told(TunnelEvent::Metrics(place, listener.port()));
        tasks.spawn(serve_metrics(listener, Arc::clone(&session)));
    }
    // It works without, but cannot be found then.
    let found = || ControlFolder::of_user().and_then(|folder| folder.hold(&tunnel.reach.host)).ok();
    let held = tunnel.is_found.then(found).flatten();
    let asked = async {
        match held {
            Some(held) => control::answer(held).await,
            None => std::future::pending().await,
        }
    };
    if tunnel.is_detached && endpoint.local_address() != net::PIPE_PEER {
        remote.terminate();
    }
    told(TunnelEvent::Open);
    let unused = async {
        match tunnel.persist {
            Some(span) => session.idle(span).await,
            None => std::future::pending().await,
        }
    };
    let (reason, result) = tokio::select! {
        error = session.run() => return Err(tunnel.ended(error, &remote)),
        () = unused => ("nobody uses the tunnel".to_owned(), Ok(())),
        () = asked => (Error::Terminated.close_reason(), Err(Error::Terminated)),
        why = &mut stop => {
            let error = Error::from(why);
            (error.close_reason(), Err(error))
        }
    };
    // Whoever comes now is not taken any more.
    drop(tasks);
    connection.close(CloseCode::Done as u32, reason);
    drop(connection.closed().await);
    result
}

fn listen(place: &Place) -> Result<Listener, Error> {
    Listener::bind(place).map_err(|source| Error::Listen { place: place.clone(), source })
}

impl Tunnel {
    fn listen(&self) -> Result<Vec<Listener>, Error> {
        self.local.iter().map(|forward| listen(&forward.listen)).collect()
    }

    fn log_in(&self, switch: &Arc<Switch>, notes: &Notes) -> Result<Remote, Error> {
        let listen = self.remote.iter().map(|forward| forward.listen.clone()).collect();
        self.reach.log_in(RemoteTask::Tunnel { listen }, switch, &mut |line| notes.line(line))
    }

    /// Connects to the other side over UDP, or over ssh if UDP is blocked. The endpoint has to live as long as the
    /// connection.
    async fn connect(&self, remote: &mut Remote, notes: &Notes) -> Result<(Connection, Endpoint), Error> {
        if self.reach.via != Via::Ssh {
            let endpoint = Endpoint::bind(&Bind::default(), &self.reach.endpoint, ())?;
            let connection = self.connect_over(&endpoint, remote);
            match connection.established().await {
                Ok(()) => return Ok((connection, endpoint)),
                Err(NetError::HandshakeTimedOut { .. }) if self.reach.via == Via::Auto => {
                    notes.line("UDP does not get through: going on over ssh, which is slower");
                }
                Err(error) => return Err(self.ended(error, remote)),
            }
        }
        let ended = |error: io::Error| Error::Ssh(format!("ssh to {} has ended: {error}", self.reach.host));
        let (read, write) = remote.go_on_over_ssh().map_err(ended)?;
        let endpoint = Endpoint::over_pipes(read, write, &self.reach.endpoint, ())?;
        let connection = self.connect_over(&endpoint, remote);
        connection.established().await.map_err(|error| self.ended(error, remote))?;
        Ok((connection, endpoint))
    }

    fn connect_over(&self, endpoint: &Endpoint, remote: &Remote) -> Connection {
        let is_pipe = endpoint.local_address() == net::PIPE_PEER;
        let options = ConnectOptions {
            profile: self.reach.profile.clone(),
            application: TUNNEL.to_vec(),
            remotes: if is_pipe { vec![net::PIPE_PEER] } else { remote.ticket.addresses.clone() },
            handshake_timeout: UDP_TIMEOUT,
            qlog: false,
        };
        endpoint.connect(remote.ticket.key, options, Box::new(drop))
    }

    fn ended(&self, error: NetError, remote: &Remote) -> Error {
        if let NetError::ClosedLocally | NetError::Exhausted { .. } = error {
            return Error::Spent;
        }
        let tried = Some((&remote.ticket.addresses[..], UDP_TIMEOUT));
        from_there(Error::ended(error, &Other { role: Role::Receives, tried }))
    }
}
