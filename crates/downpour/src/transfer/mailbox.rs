//! The inbox of a session.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use net::Event;

use super::input::{Input, SideInput};
use crate::error::Error;

/// Work to stop when a session ends: its thread may be busy for hours while the end waits in the queue.
#[derive(Default)]
struct Work {
    /// Whether the end was queued.
    over: bool,
    stop: Option<Box<dyn FnMut() + Send>>,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("over", &self.over).finish_non_exhaustive()
    }
}

/// A handle that sends inputs to a session; clones share it. An input that ends the session also stops its work on
/// files.
#[derive(Clone, Debug)]
pub(super) struct Mailbox {
    inputs: Sender<Input>,
    work: Arc<Mutex<Work>>,
}

impl Mailbox {
    /// Creates a mailbox and its receiving end.
    pub(super) fn new() -> (Self, Receiver<Input>) {
        let (inputs, receiver) = channel();
        (Self { inputs, work: Arc::default() }, receiver)
    }

    /// Sends an input; returns false if the session has ended, in which case it is not needed.
    pub(super) fn put(&self, input: Input) -> bool {
        if input.is_end() {
            let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            work.over = true;
            work.stop.iter_mut().for_each(|stop| stop());
        }
        self.inputs.send(input).is_ok()
    }

    /// Returns a handler that relays the events of the session's connection.
    pub(super) fn events(&self) -> impl FnMut(Event) + Send + 'static {
        let mailbox = self.clone();
        move |event| {
            mailbox.put(Input::Step(SideInput::Network(event)));
        }
    }

    /// Calls `stop` when the session ends, or at once if it has ended: its work is then useless.
    pub(super) fn on_end(&self, mut stop: impl FnMut() + Send + 'static) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if work.over {
            stop();
        }
        work.stop = Some(Box::new(stop));
    }

    /// Spawns a thread that works for the session. A panic in it ends the session, which would otherwise wait for ever.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the thread cannot be spawned.
    pub(super) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let mailbox = self.clone();
        let guarded = move || {
            if panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
                mailbox.put(Input::End(Error::Internal("a thread panicked")));
            }
        };
        runtime::spawn(name, guarded).map_err(Error::OutOfResources)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_panic_in_a_thread_of_a_session_ends_the_session() {
        let (mailbox, inputs) = Mailbox::new();
        mailbox.spawn("panics", || panic!("on purpose")).unwrap();
        let ended = inputs.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(matches!(ended, Input::End(Error::Internal(_))));
    }

    #[test]
    fn the_end_of_a_session_stops_its_work_whichever_comes_first() {
        for end_comes_first in [false, true] {
            let stopped = Arc::new(AtomicBool::new(false));
            let (mailbox, _inputs) = Mailbox::new();
            let works = || {
                let stopped = Arc::clone(&stopped);
                mailbox.on_end(move || stopped.store(true, Ordering::SeqCst));
            };
            if end_comes_first {
                mailbox.put(Input::End(Error::Terminated));
                works();
            } else {
                works();
                mailbox.put(Input::Step(SideInput::Ready));
                assert!(!stopped.load(Ordering::SeqCst));
                mailbox.put(Input::End(Error::ConnectionLost));
            }
            assert!(stopped.load(Ordering::SeqCst), "{end_comes_first}");
        }
    }
}
