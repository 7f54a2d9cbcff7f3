//! Locates the peer of a copy through ssh, once for each attempt.

use std::net::SocketAddr;

use super::launch::log_in;
use super::request::Request;
use super::ssh::Remote;
use super::{CarrierChoice, PathOptions, SshOptions};
use crate::error::{Context, Error, ErrorKind, RequiredFeature};
use crate::path_cache::PathCache;
use crate::transfer::{PeerLocator, Route, TransferControl, TransferEvent};

/// Locates a downpour on a remote host.
pub(super) struct SshLocator {
    pub(super) ssh: SshOptions,
    pub(super) host: String,
    pub(super) path: PathOptions,
    pub(super) request: Request,
    pub(super) remote: Option<Remote>,
    /// Whether UDP was blocked in an earlier attempt.
    pub(super) udp_closed: bool,
    /// Number of remote sources that are symbolic links and were followed.
    pub(super) links_followed: u64,
    /// Number of remote items, if the request has wildcards.
    pub(super) items: Option<u64>,
    /// The cache of hosts with blocked UDP.
    pub(super) paths: Option<PathCache>,
    /// The address to which UDP was tried.
    pub(super) udp_to: Option<SocketAddr>,
    /// Whether UDP to it was blocked in an earlier run.
    pub(super) was_closed: bool,
}

impl SshLocator {
    /// Reads or writes the cached state of the address to which UDP was tried.
    fn remembers<T: Default>(&self, of: impl FnOnce(&PathCache, SocketAddr) -> T) -> T {
        self.paths.as_ref().zip(self.udp_to).map_or_else(T::default, |(paths, host)| of(paths, host))
    }

    fn over_ssh(&mut self) -> Result<Route, Error> {
        let remote = self.remote.as_mut().ok_or(Error::Internal("no ssh to continue over"))?;
        let key = remote.ticket.key;
        let (read, write) =
            remote.continue_over_ssh().map_err(|error| Error::Ssh(format!("ssh to {} exited: {error}", self.host)))?;
        Ok(Route::Pipe { read, write, key })
    }
}

impl PeerLocator for SshLocator {
    fn locate(&mut self, switch: &TransferControl, on_note: &mut dyn FnMut(String)) -> Result<Route, Error> {
        let remote = log_in((&self.ssh, &self.host, self.path.family), &self.request, switch, on_note)?;
        // Otherwise the remote program exits with ssh, and has changed nothing.
        RequiredFeature::check(&self.request.task, &remote.enforced).map_err(|error| error.on(&self.host))?;
        let remote = self.remote.insert(remote);
        (self.links_followed, self.items) = (remote.links_followed, remote.items);
        let only_ssh = self.path.via == CarrierChoice::Ssh || (self.path.via == CarrierChoice::Auto && self.udp_closed);
        match &self.remote {
            Some(remote) if !only_ssh => {
                let (ticket, life) = (remote.ticket.clone(), remote.life());
                self.udp_to = ticket.addresses.first().copied();
                self.was_closed =
                    self.path.via == CarrierChoice::Auto && self.remembers(|paths, host| paths.udp_is_closed(host));
                let timeout = if self.was_closed { remote.short_patience() } else { remote.udp_patience() };
                Ok(Route::Udp { ticket, timeout, life })
            }
            _ => self.over_ssh(),
        }
    }

    fn fallback(&mut self, error: &Error) -> Option<(Result<Route, Error>, TransferEvent)> {
        let Error::Unreachable { addresses, .. } = error else { return None };
        if self.path.via != CarrierChoice::Auto || self.udp_closed {
            return None;
        }
        self.udp_closed = true;
        let port = addresses.first().map_or(0, SocketAddr::port);
        // The day since the last full attempt does not begin again.
        if !self.was_closed {
            self.remembers(|paths, host| paths.remember_udp(host, true));
        }
        let event = TransferEvent::UdpClosed { host: self.host.clone(), port, was_closed: self.was_closed };
        Some((self.over_ssh(), event))
    }

    fn explain(&mut self, error: Error) -> Error {
        from_remote(error)
    }

    fn links_followed(&self) -> u64 {
        self.links_followed
    }

    fn items(&self) -> Option<u64> {
        self.items
    }

    fn release(&mut self, succeeded: bool) {
        if succeeded && self.was_closed && !self.udp_closed {
            self.remembers(|paths, host| paths.remember_udp(host, false));
        }
        // After a failure, ssh may still deliver the remote host's message about it.
        if let Some(remote) = self.remote.take().filter(|_| succeeded) {
            remote.terminate();
        }
    }
}

/// Translates an error with which the remote program, which has no user of its own, closes the connection.
pub(super) fn from_remote(error: Error) -> Error {
    match error {
        Error::Within { context: context @ Context::Kept { .. }, source } => from_remote(*source).within(context),
        Error::Within { context: Context::Peer { role, .. }, source } => match source.kind() {
            // The remote program is interrupted when its standard input ends, that is, when ssh has exited.
            ErrorKind::Cancelled => Error::ConnectionLost,
            ErrorKind::Terminated => Error::Terminated.within(Context::Host(None)),
            _ => Error::Within { context: Context::Peer { role, by_ticket: false }, source },
        },
        // Its user has no ticket.
        Error::Unreachable { addresses, after, send_error, by_ticket: _ } => {
            Error::Unreachable { addresses, after, send_error, by_ticket: false }
        }
        other => other,
    }
}
