//! Standard input and output of the process that ssh starts: the answer, the fallback to ssh, and the pipes themselves.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};

use tokio::sync::mpsc;

use super::answer::{ANSWER, CAUSE};
use crate::error::{Error, answer_line, cause_line};
use crate::protocol::ssh::FALL_BACK;

/// Sent on standard input after the request if UDP is blocked. If standard input ends instead, ssh or the peer has
/// exited.
pub(super) struct FallBackToSsh;

/// Reports an error to the peer.
pub(super) fn refuse(error: &Error) {
    refuse_on(&mut io::stdout().lock(), error);
}

/// Returns this process's standard input and output, which lead to the peer, as descriptors of their own.
pub(super) fn pipes_to_ssh() -> Result<(OwnedFd, OwnedFd), Error> {
    let own = |fd: io::Result<OwnedFd>| fd.map_err(Error::OutOfResources);
    Ok((own(io::stdin().as_fd().try_clone_to_owned())?, own(io::stdout().as_fd().try_clone_to_owned())?))
}

/// Unbuffered standard input: the following bytes belong to other readers.
pub(super) struct Unbuffered;

impl io::Read for Unbuffered {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(io::stdin(), out)?)
    }
}

/// Starts a thread that reads standard input until it belongs to the carrier.
///
/// # Errors
/// [`Error::OutOfResources`] if the thread cannot be spawned.
pub(super) fn listen_to_stdin() -> Result<mpsc::UnboundedReceiver<FallBackToSsh>, Error> {
    let (sender, words) = mpsc::unbounded_channel();
    let listen = move || {
        if wait_for_fallback() {
            // Fails if the transfer has ended.
            let _ = sender.send(FallBackToSsh);
        }
    };
    runtime::spawn("downpour-ssh-input", listen).map_err(Error::OutOfResources)?;
    Ok(words)
}

/// Waits for the command to continue over ssh on standard input; returns false at its end.
pub(super) fn wait_for_fallback() -> bool {
    let mut byte = [0];
    loop {
        match Unbuffered.read(&mut byte) {
            Ok(1) if byte == [FALL_BACK] => return true,
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

/// Prints the answer line.
pub(super) fn answer(text: &str) {
    answer_on(&mut io::stdout().lock(), text);
}

/// Reports an error on `out`, as [`refuse`] does.
pub(super) fn refuse_on(out: &mut impl io::Write, error: &Error) {
    let cause = cause_line(error).map_or_else(String::new, |cause| format!("\n{CAUSE}{cause}"));
    let _ = out.write_all(cause.as_bytes());
    answer_on(out, &format!("ERROR {}", answer_line(error)));
}

/// Prints the answer line to `out`. Errors are ignored: they mean that nothing reads.
pub(super) fn answer_on(out: &mut impl io::Write, text: &str) {
    let _ = write!(out, "\n{ANSWER}{text}\n").and_then(|()| out.flush());
}
