//! The sending host of a copy between two remote hosts: it copies to the receiver directly or, if it cannot log in to
//! that, through the host that requested the copy.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use super::announced::Announced;
use super::answer::RemoteAnswer;
use super::asked::{config, ticket};
use super::host_to_host_frames::{Frame, Frames, MAX_DATA, RelayCommand, RelayEvent, read_frame};
use super::request::{Onward, RemoteTask, Request};
use super::restricted_root::{RestrictedItem, RestrictedRoot};
use super::signals::Signals;
use super::standard_io::{answer, pipes_to_ssh, refuse};
use super::{HostCopy, Location, PathOptions, SshOptions};
use crate::error::{Context, Error, RequiredFeature};
use crate::files::ReceiveRequest;
use crate::ticket::Role;
use crate::transfer::{
    PeerLocator, Route, StopReason, Summary, Task, Transfer, TransferConfig, TransferControl, TransferEvent, start_via,
};

type Output = Arc<Frames<File>>;

/// Sends the requested items, and reports on standard output.
///
/// # Errors
/// Any error that ended it early; it has been reported.
pub(super) async fn run(request: Request, only: Option<&RestrictedRoot>) -> Result<Summary, Error> {
    let began = begin(request, only).inspect_err(refuse)?;
    let mut signals = Signals::install().map_err(Error::OutOfResources)?;
    let switch = began.transfer.switch();
    let (done, mut ended) = oneshot::channel();
    let (transfer, output, announced) = (began.transfer, began.output, began.announced);
    // It writes to a pipe, which may block.
    let work = move || drop(done.send(report(transfer, &output, &announced)));
    runtime::spawn("downpour-report", work).map_err(Error::OutOfResources)?;
    loop {
        tokio::select! {
            result = &mut ended => return result.unwrap_or(Err(Error::Internal("a thread without a result"))),
            () = signals.next() => switch.stop(StopReason::Terminated),
        }
    }
}

/// A running transfer.
struct Began {
    transfer: Transfer,
    output: Output,
    announced: Announced,
    /// Directories of a restricted key that must stay open while their items are read.
    _sources: Vec<RestrictedItem>,
}

fn begin(mut request: Request, only: Option<&RestrictedRoot>) -> Result<Began, Error> {
    let enforced = RequiredFeature::of(&request.task);
    let has_wildcards = request.task.has_wildcards();
    let onward = match &mut request.task {
        RemoteTask::Forward { onward, .. } => onward.take(),
        _ => return Err(Error::Internal("not a copy to another host")),
    };
    let path = request.path();
    let (mut sending, _, sources) = config(request, only)?;
    let items = sending.task.items().filter(|_| has_wildcards);
    // Followed links of a restricted key are counted only here.
    let links_followed = sources.iter().filter(|source| source.is_followed).count() as u64;
    let (key, joining) = channel();
    let (local, remote) = UnixStream::pair().map_err(Error::OutOfResources)?;
    let (input, output) = pipes_to_ssh()?;
    let output = Arc::new(Frames::new(File::from(output)));
    let mut forwarder = Forwarder::new(Arc::clone(&output), joining, local);
    match onward {
        Some(_) if only.is_some() => forwarder.why = Some("its key is restricted to one directory".to_owned()),
        Some(onward) => {
            sending.options.retry_for = onward.retry_for;
            forwarder.direct = Some(direct(*onward, path, &sending)?);
        }
        None => {}
    }
    let pipe = remote.try_clone().map_err(Error::OutOfResources)?;
    // Before the transfer begins, which may have to report that it cannot reach the receiver.
    answer(&RemoteAnswer { ticket: ticket(None, Role::Sender)?, links_followed, items, enforced }.to_text()?);
    let announced = Announced::new(&sending.task, only.is_some());
    let transfer = start_via(Box::new(forwarder), sending)?;
    let joined = Joined { switch: transfer.switch(), key: Some(key), pipe: Some(remote) };
    spawn("downpour-orders", move || joined.obey(File::from(input)))?;
    let data = Arc::clone(&output);
    spawn("downpour-between", move || pump(pipe, &data))?;
    Ok(Began { transfer, output, announced, _sources: sources })
}

/// Returns the direct path to the receiver: by this user's own ssh, without prompts.
fn direct(onward: Onward, path: PathOptions, sending: &TransferConfig) -> Result<Box<dyn PeerLocator>, Error> {
    let Task::Send { spec, .. } = &sending.task else { return Err(Error::Internal("a sender that receives")) };
    let Onward { host, port, receive, keeps_names, program, .. } = onward;
    let copy = HostCopy {
        receive,
        scan: spec.scan.clone(),
        keeps_names,
        ssh: SshOptions { port, remote_program: program, asks: false, ..SshOptions::default() },
        path,
        options: sending.options.clone(),
        ..HostCopy::new(Vec::new(), Location::Local(PathBuf::new()))
    };
    let receive = ReceiveRequest { requested: copy.requested(&spec.roots), ..copy.receive.clone() };
    let request = copy.request(RemoteTask::Receive(Box::new(receive)));
    Ok(copy.locator(host, request))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    runtime::spawn(name, work).map(drop).map_err(Error::OutOfResources)
}

/// Reports every event; returns the result.
fn report(mut transfer: Transfer, output: &Frames<File>, announced: &Announced) -> Result<Summary, Error> {
    let mut last = Err(Error::Terminated);
    while let Some(event) = transfer.next_blocking() {
        announced.follow(&event);
        let result = match &event {
            TransferEvent::Done(Ok(summary)) => Some(Ok(summary.clone())),
            TransferEvent::Done(Err(error)) => {
                Some(Err(Error::Described { kind: error.kind(), message: error.to_string() }))
            }
            _ => None,
        };
        if RelayEvent::of(event).iter().any(|report| output.report(report).is_err()) {
            transfer.stop(StopReason::Cancelled);
        }
        last = result.unwrap_or(last);
    }
    last
}

/// Relays the datagrams for the receiver.
fn pump(mut pipe: UnixStream, output: &Frames<File>) {
    let mut buffer = vec![0; MAX_DATA];
    loop {
        match pipe.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(count @ 1..) if output.data(&buffer[..count]).is_ok() => {}
            _ => return,
        }
    }
}

/// The targets of the commands.
struct Joined {
    switch: Arc<TransferControl>,
    /// Takes the key, once.
    key: Option<Sender<[u8; 32]>>,
    /// Leads to the relayed connection.
    pipe: Option<UnixStream>,
}

impl Joined {
    /// Obeys until the requesting host closes, and ends the transfer then.
    fn obey(mut self, mut input: File) {
        while let Ok(Some(frame)) = read_frame(&mut input) {
            match frame {
                Frame::Data(bytes) if bytes.is_empty() => self.end_data(),
                // A closed connection takes no more.
                Frame::Data(bytes) => drop(self.pipe.as_mut().map(|pipe| pipe.write_all(&bytes))),
                Frame::Order(RelayCommand::Limit(limit)) => self.switch.limit(limit),
                Frame::Order(RelayCommand::Stop { terminated }) => {
                    self.switch.stop(if terminated { StopReason::Terminated } else { StopReason::Cancelled });
                    self.key = None;
                }
                Frame::Order(RelayCommand::Through { key }) => {
                    let key = <[u8; 32]>::try_from(key.0).ok();
                    if let Some((sender, key)) = self.key.take().zip(key) {
                        // It may have ended by now.
                        let _ = sender.send(key);
                    }
                }
                Frame::Report(_) => break,
            }
        }
        self.switch.stop(StopReason::Cancelled);
    }

    /// Signals to the connection that the receiver has ended.
    fn end_data(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            // The datagrams for the receiver need no end: it has exited.
            let _ = pipe.shutdown(Shutdown::Both);
        }
    }
}

/// Finds the receiver: directly, or through the host that requested the copy.
struct Forwarder {
    output: Output,
    /// The direct path, unless it has failed.
    direct: Option<Box<dyn PeerLocator>>,
    /// Why there is no direct path, until this is reported.
    why: Option<String>,
    /// Whether the receiver was reached directly.
    has_reached: bool,
    joining: Receiver<[u8; 32]>,
    pipe: Option<UnixStream>,
}

impl Forwarder {
    fn new(output: Output, joining: Receiver<[u8; 32]>, pipe: UnixStream) -> Self {
        Self { output, direct: None, why: None, has_reached: false, joining, pipe: Some(pipe) }
    }

    /// Waits for the key of the receiver.
    fn through(&mut self) -> Result<Route, Error> {
        if let Some(why) = self.why.take() {
            // Its end shows in the wait.
            let _ = self.output.report(&RelayEvent::Unreached { why });
        }
        let gone = |_| Error::Ssh("the host that requested the copy has closed the connection".to_owned());
        let key = runtime::recv(&self.joining).map_err(gone)?;
        let pipe = self.pipe.take().ok_or(Error::ConnectionLost)?;
        let read: OwnedFd = pipe.try_clone().map_err(Error::OutOfResources)?.into();
        Ok(Route::Pipe { read, write: pipe.into(), key })
    }
}

impl PeerLocator for Forwarder {
    fn locate(&mut self, switch: &TransferControl, on_note: &mut dyn FnMut(String)) -> Result<Route, Error> {
        let Some(direct) = &mut self.direct else { return self.through() };
        match direct.locate(switch, on_note) {
            // An error of the receiver's downpour is an answer.
            Err(error)
                if !self.has_reached
                    && switch.stopped().is_none()
                    && !matches!(error, Error::Within { context: Context::Host(_), .. }) =>
            {
                direct.release(false);
                self.direct = None;
                self.why = Some(error.to_string());
                self.through()
            }
            found => {
                self.has_reached |= found.is_ok();
                found
            }
        }
    }

    fn fallback(&mut self, error: &Error) -> Option<(Result<Route, Error>, TransferEvent)> {
        self.direct.as_mut()?.fallback(error)
    }

    fn explain(&mut self, error: Error) -> Error {
        match &mut self.direct {
            Some(direct) => direct.explain(error),
            None => super::locator::from_remote(error),
        }
    }

    fn can_repeat(&self) -> bool {
        self.direct.is_some()
    }

    fn release(&mut self, succeeded: bool) {
        self.direct.iter_mut().for_each(|direct| direct.release(succeeded));
    }
}
