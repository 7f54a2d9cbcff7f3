//! A login by ssh, until a program of downpour answers.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use net::Family;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::SshOptions;
use super::greeting::Greeting;
use super::process::{Process, STEP};
use crate::error::Error;

/// Exit codes: of a shell that does not find or cannot execute the program, and of ssh for its own failures.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;
const SSH_FAILED: i32 = 255;

/// How long to wait for an answer. A password prompt and a hanging login look the same: ssh is silent in both cases.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginTimeouts {
    /// Before a hint to the user.
    pub(super) hint: Duration,
    /// While nothing arrives. sshd itself allows two minutes for a login, and there may be several jump hosts.
    pub(super) silence: Duration,
    /// After the login, which the first byte shows, once the request is written.
    pub(super) after_login: Duration,
    /// After ssh has closed its output: for its exit, or for the rest of the request to be written.
    pub(super) end: Duration,
}

impl LoginTimeouts {
    /// For an ssh that may prompt its user.
    pub(super) const ASKED: Self = Self {
        hint: Duration::from_secs(15),
        silence: Duration::from_secs(600),
        after_login: Duration::from_secs(120),
        end: Duration::from_secs(10),
    };
    /// For an ssh that never prompts: nobody is typing.
    const UNASKED: Self = Self { silence: Duration::from_secs(30), ..Self::ASKED };

    /// Returns the timeouts for this ssh.
    pub(super) const fn of(options: &SshOptions) -> Self {
        if options.asks { Self::ASKED } else { Self::UNASKED }
    }
}

/// An ssh that was started with a command.
pub(super) struct Login {
    pub(super) host: String,
    pub(super) process: Process,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// [`SshOptions::asks`].
    asks: bool,
    greeting: Greeting,
    /// Closing this pipe ends the wait.
    stop: PipeReader,
    begun: Instant,
}

impl Login {
    /// Starts ssh to `host`, for this command. Waiting ends when the returned pipe is closed.
    ///
    /// # Errors
    /// [`Error::NoSsh`] if the program does not exist.
    pub(super) fn start(
        (options, host, family): (&SshOptions, &str, Family),
        remote_command: String,
    ) -> Result<(Self, PipeWriter), Error> {
        options.check()?;
        let (stop, stopper) = io::pipe().map_err(Error::OutOfResources)?;
        let mut command = options.command(family);
        command.arg("--").arg(host).arg(remote_command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        options.redirect(&mut command);
        let mut child = command.spawn().map_err(Error::OutOfResources)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = options.listen(child.stderr.take(), host)?;
        let process = Process::new(child, stderr);
        let login = Self {
            host: host.to_owned(),
            process,
            stdin,
            stdout: stdout.ok_or(Error::Internal("ssh without pipes"))?,
            asks: options.asks,
            greeting: Greeting::default(),
            stop,
            begun: runtime::now(),
        };
        Ok((login, stopper))
    }

    /// Takes the pipe to the remote host.
    pub(super) fn take_input(&mut self) -> Result<ChildStdin, Error> {
        self.stdin.take().ok_or(Error::Internal("ssh without pipes"))
    }

    /// Waits for a line that one of these markers begins; returns the marker and the rest of the line. `None` if the
    /// output ends before. Passes a line for the user to `on_note` if it takes long. `is_asked` returns whether the
    /// request is completely written.
    ///
    /// # Errors
    /// [`Error::Ssh`].
    pub(super) fn wait_for(
        &mut self,
        markers: &[&'static str],
        patience: LoginTimeouts,
        is_asked: &dyn Fn() -> bool,
        on_note: &mut dyn FnMut(String),
    ) -> Result<Option<(&'static str, String)>, Error> {
        let host = &self.host;
        let mut hint = || {
            on_note(format!(
                // ssh may have left a prompt without an end of the line.
                "\nno response from {host} for {} s: ssh may be waiting for your input, or a shell start-up file on {host} hangs",
                patience.hint.as_secs()
            ));
        };
        let mut output = Output {
            stdout: &mut self.stdout,
            stop: &self.stop,
            patience,
            is_asked,
            hint: Some(&mut hint),
            since: runtime::now(),
            begun: runtime::now(),
            has_output: false,
        };
        let found = self.greeting.read_to(&mut output, markers);
        found.map_err(|error| match (error.kind(), self.greeting.words()) {
            (io::ErrorKind::TimedOut, Some(words)) => Error::Ssh(format!("{host}: {error}; login output: {words}")),
            _ => Error::Ssh(format!("{host}: {error}")),
        })
    }

    /// Waits until `ready` returns a value, for at most `time` and until the user stops.
    ///
    /// # Errors
    /// [`Error::Ssh`].
    pub(super) fn wait_until<T>(
        &self,
        action: &str,
        time: Duration,
        ready: impl Fn() -> io::Result<Option<T>>,
    ) -> Result<T, Error> {
        let (begun, step) = (runtime::now(), Timespec::try_from(STEP).ok());
        let failed = |error: &dyn std::fmt::Display| Error::Ssh(format!("{}: {error}", self.host));
        loop {
            if let Some(found) = ready().map_err(|error| failed(&error))? {
                return Ok(found);
            }
            // An interruption by a signal counts as a step.
            if poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], step.as_ref()).is_ok_and(|count| count > 0) {
                return Err(failed(&"stopped"));
            }
            if runtime::since(begun) >= time {
                return Err(failed(&format_args!("ssh did not {action}")));
            }
        }
    }

    /// Returns ssh, the pipe from the remote host, and the total time.
    pub(super) fn into_parts(self) -> (Process, ChildStdout, Duration) {
        (self.process, self.stdout, runtime::since(self.begun))
    }

    /// Returns why there was no answer, once ssh has closed its output. `program` is the program that should have run.
    pub(super) fn ended(mut self, patience: LoginTimeouts, program: &str) -> Error {
        // ssh may be waiting for the end of its input.
        drop(self.stdin.take());
        match self.wait_until("exit", patience.end, || self.process.ended()) {
            Ok(status) => {
                let last = self.process.last_line();
                if let Some(why) = last.as_ref().filter(|line| status.code() == Some(SSH_FAILED) && is_refusal(line)) {
                    return Error::LoginRefused { host: self.host, why: why.clone() };
                }
                if let Some(why) = self.greeting.words().filter(|words| words.contains(NO_LOGIN)) {
                    return Error::LoginRefused { host: self.host, why };
                }
                let reason = |line: Option<String>| line.unwrap_or_else(|| "ssh gave no reason".to_owned());
                let complaint = (!self.asks).then(|| reason(last));
                why(status, &self.host, program, complaint, self.greeting.words())
            }
            Err(error) => error,
        }
    }
}

/// The message of nologin (8), without its end: the shell of an account without logins.
const NO_LOGIN: &str = "account is currently not available";

/// Returns whether ssh reports that the remote host rejects this user, or has another key.
fn is_refusal(line: &str) -> bool {
    let refusals = [
        "Permission denied (",
        "Host key verification failed",
        "Too many authentication failures",
        "no supported authentication methods available",
    ];
    refusals.iter().any(|refusal| line.contains(refusal))
}

/// Explains the exit of ssh. `complaint` is its last line on stderr, if the user has not seen it; `words` is the output
/// of the login.
fn why(status: ExitStatus, host: &str, program: &str, complaint: Option<String>, words: Option<String>) -> Error {
    let output = words.as_ref().map_or_else(String::new, |words| format!("; login output: {words}"));
    match status.code() {
        Some(NOT_FOUND) => Error::NotInstalled { host: host.to_owned(), program: program.to_owned() },
        Some(SSH_FAILED) => Error::Ssh(match complaint {
            None => format!("ssh could not connect or log in to {host}: see its message above{output}"),
            Some(line) => line,
        }),
        Some(NOT_EXECUTABLE) => Error::Ssh(format!("{host} cannot run {program}: not a program for this host{output}")),
        Some(0) => Error::NoDownpour { host: host.to_owned(), program: program.to_owned(), output: words },
        Some(code) => Error::Ssh(format!("ssh exited with code {code} before downpour started on {host}{output}")),
        None => Error::Ssh(format!("ssh was killed before downpour started on {host}{output}")),
    }
}

/// The output of ssh, read until the user stops or the time is over.
struct Output<'a> {
    stdout: &'a mut ChildStdout,
    stop: &'a PipeReader,
    patience: LoginTimeouts,
    /// Whether the request is written.
    is_asked: &'a dyn Fn() -> bool,
    hint: Option<&'a mut dyn FnMut()>,
    begun: Instant,
    /// Start of the current time limit.
    since: Instant,
    has_output: bool,
}

impl Read for Output<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        /// Interval of checks whether the request is written.
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        loop {
            let mut waiting = [PollFd::new(self.stop, PollFlags::IN), PollFd::new(self.stdout, PollFlags::IN)];
            // Interrupted by a signal: treat as no input.
            let result = poll(&mut waiting, Some(&LOOK));
            let [stop, stdout] = waiting.map(|fd| if result.is_ok() { !fd.revents().is_empty() } else { false });
            if stop {
                return Err(io::Error::other("stopped"));
            }
            if stdout {
                if !self.has_output {
                    (self.has_output, self.since) = (true, runtime::now());
                }
                return self.stdout.read(out);
            }
            self.check_deadline()?;
        }
    }
}

impl Output<'_> {
    fn check_deadline(&mut self) -> io::Result<()> {
        if runtime::since(self.begun) >= self.patience.hint
            && let Some(hint) = self.hint.take()
        {
            hint();
        }
        if self.has_output && !(self.is_asked)() {
            self.since = runtime::now();
        }
        let limit = if self.has_output { self.patience.after_login } else { self.patience.silence };
        if runtime::since(self.since) < limit {
            return Ok(());
        }
        let seconds = limit.as_secs();
        let text = if self.has_output {
            format!("login did not start downpour within {seconds} s, only printed text")
        } else {
            format!("no login within {seconds} s")
        };
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}
