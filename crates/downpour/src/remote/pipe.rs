//! `pipe`: standard input becomes the standard input of a command on another machine, as an ordered stream over UDP, or in frames over ssh. What the command prints
//! comes back through ssh.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{ops::RangeInclusive, thread};

use transport::{Closed, ConnectOptions, Profile};

use super::guide::UDP_TIMEOUT;
use super::launch::log_in;
use super::pipe_end::{Nothing, STREAM};
use super::request::{Request, Task};
use super::ssh::Remote;
use super::{SshOptions, Via, pipe_frames};
use crate::driver::{Accepted, Bind, Driver, Family, Link, LinkEvent};
use crate::error::{CloseCode, Error};
use crate::transfer::Switch;
use crate::words::handshake::PIPE;
use crate::words::ssh::GO_ON;

/// Bytes that are read and not yet on their way: enough to keep a path busy, little enough to hold.
const MAX_WAITING: usize = 4 << 20;

/// Bytes of one read.
const CHUNK: usize = 128 << 10;

/// How often it is looked whether ssh has ended.
const STEP: Duration = Duration::from_millis(5);

/// What is piped where.
#[derive(Clone, Debug)]
pub struct Pipe {
    /// What ssh is given: `[user@]host`.
    pub host: String,
    /// A line for the user's shell over there.
    pub command: String,
    /// What carries the data.
    pub via: Via,
    /// How ssh is called.
    pub ssh: SshOptions,
    /// UDP ports that the remote side may take.
    pub ports: Option<RangeInclusive<u16>>,
    /// IP versions that may be used.
    pub family: Family,
    /// How the engine behaves.
    pub profile: Profile,
    /// How long the other side may be silent.
    pub dead_after: Duration,
}

/// Pipes this process's standard input to a command on another machine, and gives the exit code of that. `told` gets lines for the user.
/// Blocks until the command has ended.
///
/// A connection that breaks kills the command: it never takes a part of its input for the whole.
///
/// # Errors
/// What ssh says, and what ends the connection.
pub fn pipe(pipe: &Pipe, mut told: impl FnMut(&str)) -> Result<u8, Error> {
    let request = Request::new(
        Task::Pipe { command: pipe.command.clone() },
        pipe.via,
        pipe.family,
        pipe.ports.as_ref(),
        pipe.profile.clone(),
        pipe.dead_after,
    );
    let host = (&pipe.ssh, pipe.host.as_str(), pipe.family);
    let mut remote = log_in(host, &request, &Switch::default(), &mut |line| told(&line))?;
    let output = remote.take_output();
    // What the command prints goes on to be read while the connection is waited for: there is nothing before it starts.
    let printed = thread::spawn(move || output.map_or(Ok(()), print));
    // Open until the command has ended: the end of ssh is not that of the input.
    let mut ssh = None;
    // After an error there is no waiting for a command that will not end.
    match pipe.via {
        Via::Ssh => ssh = Some(over_ssh(&mut remote)?),
        Via::Auto | Via::Udp => match pipe.over_udp(&remote) {
            Err(Error::Unreachable { .. }) if pipe.via == Via::Auto => {
                told("UDP does not get through: going on over ssh, which is slower");
                ssh = Some(over_ssh(&mut remote)?);
            }
            other => other?,
        },
    }
    // The command has ended or will, and ssh ends with its code when all that it printed is here.
    let status = loop {
        match remote.ended().map_err(Error::System)? {
            Some(status) => break status,
            None => thread::sleep(STEP),
        }
    };
    drop(ssh);
    match printed.join() {
        // Whoever closes a pipe has read enough.
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(code(status)),
    }
}

/// Prints what comes from the command.
fn print(mut output: impl io::Read) -> io::Result<()> {
    let mut stdout = io::stdout();
    io::copy(&mut output, &mut stdout)?;
    stdout.flush()
}

/// Sends standard input through ssh. What comes back is to be held until the command has ended.
fn over_ssh(remote: &mut Remote) -> Result<ChildStdin, Error> {
    let ended = |error| Error::Ssh(format!("ssh has ended: {error}"));
    let mut ssh = remote.take_input().ok_or(Error::Internal("ssh without an input"))?;
    ssh.write_all(&[GO_ON]).map_err(ended)?;
    let frames = ssh.as_fd().try_clone_to_owned().map_err(Error::System)?;
    // The other side hears of an input that cannot be read, and ends; so it does with ssh.
    thread::spawn(move || pipe_frames::send(io::stdin(), File::from(frames)));
    Ok(ssh)
}

/// How much may still be read.
type Room = Arc<(Mutex<usize>, Condvar)>;

impl Pipe {
    /// Sends standard input by UDP, until the command has ended.
    fn over_udp(&self, remote: &Remote) -> Result<(), Error> {
        let driver = Driver::start(&Bind::default(), self.dead_after, ())?;
        let (sender, events) = channel();
        // Whoever has ended hears nothing.
        let sink = Box::new(move |event| drop(sender.send(event)));
        let options = ConnectOptions {
            profile: self.profile.clone(),
            application: PIPE.to_vec(),
            remotes: remote.ticket.addresses.clone(),
            handshake_timeout: UDP_TIMEOUT,
            qlog: false,
        };
        let accepted = Accepted { events: sink, storage: Arc::new(Nothing) };
        let link = driver.connect(remote.ticket.key, options, accepted);
        let result = drive(&link, &events, remote);
        if let Err(error) = &result {
            link.close(error.close_code() as u32, error.close_reason());
        }
        result
    }
}

/// Sends standard input; returns when the other side says that the command has ended.
fn drive(link: &Link, events: &Receiver<LinkEvent>, remote: &Remote) -> Result<(), Error> {
    let room: Room = Arc::new((Mutex::new(MAX_WAITING), Condvar::new()));
    for event in events {
        match event {
            LinkEvent::Connected { .. } => {
                link.open_stream(STREAM);
                let (link, room) = (link.clone(), Arc::clone(&room));
                thread::spawn(move || send_input(&link, &room));
            }
            LinkEvent::StreamTaken { tag: STREAM, bytes } => {
                *room.0.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
                room.1.notify_all();
            }
            // The command reads no more, and will end.
            LinkEvent::StreamStopped { tag: STREAM } | LinkEvent::StreamSent { tag: STREAM } => {}
            LinkEvent::Failed(error) => return Err(error),
            LinkEvent::Closed { why, send_error, .. } => {
                return match why {
                    Closed::ByPeer { code, .. } if CloseCode::from_code(code) == CloseCode::Done => Ok(()),
                    Closed::ByPeer { reason, .. } => {
                        Err(Error::Remote { exit_code: 1, message: crate::error::escaped(&reason) })
                    }
                    Closed::HandshakeTimeout => Err(Error::Unreachable {
                        addresses: remote.ticket.addresses.clone(),
                        after: UDP_TIMEOUT,
                        hint: send_error.map(|error| format!("this host says: {error}")),
                    }),
                    Closed::Violation(what) => Err(Error::Violation(what)),
                    Closed::VersionMismatch { .. } => Err(Error::Version),
                    Closed::ByUs | Closed::Dead => Err(Error::Vanished),
                };
            }
            _ => {}
        }
    }
    Err(Error::Internal("the driver has ended"))
}

/// Reads standard input to its end, as fast as it is sent.
fn send_input(link: &Link, room: &Room) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let free = room.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Not held while it reads: that may take for ever, and whoever makes room must not wait for it.
        drop(room.1.wait_while(free, |free| *free < CHUNK).unwrap_or_else(PoisonError::into_inner));
        match io::stdin().read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                // Nobody else takes room, so there is as much as there was at least.
                *room.0.lock().unwrap_or_else(PoisonError::into_inner) -= count;
                link.write_stream(STREAM, buffer[..count].to_vec());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                // The command must not take what came so far for the whole.
                return link.close(CloseCode::Other as u32, format!("standard input cannot be read: {error}"));
            }
        }
    }
    link.finish_stream(STREAM);
}

/// The exit code of a command, as a shell gives it.
pub(super) fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// A command for the user's shell.
pub(super) fn shell(command: &str) -> Command {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "sh".into());
    let mut child = Command::new(shell);
    child.arg("-c").arg(command);
    child
}
