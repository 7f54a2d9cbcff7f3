//! Copies the output of a pipe's command from ssh to this process's standard output, and detects the exit of ssh.

use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ChildStdout;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Bytes read at a time: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// A change of the output of ssh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputState {
    /// ssh has exited, or is about to: it has closed its output.
    End,
    /// Standard output is closed. From now on ssh cannot write either, so that the command's next write fails; the exit
    /// of ssh is not detected any more.
    Unwritten,
}

/// Prints the output of `ssh` until its end, and reports its changes. `life` is another handle of the same pipe: the
/// exit of ssh is reported even if standard output is read slowly.
///
/// # Errors
/// The system has no pipe, or no thread. The thread's own result is the error of standard output.
pub(super) fn print(
    ssh: ChildStdout,
    life: OwnedFd,
    on_change: impl Fn(OutputState) + Clone + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let (over, printing) = io::pipe()?;
    let on_end = on_change.clone();
    runtime::spawn("downpour-pipe-end", move || {
        if has_ended(life, &over) {
            on_end(OutputState::End);
        }
    })?;
    runtime::spawn("downpour-pipe-output", move || {
        let result = copy(ssh);
        drop(printing);
        if result.is_err() {
            on_change(OutputState::Unwritten);
        }
        result
    })
}

/// Copies everything, and closes `ssh`.
///
/// # Errors
/// The error of standard output, also while there is nothing to write: [`io::ErrorKind::BrokenPipe`] once all readers
/// have closed it.
fn copy(mut ssh: ChildStdout) -> io::Result<()> {
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut chunk = vec![0; CHUNK];
    loop {
        // `poll` without events still reports that all readers of a pipe, a socket or a terminal have closed it.
        let mut waiting = [PollFd::new(&stdout, PollFlags::empty()), PollFd::new(&ssh, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        if waiting[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match ssh.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => stdout.write_all(&chunk[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the exit of ssh; false if printing is `over` first. Closes `life`.
fn has_ended(life: OwnedFd, over: &PipeReader) -> bool {
    loop {
        // `poll` without events still reports that the other end was closed.
        let mut waiting = [PollFd::new(&life, PollFlags::empty()), PollFd::new(over, PollFlags::empty())];
        // Interrupted by a signal: treated as no event.
        if poll(&mut waiting, None).is_ok_and(|count| count > 0) {
            return !waiting[0].revents().is_empty();
        }
    }
}
