//! Starts ssh and reads the answer of the remote downpour.

use std::io::{self, PipeWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use net::Family;

use super::SshOptions;
use super::answer::{ANSWER, CAUSE, parse_answer};
use super::login::{Login, LoginTimeouts};
use super::request::Request;
use super::ssh::{Remote, Unfit, remote_command};
use crate::error::{Error, read_cause};
use crate::ticket::Ticket;
use crate::transfer::TransferControl;

/// How long to wait for the lookup of the host's name after the answer has arrived; without it, the addresses that the
/// host itself reports are tried.
const LOOKUP: Duration = Duration::from_secs(2);

/// Logs in to `host`, starts downpour and waits for its answer; the user may be typing a password. Passes a line for
/// the user to `on_note` if it takes long. Ends early if `switch` is stopped; ssh is killed if it is abandoned.
///
/// [`Error::NoSsh`] if the program does not exist, [`Error::Ssh`], [`Error::NotInstalled`], or the error in the remote
/// host's answer.
/// side's answer.
pub(super) fn log_in(
    (options, host, family): (&SshOptions, &str, Family),
    request: &Request,
    switch: &TransferControl,
    on_note: &mut dyn FnMut(String),
) -> Result<Remote, Error> {
    let (starting, stopper) = Starting::launch(options, host, family, request)?;
    switch.set_route_process(Box::new(starting.login.process.terminator()));
    let mut stopper = Some(stopper);
    let watch = switch.watch(Box::new(move |_| drop(stopper.take())));
    let answer = starting.answer_within(LoginTimeouts::of(options), on_note);
    switch.unwatch(watch);
    answer
}

/// An ssh that starts downpour.
struct Starting {
    login: Login,
    /// Writes the request, which ssh may be slow to read, and returns the pipe.
    request: JoinHandle<io::Result<ChildStdin>>,
    /// The setting of ssh that prevents the start of programs, if there is one.
    unfit: Receiver<Option<Unfit>>,
    addresses: Receiver<Vec<IpAddr>>,
    program: Option<String>,
}

impl Starting {
    /// Starts ssh to `host`. [`Starting::answer_within`] ends when the returned pipe is closed.
    ///
    /// # Errors
    /// [`Error::NoSsh`] if the program does not exist.
    fn launch(
        options: &SshOptions,
        host: &str,
        family: Family,
        request: &Request,
    ) -> Result<(Self, PipeWriter), Error> {
        let frame = request.to_frame()?;
        let program = options.remote_program.clone();
        let (mut login, stopper) = Login::start((options, host, family), remote_command(program.as_deref()))?;
        let mut stdin = login.take_input()?;
        let write = move || stdin.write_all(&frame).map(|()| stdin);
        let request = runtime::spawn("downpour-request", write).map_err(Error::OutOfResources)?;
        let ((found, unfit), (resolved, addresses)) = (channel(), channel());
        let (lookup, name) = (options.clone(), host.to_owned());
        let look = move || {
            let settings = lookup.settings(&name, family);
            // The remote host may answer first, and nothing waits for this any more.
            let _ = found.send(settings.unfit());
            let _ = resolved.send(settings.resolve().addresses);
        };
        runtime::spawn("downpour-lookup", look).map_err(Error::OutOfResources)?;
        Ok((Self { login, request, unfit, addresses, program }, stopper))
    }

    /// Waits for the remote host's answer.
    ///
    /// # Errors
    /// [`Error::Ssh`], [`Error::NotInstalled`], or the error in the remote host's answer.
    fn answer_within(mut self, patience: LoginTimeouts, on_note: &mut dyn FnMut(String)) -> Result<Remote, Error> {
        let is_asked = || self.request.is_finished();
        let mut found = self.login.wait_for(&[ANSWER, CAUSE], patience, &is_asked, on_note)?;
        let cause = match &found {
            Some((CAUSE, line)) => read_cause(line),
            _ => None,
        };
        if cause.is_none() && matches!(found, Some((CAUSE, _))) {
            // A cause of a later release: the answer behind it has a text.
            found = self.login.wait_for(&[ANSWER], patience, &is_asked, on_note)?;
        }
        let Some((_, line)) = found else {
            drop(self.request);
            if let Some(unfit) = runtime::recv_timeout(&self.unfit, patience.end).ok().flatten() {
                return Err(starts_nothing(&self.login.host, unfit));
            }
            return Err(self.login.ended(patience, self.program.as_deref().unwrap_or("downpour")));
        };
        let Self { login, request, unfit, addresses, .. } = self;
        let answered = cause.map_or_else(|| parse_answer(&line), Err);
        let mut answer = answered.map_err(|error| {
            let unfit = runtime::recv_timeout(&unfit, LOOKUP).ok().flatten();
            unfit.map_or_else(|| error.on(&login.host), |unfit| starts_nothing(&login.host, unfit))
        })?;
        login.wait_until("read the request", patience.end, || Ok(request.is_finished().then_some(())))?;
        let stdin = request.join().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        let stdin = stdin.map_err(|error| Error::Ssh(format!("ssh to {} exited: {error}", login.host)))?;
        let found = runtime::recv_timeout(&addresses, LOOKUP);
        add_addresses(&mut answer.ticket, &found.unwrap_or_default());
        let (process, stdout, login_time) = login.into_parts();
        Ok(Remote::new(process, (stdin, stdout), answer, login_time))
    }
}

/// Puts the addresses to which the host's name resolves before those that the host itself reports: behind a NAT only
/// the former work.
fn add_addresses(ticket: &mut Ticket, found: &[IpAddr]) {
    let Some(port) = ticket.addresses.first().map(SocketAddr::port) else { return };
    let own = std::mem::take(&mut ticket.addresses);
    let mut addresses: Vec<SocketAddr> = found.iter().map(|ip| (*ip, port).into()).collect();
    addresses.extend(own.into_iter().filter(|address| !found.contains(&address.ip())));
    addresses.truncate(crate::ticket::MAX_ADDRESSES);
    ticket.addresses = addresses;
}

/// Returns the error of an ssh whose configuration prevents the start of programs.
fn starts_nothing(host: &str, (setting, wanted): Unfit) -> Error {
    Error::NothingStarts { host: host.to_owned(), setting, wanted }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::thread;
    use std::time::Instant;

    use super::super::PathOptions;
    use super::super::request::RemoteTask;
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::EngineOptions;

    /// Long enough for a busy host, and too short for a user.
    const SOON: Duration = Duration::from_secs(30);

    /// Creates options with a script in place of ssh.
    fn ssh(directory: &Path, script: &str) -> SshOptions {
        let path: PathBuf = directory.join("ssh");
        // `ssh -G` prints nothing.
        fs::write(&path, format!("#!/bin/sh\ncase \" $* \" in *' -G '*) exit;; esac\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        SshOptions { command: vec![path.into()], ..SshOptions::default() }
    }

    fn launch(options: &SshOptions, command: String) -> Result<(Starting, PipeWriter), Error> {
        let engine = EngineOptions { endpoint: net::EndpointOptions::new(SOON), ..EngineOptions::default() };
        let request = Request::new(RemoteTask::Pipe { command }, &PathOptions::default(), &engine);
        Starting::launch(options, "host", Family::Any, &request)
    }

    /// Runs a script; returns its error, and the notes before that.
    fn fails(script: &str, patience: LoginTimeouts) -> (String, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let (starting, _stop) = launch(&ssh(directory.path(), script), "true".into()).unwrap();
        let mut notes = Vec::new();
        let begun = Instant::now();
        let error = starting.answer_within(patience, &mut |line| notes.push(line)).err().unwrap();
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        (error.to_string(), notes)
    }

    #[test]
    fn ssh_not_reading_request_can_be_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let script = format!("echo $$ >{}; exec sleep 1000", pid.display());
        // More than a pipe's buffer.
        let (starting, stop) = launch(&ssh(directory.path(), &script), "x".repeat(10_000_000)).unwrap();
        let begun = Instant::now();
        let answer = thread::spawn(|| starting.answer_within(LoginTimeouts::ASKED, &mut |_| {}).err().unwrap());
        while !fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
            assert!(begun.elapsed() < SOON);
            thread::sleep(Duration::from_millis(5));
        }
        drop(stop);
        assert!(matches!(answer.join().unwrap(), Error::Ssh(_)));
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let pid = fs::read_to_string(&pid).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "the process was reaped");
    }

    #[test]
    fn ssh_that_hangs_can_be_stopped_and_times_out() {
        let ticket = crate::ticket::Ticket {
            key: [7; 32],
            expires: std::time::SystemTime::now() + SOON,
            addresses: vec!["192.0.2.1:7".parse().unwrap()],
            listener: crate::ticket::Role::Receiver,
        };
        // One closes its output and keeps running; the other answers before it has read the request.
        let silent = "exec sleep 1000 >&-".to_owned();
        let early = format!("echo '{ANSWER}{}'; exec sleep 1000", ticket.to_text().unwrap());
        for (script, expected) in [(silent, "host: ssh did not exit"), (early, "host: ssh did not read the request")] {
            for is_stopped in [false, true] {
                let directory = tempfile::tempdir().unwrap();
                let (starting, stop) = launch(&ssh(directory.path(), &script), "x".repeat(10_000_000)).unwrap();
                let patience = match is_stopped {
                    true => LoginTimeouts { end: 6 * SOON, ..LoginTimeouts::ASKED },
                    false => LoginTimeouts { end: Duration::from_millis(300), ..LoginTimeouts::ASKED },
                };
                let begun = Instant::now();
                let answer = thread::spawn(move || starting.answer_within(patience, &mut |_| {}).err().unwrap());
                if is_stopped {
                    thread::sleep(Duration::from_millis(300));
                    drop(stop);
                }
                let error = answer.join().unwrap().to_string();
                assert_eq!(error, if is_stopped { "host: stopped" } else { expected });
                assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
            }
        }
    }

    #[test]
    fn login_output_quoted_in_error() {
        let words = "No shell for this account.";
        let (error, _) = fails(&format!("cat >/dev/null & echo '{words}'; exit 1"), LoginTimeouts::ASKED);
        assert_eq!(error, format!("ssh exited with code 1 before downpour started on host; login output: {words}"));
        let (error, _) = fails("printf 'Not\\033[2J\\nyou.'; kill -9 $$", LoginTimeouts::ASKED);
        assert_eq!(error, "ssh was killed before downpour started on host; login output: Not\u{1b}[2J / you.");
    }

    #[test]
    fn ssh_waiting_for_end_of_input_exits() {
        let (error, _) = fails("cat >/dev/null & exec >&-; wait; exit 3", LoginTimeouts::ASKED);
        assert_eq!(error, "ssh exited with code 3 before downpour started on host");
    }

    #[test]
    fn login_that_hangs_is_noted_and_times_out() {
        let patience = LoginTimeouts {
            hint: Duration::from_millis(300),
            silence: Duration::from_millis(700),
            after_login: Duration::from_millis(700),
            end: SOON,
        };
        let (error, notes) = fails("exec sleep 1000", patience);
        assert_eq!(error, "host: no login within 0 s");
        assert!(matches!(&notes[..], [line] if line.starts_with("\nno response from host for 0 s: ")), "{notes:?}");
        let longer = LoginTimeouts { silence: SOON * 6, ..patience };
        let (error, notes) = fails("printf Welcome; exec sleep 1000", longer);
        assert_eq!(error, "host: login did not start downpour within 0 s, only printed text; login output: Welcome");
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn login_endless_output_ends() {
        for script in ["exec yes", "exec cat /dev/zero"] {
            let (error, notes) = fails(script, LoginTimeouts::ASKED);
            assert_eq!(error, "host: endless login output without a reply of downpour");
            assert!(notes.is_empty(), "{notes:?}");
        }
    }

    #[test]
    fn ssh_program_missing_is_local_error() {
        for program in ["/nonexist", "no-such-program-anywhere", "/etc/passwd", "/"] {
            let options = SshOptions { command: vec![program.into()], ..SshOptions::default() };
            let error = launch(&options, "true".into()).err().unwrap();
            assert!(error.to_string().starts_with(&format!("cannot start {program}: ")), "{error}");
            assert_eq!(error.kind(), ErrorKind::Other);
        }
    }

    #[test]
    fn ticket_resolved_addresses_first() {
        let mut ticket = Ticket {
            key: [0; 32],
            expires: std::time::SystemTime::UNIX_EPOCH,
            addresses: vec!["10.0.0.1:7".parse().unwrap(), "192.0.2.1:7".parse().unwrap()],
            listener: crate::ticket::Role::Sender,
        };
        add_addresses(&mut ticket, &["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]);
        let shown: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1:7", "[2001:db8::1]:7", "10.0.0.1:7"]);
    }
}
