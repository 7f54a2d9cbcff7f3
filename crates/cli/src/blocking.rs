//! Blocking writes, whether or not the descriptor is in non-blocking mode.
//!
//! Whether a descriptor blocks is a property of the open file description, which this process shares with all processes
//! that have inherited it: ssh makes its stderr non-blocking, which with `2>&1` is also the program's stdout. Setting
//! the flag back would be a race, and break ssh.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};

use crate::stop_signal::stopping;

/// Maximum bytes of one write: less than a pipe or a terminal with room accepts without blocking.
const CHUNK: usize = 512;

/// Interval at which a wait for room checks for a signal to stop. The signal itself usually ends the wait earlier.
const CHECK_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Writes all of `bytes`, waiting for room until a signal to stop: an output without a reader does not block the exit.
///
/// # Errors
/// The descriptor accepts no more bytes, such as that of a full device or of a closed pipe; or a signal to stop. Some
/// bytes may have been written.
pub(crate) fn write_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    let to = to.as_fd();
    while !bytes.is_empty() {
        await_room(to)?;
        match write(to, &bytes[..bytes.len().min(CHUNK)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until there is room, or until a write would fail.
fn await_room(to: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], Some(&CHECK_PERIOD)) {
            Ok(0) | Err(Errno::INTR) if stopping().is_some() => {
                return Err(io::Error::other("stopped by a signal"));
            }
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read};
    use std::thread;

    use super::*;

    /// Returns a full non-blocking pipe, and the number of zeros in it.
    fn full_pipe() -> (PipeReader, PipeWriter, usize) {
        let (reader, writer) = io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, true).expect("a pipe that does not block");
        let mut count = 0;
        loop {
            match write(&writer, &[0; 4096]) {
                Ok(written) => count += written,
                Err(error) => {
                    assert_eq!(error, Errno::AGAIN);
                    return (reader, writer, count);
                }
            }
        }
    }

    #[test]
    fn write_all_to_a_nonblocking_pipe_is_complete() {
        let (mut reader, writer, zeros) = full_pipe();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let slow = thread::spawn(move || {
            let (mut all, mut some) = (Vec::new(), [0; 1000]);
            loop {
                match reader.read(&mut some).expect("what was written") {
                    0 => return all,
                    count => all.extend_from_slice(&some[..count]),
                }
            }
        });
        let written = write_all(&writer, &bytes);
        drop(writer);
        let all = slow.join().expect("a reader");
        written.expect("room, after a while");
        assert!(all[zeros..] == bytes, "{} bytes of {} arrived, or others", all.len() - zeros, bytes.len());
    }

    #[test]
    fn write_all_to_a_closed_pipe_fails() {
        let (mut reader, writer, _) = full_pipe();
        let gone = thread::spawn(move || reader.read(&mut [0; 4096]).map(drop));
        let error = write_all(&writer, &[1; 1_000_000]).expect_err("no reader");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        gone.join().expect("a reader").expect("zeros");
    }
}
