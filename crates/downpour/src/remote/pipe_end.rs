//! The remote side of a pipe: a command whose standard input is a stream.

use std::io::{self, BufRead, PipeWriter, Read, Write as _};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Duration;

use net::{Bind, Connection, Endpoint, Event, EventHandler, NetError};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use transport::AcceptOptions;

use super::asked::ticket;
use super::pipe::{code, shell};
use super::pipe_frames;
use super::pipe_frames::STREAM;
use super::pipe_guard::{Guarded, Started, kill, start};
use super::standard_io::{Unbuffered, answer, wait_for_fallback};
use crate::block_on::{Blocking, block_on};
use crate::error::{Closing, Error, ErrorKind};
use crate::options::EngineOptions;
use crate::protocol::handshake::PIPE;
use crate::ticket::Role;

/// Maximum number of chunks received through ssh that the command has not read.
const MAX_CHUNKS: usize = 32;

/// How long the last messages may take.
const LINGER: Duration = Duration::from_secs(2);

/// An input of the remote side.
enum Input {
    /// A peer was authenticated, and is not a replay.
    Connected(Connection),
    /// A network event of the peer that was authenticated first.
    Network(Event),
    /// The stream was reset.
    Broken(NetError),
    /// UDP is blocked: these chunks are the stream.
    OverSsh(Receiver<Vec<u8>>),
    /// The command has ended.
    Exited(Child),
    /// ssh has exited.
    End,
}

/// Waits for the only peer, runs `command` with the stream as its input, and returns its exit code. Without `bind` the
/// stream uses ssh only.
///
/// # Errors
/// Errors that prevent the start; errors after that are in the inner result.
pub(super) fn run(command: &str, bind: Option<&Bind>, engine: EngineOptions) -> Result<Result<u8, Error>, Error> {
    let (sender, inputs) = channel();
    let endpoint = bind.map(|bind| Endpoint::builder().options(engine.endpoint).bind(bind)).transpose()?;
    let ticket = ticket(endpoint.as_ref(), Role::Receiver)?;
    if let Some(endpoint) = &endpoint {
        let options = AcceptOptions::default().profile(engine.profile).application(PIPE);
        let (sender, first) = (sender.clone(), Arc::<AtomicBool>::default());
        let acceptor = Box::new(move |connection| accept(connection, Arc::clone(&first), sender.clone()));
        endpoint.listen(ticket.key, ticket.expires, options, acceptor);
    }
    answer(&ticket.to_text()?);
    let watcher = sender.clone();
    // From the answer on, stdout is the command's.
    if let Err(error) = runtime::spawn("downpour-pipe-ssh", move || listen_to_ssh(&watcher)) {
        return Ok(Err(Error::OutOfResources(error)));
    }
    let mut end = RemotePipe { command: command.to_owned(), endpoint, connection: None, child: None, sender };
    let result = end.drive(&inputs);
    if let Some(connection) = &end.connection {
        let closing = result.as_ref().map_or_else(|error| Closing::of(error, false), |_| Closing::done());
        closing.close(connection);
        wait_for_close(&inputs);
    }
    if let Some(running) = &end.child {
        running.guarded.hold();
    }
    Ok(result)
}

/// Accepts a new connection. Its events are processed only once the peer has proved that it has the key and is
/// responding, and only if it is the first to do so: a peer whose packets arrive in one direction only must not end a
/// pipe that has long used ssh.
fn accept(connection: Connection, first: Arc<AtomicBool>, sender: Sender<Input>) -> EventHandler {
    let mut is_heard = false;
    Box::new(move |event| {
        if let Event::Connected { .. } = event {
            if first.swap(true, Ordering::Relaxed) {
                Closing::as_text(ErrorKind::Busy, "the pipe is in use").close(&connection);
            } else {
                is_heard = true;
                // Fails if the end has finished.
                let _ = sender.send(Input::Connected(connection.clone()));
            }
        } else if is_heard {
            let _ = sender.send(Input::Network(event));
        }
    })
}

/// Reads standard input to its end, including the command's input if that uses ssh.
fn listen_to_ssh(sender: &Sender<Input>) {
    if wait_for_fallback() {
        let (input, bytes) = sync_channel(MAX_CHUNKS);
        // Fails if the end has finished.
        let _ = sender.send(Input::OverSsh(bytes));
        // A command that has ended needs no more input; truncated input is treated like the exit of ssh.
        if pipe_frames::receive(Unbuffered, |bytes| input.send(bytes).is_ok()).is_ok() {
            while wait_for_fallback() {}
        }
    }
    let _ = sender.send(Input::End);
}

/// Waits until the connection is closed, or nothing happens for [`LINGER`].
fn wait_for_close(inputs: &Receiver<Input>) {
    while let Ok(input) = runtime::recv_timeout(inputs, LINGER) {
        if matches!(input, Input::Network(Event::Closed(_))) {
            return;
        }
    }
}

/// A running command.
struct Running {
    group: Pid,
    guarded: Guarded,
}

struct RemotePipe {
    command: String,
    /// Present while the peer may connect over UDP, or has.
    endpoint: Option<Endpoint>,
    connection: Option<Connection>,
    child: Option<Running>,
    sender: Sender<Input>,
}

impl RemotePipe {
    fn drive(&mut self, inputs: &Receiver<Input>) -> Result<u8, Error> {
        let result = self.follow(inputs);
        match (&result, &self.child) {
            (Err(_), Some(running)) => kill(running.group),
            // Processes that the command has deliberately left running must not die with this program.
            (Ok(_), Some(running)) => running.guarded.dismiss(),
            (_, None) => {}
        }
        result
    }

    fn follow(&mut self, inputs: &Receiver<Input>) -> Result<u8, Error> {
        while let Ok(input) = runtime::recv(inputs) {
            match input {
                Input::Connected(connection) if self.endpoint.is_some() => self.connection = Some(connection),
                Input::Network(event) if self.connection.is_some() => self.event(event)?,
                // UDP was abandoned.
                Input::Connected(_) | Input::Network(_) => {}
                Input::Broken(NetError::StreamReset { .. }) => {
                    return Err(Error::ProtocolViolation("stream reset".to_owned()));
                }
                Input::Broken(_) => return Err(Error::ConnectionLost),
                Input::Exited(mut child) => return Ok(child.wait().map_or(1, code)),
                Input::End => return Err(Error::Cancelled),
                Input::OverSsh(bytes) if self.child.is_none() => {
                    // Its peer has exited, or never received a response.
                    (self.endpoint, self.connection) = (None, None);
                    self.start(Frames::new(bytes))?;
                }
                Input::OverSsh(_) => {
                    return Err(Error::ProtocolViolation("data received over UDP and over ssh".to_owned()));
                }
            }
        }
        Err(Error::Internal("the network thread has ended"))
    }

    fn event(&mut self, event: Event) -> Result<(), Error> {
        match event {
            // The command arrived through ssh; it is started when its input begins.
            Event::StreamOpened => {
                let connection = self.connection.as_ref().ok_or(Error::Internal("a stream without a connection"))?;
                let stream = block_on(connection.accept_uni())?;
                if self.child.is_some() || stream.tag() != STREAM {
                    return Err(Error::ProtocolViolation("more than one stream opened".to_owned()));
                }
                self.start(Blocking(stream))
            }
            Event::ObjectFailed(error) => Err(error.into()),
            Event::Closed(_) => Err(Error::ConnectionLost),
            _ => Ok(()),
        }
    }

    /// Starts the command, a thread that feeds it, and one that waits for its end.
    fn start(&mut self, input: impl BufRead + Send + 'static) -> Result<(), Error> {
        let Started { child, group, input: into, guarded } =
            start(shell(&self.command)).map_err(Error::OutOfResources)?;
        // Any later failure ends the command, too.
        self.child = Some(Running { group, guarded: guarded.clone() });
        let (sender, guard) = (self.sender.clone(), guarded);
        let feed = move || match feed(into, input) {
            Ok(()) => guard.dismiss(),
            // Fails if the end has finished.
            Err(Some(error)) => drop(sender.send(Input::Broken(error))),
            Err(None) => {}
        };
        runtime::spawn("downpour-pipe-input", feed).map_err(Error::OutOfResources)?;
        let sender = self.sender.clone();
        runtime::spawn("downpour-pipe-wait", move || wait(child, group, &sender)).map_err(Error::OutOfResources)?;
        Ok(())
    }
}

/// Feeds a command until its input is complete; its guard holds the input open.
///
/// # Errors
/// The input was truncated. For input through ssh, its reader reports that.
fn feed(mut stdin: PipeWriter, mut input: impl BufRead) -> Result<(), Option<NetError>> {
    let mut deaf = false;
    loop {
        let chunk = input.fill_buf().map_err(|error| error.downcast().ok())?;
        if chunk.is_empty() {
            return Ok(());
        }
        // A command may end, or close its input, before reading everything: the rest is read and dropped, as by a
        // shell's pipe.
        deaf = deaf || stdin.write_all(chunk).is_err();
        let count = chunk.len();
        input.consume(count);
    }
}

/// Input through ssh: chunks, of which an empty one is the end.
struct Frames {
    chunks: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Frames {
    const fn new(chunks: Receiver<Vec<u8>>) -> Self {
        Self { chunks, chunk: Vec::new(), at: 0, ended: false }
    }
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Frames {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.chunk.len() && !self.ended {
            self.chunk = runtime::recv(&self.chunks).map_err(|_| io::ErrorKind::UnexpectedEof)?;
            (self.at, self.ended) = (0, self.chunk.is_empty());
        }
        Ok(&self.chunk[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

/// Waits for the end of a command, and leaves its process to the receiver of the event: until then, the number of its
/// group is not reused.
fn wait(child: Child, group: Pid, sender: &Sender<Input>) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(group), ended), Err(Errno::INTR)) {}
    // Fails if the end has finished.
    let _ = sender.send(Input::Exited(child));
}
