//! The other end of a pipe: a command whose standard input is a stream.

use std::fs::File;
use std::io::{self, BufRead, PipeWriter, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use net::{Bind, Connection, Endpoint, Event, EventHandler, NetError};
use transport::AcceptOptions;

use super::pipe::{code, shell};
use super::pipe_frames;
use super::serve::{Unbuffered, answer, goes_on, ticket};
use crate::error::{CloseCode, Error};
use crate::protocol::handshake::PIPE;
use crate::ticket::Role;
use crate::wait::{Blocking, block_on};

/// The tag of the one stream.
pub(super) const STREAM: u64 = 0;

/// Chunks that ssh has brought and the command has not read, at most.
const MAX_CHUNKS: usize = 32;

/// How long the last words may take.
const LINGER: Duration = Duration::from_secs(2);

/// What happens to it.
enum Input {
    /// A peer has proved that it has the key and answers now.
    Connected(Connection),
    /// Of the peer that was the first to prove it.
    Network(Event),
    /// The stream ended before its end.
    Broken(NetError),
    /// UDP is closed: this is the stream.
    OverSsh(Receiver<Vec<u8>>),
    /// The command has ended.
    Exited(u8),
    /// ssh has ended.
    End,
}

/// Waits for the one peer, runs `command` with the stream as its input, and gives its exit code. Without `bind` it comes over ssh only.
///
/// # Errors
/// What keeps it from beginning; within the result, what ended it later.
pub(super) fn run(
    command: &str,
    bind: Option<&Bind>,
    dead_after: Duration,
    profile: transport::Profile,
) -> Result<Result<u8, Error>, Error> {
    let (sender, inputs) = channel();
    let endpoint = bind.map(|bind| Endpoint::bind(bind, dead_after, ())).transpose()?;
    let ticket = ticket(endpoint.as_ref(), Role::Receives)?;
    if let Some(endpoint) = &endpoint {
        let options = AcceptOptions { profile, application: PIPE.to_vec(), qlog: false };
        let (sender, first) = (sender.clone(), Arc::<AtomicBool>::default());
        let acceptor = Box::new(move |connection| accept(connection, Arc::clone(&first), sender.clone()));
        endpoint.listen(ticket.key, ticket.expires, options, acceptor);
    }
    answer(&ticket.to_text()?);
    let watcher = sender.clone();
    thread::spawn(move || listen_to_ssh(&watcher));
    let mut end = End { command: command.to_owned(), endpoint, connection: None, child: None, sender };
    let result = end.drive(&inputs);
    if let Some(connection) = &end.connection {
        match &result {
            Ok(_) => connection.close(CloseCode::Done as u32, ""),
            Err(error) => connection.close(error.close_code() as u32, error.close_reason()),
        }
        wait_for_close(&inputs);
    }
    Ok(result)
}

/// Takes a connection that has begun. It counts, and is heard, when the peer has proved that it has the key and answers now, and is the
/// first to do so: one whose packets come only this way must not end what has long gone on over ssh.
fn accept(connection: Connection, first: Arc<AtomicBool>, sender: Sender<Input>) -> EventHandler {
    let mut is_heard = false;
    Box::new(move |event| {
        if let Event::Connected { .. } = event {
            if first.swap(true, Ordering::Relaxed) {
                connection.close(CloseCode::Busy as u32, "the pipe is in use");
            } else {
                is_heard = true;
                // Whoever has ended hears nothing.
                let _ = sender.send(Input::Connected(connection.clone()));
            }
        } else if is_heard {
            let _ = sender.send(Input::Network(event));
        }
    })
}

/// Reads standard input to its end, the command's input among it when that comes through ssh.
fn listen_to_ssh(sender: &Sender<Input>) {
    if goes_on() {
        let (input, bytes) = sync_channel(MAX_CHUNKS);
        // Whoever has ended hears nothing.
        let _ = sender.send(Input::OverSsh(bytes));
        // A command that has ended needs no more; an input without its end is like the end of ssh.
        if pipe_frames::receive(Unbuffered, |bytes| input.send(bytes).is_ok()).is_ok() {
            while goes_on() {}
        }
    }
    let _ = sender.send(Input::End);
}

/// The last words are heard, or it takes too long.
fn wait_for_close(inputs: &Receiver<Input>) {
    while let Ok(input) = inputs.recv_timeout(LINGER) {
        if matches!(input, Input::Network(Event::Closed(_))) {
            return;
        }
    }
}

/// A command that runs.
struct Running {
    /// Its process group, which it shares with its guard alone.
    group: rustix::process::Pid,
    dismissal: Dismissal,
}

/// What a guard does: it waits for the word that all is well. Where the word's pipe ends without it, this program is dead, and the command
/// dies before its input ends.
const GUARD: &str = r#"read -r word; test "$word" = whole || kill -KILL 0"#;

/// A process that outlives this program, by a moment: it holds the command's input open, for a command must not take what had come when
/// this program was killed for the whole.
struct Guard {
    process: Child,
    dismissal: Dismissal,
}

/// Ends a guard, and nothing else.
struct Dismissal(File);

impl Guard {
    /// Starts one, at the head of a process group, that holds `input` too.
    fn start(input: &PipeWriter) -> std::io::Result<Self> {
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD]).stdin(Stdio::piped()).stdout(input.try_clone()?).process_group(0);
        let mut process = guard.spawn()?;
        let word = process.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, dismissal: Dismissal(OwnedFd::from(word).into()) })
    }
}

impl Dismissal {
    fn dismiss(&mut self) {
        // It may have been dismissed.
        let _ = self.0.write_all(b"whole\n");
    }
}

struct End {
    command: String,
    /// While the peer may come by UDP, or has.
    endpoint: Option<Endpoint>,
    connection: Option<Connection>,
    child: Option<Running>,
    sender: Sender<Input>,
}

impl End {
    fn drive(&mut self, inputs: &Receiver<Input>) -> Result<u8, Error> {
        let result = self.follow(inputs);
        match (&result, &mut self.child) {
            (Err(_), _) => self.kill(),
            // What the command has left running on purpose is not to die with this program.
            (Ok(_), Some(child)) => child.dismissal.dismiss(),
            (Ok(_), None) => {}
        }
        result
    }

    fn follow(&mut self, inputs: &Receiver<Input>) -> Result<u8, Error> {
        for input in inputs {
            match input {
                Input::Connected(connection) if self.endpoint.is_some() => self.connection = Some(connection),
                Input::Network(event) if self.connection.is_some() => self.event(event)?,
                // UDP was given up.
                Input::Connected(_) | Input::Network(_) => {}
                Input::Broken(NetError::StreamReset { .. }) => {
                    return Err(Error::Violation("it gave the stream up".to_owned()));
                }
                Input::Broken(_) => return Err(Error::Vanished),
                Input::Exited(code) => return Ok(code),
                Input::End => return Err(Error::Cancelled),
                Input::OverSsh(bytes) if self.child.is_none() => {
                    // Its peer has gone, or never knew that it was heard.
                    (self.endpoint, self.connection) = (None, None);
                    self.start(Frames::new(bytes))?;
                }
                Input::OverSsh(_) => return Err(Error::Violation("it sends through ssh too".to_owned())),
            }
        }
        Err(Error::Internal("the network thread has ended"))
    }

    fn event(&mut self, event: Event) -> Result<(), Error> {
        match event {
            // The command itself comes through ssh; it starts when its input does.
            Event::StreamOpened => {
                let connection = self.connection.as_ref().ok_or(Error::Internal("a stream without a connection"))?;
                let stream = block_on(connection.accept_stream())?;
                if self.child.is_some() || stream.tag() != STREAM {
                    return Err(Error::Violation("it opens more than one stream".to_owned()));
                }
                self.start(Blocking(stream))
            }
            Event::Failed(error) => Err(error.into()),
            Event::Closed(_) => Err(Error::Vanished),
            _ => Ok(()),
        }
    }

    /// Starts the command, a thread that feeds it, and one that waits for its end.
    fn start(&mut self, input: impl BufRead + Send + 'static) -> Result<(), Error> {
        let (stdin, into) = std::io::pipe().map_err(Error::System)?;
        let guard = Guard::start(&into).map_err(Error::System)?;
        let dismissal = Dismissal(guard.dismissal.0.try_clone().map_err(Error::System)?);
        let group = rustix::process::Pid::from_child(&guard.process);
        let child = shell(&self.command).stdin(stdin).process_group(group.as_raw_nonzero().get()).spawn();
        let child = child.map_err(Error::System)?;
        let sender = self.sender.clone();
        thread::spawn(move || {
            // Whoever has ended hears nothing.
            if let Err(Some(error)) = feed(into, input, guard) {
                let _ = sender.send(Input::Broken(error));
            }
        });
        let sender = self.sender.clone();
        thread::spawn(move || wait(child, &sender));
        self.child = Some(Running { group, dismissal });
        Ok(())
    }

    /// Ends the command and what it has started before its input ends: it must not take a part for the whole.
    fn kill(&self) {
        if let Some(Running { group, .. }) = &self.child {
            // It may have ended by itself.
            let _ = rustix::process::kill_process_group(*group, rustix::process::Signal::KILL);
        }
    }
}

/// Feeds a command until its input is whole; its guard holds the input open until then.
///
/// # Errors
/// The input ended before its end. What comes through ssh is missed by who reads it.
fn feed(mut stdin: PipeWriter, mut input: impl BufRead, mut guard: Guard) -> Result<(), Option<NetError>> {
    let mut deaf = false;
    loop {
        let chunk = input.fill_buf().map_err(|error| error.downcast().ok())?;
        if chunk.is_empty() {
            break;
        }
        // A command may end, or close its input, before it has read all: the rest is read and dropped, as a shell's pipe would end.
        deaf = deaf || stdin.write_all(chunk).is_err();
        let count = chunk.len();
        input.consume(count);
    }
    drop(stdin);
    guard.dismissal.dismiss();
    // It ends at once.
    let _ = guard.process.wait();
    Ok(())
}

/// What comes through ssh: chunks, of which an empty one is the end.
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
            self.chunk = self.chunks.recv().map_err(|_| io::ErrorKind::UnexpectedEof)?;
            (self.at, self.ended) = (0, self.chunk.is_empty());
        }
        Ok(&self.chunk[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

fn wait(mut child: Child, sender: &Sender<Input>) {
    let code = child.wait().map_or(1, code);
    let _ = sender.send(Input::Exited(code));
}
