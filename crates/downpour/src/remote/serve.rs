//! The side of a copy that ssh starts: `downpour remote`.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use net::Endpoint;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use transport::profile::Names;

use super::announced::Announced;
use super::launch::Answer;
use super::only::{Limit, Only, Reading, Source, as_typed};
use super::place::{expand, sources};
use super::request::{Bounds, RemoteTask, Request};
use super::restriction::Restriction;
use super::ssh::answer_error;
use super::{ANSWER, Via, between_end, doctor, pipe_end, tunnel_end};
use crate::base64::Bytes;
use crate::error::Error;
use crate::files::{ReceiveSpec, Root, ScanOptions, Scanner};
use crate::path_cache::PathCache;
use crate::protocol::ssh::GO_ON;
use crate::ticket::{Role, Ticket, fresh_key};
use crate::transfer::{
    ListenOptions, Peer, Stop, Summary, Task, Transfer, TransferConfig, TransferEvent, reachable, start, start_over,
};

/// How long the other side may take to connect.
pub(super) const VALID_FOR: Duration = Duration::from_secs(120);

/// How long a peer that connects over ssh may be silent before its first message.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sent on standard input after the request if UDP is blocked. If standard input ends instead, ssh or the other side
/// has ended.
pub(super) struct GoOnOverSsh;

/// The work that was done for the other side.
#[derive(Debug)]
pub enum Served {
    /// A transfer.
    Transfer(Box<Summary>),
    /// A command was run; its exit code.
    Command(u8),
    /// The machine was examined.
    Examination,
    /// A tunnel had its other end here.
    Tunnel,
}

/// Performs what the downpour at the other end of standard input requests, until it is done or ssh ends.
///
/// The profile may choose the controllers and schedules in `names`. Standard output carries one line, a ticket or an
/// error; standard input and output become the carrier if UDP is blocked. With a limit, the other side reaches nothing
/// outside of its folder, and this process may change its current folder.
///
/// # Errors
/// Any error that ended it early. The other side has been informed as far as possible.
pub async fn serve(names: &Names, limit: Option<&Limit>) -> Result<Served, Error> {
    let only = limit.map(Only::open).transpose().inspect_err(refuse)?;
    let bounds = if only.is_some() { Bounds::LIMITED } else { Bounds::OF_USER };
    let mut request = Request::read(&mut Unbuffered, names, bounds).inspect_err(refuse)?;
    let mut held = None;
    if let Some(only) = &only {
        request.limit_memory();
        only.permits(&request.task).inspect_err(refuse)?;
        if let RemoteTask::Examine { folder } = &mut request.task {
            let path = folder.as_ref().map_or_else(PathBuf::new, Bytes::to_path);
            let (measured, open) = only.measured(&path).inspect_err(refuse)?;
            (*folder, held) = (Some(measured.as_path().into()), Some(open));
        }
    }
    match &request.task {
        RemoteTask::Examine { .. } => apart(move || examine(request, held)).await,
        RemoteTask::Pipe { command } => {
            let (bind, command) = ((request.via != Via::Ssh).then(|| request.bind()), command.clone());
            let run = move || pipe_end::run(&command, bind.as_ref(), &request.endpoint(), request.profile);
            // From the answer on, standard output belongs to the command.
            apart(move || run().map(|ended| ended.map(Served::Command))).await
        }
        RemoteTask::Tunnel { listen } => {
            let listen = listen.clone();
            tunnel_end::run(&request, &listen).await.map(|()| Served::Tunnel)
        }
        RemoteTask::Forward { .. } => {
            between_end::run(request, only.as_ref()).await.map(|summary| Served::Transfer(Box::new(summary)))
        }
        RemoteTask::Send { .. } | RemoteTask::Receive(_) => prepare(request, only.as_ref())
            .inspect_err(refuse)?
            .run()
            .await
            .map(|summary| Served::Transfer(Box::new(summary))),
    }
}

/// Reports an error to the other side.
pub(super) fn refuse(error: &Error) {
    answer(&answer_error(error));
}

/// Runs `work`, which blocks, on a thread of its own. An error of `work` itself is reported to the other side, an error
/// in its result is not.
async fn apart(work: impl FnOnce() -> Result<Result<Served, Error>, Error> + Send + 'static) -> Result<Served, Error> {
    let (done, ended) = tokio::sync::oneshot::channel();
    // Sending fails if the program is ending.
    let spawned = thread::Builder::new().name("downpour-apart".into()).spawn(move || drop(done.send(work())));
    let result = match spawned {
        Ok(_) => ended.await.unwrap_or(Err(Error::Internal("a thread without a result"))),
        Err(error) => Err(Error::System(error)),
    };
    result.inspect_err(refuse).flatten()
}

/// Signals that ask this program to end, so that it can inform the other side.
pub(super) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// Asks for the progress, which the user's own side shows. Its default effect would end this one.
    _ask: Signal,
}

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _ask: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.hang_up.recv() => {}
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            // They end only with the runtime.
            else => std::future::pending().await,
        }
    }
}

struct Serving {
    config: TransferConfig,
    ticket: Ticket,
    /// The transfer over UDP.
    transfer: Option<Transfer>,
    /// Folders of a limited login that must stay open while their items are read.
    _sources: Vec<Source>,
    is_limited: bool,
}

/// Answers a doctor over standard input and output. Keeps `held`, the folder to measure, open meanwhile.
fn examine(request: Request, held: Option<OwnedFd>) -> Result<Result<Served, Error>, Error> {
    let (read, write) = pipes_to_ssh()?;
    // Errors are part of the answers.
    let attended = doctor::attend(request, read.into(), write.into());
    drop(held);
    Ok(attended.map(|()| Served::Examination))
}

fn prepare(request: Request, only: Option<&Only>) -> Result<Serving, Error> {
    let (via, bind) = (request.via, request.bind());
    let enforced = Restriction::of(&request.task);
    let has_wildcards = request.task.has_wildcards();
    let (config, links_followed, sources) = config(request, only)?;
    let items = config.task.items().filter(|_| has_wildcards);
    let (transfer, ticket) = if via == Via::Ssh {
        // What begins later can report nothing on the line of the answer.
        config.check_target()?;
        (None, ticket(None, config.task.role())?)
    } else {
        let options = ListenOptions { bind, valid_for: VALID_FOR, keep: false, once: true };
        let transfer = start(Peer::Listen(options), config.clone())?;
        let mut ticket = transfer.ticket().cloned().ok_or(Error::Internal("a listener without a ticket"))?;
        add_ssh_address(&mut ticket);
        (Some(transfer), ticket)
    };
    answer(&Answer { ticket: ticket.clone(), links_followed, items, enforced }.to_text()?);
    Ok(Serving { config, ticket, transfer, _sources: sources, is_limited: only.is_some() })
}

/// Creates a ticket for a listener with `role`: at `endpoint`'s address, or over ssh only.
pub(super) fn ticket(endpoint: Option<&Endpoint>, role: Role) -> Result<Ticket, Error> {
    let addresses = endpoint.map(|endpoint| reachable(endpoint.local_address())).transpose().map_err(Error::System)?;
    let expires = SystemTime::now() + VALID_FOR;
    let mut ticket = Ticket { key: fresh_key()?, expires, addresses: addresses.unwrap_or_default(), listener: role };
    add_ssh_address(&mut ticket);
    Ok(ticket)
}

/// Adds the address of this host to which ssh has connected: it is probably reachable from the other side.
fn add_ssh_address(ticket: &mut Ticket) {
    let Some(port) = ticket.addresses.first().map(SocketAddr::port) else { return };
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let Some(Ok(own)) = connection.split(' ').nth(2).map(str::parse::<IpAddr>) else { return };
    ticket.addresses.retain(|address| address.ip() != own);
    ticket.addresses.insert(0, (own, port).into());
    ticket.addresses.truncate(crate::ticket::MAX_ADDRESSES);
}

/// Returns the configuration, the number of sources that are followed links, and the sources of a limited login, whose
/// folders must stay open.
pub(super) fn config(request: Request, only: Option<&Only>) -> Result<(TransferConfig, u64, Vec<Source>), Error> {
    let (mut links_followed, mut limited, endpoint) = (0, Vec::new(), request.endpoint());
    // A limited login changes nothing outside its folder.
    let remembers = only.is_none() && !request.forgets;
    let task = match request.task {
        RemoteTask::Send { sources: paths, scan, compared, dry_run }
        | RemoteTask::Forward { sources: paths, scan, compared, dry_run, .. } => {
            let paths = paths.iter().map(Bytes::to_path);
            let mut scan = scan;
            let roots = match only {
                Some(only) => {
                    limited = limited_sources(only, paths, &scan, compared)?;
                    // Links have been followed already.
                    scan.follow_items = false;
                    // They may lead out of its folder.
                    scan.follow_ways = false;
                    limited.iter().map(|source| source.root.clone()).collect()
                }
                None => all_sources(paths, compared)?,
            };
            // Checks every path, so that a wrong one is reported at once.
            let scanner = Scanner::new(roots.clone(), scan.clone()).map_err(|error| as_typed(error, &limited))?;
            links_followed =
                scanner.roots().followed() + limited.iter().filter(|source| source.is_followed).count() as u64;
            Task::Send { roots, scan, dry_run }
        }
        RemoteTask::Receive(spec) => {
            let spec = match only {
                Some(only) => ReceiveSpec {
                    target: only.enter(&spec.target)?,
                    within: Some(only.path()?),
                    differences: spec.differences && only.may_read(),
                    ..*spec
                },
                None => ReceiveSpec { target: expand(&spec.target)?, ..*spec },
            };
            Task::receive(spec, false)
        }
        RemoteTask::Pipe { .. } | RemoteTask::Examine { .. } | RemoteTask::Tunnel { .. } => {
            return Err(Error::Internal("not a transfer"));
        }
    };
    let config = TransferConfig {
        task,
        profile: request.profile,
        handshake_timeout: HANDSHAKE_TIMEOUT,
        endpoint,
        trace: None,
        paths: remembers.then(PathCache::of_user).flatten(),
        checksums: None,
        retry_for: None,
        by_ticket: false,
        patience: None,
    };
    Ok((config, links_followed, limited))
}

/// Returns the items to send, without a limit.
fn all_sources(paths: impl Iterator<Item = PathBuf>, compared: bool) -> Result<Vec<Root>, Error> {
    let mut roots = Vec::new();
    for path in paths {
        roots.extend(sources(&path)?);
    }
    for root in roots.iter_mut().filter(|root| compared && root.path.is_dir()) {
        *root = Root::contents(root.path.clone());
    }
    Ok(roots)
}

/// Returns the items to send from the folder that the login is limited to.
fn limited_sources(
    only: &Only,
    paths: impl Iterator<Item = PathBuf>,
    scan: &ScanOptions,
    compared: bool,
) -> Result<Vec<Source>, Error> {
    let reading = match scan.follow_items {
        _ if compared => Reading::Compared,
        true => Reading::Followed,
        false => Reading::AsIs,
    };
    let mut sources = Vec::new();
    for path in paths {
        let found = only.sources(&path, reading)?;
        let is_link = |source: &&Source| source.is_followed && !source.root.path.is_dir();
        if scan.remove_sources && found.iter().any(|source| is_link(&source)) {
            let what = "it does not remove what a link leads to: name the file itself";
            return Err(Error::Limited(what.to_owned()));
        }
        sources.extend(found);
    }
    Ok(sources)
}

impl Serving {
    async fn run(mut self) -> Result<Summary, Error> {
        let mut words = listen_to_stdin();
        let mut signals = Signals::install().map_err(Error::System)?;
        let mut over_ssh = self.transfer.is_none();
        let mut transfer = match self.transfer.take() {
            Some(transfer) => transfer,
            None => {
                let word = tokio::select! {
                    word = words.recv() => word,
                    () = signals.next() => None,
                };
                match word {
                    Some(GoOnOverSsh) => self.over_ssh()?,
                    None => return Err(Error::Terminated),
                }
            }
        };
        let announced = Announced::new(&self.config.task, self.is_limited);
        let mut last = Err(Error::Terminated);
        let (mut stopped, mut is_listening) = (false, true);
        loop {
            tokio::select! {
                event = transfer.next() => match event {
                    Some(TransferEvent::Done(result)) => last = result,
                    Some(event) => announced.follow(&event),
                    None => return last,
                },
                () = signals.next(), if !stopped => {
                    stopped = true;
                    transfer.stop(Stop::Terminated);
                }
                word = words.recv(), if is_listening && !stopped => match word {
                    Some(GoOnOverSsh) if !over_ssh => {
                        over_ssh = true;
                        transfer.stop(Stop::Cancelled);
                        // Without a peer it ends at once, and releases the target.
                        while transfer.next().await.is_some() {}
                        transfer = self.over_ssh()?;
                    }
                    // Standard input belongs to the carrier now.
                    None if over_ssh => is_listening = false,
                    // ssh has ended, so the result is no longer wanted.
                    _ => {
                        stopped = true;
                        transfer.stop(Stop::Cancelled);
                    }
                },
            }
        }
    }

    /// Starts the transfer over standard input and output.
    fn over_ssh(&self) -> Result<Transfer, Error> {
        let (read, write) = pipes_to_ssh()?;
        start_over(read, write, self.ticket.key, self.config.clone())
    }
}

/// Returns this process's standard input and output, which lead to the other side, as descriptors of their own.
pub(super) fn pipes_to_ssh() -> Result<(OwnedFd, OwnedFd), Error> {
    let own = |fd: io::Result<OwnedFd>| fd.map_err(Error::System);
    Ok((own(io::stdin().as_fd().try_clone_to_owned())?, own(io::stdout().as_fd().try_clone_to_owned())?))
}

/// Unbuffered standard input: the bytes that follow belong to others.
pub(super) struct Unbuffered;

impl io::Read for Unbuffered {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(io::stdin(), out)?)
    }
}

/// Starts a thread that reads standard input until it belongs to the carrier.
pub(super) fn listen_to_stdin() -> mpsc::UnboundedReceiver<GoOnOverSsh> {
    let (sender, words) = mpsc::unbounded_channel();
    thread::spawn(move || {
        if goes_on() {
            // Fails if the transfer has ended.
            let _ = sender.send(GoOnOverSsh);
        }
    });
    words
}

/// Waits until standard input says to continue over ssh; returns false at its end.
pub(super) fn goes_on() -> bool {
    let mut byte = [0];
    loop {
        match Unbuffered.read(&mut byte) {
            Ok(1) if byte == [GO_ON] => return true,
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

/// Prints the answer line.
pub(super) fn answer(text: &str) {
    answer_on(&mut io::stdout().lock(), text);
}

/// Prints the answer line to `out`. Errors are ignored: there is then no reader.
pub(super) fn answer_on(out: &mut impl io::Write, text: &str) {
    let _ = write!(out, "\n{ANSWER}{text}\n").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use net::EndpointOptions;

    use super::*;

    #[test]
    fn the_role_follows_the_task() {
        let request = |task| {
            Request::new(
                task,
                Via::Ssh,
                net::Family::Any,
                None,
                transport::Profile::auto(),
                EndpointOptions::new(Duration::from_secs(1)),
            )
        };
        let task = RemoteTask::Receive(Box::new(ReceiveSpec::to_target("/tmp")));
        assert_eq!(config(request(task), None).unwrap().0.task.role(), Role::Receives);
    }
}
