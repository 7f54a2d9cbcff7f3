//! What the command of a pipe prints: from ssh to this process's standard output. The end of ssh shows there too.

use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ChildStdout;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Bytes read at a time: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// What shows at the output of ssh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputState {
    /// ssh has ended, or is about to: it has closed its output.
    End,
    /// Standard output takes no more. From now on ssh cannot write either, so that the command's next write fails; the
    /// end of ssh no longer shows here.
    Unwritten,
}

/// Prints what comes from `ssh` until its end, and tells what shows meanwhile. `life` is another handle of the same
/// pipe: the end of ssh is told however slowly standard output is read.
///
/// # Errors
/// The system has no pipe, or no thread. The thread's own result is the error that standard output gives.
pub(super) fn print(
    ssh: ChildStdout,
    life: OwnedFd,
    tell: impl Fn(OutputState) + Clone + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let (over, printing) = io::pipe()?;
    let told = tell.clone();
    runtime::spawn("downpour-pipe-end", move || {
        if has_ended(life, &over) {
            told(OutputState::End);
        }
    })?;
    runtime::spawn("downpour-pipe-output", move || {
        let result = copy(ssh);
        drop(printing);
        if result.is_err() {
            tell(OutputState::Unwritten);
        }
        result
    })
}

/// Copies all, and lets go of `ssh`.
///
/// # Errors
/// The error that standard output gives, also while there is nothing to write: [`io::ErrorKind::BrokenPipe`] once
/// nobody reads it any more.
fn copy(mut ssh: ChildStdout) -> io::Result<()> {
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut chunk = vec![0; CHUNK];
    loop {
        // Asked for nothing, the system still tells that the readers of a pipe, a socket or a terminal have gone.
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

/// Waits for the end of ssh; false if printing is `over` first. Lets go of `life`.
fn has_ended(life: OwnedFd, over: &PipeReader) -> bool {
    loop {
        // Asked for nothing, the system still tells of the other end's closing.
        let mut waiting = [PollFd::new(&life, PollFlags::empty()), PollFd::new(over, PollFlags::empty())];
        // Interrupted by a signal: as if nothing had been told.
        if poll(&mut waiting, None).is_ok_and(|count| count > 0) {
            return !waiting[0].revents().is_empty();
        }
    }
}
