//! The process of a copy that ssh starts: `downpour remote`.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedReceiver;
use transport::profile::AlgorithmRegistry;

use super::announced::Announced;
use super::answer::RemoteAnswer;
use super::asked::{VALID_FOR, add_ssh_address, config, ticket};
use super::request::{Bounds, RemoteTask, Request};
use super::restricted_root::{KeyRestriction, RestrictedItem, RestrictedRoot};
use super::signals::Signals;
use super::standard_io::{FallBackToSsh, Unbuffered, answer, listen_to_stdin, pipes_to_ssh, refuse};
use super::{CarrierChoice, doctor, host_to_host_remote, pipe_end, tunnel_end};
use crate::base64::Bytes;
use crate::error::{Error, RequiredFeature};
use crate::ticket::Ticket;
use crate::transfer::{
    ListenOptions, Rendezvous, StopReason, Summary, Transfer, TransferConfig, TransferEvent, start, start_over,
};

/// The served request.
#[derive(Debug)]
pub enum ServeResult {
    /// A transfer.
    Transfer(Box<Summary>),
    /// A command was run; its exit code.
    Command(u8),
    /// The host was examined.
    Examination,
    /// A tunnel was served.
    Tunnel,
}

/// Serves the request on standard input, until it is done or ssh exits.
///
/// The profile may choose the controllers and schedules in `names`. Standard output carries one line, a ticket or an
/// error; standard input and output become the carrier if UDP is blocked. With a restriction, the peer reaches nothing
/// outside of its directory, and this process may change its current directory.
///
/// # Errors
/// Any error that ended it early. The peer has been informed as far as possible.
pub async fn serve(names: &AlgorithmRegistry, limit: Option<&KeyRestriction>) -> Result<ServeResult, Error> {
    let only = limit.map(RestrictedRoot::open).transpose().inspect_err(refuse)?;
    let bounds = if only.is_some() { Bounds::LIMITED } else { Bounds::OF_USER };
    let mut request = Request::read(&mut Unbuffered, names, bounds).inspect_err(refuse)?;
    let mut held = None;
    if let Some(only) = &only {
        request.limit_memory();
        only.permits(&request.task).inspect_err(refuse)?;
        if let RemoteTask::Examine { directory } = &mut request.task {
            let path = directory.as_ref().map_or_else(PathBuf::new, Bytes::to_path);
            let (measured, open) = only.measured(&path).inspect_err(refuse)?;
            (*directory, held) = (Some(measured.as_path().into()), Some(open));
        }
    }
    match &request.task {
        RemoteTask::Examine { .. } => apart(move || examine(request, held)).await,
        RemoteTask::Pipe { command } => {
            let (bind, command) = ((request.via != CarrierChoice::Ssh).then(|| request.bind()), command.clone());
            let run = move || pipe_end::run(&command, bind.as_ref(), request.engine());
            // From the answer on, standard output belongs to the command.
            apart(move || run().map(|ended| ended.map(ServeResult::Command))).await
        }
        RemoteTask::Tunnel { listen } => {
            let listen = listen.clone();
            tunnel_end::run(&request, &listen).await.map(|()| ServeResult::Tunnel)
        }
        RemoteTask::Forward { .. } => host_to_host_remote::run(request, only.as_ref())
            .await
            .map(|summary| ServeResult::Transfer(Box::new(summary))),
        RemoteTask::Send { .. } | RemoteTask::Receive(_) => prepare(request, only.as_ref())
            .inspect_err(refuse)?
            .run()
            .await
            .map(|summary| ServeResult::Transfer(Box::new(summary))),
    }
}

/// Runs `work`, which blocks, on a thread of its own. An error of `work` itself is reported to the peer, an error in
/// its result is not.
async fn apart(
    work: impl FnOnce() -> Result<Result<ServeResult, Error>, Error> + Send + 'static,
) -> Result<ServeResult, Error> {
    let (done, ended) = tokio::sync::oneshot::channel();
    // Sending fails if the program is ending.
    let spawned = runtime::spawn("downpour-apart", move || drop(done.send(work())));
    let result = match spawned {
        Ok(_) => ended.await.unwrap_or(Err(Error::Internal("a thread without a result"))),
        Err(error) => Err(Error::OutOfResources(error)),
    };
    result.inspect_err(refuse).flatten()
}

struct Serving {
    config: TransferConfig,
    ticket: Ticket,
    /// The transfer over UDP.
    transfer: Option<Transfer>,
    /// The messages of the peer through ssh.
    words: UnboundedReceiver<FallBackToSsh>,
    /// Directories of a restricted key that must stay open while their items are read.
    _sources: Vec<RestrictedItem>,
    is_limited: bool,
}

/// Answers a doctor over standard input and output. Keeps `held`, the directory to measure, open meanwhile.
fn examine(request: Request, held: Option<OwnedFd>) -> Result<Result<ServeResult, Error>, Error> {
    let (read, write) = pipes_to_ssh()?;
    // Errors are part of the answers.
    let attended = doctor::attend(request, read.into(), write.into());
    drop(held);
    Ok(attended.map(|()| ServeResult::Examination))
}

fn prepare(request: Request, only: Option<&RestrictedRoot>) -> Result<Serving, Error> {
    let (via, bind) = (request.via, request.bind());
    let enforced = RequiredFeature::of(&request.task);
    let has_wildcards = request.task.has_wildcards();
    let (config, links_followed, sources) = config(request, only)?;
    let items = config.task.items().filter(|_| has_wildcards);
    let (transfer, ticket) = if via == CarrierChoice::Ssh {
        // A later failure cannot be reported on the answer line.
        config.check_target()?;
        (None, ticket(None, config.task.role())?)
    } else {
        let options = ListenOptions { bind, valid_for: VALID_FOR, keep: false, once: true };
        let transfer = start(Rendezvous::Listen(options), config.clone())?;
        let mut ticket = transfer.ticket().cloned().ok_or(Error::Internal("a listener without a ticket"))?;
        add_ssh_address(&mut ticket);
        (Some(transfer), ticket)
    };
    let words = listen_to_stdin()?;
    answer(&RemoteAnswer { ticket: ticket.clone(), links_followed, items, enforced }.to_text()?);
    Ok(Serving { config, ticket, transfer, words, _sources: sources, is_limited: only.is_some() })
}

impl Serving {
    async fn run(mut self) -> Result<Summary, Error> {
        let mut signals = Signals::install().map_err(Error::OutOfResources)?;
        let mut over_ssh = self.transfer.is_none();
        let mut transfer = match self.transfer.take() {
            Some(transfer) => transfer,
            None => {
                let word = tokio::select! {
                    word = self.words.recv() => word,
                    () = signals.next() => None,
                };
                match word {
                    Some(FallBackToSsh) => self.over_ssh()?,
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
                    transfer.stop(StopReason::Terminated);
                }
                word = self.words.recv(), if is_listening && !stopped => match word {
                    Some(FallBackToSsh) if !over_ssh => {
                        over_ssh = true;
                        transfer.stop(StopReason::Cancelled);
                        // Without a peer it ends at once, and releases the target.
                        while transfer.next().await.is_some() {}
                        transfer = self.over_ssh()?;
                    }
                    // Standard input belongs to the carrier now.
                    None if over_ssh => is_listening = false,
                    // ssh has exited, so the result is no longer needed.
                    _ => {
                        stopped = true;
                        transfer.stop(StopReason::Cancelled);
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
