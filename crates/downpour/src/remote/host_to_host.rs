//! A copy between two remote hosts, on the host where it was started.
//!
//! The sending host is asked to copy to the receiving one directly. If it cannot log in to that, the datagrams between
//! the two are relayed by this host over ssh: they are encrypted with a key of the receiver, nothing is stored on this
//! host, and the receiver's journal resumes a copy as always.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::host_to_host_frames::{Frame, Frames, MAX_DATA, RelayCommand, RelayEvent, read_frame};
use super::launch::log_in;
use super::request::{Onward, RemoteTask, Request};
use super::ssh::Remote;
use super::{CarrierChoice, HostCopy};
use crate::base64::Bytes;
use crate::error::{Context, CopyError, Error, ErrorKind, RequiredFeature, kind_of_answer};
use crate::files::ReceiveRequest;
use crate::transfer::{Events, LONGEST_PAUSE, StopReason, Summary, Transfer, TransferControl, TransferEvent};

/// Exit codes of a receiver that lacks some names.
const PARTIAL: i32 = 23;
const VANISHED: i32 = 24;

/// How often to check for the user's decisions.
const STEP: Duration = Duration::from_millis(200);

/// Time for the sender to exit after its report of the end of the transfer, and then for the receiver.
const TO_CONFIRM: Duration = Duration::from_secs(5);

/// Time for the sender to exit after the command to stop.
const TO_STOP: Duration = Duration::from_secs(5);

/// Starts a copy from the host `from` to the host `to`.
///
/// # Errors
/// Options that need the sender or receiver on this host.
pub(super) fn between(copy: HostCopy, from: String, to: String) -> Result<Transfer, Error> {
    if let Some((kind, _)) = copy.options.outputs().iter().next() {
        return Err(CopyError::OutputOfRelay { kind, from, to }.into());
    }
    copy.check_wildcards(&from)?;
    Transfer::run_by(move |events, switch| HostToHostCopy { copy, from, to, events, switch }.run())
}

struct HostToHostCopy {
    copy: HostCopy,
    from: String,
    to: String,
    events: Events,
    switch: Arc<TransferControl>,
}

/// One attempt.
struct Attempt<'a> {
    between: &'a HostToHostCopy,
    /// The sending host.
    sender: Remote,
    input: File,
    output: Arc<Frames<File>>,
    /// The receiving host and the pipe to it, if this host relays the data.
    receiver: Option<(Remote, File)>,
    /// Time of the last event of the transfer.
    last_event: Option<Instant>,
}

impl HostToHostCopy {
    /// Copies, and retries after a lost connection for as long as the user has configured.
    fn run(self) -> Result<Summary, Error> {
        let (mut last_event, mut pause) = (None, Duration::from_secs(1));
        loop {
            let (result, now) = self.attempt();
            if now.is_some() {
                (last_event, pause) = (now, Duration::from_secs(1));
            }
            match (result, self.switch.stopped()) {
                (Err(_), Some(why)) => return Err(why.into()),
                (Err(error), None) if self.is_worth_another(&error, last_event) => {
                    self.note(format!("{error}; trying again in {} s", pause.as_secs()));
                    self.switch.wait(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                (result, _) => return result,
            }
        }
    }

    fn is_worth_another(&self, error: &Error, last_event: Option<Instant>) -> bool {
        let passes = matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Terminated);
        let (Some(patience), Some(last_event)) = (self.copy.options.retry_for, last_event) else { return false };
        passes && runtime::since(last_event) < patience
    }

    fn note(&self, line: String) {
        self.events.emit(TransferEvent::UserNote(line));
    }

    /// Returns the result, and the time of the last event of the transfer.
    fn attempt(&self) -> (Result<Summary, Error>, Option<Instant>) {
        let onward = if self.copy.relay_locally { Err(None) } else { self.onward().map_err(Some) };
        let (onward, why) = match onward {
            Ok(onward) => (Some(onward), None),
            Err(why) => (None, Some(why)),
        };
        let mut attempt = match self.begin(onward) {
            Ok(attempt) => attempt,
            Err(error) => return (Err(error), None),
        };
        let over = Arc::new(AtomicBool::new(false));
        let result = self.pass_orders(&attempt, &over).and_then(|()| match why {
            Some(why) => attempt.go_through(why),
            None => Ok(()),
        });
        let result = result.and_then(|()| attempt.follow());
        over.store(true, Ordering::Relaxed);
        let last_event = attempt.last_event;
        attempt.end();
        (result, last_event)
    }

    /// Returns how the sender may reach the receiver directly, or why it may not. The host is resolved here: with the
    /// name, user and port that the local user's ssh configures.
    fn onward(&self) -> Result<Onward, String> {
        let found = self.copy.ssh.settings(&self.to, self.copy.path.family).resolve();
        if found.is_this_machine() {
            return Err(format!("{} is the local host", self.to));
        }
        Ok(Onward {
            host: found.login,
            port: found.port,
            receive: self.copy.receive.clone(),
            keeps_names: self.copy.keeps_names,
            program: self.copy.ssh.remote_program.clone(),
            retry_for: self.copy.options.retry_for,
        })
    }

    /// Logs in to the sending host.
    fn begin(&self, onward: Option<Onward>) -> Result<Attempt<'_>, Error> {
        let task = RemoteTask::Forward {
            sources: self.copy.sources.iter().map(|source| Bytes::from(source.path().as_path())).collect(),
            scan: self.copy.scan.clone(),
            compared: self.copy.receive.compare_trees,
            dry_run: self.copy.receive.dry_run,
            onward: onward.map(Box::new),
        };
        let request = self.copy.request(task);
        let mut sender = self.log_in(&self.from, &request).map_err(|error| self.of_older(error))?;
        let (input, output) = sender.take_pipes().map_err(Error::OutOfResources)?;
        let output = Arc::new(Frames::new(output));
        Ok(Attempt { between: self, sender, input, output, receiver: None, last_event: None })
    }

    fn log_in(&self, host: &str, request: &Request) -> Result<Remote, Error> {
        let copy = &self.copy;
        let mut on_note = |line| self.note(line);
        let remote = log_in((&copy.ssh, host, copy.path.family), request, &self.switch, &mut on_note);
        let checked =
            remote.and_then(|remote| RequiredFeature::check(&request.task, &remote.enforced).map(|()| remote));
        checked.map_err(|error| error.on(host))
    }

    /// Explains the error of a host that does not know the task.
    fn of_older(&self, error: Error) -> Error {
        match error {
            Error::Within { ref source, .. } if matches!(&**source, Error::Described { message, .. } if message.contains("unknown variant `Forward`")) => {
                CopyError::NoForwarding(self.from.clone()).into()
            }
            other => other,
        }
    }

    /// Starts to relay the user's decisions, until the attempt is `over`.
    fn pass_orders(&self, attempt: &Attempt<'_>, over: &Arc<AtomicBool>) -> Result<(), Error> {
        let (switch, output, over) = (Arc::clone(&self.switch), Arc::clone(&attempt.output), Arc::clone(over));
        let mut kill = attempt.sender.terminator();
        let mut limit = None;
        let work = move || {
            while !over.load(Ordering::Relaxed) {
                if let Some(why) = switch.stopped() {
                    stop(why, output, &over);
                    return kill();
                }
                let now = switch.limited_to();
                if now != limit {
                    limit = now;
                    // The attempt notices an error, too.
                    let _ = output.order(&RelayCommand::Limit(limit));
                }
                switch.wait(STEP);
            }
        };
        runtime::spawn("downpour-orders", work).map(drop).map_err(Error::OutOfResources)
    }
}

/// Commands the sender to stop, and waits for the end of the attempt.
fn stop(why: StopReason, output: Arc<Frames<File>>, over: &AtomicBool) {
    let order = RelayCommand::Stop { terminated: why == StopReason::Terminated };
    // It may block where the network does, and must not delay the end of the attempt.
    let send = move || drop(output.order(&order));
    drop(runtime::spawn("downpour-stop", send));
    let deadline = runtime::now() + TO_STOP;
    while !over.load(Ordering::Relaxed) && runtime::now() < deadline {
        runtime::sleep(STEP);
    }
}

impl Attempt<'_> {
    /// Follows the transfer to its end.
    fn follow(&mut self) -> Result<Summary, Error> {
        let from = self.between.from.clone();
        loop {
            let frame = match read_frame(&mut self.input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Err(Error::Ssh(format!("the connection to {from} was closed"))),
                Err(error) => return Err(Error::Ssh(format!("the connection to {from} was closed: {error}"))),
            };
            match frame {
                Frame::Data(bytes) => self.forward(&bytes),
                Frame::Report(RelayEvent::Unreached { why }) if self.receiver.is_none() => {
                    let (from, to) = (&self.between.from, &self.between.to);
                    self.go_through(Some(format!("{from} cannot copy to {to} directly ({why})")))?;
                }
                Frame::Report(report) => match report.into_event(&from) {
                    Some(TransferEvent::Done(Ok(summary))) => {
                        self.ask_receiver(&summary)?;
                        return Ok(self.completed(summary));
                    }
                    Some(TransferEvent::Done(Err(error))) => return Err(error),
                    Some(event) => {
                        if matches!(event, TransferEvent::Connected { .. } | TransferEvent::Progress(_)) {
                            self.last_event = Some(runtime::now());
                        }
                        self.between.events.emit(event);
                    }
                    None => {}
                },
                Frame::Order(_) => {
                    return Err(Error::ProtocolViolation("a command from the sending host".into()));
                }
            }
        }
    }

    /// Adds the figures that the sender reported at its login.
    fn completed(&self, mut summary: Summary) -> Summary {
        summary.names.links_followed = summary.names.links_followed.saturating_add(self.sender.links_followed);
        summary
    }

    /// Checks that the receiver has ended as the sender reports, if this host has logged in to it. The sender alone is
    /// not trusted.
    fn ask_receiver(&mut self, summary: &Summary) -> Result<(), Error> {
        // The sender's last datagrams may follow its report.
        let deadline = runtime::now() + TO_CONFIRM;
        while self.receiver.is_some() && self.has_input_until(deadline) {
            match read_frame(&mut self.input) {
                Ok(Some(Frame::Data(bytes))) => self.forward(&bytes),
                Ok(Some(Frame::Report(_) | Frame::Order(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        let Some((receiver, pipe)) = self.receiver.take() else { return Ok(()) };
        let ends = |time| receiver.ends_within(time).and_then(|status| status.code());
        let code = ends(TO_CONFIRM).or_else(|| {
            // Closing its input ends it now, with a failure.
            drop(pipe);
            ends(TO_CONFIRM)
        });
        let is_partial = summary.failures.count > 0 && matches!(code, Some(PARTIAL | VANISHED));
        if code == Some(0) || is_partial {
            return Ok(());
        }
        let HostToHostCopy { from, to, .. } = self.between;
        let kind = code.and_then(|code| u8::try_from(code).ok()).map_or(ErrorKind::Unreachable, kind_of_answer);
        let message = format!("{from} reports a complete transfer, which is not confirmed");
        Err(Error::Described { kind, message }.within(Context::Host(Some(to.clone()))))
    }

    /// Waits for the next frame of the sender; returns false at the deadline.
    fn has_input_until(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(runtime::now());
            let Ok(left) = Timespec::try_from(left) else { return false };
            match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&left)) {
                Err(Errno::INTR) => {}
                ready => return ready.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Relays datagrams of the sender.
    fn forward(&mut self, bytes: &[u8]) {
        let Some((_, pipe)) = &mut self.receiver else { return };
        // The end of the receiver reaches the sender through the other pipe, after its messages.
        let _ = pipe.write_all(bytes);
    }

    /// Logs in to the receiver, and joins the two. Shows the user the reason, if there is one.
    fn go_through(&mut self, why: Option<String>) -> Result<(), Error> {
        let HostToHostCopy { copy, to, .. } = self.between;
        if let Some(why) = why {
            if copy.path.via == CarrierChoice::Udp {
                return Err(CopyError::NoDirectPath { why }.into());
            }
            self.between.note(format!("{why}: relaying through this host"));
        }
        let (mut requested, permitted) = copy.unseen();
        if self.sender.items == Some(1) {
            requested.only_one_matches();
        }
        let spec = ReceiveRequest { requested, permitted, ..copy.receive.clone() };
        let mut request = copy.request(RemoteTask::Receive(Box::new(spec)));
        request.via = CarrierChoice::Ssh;
        let mut receiver = self.between.log_in(to, &request)?;
        let (mut kill_sender, mut kill_receiver) = (self.sender.terminator(), receiver.terminator());
        self.between.switch.set_route_process(Box::new(move || {
            kill_sender();
            kill_receiver();
        }));
        let ended = |error| Error::Ssh(format!("ssh to {to} exited: {error}"));
        let (back, forth) = receiver.continue_over_ssh().map_err(ended)?;
        let key = Bytes(receiver.ticket.key.to_vec());
        self.receiver = Some((receiver, forth.into()));
        let output = Arc::clone(&self.output);
        let work = move || pump(back.into(), &output);
        runtime::spawn("downpour-between", work).map_err(Error::OutOfResources)?;
        // The exit of the sender shows where its frames are read.
        let _ = self.output.order(&RelayCommand::Through { key });
        Ok(())
    }

    /// Ends both logins: everything has been reported. Closing its input ends a host that is still running.
    fn end(self) {
        self.sender.terminate();
        self.receiver.iter().for_each(|(receiver, _)| receiver.terminate());
    }
}

/// Relays datagrams of the receiver, and their end.
fn pump(mut receiver: File, sender: &Frames<File>) {
    let mut buffer = vec![0; MAX_DATA];
    loop {
        let count = match receiver.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        if sender.data(&buffer[..count]).is_err() || count == 0 {
            return;
        }
    }
}
