//! `pipe`: sends standard input to the standard input of a command on a remote host, as an ordered stream over UDP or
//! in frames over ssh. The command's output returns through ssh.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use net::{Bind, Connection, Endpoint, Event, NetError, SendStream};
use tokio::sync::mpsc;
use transport::ConnectOptions;

use super::locator::from_remote;
use super::pipe_frames::{STREAM, Unsent};
use super::pipe_output::OutputState;
use super::request::RemoteTask;
use super::ssh::Remote;
use super::{CarrierChoice, HostOptions, pipe_frames, pipe_output};
use crate::block_on::{Blocking, block_on};
use crate::error::{Closing, Error, PeerContext, is_done};
use crate::protocol::handshake::PIPE;
use crate::protocol::ssh::FALL_BACK;
use crate::streams::{SignalProbe, Stdin};
use crate::ticket::Role;
use crate::transfer::{StopReason, TransferControl};

/// Bytes per read.
const CHUNK: usize = 128 << 10;

/// Maximum number of queued events; there are fewer.
const MAX_EVENTS: usize = 16;

/// How long to wait for the peer's last messages when ssh has exited with its own error code instead of the command's.
const LAST_WORDS: Duration = Duration::from_secs(2);
const SSH_FAILED: i32 = 255;

/// Interval of checks whether ssh, which has closed its output, has exited.
const STEP: Duration = Duration::from_millis(5);

/// How long a command may continue whose output nothing reads: its next write ends it, as in a shell's pipeline.
const NEXT_WRITE: Duration = Duration::from_millis(500);

/// The exit code of a command that is ended because its output is closed: as after SIGPIPE.
const BROKEN_PIPE: u8 = 128 + 13;

/// A remote command and its host.
#[derive(Clone, Debug)]
pub struct PipeOptions {
    /// A command line for the user's remote shell.
    pub command: String,
    /// The host.
    pub reach: HostOptions,
}

/// An event of a pipe.
#[derive(Debug)]
pub enum PipeEvent {
    /// A line for the user.
    Note(String),
    /// The last event: the exit code of the command.
    Done(Result<u8, Error>),
}

/// Pipes this process's standard input to a command on a remote host, and the command's output to this process's
/// standard output.
///
/// A lost connection kills the command, so it never takes truncated input as complete. So does an end of standard input
/// that was caused by a signal to this process group, which `probe` detects.
///
/// # Errors
/// [`Error::OutOfResources`] if a thread cannot be spawned. Errors of ssh and of the connection are reported by
/// [`PipeEvent::Done`].
pub fn pipe(pipe: PipeOptions, probe: SignalProbe) -> Result<RunningPipe, Error> {
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let (switch, taken) = (Arc::<TransferControl>::default(), Arc::<AtomicU64>::default());
    let (own, stdin) = (Arc::clone(&switch), Stdin::new(probe, Arc::clone(&switch), Arc::clone(&taken)));
    let work = move || {
        // Sending fails if the program has dropped its `RunningPipe`.
        let result = pipe.run(&own, stdin, &mut |line| drop(sender.blocking_send(PipeEvent::Note(line))));
        let _ = sender.blocking_send(PipeEvent::Done(result));
    };
    runtime::spawn("downpour-pipe", work).map_err(Error::OutOfResources)?;
    Ok(RunningPipe { events, switch, taken })
}

/// A running pipe. Dropping it ends it.
#[derive(Debug)]
pub struct RunningPipe {
    events: mpsc::Receiver<PipeEvent>,
    switch: Arc<TransferControl>,
    taken: Arc<AtomicU64>,
}

impl RunningPipe {
    /// Returns the next event; `None` after the last.
    pub async fn next(&mut self) -> Option<PipeEvent> {
        self.events.recv().await
    }

    /// Returns the number of bytes read from standard input, which continues to grow.
    #[must_use]
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Ends the pipe soon, and kills the command.
    pub fn stop(&self, why: StopReason) {
        self.switch.stop(why);
    }

    /// Kills at once the ssh that was started for the pipe: for a process that exits before the pipe.
    pub fn abandon(&self) {
        self.switch.abandon();
    }
}

impl Drop for RunningPipe {
    fn drop(&mut self) {
        self.stop(StopReason::Cancelled);
    }
}

/// An input of the local side.
enum Input {
    Network(Event),
    /// Reading standard input failed.
    Unreadable(io::Error),
    /// A change of the output of ssh.
    Output(OutputState),
    Stop(StopReason),
}

impl PipeOptions {
    fn run(&self, switch: &Arc<TransferControl>, stdin: Stdin, on_note: &mut dyn FnMut(String)) -> Result<u8, Error> {
        let task = RemoteTask::Pipe { command: self.command.clone() };
        let mut remote = self.reach.log_in(task, switch, on_note)?;
        let (sender, inputs) = channel();
        let watch = switch.watch(Box::new({
            let sender = sender.clone();
            // It may have ended.
            move |why| drop(sender.send(Input::Stop(why)))
        }));
        let (life, output) = (remote.life(), remote.take_output());
        let (output, life) = output.zip(life).ok_or(Error::Internal("ssh without an output"))?;
        let on_change = {
            let sender = sender.clone();
            // A pipe that has ended receives nothing.
            move |shown| drop(sender.send(Input::Output(shown)))
        };
        // The command's output is read while the connection is being opened: there is none before it starts.
        let printed = pipe_output::print(output, life, on_change).map_err(Error::OutOfResources)?;
        let stdin = Cell::new(Some(stdin));
        let mut piped = Piped { pipe: self, remote, inputs, sender, stdin, ssh: None, cut_off: Cell::default() };
        let status = piped.run(on_note);
        switch.unwatch(watch);
        let status = status.inspect_err(|_| piped.remote.terminate());
        let code = match status {
            Ok(status) => code(status),
            // Printing is over.
            Err(Error::Output(_)) => BROKEN_PIPE,
            Err(error) => return Err(error),
        };
        match printed.join() {
            // A closed standard output means that its reader needs no more.
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
            _ => Ok(code),
        }
    }
}

/// A pipe that the peer has answered.
struct Piped<'a> {
    pipe: &'a PipeOptions,
    remote: Remote,
    inputs: Receiver<Input>,
    sender: Sender<Input>,
    /// `None` once it is being sent.
    stdin: Cell<Option<Stdin>>,
    /// Kept open until the command has ended, since the end of ssh's input is not the end of the command's input.
    ssh: Option<ChildStdin>,
    /// Standard output is closed: when the command is ended unless it has ended by then.
    cut_off: Cell<Option<Instant>>,
}

impl Piped<'_> {
    /// Sends standard input until the command has ended; returns its exit status.
    fn run(&mut self, on_note: &mut dyn FnMut(String)) -> Result<ExitStatus, Error> {
        match self.pipe.reach.path.via {
            CarrierChoice::Ssh => self.over_ssh(),
            CarrierChoice::Auto | CarrierChoice::Udp => match self.over_udp() {
                Err(Error::Unreachable { .. }) if self.pipe.reach.path.via == CarrierChoice::Auto => {
                    on_note("UDP is blocked: using ssh, which is slower".to_owned());
                    self.over_ssh()
                }
                other => other.map_err(from_remote),
            },
        }
    }

    /// Sends standard input through ssh.
    fn over_ssh(&mut self) -> Result<ExitStatus, Error> {
        let ended = |error| Error::Ssh(format!("ssh exited: {error}"));
        let ssh = self.ssh.insert(self.remote.take_input().ok_or(Error::Internal("ssh without an input"))?);
        ssh.write_all(&[FALL_BACK]).map_err(ended)?;
        let frames = ssh.as_fd().try_clone_to_owned().map_err(Error::OutOfResources)?;
        let (input, sender) = (self.take_stdin()?, self.sender.clone());
        let feed = move || {
            // If ssh cannot be written to, it is ending.
            if let Err(Unsent::Unreadable(error)) = pipe_frames::send(input, File::from(frames)) {
                let _ = sender.send(Input::Unreadable(error));
            }
        };
        runtime::spawn("downpour-pipe-input", feed).map_err(Error::OutOfResources)?;
        self.status()
    }

    fn take_stdin(&self) -> Result<Stdin, Error> {
        self.stdin.take().ok_or(Error::Internal("standard input is sent twice"))
    }

    /// Sends standard input over UDP.
    fn over_udp(&mut self) -> Result<ExitStatus, Error> {
        let endpoint = Endpoint::builder().options(self.pipe.reach.engine.endpoint).bind(Bind::default())?;
        let sender = self.sender.clone();
        // Fails if the pipe has ended.
        let events = Box::new(move |event| drop(sender.send(Input::Network(event))));
        let options = ConnectOptions::new(self.remote.ticket.addresses.clone())
            .profile(self.pipe.reach.engine.profile.clone())
            .application(PIPE)
            .handshake_timeout(self.remote.udp_patience())
            .peer_listens(true);
        let connection = endpoint.connect((self.remote.ticket.key, options)).events(events).start();
        let result = self.follow(&connection);
        if let Err(error) = &result {
            Closing::of(error, false).close(&connection);
        }
        result
    }

    /// Sends standard input over `connection` until the peer or ssh reports the end of the command.
    fn follow(&self, connection: &Connection) -> Result<ExitStatus, Error> {
        loop {
            match self.next()? {
                Input::Network(Event::Connected { .. }) => {
                    let (connection, sender) = (connection.clone(), self.sender.clone());
                    let input = self.take_stdin()?;
                    let feed = move || {
                        let Ok(mut stream) = block_on(connection.open_uni_with(STREAM)) else { return };
                        if let Err(error) = send_input(input, &mut stream) {
                            let _ = sender.send(Input::Unreadable(error));
                            // Wait for the close, which gives the reason, before dropping the stream.
                            block_on(connection.closed());
                        }
                    };
                    runtime::spawn("downpour-pipe-input", feed).map_err(Error::OutOfResources)?;
                }
                Input::Network(Event::ObjectFailed(error)) => return Err(error.into()),
                Input::Network(Event::Closed(error)) => {
                    self.closed(error)?;
                    return self.status();
                }
                Input::Unreadable(error) => return Err(Error::Input(error)),
                Input::Output(OutputState::End) => return self.status_after_exit(),
                _ => {}
            }
        }
    }

    /// Returns the next input.
    ///
    /// # Errors
    /// The reason for stopping; [`Error::Output`] if the command continues although nothing reads its output.
    fn next(&self) -> Result<Input, Error> {
        loop {
            let input = match self.cut_off.get() {
                None => runtime::recv(&self.inputs).map_err(|_| Error::Internal("the network thread has ended"))?,
                Some(deadline) => self.next_until(deadline)?,
            };
            match input {
                Input::Stop(why) => return Err(why.into()),
                Input::Output(OutputState::Unwritten) => self.cut_off.set(Some(runtime::now() + NEXT_WRITE)),
                input => return Ok(input),
            }
        }
    }

    /// Returns the next input, while the exit of ssh is not an input.
    fn next_until(&self, deadline: Instant) -> Result<Input, Error> {
        loop {
            if self.remote.ended().map_err(Error::OutOfResources)?.is_some() {
                return Ok(Input::Output(OutputState::End));
            }
            if let Ok(input) = runtime::recv_timeout(&self.inputs, STEP) {
                return Ok(input);
            }
            if runtime::now() >= deadline {
                return Err(Error::Output(io::ErrorKind::BrokenPipe.into()));
            }
        }
    }

    /// Interprets the end of the connection; Ok if the command has ended.
    fn closed(&self, error: NetError) -> Result<(), Error> {
        let tried = Some((&self.remote.ticket.addresses[..], self.remote.udp_patience()));
        match error {
            ref done if is_done(done) => Ok(()),
            NetError::ClosedLocally => Err(Error::ConnectionLost),
            error => Err(Error::ended(error, &PeerContext { role: Role::Receiver, tried })),
        }
    }

    /// Returns the command's exit status, with which ssh exits once all output has arrived.
    fn status(&self) -> Result<ExitStatus, Error> {
        loop {
            match self.next()? {
                Input::Unreadable(error) if self.ssh.is_some() => return Err(Error::Input(error)),
                Input::Output(OutputState::End) => return self.ssh_status(),
                _ => {}
            }
        }
    }

    /// Returns the exit status of an ssh that is ending.
    fn ssh_status(&self) -> Result<ExitStatus, Error> {
        loop {
            if let Some(status) = self.remote.ended().map_err(Error::OutOfResources)? {
                return Ok(status);
            }
            if let Ok(Input::Stop(why)) = runtime::recv_timeout(&self.inputs, STEP) {
                return Err(why.into());
            }
        }
    }

    /// Determines the result if ssh exits before UDP reported the end. Either that message was lost, and ssh exits with
    /// the command's code, or the remote process was killed, possibly after sending a reason.
    fn status_after_exit(&self) -> Result<ExitStatus, Error> {
        let (status, until) = (self.ssh_status()?, runtime::now() + LAST_WORDS);
        if status.code().is_some_and(|code| code != SSH_FAILED) {
            return Ok(status);
        }
        while let Ok(input) = runtime::recv_timeout(&self.inputs, until.saturating_duration_since(runtime::now())) {
            match input {
                Input::Stop(why) => return Err(why.into()),
                Input::Network(Event::Closed(error)) => return self.closed(error).map(|()| status),
                _ => {}
            }
        }
        Err(Error::ConnectionLost)
    }
}

/// Sends `input` to its end.
///
/// # Errors
/// The input cannot be read; the command must then not take its input as complete.
fn send_input(mut input: Stdin, stream: &mut SendStream) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            // A command that stops reading will end, and a lost connection reports itself.
            Ok(count) if Blocking(&mut *stream).write_all(&buffer[..count]).is_err() => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.finish();
    Ok(())
}

/// Returns the exit code of a command, as a shell reports it.
pub(super) fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Creates a command for the user's shell.
pub(super) fn shell(command: &str) -> Command {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "sh".into());
    let mut child = Command::new(shell);
    child.arg("-c").arg(command);
    child
}
