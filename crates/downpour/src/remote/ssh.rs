//! The user's own ssh, which starts downpour on the remote host, as mosh does with its server: the key is sent through
//! ssh, the data is not.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use net::Family;
use rustix::fs::{Access, access};

use super::SshOptions;
use super::answer::RemoteAnswer;
use super::location::host_name;
use super::process::Process;
use crate::error::{Error, RequiredFeature};
use crate::protocol::ssh::FALL_BACK;
use crate::ticket::Ticket;

/// Time for ssh to exit when everything is sent.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// Runs ssh with these arguments, ignoring Ctrl-C and the loss of the terminal: the transfer decides when ssh ends.
const LAUNCH: &str = r#"trap "" HUP INT; exec "$@""#;

/// Returns the shell line that starts downpour on the remote host, for any shell. It extends the search path, which is
/// often short for commands.
pub(super) fn remote_command(program: Option<&str>) -> String {
    // A program named by the user is passed as shell words, so that `~/bin/downpour` works.
    let program = program.unwrap_or("downpour");
    // A shell that does not find it would print a message of its own.
    let script = format!(
        r#"PATH="$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin"; command -v {program} >/dev/null 2>&1 || exit 127; exec {program} remote"#
    );
    format!("exec sh -c '{}'", script.replace('\'', r"'\''"))
}

impl SshOptions {
    /// Checks that the program of the command exists.
    ///
    /// # Errors
    /// [`Error::NoSsh`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let program = self.command.first().map_or(OsStr::new("ssh"), |word| word);
        check_program(program).map_err(|source| Error::NoSsh { program: program.into(), source })
    }

    /// Creates the ssh command with everything but the host.
    pub(super) fn command(&self, family: Family) -> Command {
        let mut words = vec![OsString::from("-T")];
        // Options that a user's configuration sets for terminals do not fit here; the keep-alive keeps a NAT mapping
        // while ssh is silent.
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
        if !self.asks {
            words.extend(["-oBatchMode=yes", "-oConnectTimeout=10"].map(Into::into));
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

    /// Returns ssh's settings for `host`, which it prints without a connection.
    pub(super) fn settings(&self, host: &str, family: Family) -> Settings {
        let mut command = self.command(family);
        command.args(["-G", "--", host]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        Settings { host: host.to_owned(), family, text: output.unwrap_or_default() }
    }
}

/// The settings of ssh for a host; none if ssh does not print them.
#[derive(Debug)]
pub(super) struct Settings {
    host: String,
    family: Family,
    /// Lines of a key and its value.
    text: String,
}

impl Settings {
    fn get(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
    }

    /// Returns a setting with which ssh starts no program, if there is one.
    pub(super) fn unfit(&self) -> Option<Unfit> {
        UNFIT.into_iter().find(|(set, _)| {
            set.split_once(' ').is_some_and(|(key, value)| self.get(&key.to_ascii_lowercase()) == Some(value))
        })
    }

    /// Resolves the host's name.
    pub(super) fn resolve(&self) -> Resolved {
        // Without settings try the name itself, which is right unless the configuration defines an alias.
        let name = self.get("hostname").unwrap_or_else(|| host_name(&self.host));
        let login = match self.get("user") {
            Some(user) => format!("{user}@{name}"),
            None => self.host.clone(),
        };
        let found = (name, 0).to_socket_addrs();
        let fits = |ip: &IpAddr| match self.family {
            Family::Any => true,
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
        };
        let mut addresses: Vec<IpAddr> = found.into_iter().flatten().map(|address| address.ip()).filter(fits).collect();
        addresses.dedup();
        let port = self.get("port").and_then(|port| port.parse().ok());
        Resolved { login, port, addresses }
    }
}

/// A setting of ssh, and the option that overrides it.
pub(super) type Unfit = (&'static str, &'static str);

/// Settings with which ssh starts no program, reads no input, or leaves its own process. Older versions do not know
/// them, so they cannot be overridden unconditionally.
const UNFIT: [Unfit; 4] = [
    ("SessionType none", "SessionType=default"),
    ("SessionType subsystem", "SessionType=default"),
    ("StdinNull yes", "StdinNull=no"),
    ("ForkAfterAuthentication yes", "ForkAfterAuthentication=no"),
];

/// The resolution of a host name by the user's ssh.
#[derive(Debug)]
pub(super) struct Resolved {
    /// `[user@]host`, which needs no local settings.
    pub(super) login: String,
    pub(super) port: Option<u16>,
    pub(super) addresses: Vec<IpAddr>,
}

impl Resolved {
    /// Returns whether the name means the local host, and therefore another one on other hosts.
    pub(super) fn is_this_machine(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.iter().all(|address| address.to_canonical().is_loopback())
    }
}

fn udp_patience(login: Duration) -> Duration {
    (login / 2).clamp(UDP_PATIENCE, LONGEST_UDP_PATIENCE)
}

/// Checks that the program exists, searching like `execvp`: a shell's exit code 127 could come from the remote shell as
/// well.
fn check_program(program: &OsStr) -> io::Result<()> {
    let check = |path: &Path| match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => access(path, Access::EXEC_OK).map_err(io::Error::from),
    };
    if program.as_bytes().contains(&b'/') {
        return check(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    match std::env::split_paths(&path).any(|directory| check(&directory.join(program)).is_ok()) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "not in PATH")),
    }
}

/// How long a remote downpour may be silent over UDP, on a path whose login takes less than twice that. This leaves
/// three attempts even with an RTT of a second, and the user is informed within five seconds...
const UDP_PATIENCE: Duration = Duration::from_secs(4);
/// ... and on any path: most of a long login may have been spent on typing a password.
const LONGEST_UDP_PATIENCE: Duration = Duration::from_secs(15);

/// A downpour on a remote host, and the ssh that connects to it. Dropping it ends both.
pub(super) struct Remote {
    process: Process,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    /// Ticket to reach it, including the addresses to which the host's name resolves locally.
    pub(super) ticket: Ticket,
    /// Number of remote sources that are symbolic links and were followed.
    pub(super) links_followed: u64,
    /// Number of remote items, if the request has wildcards.
    pub(super) items: Option<u64>,
    /// The restrictions of the request that the remote host enforces.
    pub(super) enforced: Vec<RequiredFeature>,
    /// Duration of the login, with the user's typing.
    login: Duration,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Remote {
    /// Wraps ssh and its pipes, once the remote host has answered.
    pub(super) fn new(
        process: Process,
        (stdin, stdout): (ChildStdin, ChildStdout),
        answer: RemoteAnswer,
        login: Duration,
    ) -> Self {
        let RemoteAnswer { ticket, links_followed, items, enforced } = answer;
        let (stdin, stdout) = (Some(stdin), Some(stdout));
        Self { process, stdin, stdout, ticket, links_followed, items, enforced, login }
    }

    /// Returns how long to wait for an answer over UDP before data uses ssh, which is slower. A login takes many round
    /// trips, an answer over UDP one.
    pub(super) fn udp_patience(&self) -> Duration {
        udp_patience(self.login)
    }

    /// Same as [`Self::udp_patience`], where UDP was blocked not long ago: enough to detect that it is open now.
    pub(super) fn short_patience(&self) -> Duration {
        (self.login / 4).clamp(Duration::from_millis(500), Duration::from_secs(2))
    }

    /// Tells the remote host to continue over ssh, and returns the pipes to it: the one to read, the one to write.
    pub(super) fn continue_over_ssh(&mut self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (read, mut write) = self.take_pipes()?;
        write.write_all(&[FALL_BACK])?;
        Ok((read.into(), write.into()))
    }

    /// Takes the pipes to the remote host: the one to read, the one to write.
    pub(super) fn take_pipes(&mut self) -> io::Result<(File, File)> {
        match (self.stdout.take(), self.stdin.take()) {
            (Some(read), Some(write)) => Ok((OwnedFd::from(read).into(), OwnedFd::from(write).into())),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Takes the pipe to the remote host.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from the remote command, if there is one.
    pub(super) fn take_output(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Returns a pipe whose other end closes when ssh exits.
    pub(super) fn life(&self) -> Option<OwnedFd> {
        self.stdout.as_ref().and_then(|stdout| stdout.as_fd().try_clone_to_owned().ok())
    }

    /// Returns ssh's exit status, if it has exited.
    pub(super) fn ended(&self) -> io::Result<Option<ExitStatus>> {
        self.process.ended()
    }

    /// Returns ssh's exit status if it exits by itself within `time`.
    pub(super) fn ends_within(&self, time: Duration) -> Option<ExitStatus> {
        self.process.ends_within(time);
        self.process.ended().ok().flatten()
    }

    /// Returns a function that requests ssh to exit, and does nothing once this is dropped.
    pub(super) fn terminator(&self) -> impl FnMut() + Send + 'static {
        self.process.terminator()
    }

    /// Requests ssh to exit, since everything is sent.
    pub(super) fn terminate(&self) {
        self.process.terminate();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Closing its input ends the remote program.
        drop(self.stdin.take());
        drop(self.stdout.take());
        self.process.ends_within(GOODBYE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_searched_for_as_by_a_shell() {
        assert!(check_program(OsStr::new("sh")).is_ok() && check_program(OsStr::new("no-such-program")).is_err());
    }

    #[test]
    fn udp_timeout_grows_with_login_time() {
        let patience = [0, 8, 25, 600].map(|login| udp_patience(Duration::from_secs(login)).as_secs_f64());
        assert_eq!(patience, [4.0, 4.0, 12.5, 15.0]);
    }

    #[test]
    fn the_remote_command_survives_a_shell() {
        let output = |program| {
            let command = remote_command(program);
            let script = command.replace("exec sh", "sh").replace("|| exit 127", "").replace("exec ", "echo ");
            String::from_utf8(Command::new("sh").args(["-c", &script]).output().unwrap().stdout).unwrap()
        };
        assert_eq!(output(None), "downpour remote\n");
        assert_eq!(output(Some("/opt/down\\ pour")), "/opt/down pour remote\n");
        assert_eq!(output(Some("'/opt/a b/downpour'")), "/opt/a b/downpour remote\n");
    }
}
