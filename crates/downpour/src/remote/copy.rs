//! `cp`: which side sends, the request for each side, and how they connect.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

use super::host_to_host::between;
use super::locator::SshLocator;
use super::request::{RemoteTask, Request};
use super::{HostCopy, Location};
use crate::base64::Bytes;
use crate::error::{Context, CopyError, Error};
use crate::files::permitted::has_wildcards;
use crate::files::{
    AllowedNames, Compare, DirectoryIf, ItemName, LinkPolicy, ReceiveRequest, RequestedItems, Scanner, SourceItem,
    SourceOptions, TargetFacts,
};
use crate::home;
use crate::ticket::fresh_key;
use crate::transfer::{
    PeerLocator, Route, SendSpec, Task, Transfer, TransferConfig, TransferControl, TransferEvent, TransferOptions,
    start_over, start_via, start_within,
};

/// Copies between the local host and a remote one, between two remote ones, or within the local one.
///
/// # Errors
/// Locations that cannot be combined, sources that do not exist, an unusable destination. Errors of ssh are reported by
/// [`TransferEvent::Done`](crate::TransferEvent::Done).
pub fn copy(mut copy: HostCopy) -> Result<Transfer, Error> {
    copy.read_homes()?;
    copy.scan.outputs = copy.options.outputs();
    copy.receive.outputs = copy.scan.outputs.clone();
    if copy.receive.dry_run && !copy.receive.compare_trees {
        copy.options.checksums = None;
    }
    if copy.scan.files_from.is_some() {
        // The names of a list are relative to the source directory, and to the target.
        copy.sources.iter_mut().for_each(Location::name_contents);
    }
    copy.scan.preserve = copy.receive.preserve;
    copy.receive.report_stored = copy.scan.remove_sources;
    copy.scan.hash |= copy.receive.compare == Compare::Checksum || copy.options.checksums.is_some();
    match (common_host(&copy.sources)?, copy.target_host.take()) {
        (None, None) => copy.within(),
        (None, Some(host)) => copy.up(host),
        (Some(host), None) => copy.down(host),
        (Some(from), Some(to)) => between(copy, from, to),
    }
}

/// Returns the host of all sources; `None` for the local host.
fn common_host(sources: &[Location]) -> Result<Option<String>, Error> {
    let host = |location: &Location| match location {
        Location::Local(_) => None,
        Location::Remote { host, .. } => Some(host.clone()),
    };
    let first = sources.first().ok_or(CopyError::NoSource)?;
    if sources.iter().any(|source| host(source) != host(first)) {
        return Err(CopyError::SeveralMachines.into());
    }
    Ok(host(first))
}

impl HostCopy {
    /// Expands `~` in local paths.
    fn read_homes(&mut self) -> Result<(), Error> {
        for source in &mut self.sources {
            if let Location::Local(path) = source {
                *path = home::expand_typed(path)?;
            }
        }
        if self.target_host.is_none() {
            self.receive.target = home::expand_typed(&self.receive.target)?;
        }
        Ok(())
    }

    /// Copies from the local host to a remote one.
    fn up(self, host: String) -> Result<Transfer, Error> {
        let roots = self.local_roots()?;
        let spec = ReceiveRequest { requested: self.requested(&roots), ..self.receive.clone() };
        let request = self.request(RemoteTask::Receive(Box::new(spec)));
        let task = self.sending(roots);
        start_via(self.locator(host, request), self.config(task))
    }

    /// Copies from a remote host to the local one.
    fn down(self, host: String) -> Result<Transfer, Error> {
        self.check_wildcards(&host)?;
        let (requested, permitted) = self.unseen();
        let request = self.request(RemoteTask::Send {
            sources: self.paths().into_iter().map(Bytes).collect(),
            scan: self.scan.clone(),
            compared: self.receive.compare_trees,
            dry_run: self.receive.dry_run,
        });
        let task = Task::receive(ReceiveRequest { permitted, ..self.local_spec(requested) }, false);
        start_via(self.locator(host, request), self.config(task))
    }

    /// Checks that the sources on `host` have names of their own.
    ///
    /// # Errors
    /// Wildcards with the parent of each match.
    pub(super) fn check_wildcards(&self, host: &str) -> Result<(), Error> {
        match self.paths().iter().find(|path| has_wildcards(path) && path.ends_with(b"/..")) {
            Some(path) => {
                let path = String::from_utf8_lossy(path).into_owned();
                Err(CopyError::ParentOfMatches { host: host.to_owned(), path }.into())
            }
            None => Ok(()),
        }
    }

    fn paths(&self) -> Vec<Vec<u8>> {
        self.sources.iter().map(|source| source.path().as_os_str().as_bytes().to_vec()).collect()
    }

    /// Summarises remote sources for the receiver: their kinds, and the names that the remote host may send.
    pub(super) fn unseen(&self) -> (RequestedItems, AllowedNames) {
        let paths = self.paths();
        let names: Vec<_> = paths.iter().map(|path| ItemName::of(path)).collect();
        let is_list = self.scan.files_from.is_some();
        // The kind of a source is known only when it is announced. Matching wildcards go into a directory, since they
        // may match several names, unless the remote host reports one match; a name that contains wildcard characters
        // itself is like any other.
        let pattern = names.iter().flatten().find_map(|name| match name {
            ItemName::Wildcard(pattern) => Some(vec![pattern.clone().into_bytes()]),
            ItemName::Exact(_) | ItemName::NewDirectory => None,
        });
        let directory_if = DirectoryIf { is_directory: self.keeps_names, name_is_none_of: pattern };
        let is_contents = names.iter().any(Option::is_none);
        let requested = RequestedItems {
            many: paths.len() > 1 || is_contents,
            // A list of names is of a directory's contents. In other comparisons the sender reports whether it is a
            // directory.
            contents: is_contents || (self.receive.compare_trees && is_list),
            items: names
                .iter()
                .map(|name| match name {
                    Some(ItemName::Exact(name)) => Some(name.clone()),
                    _ => None,
                })
                .collect::<Option<_>>()
                .filter(|_| !is_list),
            directory_if: Some(directory_if).filter(|rule| *rule != DirectoryIf::default()),
        };
        (requested, self.permitted(names))
    }

    /// Returns the names that the remote host may send: the given items, as far as the filter and the list select them.
    fn permitted(&self, names: Vec<Option<ItemName>>) -> AllowedNames {
        // A comparison changes nothing, and a compared directory means its contents.
        if self.trusts_sender || self.receive.compare_trees {
            return AllowedNames::default();
        }
        AllowedNames {
            items: names.into_iter().collect(),
            filter: (*self.scan.filter).clone(),
            files_from: self.scan.files_from.clone(),
            ..AllowedNames::default()
        }
    }

    /// Copies within the local host.
    fn within(self) -> Result<Transfer, Error> {
        let roots = self.local_roots()?;
        not_into_itself(&roots, &self.receive.target, &self.scan)?;
        // Bytes are read from the other version no faster than from the source.
        let spec = ReceiveRequest { differences: false, ..self.local_spec(self.requested(&roots)) };
        let evidence = TargetFacts::before(spec.target.is_dir());
        let rename = spec.destination(&evidence).and_then(|destination| destination.rename);
        if self.options.qlog.is_none() {
            let mut config = self.config(self.sending(roots));
            config.list.iter_mut().for_each(|list| list.rename.clone_from(&rename));
            return start_within(config, spec);
        }
        // A trace describes the engine: both sides run in this process, joined by a socket pair. Only the sender writes
        // one, since two sides in one trace could not be distinguished.
        let silent = TransferOptions { checksums: None, qlog: None, ..self.options.clone() };
        let receiver = TransferConfig::by_login(Task::receive(spec, false), silent);
        let mut sender = self.config(self.sending(roots));
        sender.list.iter_mut().for_each(|list| list.rename.clone_from(&rename));
        let (ours, theirs) = UnixStream::pair().map_err(Error::OutOfResources)?;
        let key = fresh_key()?;
        let (read, write) = halves(theirs)?;
        let mut receiving = start_over(read, write, key, receiver)?;
        let (read, write) = halves(ours)?;
        // Its events reach the user through the sender.
        let follow = move || loop {
            match receiving.next_blocking() {
                None => break None,
                Some(TransferEvent::Done(result)) => break result.err(),
                Some(_) => {}
            }
        };
        let receiving = runtime::spawn("downpour-within", follow).map_err(Error::OutOfResources)?;
        let locator = Within { route: Some(Route::Pipe { read, write, key }), receiving: Some(receiving) };
        start_via(Box::new(locator), sender)
    }

    fn sending(&self, roots: Vec<SourceItem>) -> Task {
        Task::Send { spec: SendSpec { roots, scan: self.scan.clone() }, dry_run: self.receive.dry_run }
    }

    fn local_roots(&self) -> Result<Vec<SourceItem>, Error> {
        let root = |source: &Location| {
            let path = source.path();
            if self.receive.compare_trees && path.is_dir() {
                SourceItem::contents(path)
            } else {
                SourceItem::typed(path.as_os_str())
            }
        };
        let roots: Vec<SourceItem> = self.sources.iter().map(root).collect();
        // Checks every path, so that a wrong one is reported before any login.
        Scanner::new(roots.clone(), self.scan.clone())?;
        Ok(roots)
    }

    /// Returns the request for a local receiver.
    fn local_spec(&self, requested: RequestedItems) -> ReceiveRequest {
        ReceiveRequest { requested, ..self.receive.clone() }
    }

    /// Summarises the sources for the receiver.
    pub(super) fn requested(&self, roots: &[SourceItem]) -> RequestedItems {
        let name = |root: &SourceItem| {
            let name = root.path.file_name().filter(|_| !root.is_contents());
            name.map(|name| name.as_bytes().to_vec())
        };
        let follows = self.scan.follow_items || self.scan.links == LinkPolicy::Follow;
        let is_directory = |root: &SourceItem| root.path.is_dir() && (follows || !root.path.is_symlink());
        RequestedItems {
            // A synchronised directory always keeps its name, so that the next run finds it.
            many: roots.len() > 1
                || roots.iter().any(SourceItem::is_contents)
                || (self.keeps_names && roots.iter().any(is_directory)),
            contents: roots.iter().any(SourceItem::is_contents),
            // With a list of names the items are others.
            items: roots.iter().map(name).collect::<Option<_>>().filter(|_| self.scan.files_from.is_none()),
            directory_if: None,
        }
    }

    pub(super) fn request(&self, task: RemoteTask) -> Request {
        let mut request = Request::new(task, &self.path, &self.options.engine);
        request.ignores_path_cache = self.options.paths.is_none();
        request
    }

    pub(super) fn locator(&self, host: String, request: Request) -> Box<dyn PeerLocator> {
        Box::new(SshLocator {
            ssh: self.ssh.clone(),
            host,
            path: self.path.clone(),
            request,
            remote: None,
            udp_closed: false,
            links_followed: 0,
            items: None,
            paths: self.options.paths.clone(),
            udp_to: None,
            was_closed: false,
        })
    }

    fn config(&self, task: Task) -> TransferConfig {
        let handshake_timeout = self.options.engine.endpoint.dead_after;
        TransferConfig::by_login(task, TransferOptions { handshake_timeout, ..self.options.clone() })
    }
}

/// Refuses to copy a directory into itself: it would grow while it is read. With a list of names only these count.
fn not_into_itself(roots: &[SourceItem], target: &Path, scan: &SourceOptions) -> Result<(), Error> {
    let resolve =
        |path: &Path| if path.as_os_str().is_empty() { Path::new(".").canonicalize() } else { path.canonicalize() };
    let existing = target.ancestors().find_map(|path| resolve(path).ok());
    let Some(inside) = existing else { return Ok(()) };
    for root in roots.iter().filter(|root| root.path.is_dir()) {
        let directory = root.path.canonicalize().map_err(Error::OutOfResources)?;
        // Copying a directory's contents onto themselves does nothing, unless they are then removed. Copying the
        // directory would put it inside itself.
        let is_own = !scan.remove_sources && root.is_contents() && inside == directory && target.is_dir();
        let leads_in = |name: &Vec<u8>| {
            // As in the scan, a leading slash is ignored.
            let begin = name.iter().position(|byte| *byte != b'/').unwrap_or(name.len());
            let listed = directory.join(OsStr::from_bytes(&name[begin..])).canonicalize();
            listed.is_ok_and(|listed| listed.is_dir() && inside.starts_with(listed))
        };
        let is_within =
            inside.starts_with(&directory) && scan.files_from.as_ref().is_none_or(|names| names.iter().any(leads_in));
        if is_within && !is_own {
            return Err(CopyError::IntoItself(root.path.clone()).into());
        }
    }
    Ok(())
}

/// Returns both directions of a socket.
fn halves(socket: UnixStream) -> Result<(OwnedFd, OwnedFd), Error> {
    let other = socket.try_clone().map_err(Error::OutOfResources)?;
    Ok((socket.into(), other.into()))
}

/// Locates the receiving half in this process.
struct Within {
    route: Option<Route>,
    /// Ends when that half has synced its partial data; returns its error.
    receiving: Option<JoinHandle<Option<Error>>>,
}

impl Within {
    /// Waits until the receiving half has ended; returns its error.
    fn end(&mut self) -> Option<Error> {
        // A panic has been reported.
        self.receiving.take()?.join().unwrap_or_default()
    }
}

impl PeerLocator for Within {
    fn locate(&mut self, _: &TransferControl, _: &mut dyn FnMut(String)) -> Result<Route, Error> {
        self.route.take().ok_or(Error::ConnectionLost)
    }

    fn fallback(&mut self, _: &Error) -> Option<(Result<Route, Error>, TransferEvent)> {
        None
    }

    fn explain(&mut self, error: Error) -> Error {
        // The report of that half about its own error has less detail than the error itself.
        if matches!(error, Error::Within { context: Context::Peer { .. }, .. }) {
            self.end().unwrap_or(error)
        } else {
            error
        }
    }

    fn release(&mut self, _: bool) {
        // The process may exit as soon as the transfer is reported as ended.
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_copy_within_this_machine_ends_when_its_receiving_half_has() {
        let over = Arc::new(AtomicBool::new(false));
        let receiving = thread::spawn({
            let over = Arc::clone(&over);
            move || {
                thread::sleep(Duration::from_millis(300));
                over.store(true, Ordering::SeqCst);
                None
            }
        });
        Within { route: None, receiving: Some(receiving) }.release(true);
        assert!(over.load(Ordering::SeqCst));
    }
}
