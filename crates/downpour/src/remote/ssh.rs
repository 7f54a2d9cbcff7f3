//! The user's own ssh, which starts downpour on the other machine, as mosh does with its server: the key crosses ssh, the data do not.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use super::request::Request;
use super::{ANSWER, GO_ON_OVER_SSH, SshOptions};
use crate::driver::Family;
use crate::error::{CloseCode, Error};
use crate::ticket::Ticket;

/// Lines of noise, such as a greeting that a shell's start-up file prints, that are read before the answer; and the bytes of one.
const MAX_NOISE: usize = 1000;
const MAX_LINE: u64 = 16 << 10;

/// What a shell answers when it finds no program, and what ssh answers when it fails itself.
const NOT_FOUND: i32 = 127;
const SSH_FAILED: i32 = 255;

/// How long ssh may take to end when everything is said.
const GOODBYE: Duration = Duration::from_secs(2);

/// Runs ssh with these arguments and lets it live when the terminal goes away or Ctrl-C is typed: the transfer decides when it ends.
const LAUNCH: &str = r#"trap "" HUP INT; exec "$@""#;

/// Started over there: by this shell line, whatever the user's shell, since a command's search path is often short.
fn remote_command(program: Option<&str>) -> String {
    // A program that the user names is words for the shell, so that `~/bin/downpour` works.
    let program = program.unwrap_or("downpour");
    let script = format!(r#"PATH="$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin"; exec {program} remote"#);
    format!("exec sh -c '{}'", script.replace('\'', r"'\''"))
}

impl SshOptions {
    /// ssh with everything but the host.
    pub(super) fn command(&self, family: Family) -> Command {
        let mut words = vec![OsString::from("-T")];
        // What the user's configuration may set for terminals has no place here; the keep-alive holds a NAT open while ssh is silent.
        for option in [
            "ClearAllForwardings=yes",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "RequestTTY=no",
            "ServerAliveInterval=30",
            "ServerAliveCountMax=10",
        ] {
            words.push(format!("-o{option}").into());
        }
        match family {
            Family::Any => {}
            Family::V4 => words.push("-4".into()),
            Family::V6 => words.push("-6".into()),
        }
        if let Some(port) = self.port {
            words.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(identity) = &self.identity {
            words.extend(["-i".into(), identity.into()]);
        }
        if let Some(jump) = &self.jump {
            words.extend(["-J".into(), jump.into()]);
        }
        let mut command = Command::new("sh");
        command.args(["-c", LAUNCH, "sh"]).args(&self.command).args(words);
        command
    }

    /// The addresses of `host` as ssh understands the name, with port 0.
    fn addresses(&self, host: &str, family: Family) -> Vec<IpAddr> {
        let mut command = self.command(family);
        command.args(["-G", "--", host]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Without an answer the name itself is tried: it is right where the configuration has no alias.
        let config = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let name = config.ok().and_then(|config| {
            config.lines().find_map(|line| line.strip_prefix("hostname ").map(|name| name.trim().to_owned()))
        });
        let typed = host.rsplit('@').next().unwrap_or(host);
        let found = (name.as_deref().unwrap_or(typed), 0).to_socket_addrs();
        let fits = |ip: &IpAddr| match family {
            Family::Any => true,
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
        };
        let mut addresses: Vec<IpAddr> = found.into_iter().flatten().map(|address| address.ip()).filter(fits).collect();
        addresses.dedup();
        addresses
    }
}

/// A downpour on another machine, and the ssh that leads to it. Dropping it ends both.
pub(super) struct Remote {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    /// What reaches it, with the addresses that the host's name has here.
    pub(super) ticket: Ticket,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// A process that can be ended from another thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process(rustix::process::Pid);

impl Process {
    /// Asks it to end.
    pub(super) fn end(self) {
        // It may have ended.
        let _ = rustix::process::kill_process(self.0, rustix::process::Signal::TERM);
    }
}

/// An ssh that has been started.
pub(super) struct Starting {
    child: Child,
    addresses: thread::JoinHandle<Vec<IpAddr>>,
    host: String,
    program: Option<String>,
}

impl Starting {
    /// Starts ssh to `host`.
    ///
    /// # Errors
    /// [`Error::Ssh`] when there is no such program.
    pub(super) fn launch(options: &SshOptions, host: &str, family: Family, request: &Request) -> Result<Self, Error> {
        let mut command = options.command(family);
        command.arg("--").arg(host).arg(remote_command(options.remote_program.as_deref()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Error::Ssh(format!("ssh cannot be started: {error}")))?;
        let (lookup, name) = (options.clone(), host.to_owned());
        let addresses = thread::spawn(move || lookup.addresses(&name, family));
        let frame = request.to_frame()?;
        if let Some(stdin) = &mut child.stdin
            && let Err(error) = stdin.write_all(&frame).and_then(|()| stdin.flush())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(Error::Ssh(format!("ssh cannot be written to: {error}")));
        }
        Ok(Self { child, addresses, host: host.to_owned(), program: options.remote_program.clone() })
    }

    /// For ending it while [`Starting::answer`] waits.
    pub(super) fn process(&self) -> Option<Process> {
        i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).map(Process)
    }

    /// Waits for the other side's answer, as long as ssh takes: the user may be typing a password.
    ///
    /// # Errors
    /// [`Error::Ssh`], [`Error::NotInstalled`], or what the other side says in its answer.
    pub(super) fn answer(self) -> Result<Remote, Error> {
        let Self { mut child, addresses, host, program } = self;
        let stdin = child.stdin.take();
        let Some(mut stdout) = child.stdout.take() else { return Err(Error::Internal("ssh without a pipe")) };
        match read_answer(&mut stdout) {
            Ok(Some(line)) => {
                let mut ticket = parse_answer(&line)?;
                add_addresses(&mut ticket, &addresses.join().unwrap_or_default());
                Ok(Remote { child, stdin, stdout: Some(stdout), ticket })
            }
            Ok(None) => {
                drop((stdin, stdout));
                Err(ended(child.wait().map_err(Error::System)?, &host, program.as_deref()))
            }
            Err(error) => {
                // Whatever it does, it is not what we wait for.
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::Ssh(format!("{host} answers what downpour does not understand: {error}")))
            }
        }
    }
}

/// The line that begins with [`ANSWER`], without it; `None` at the end of the stream.
pub(super) fn read_answer(stdout: &mut impl Read) -> io::Result<Option<String>> {
    // Read byte by byte: what follows the line belongs to the carrier.
    let mut reader = BufReader::with_capacity(1, stdout);
    for _ in 0..MAX_NOISE {
        let mut line = Vec::new();
        let count = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(None);
        }
        // A greeting may end without a line break.
        let text = String::from_utf8_lossy(&line);
        if let Some(at) = text.find(ANSWER) {
            return Ok(Some(text[at + ANSWER.len()..].trim().to_owned()));
        }
    }
    Err(io::Error::other("too many lines"))
}

pub(super) fn parse_answer(line: &str) -> Result<Ticket, Error> {
    match line.strip_prefix("ERROR ") {
        Some(rest) => {
            let (code, message) = rest.split_once(' ').unwrap_or(("1", rest));
            let message = crate::error::escaped(message);
            Err(Error::Remote { exit_code: code.parse().unwrap_or(1), message })
        }
        None => Ok(Ticket::parse(line)?),
    }
}

/// Puts the addresses that the host's name has before those that the host itself knows: behind a NAT only the former work.
fn add_addresses(ticket: &mut Ticket, found: &[IpAddr]) {
    let Some(port) = ticket.addresses.first().map(SocketAddr::port) else { return };
    let own = std::mem::take(&mut ticket.addresses);
    let mut addresses: Vec<SocketAddr> = found.iter().map(|ip| (*ip, port).into()).collect();
    addresses.extend(own.into_iter().filter(|address| !found.contains(&address.ip())));
    addresses.truncate(crate::ticket::MAX_ADDRESSES);
    ticket.addresses = addresses;
}

fn ended(status: ExitStatus, host: &str, program: Option<&str>) -> Error {
    match status.code() {
        Some(NOT_FOUND) => {
            Error::NotInstalled { host: host.to_owned(), program: program.unwrap_or("downpour").to_owned() }
        }
        Some(SSH_FAILED) => Error::Ssh(format!("ssh could not reach {host} or log in: its own message says why")),
        Some(code) => Error::Ssh(format!("ssh to {host} ended with {code} before downpour ran there")),
        None => Error::Ssh(format!("ssh to {host} was killed before downpour ran there")),
    }
}

impl Remote {
    /// Tells the other side to go on over ssh, and gives the pipes to it: what is read, what is written.
    pub(super) fn go_on_over_ssh(&mut self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (read, mut write) = self.take_pipes()?;
        write.write_all(&[GO_ON_OVER_SSH])?;
        Ok((read.into(), write.into()))
    }

    /// The pipes to the other side: what is read, what is written.
    pub(super) fn take_pipes(&mut self) -> io::Result<(File, File)> {
        match (self.stdout.take(), self.stdin.take()) {
            (Some(read), Some(write)) => Ok((OwnedFd::from(read).into(), OwnedFd::from(write).into())),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// What the other side reads.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// What the other side's command prints, if it runs one.
    pub(super) fn take_output(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// A pipe whose other end closes when ssh ends.
    pub(super) fn life(&self) -> Option<OwnedFd> {
        self.stdout.as_ref().and_then(|stdout| stdout.as_fd().try_clone_to_owned().ok())
    }

    /// Waits until ssh has ended by itself.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of its input tells the other side that it is over.
        drop(self.stdin.take());
        drop(self.stdout.take());
        let deadline = Instant::now() + GOODBYE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a remote side says of an error, on its one line.
pub(super) fn answer_error(error: &Error) -> String {
    let message = match error.close_code() {
        CloseCode::Done => String::new(),
        _ => error.close_reason(),
    };
    format!("ERROR {} {}", error.exit_code(), message.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_command_survives_a_shell() {
        let output = |program| {
            let command = remote_command(program);
            let script = command.replace("exec sh", "sh").replace("exec ", "echo ");
            String::from_utf8(Command::new("sh").args(["-c", &script]).output().unwrap().stdout).unwrap()
        };
        assert_eq!(output(None), "downpour remote\n");
        assert_eq!(output(Some("/opt/down\\ pour")), "/opt/down pour remote\n");
        assert_eq!(output(Some("'/opt/a b/downpour'")), "/opt/a b/downpour remote\n");
    }

    #[test]
    fn own_addresses_come_after_those_of_the_name() {
        let mut ticket = Ticket {
            key: [0; 32],
            expires: std::time::SystemTime::UNIX_EPOCH,
            addresses: vec!["10.0.0.1:7".parse().unwrap(), "192.0.2.1:7".parse().unwrap()],
            listener: crate::ticket::Role::Sends,
        };
        add_addresses(&mut ticket, &["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]);
        let shown: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1:7", "[2001:db8::1]:7", "10.0.0.1:7"]);
    }
}
