//! The command of a pipe. If this program dies in any way, the command is killed before its input ends, unless the
//! input is complete: docs/design/end-of-input.md.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// Shell script of a guard: it reads the number of a process group, then the word `over`. If the pipe ends without
/// that word, this program has died, and the guard kills the group. It holds the command's input open while anything
/// reads it, which GNU's tail notices.
const GUARD: &str = r#"trap "" HUP INT TERM
read -r group
read -r word
test "$word" = over && exit
kill -STOP "-$group"
kill -KILL "-$group"
exec tail -f /dev/null"#;

/// A process that can outlive this program, and holds the command's input open.
struct Guard {
    process: Child,
    orders: File,
    input: PipeWriter,
}

impl Guard {
    /// Starts a guard, in a process group of its own, that holds `input` open too.
    fn start(input: PipeWriter) -> io::Result<Self> {
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD]).stdin(Stdio::piped()).stdout(input.try_clone()?).stderr(Stdio::null());
        let mut process = guard.process_group(0).spawn()?;
        let orders = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, orders: OwnedFd::from(orders).into(), input })
    }

    /// Makes it kill `group` if this program dies.
    fn watch(&mut self, group: Pid) -> io::Result<()> {
        writeln!(self.orders, "{}", group.as_raw_nonzero())
    }

    /// Ends it without killing the group.
    fn dismiss(mut self) {
        // It may have been killed.
        let _ = self.orders.write_all(b"over\n");
        drop(self.input);
        // It exits at once.
        let _ = self.process.wait();
    }
}

/// The guard of a command, until it is dismissed.
#[derive(Clone)]
pub(super) struct Guarded(Arc<Mutex<Option<Guard>>>);

impl Guarded {
    /// Lets the command's input end, once the caller has closed it: it is complete, or the command needs no more.
    pub(super) fn dismiss(&self) {
        self.take().into_iter().for_each(Guard::dismiss);
    }

    /// Holds the command's input open while anything can read it, such as a process that has left the command's group
    /// or that belongs to another user.
    pub(super) fn hold(&self) {
        if let Some(guard) = self.take() {
            // `poll` without events still reports that no reader is left.
            while !poll(&mut [PollFd::new(&guard.input, PollFlags::empty())], None).is_ok_and(|count| count > 0) {}
            guard.dismiss();
        }
    }

    fn take(&self) -> Option<Guard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A started command.
pub(super) struct Started {
    /// Leader of a process group. Until it is waited for, no other group has its number.
    pub(super) child: Child,
    pub(super) group: Pid,
    /// The command's input.
    pub(super) input: PipeWriter,
    /// Holds `input` open too.
    pub(super) guarded: Guarded,
}

/// Starts `command` with a pipe as its input, and its guard.
///
/// # Errors
/// The system has no pipe or process.
pub(super) fn start(command: Command) -> io::Result<Started> {
    let (stdin, input) = io::pipe()?;
    // Before the command, which must always have a guard.
    let mut guard = Guard::start(input.try_clone()?)?;
    match start_watched(command, stdin, &mut guard) {
        Ok((child, group)) => Ok(Started { child, group, input, guarded: Guarded(Arc::new(Mutex::new(Some(guard)))) }),
        Err(error) => {
            guard.dismiss();
            Err(error)
        }
    }
}

fn start_watched(mut command: Command, stdin: PipeReader, guard: &mut Guard) -> io::Result<(Child, Pid)> {
    let child = command.stdin(stdin).process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    guard.watch(group).inspect_err(|_| kill(group))?;
    Ok((child, group))
}

/// Kills a command and its children.
/// They are stopped first. If they were killed one after another, one of them could take the death of another for the
/// end of its own input.
pub(super) fn kill(group: Pid) {
    for signal in [Signal::STOP, Signal::KILL] {
        // It may have exited.
        let _ = kill_process_group(group, signal);
    }
}
