//! Turns a request into the configuration and ticket of the process that ssh starts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use net::Endpoint;

use super::path_expansion::{expand, sources};
use super::request::{RemoteTask, Request};
use super::restricted_root::{LinkHandling, RestrictedItem, RestrictedRoot, as_typed};
use crate::base64::Bytes;
use crate::error::{Error, KeyRefusal};
use crate::files::{ReceiveRequest, Scanner, SourceItem, SourceOptions};
use crate::path_cache::PathCache;
use crate::ticket::{Role, Ticket, fresh_key};
use crate::transfer::{SendSpec, Task, TransferConfig, TransferOptions, reachable};

/// Time in which the peer must connect.
pub(super) const VALID_FOR: Duration = Duration::from_secs(120);

/// How long a peer that connects over ssh may be silent before its first message.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates a ticket for a listener with `role`: at `endpoint`'s address, or over ssh only.
pub(super) fn ticket(endpoint: Option<&Endpoint>, role: Role) -> Result<Ticket, Error> {
    let addresses =
        endpoint.map(|endpoint| reachable(endpoint.local_address())).transpose().map_err(Error::OutOfResources)?;
    let expires = runtime::system_time() + VALID_FOR;
    let mut ticket = Ticket { key: fresh_key()?, expires, addresses: addresses.unwrap_or_default(), listener: role };
    add_ssh_address(&mut ticket);
    Ok(ticket)
}

/// Adds the address of this host to which ssh has connected: the peer can probably reach it.
pub(super) fn add_ssh_address(ticket: &mut Ticket) {
    let Some(port) = ticket.addresses.first().map(SocketAddr::port) else { return };
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let Some(Ok(own)) = connection.split(' ').nth(2).map(str::parse::<IpAddr>) else { return };
    ticket.addresses.retain(|address| address.ip() != own);
    ticket.addresses.insert(0, (own, port).into());
    ticket.addresses.truncate(crate::ticket::MAX_ADDRESSES);
}

/// Returns the configuration, the number of sources that are followed links, and the sources of a restricted key, whose
/// directories must stay open.
pub(super) fn config(
    request: Request,
    only: Option<&RestrictedRoot>,
) -> Result<(TransferConfig, u64, Vec<RestrictedItem>), Error> {
    let (mut links_followed, mut limited, engine) = (0, Vec::new(), request.engine());
    // A restricted key changes nothing outside its directory.
    let remembers = only.is_none() && !request.ignores_path_cache;
    let task = match request.task {
        RemoteTask::Send { sources: paths, mut scan, compared, dry_run }
        | RemoteTask::Forward { sources: paths, mut scan, compared, dry_run, .. } => {
            let paths = paths.iter().map(Bytes::to_path);
            let roots = match only {
                Some(only) => {
                    limited = limited_sources(only, paths, &scan, compared)?;
                    // Links have been followed already.
                    scan.follow_items = false;
                    // They may lead out of its directory.
                    scan.follow_parent_links = false;
                    limited.iter().map(|source| source.root.clone()).collect()
                }
                None => all_sources(paths, compared)?,
            };
            // Checks every path, so that a wrong one is reported at once.
            let scanner = Scanner::new(roots.clone(), scan.clone()).map_err(|error| as_typed(error, &limited))?;
            links_followed =
                scanner.roots().followed() + limited.iter().filter(|source| source.is_followed).count() as u64;
            Task::Send { spec: SendSpec { roots, scan }, dry_run }
        }
        RemoteTask::Receive(spec) => {
            let spec = match only {
                Some(only) => ReceiveRequest {
                    target: only.enter(&spec.target)?,
                    within: Some(only.path()?),
                    differences: spec.differences && only.may_read(),
                    ..*spec
                },
                None => ReceiveRequest { target: expand(&spec.target)?, ..*spec },
            };
            Task::receive(spec, false)
        }
        RemoteTask::Pipe { .. } | RemoteTask::Examine { .. } | RemoteTask::Tunnel { .. } => {
            return Err(Error::Internal("not a transfer"));
        }
    };
    let options = TransferOptions {
        engine,
        handshake_timeout: HANDSHAKE_TIMEOUT,
        paths: remembers.then(PathCache::of_user).flatten(),
        ..TransferOptions::default()
    };
    let config = TransferConfig::by_login(task, options);
    Ok((config, links_followed, limited))
}

/// Returns the items to send, without a restriction.
fn all_sources(paths: impl Iterator<Item = PathBuf>, compared: bool) -> Result<Vec<SourceItem>, Error> {
    let mut roots = Vec::new();
    for path in paths {
        roots.extend(sources(&path)?);
    }
    for root in roots.iter_mut().filter(|root| compared && root.path.is_dir()) {
        *root = SourceItem::contents(root.path.clone());
    }
    Ok(roots)
}

/// Returns the items to send from the directory of a restricted key.
fn limited_sources(
    only: &RestrictedRoot,
    paths: impl Iterator<Item = PathBuf>,
    scan: &SourceOptions,
    compared: bool,
) -> Result<Vec<RestrictedItem>, Error> {
    let reading = match scan.follow_items {
        _ if compared => LinkHandling::Compared,
        true => LinkHandling::Followed,
        false => LinkHandling::AsIs,
    };
    let mut sources = Vec::new();
    for path in paths {
        let found = only.sources(&path, reading)?;
        let is_link = |source: &&RestrictedItem| source.is_followed && !source.root.path.is_dir();
        if scan.remove_sources && found.iter().any(|source| is_link(&source)) {
            return Err(Error::KeyRestricted(KeyRefusal::NoRemovingBehindLinks));
        }
        sources.extend(found);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::EngineOptions;
    use crate::remote::PathOptions;

    #[test]
    fn the_role_follows_the_task() {
        let request = |task| Request::new(task, &PathOptions::default(), &EngineOptions::default());
        let task = RemoteTask::Receive(Box::new(ReceiveRequest::to_target("/tmp")));
        assert_eq!(config(request(task), None).unwrap().0.task.role(), Role::Receiver);
    }
}
