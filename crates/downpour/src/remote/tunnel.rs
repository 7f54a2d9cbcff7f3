//! A tunnel to a host that ssh reaches.

use std::future::Future;
use std::io;
use std::sync::Arc;

use net::{Bind, Connection, Endpoint, NetError};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use transport::ConnectOptions;

use super::locator::from_remote;
use super::process::TO_END;
use super::request::RemoteTask;
use super::ssh::Remote;
use super::{CarrierChoice, HostOptions};
use crate::error::{Error, PeerContext};
use crate::protocol::handshake::TUNNEL;
use crate::ticket::Role;
use crate::transfer::{StopReason, TransferControl};
use crate::tunnel::control::{self, ControlDirectory};
use crate::tunnel::{Forwarding, LocalEnd, Notes, TunnelEvent};

/// A tunnel's forwards and its host.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// The forwards.
    pub forwarding: Forwarding,
    /// Ends the login once the tunnel is open over UDP. Otherwise a reader of this process's output would wait for the
    /// exit of ssh, which prints to the same place, after this process has left it.
    pub is_detached: bool,
    /// Whether other processes find it by its host ([`ControlDirectory::tunnels_to`]).
    pub is_found: bool,
    /// The host.
    pub reach: HostOptions,
}

/// Opens a tunnel and keeps it open until `stop`, until it was idle for [`Forwarding::persist`], or until its
/// connection ends.
///
/// # Errors
/// [`Error::Listen`] if a local or remote address is in use; those of ssh and of the connection; why it was stopped.
pub async fn tunnel(
    tunnel: Tunnel,
    on_event: impl Fn(TunnelEvent) + Send + Sync + 'static,
    stop: impl Future<Output = StopReason>,
) -> Result<(), Error> {
    let near = LocalEnd::listen(tunnel.forwarding.clone(), on_event)?;
    let mut stop = std::pin::pin!(stop);
    let notes = near.notes();
    let switch = Arc::<TransferControl>::default();
    let mut login = {
        let (tunnel, notes, switch) = (tunnel.clone(), notes.clone(), Arc::clone(&switch));
        spawn_blocking(move || tunnel.log_in(&switch, &notes))
    };
    let mut remote = tokio::select! {
        remote = &mut login => remote.map_err(|_| Error::Internal("the login panicked"))??,
        why = &mut stop => {
            switch.stop(why);
            // This ends ssh, unless that takes too long.
            drop(timeout(TO_END, login).await);
            return Err(why.into());
        }
    };
    let (connection, endpoint) = tokio::select! {
        connected = tunnel.connect(&mut remote, &notes) => connected?,
        why = &mut stop => return Err(why.into()),
    };
    // Without a control socket the tunnel works, but cannot be found.
    let found = || ControlDirectory::of_user().and_then(|directory| directory.hold(&tunnel.reach.host)).ok();
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
    near.serve(&connection, asked, stop, |error| tunnel.ended(error, &remote)).await
}

impl Tunnel {
    fn log_in(&self, switch: &Arc<TransferControl>, notes: &Notes) -> Result<Remote, Error> {
        let listen = self.forwarding.remote.iter().map(|forward| forward.listen.clone()).collect();
        self.reach.log_in(RemoteTask::Tunnel { listen }, switch, &mut |line| notes.line(line))
    }

    /// Connects to the peer over UDP, or over ssh if UDP is blocked. The endpoint has to live as long as the
    /// connection.
    async fn connect(&self, remote: &mut Remote, notes: &Notes) -> Result<(Connection, Endpoint), Error> {
        if self.reach.path.via != CarrierChoice::Ssh {
            let endpoint = Endpoint::builder().options(self.reach.engine.endpoint).bind(Bind::default())?;
            let connection = self.connect_over(&endpoint, remote);
            match connection.established().await {
                Ok(()) => return Ok((connection, endpoint)),
                Err(NetError::HandshakeTimedOut { .. }) if self.reach.path.via == CarrierChoice::Auto => {
                    notes.line("UDP is blocked: using ssh, which is slower");
                }
                Err(error) => return Err(self.ended(error, remote)),
            }
        }
        let ended = |error: io::Error| Error::Ssh(format!("ssh to {} exited: {error}", self.reach.host));
        let (read, write) = remote.continue_over_ssh().map_err(ended)?;
        let endpoint = Endpoint::builder().options(self.reach.engine.endpoint).over_pipes(read, write)?;
        let connection = self.connect_over(&endpoint, remote);
        connection.established().await.map_err(|error| self.ended(error, remote))?;
        Ok((connection, endpoint))
    }

    fn connect_over(&self, endpoint: &Endpoint, remote: &Remote) -> Connection {
        let is_pipe = endpoint.local_address() == net::PIPE_PEER;
        let options = ConnectOptions::new(if is_pipe { vec![net::PIPE_PEER] } else { remote.ticket.addresses.clone() })
            .profile(self.reach.engine.profile.clone())
            .application(TUNNEL)
            .handshake_timeout(remote.udp_patience())
            .peer_listens(true);
        endpoint.connect((remote.ticket.key, options)).start()
    }

    fn ended(&self, error: NetError, remote: &Remote) -> Error {
        if let NetError::ClosedLocally | NetError::Exhausted { .. } = error {
            return Error::ConnectionLimit;
        }
        let tried = Some((&remote.ticket.addresses[..], remote.udp_patience()));
        from_remote(Error::ended(error, &PeerContext { role: Role::Receiver, tried }))
    }
}
