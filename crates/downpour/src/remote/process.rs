//! A child process that does not outlive its owner.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::speech::Speech;

/// Time for ssh to exit on request: it restores the terminal's echo, which it turns off for a password.
pub(super) const TO_END: Duration = Duration::from_millis(500);

/// Interval of checks whether a process has ended.
pub(super) const STEP: Duration = Duration::from_millis(5);

/// A process that is ended when this is dropped, which then waits for the last of its stderr.
#[derive(Debug)]
pub(super) struct Process {
    child: Arc<Mutex<Child>>,
    /// Its stderr, unless that is this process's stderr.
    stderr: Option<Speech>,
}

impl Process {
    pub(super) fn new(child: Child, stderr: Option<Speech>) -> Self {
        Self { child: Arc::new(Mutex::new(child)), stderr }
    }

    /// Returns its last line on stderr, once it has exited.
    pub(super) fn last_line(&mut self) -> Option<String> {
        self.stderr.take().and_then(Speech::last)
    }

    /// Returns its exit status, if it has exited.
    pub(super) fn ended(&self) -> io::Result<Option<ExitStatus>> {
        lock(&self.child).try_wait()
    }

    /// Returns whether it exits by itself within `time`.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let deadline = runtime::now() + time;
        while matches!(self.ended(), Ok(None)) {
            if runtime::now() >= deadline {
                return false;
            }
            runtime::sleep(STEP);
        }
        true
    }

    /// Requests it to exit, if it has not.
    pub(super) fn terminate(&self) {
        terminate(&mut lock(&self.child));
    }

    /// Returns a function that requests it to exit, and does nothing once this is dropped.
    pub(super) fn terminator(&self) -> impl FnMut() + Send + 'static {
        let child = Arc::downgrade(&self.child);
        move || child.upgrade().into_iter().for_each(|child| terminate(&mut lock(&child)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.terminate();
        if !self.ends_within(TO_END) {
            let mut child = lock(&self.child);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn terminate(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None)) {
        // It was not waited for, so its process id has not been reused.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
}
