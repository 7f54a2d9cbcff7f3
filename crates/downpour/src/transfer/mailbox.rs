//! Where what a session is told goes in.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use net::Event;

use super::step::Input;
use super::target::Target;
use crate::error::Error;

/// What a session's thread may be busy with, for hours, while its end waits in the queue.
#[derive(Debug, Default)]
struct Files {
    /// The end has been put in.
    over: bool,
    target: Weak<Target>,
}

/// Leads to a session; clones lead to the same one. What ends the session stops its work on files too.
#[derive(Clone, Debug)]
pub(super) struct Mailbox {
    inputs: Sender<Input>,
    files: Arc<Mutex<Files>>,
}

impl Mailbox {
    /// One, and what comes out of it.
    pub(super) fn new() -> (Self, Receiver<Input>) {
        let (inputs, receiver) = channel();
        (Self { inputs, files: Arc::default() }, receiver)
    }

    /// Puts something in; false when the session has ended, which needs no more.
    pub(super) fn put(&self, input: Input) -> bool {
        if input.is_end() {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.over = true;
            if let Some(target) = files.target.upgrade() {
                target.stop();
            }
        }
        self.inputs.send(input).is_ok()
    }

    /// Takes the events of the session's connection.
    pub(super) fn events(&self) -> impl FnMut(Event) + Send + 'static {
        let mailbox = self.clone();
        move |event| {
            mailbox.put(Input::Network(event));
        }
    }

    /// The session works on `target` from now on.
    pub(super) fn works_on(&self, target: &Arc<Target>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.target = Arc::downgrade(target);
        if files.over {
            target.stop();
        }
    }

    /// Starts a thread that works for the session. A panic in it ends the session, which would wait for ever.
    ///
    /// # Errors
    /// [`Error::System`] when there is no thread.
    pub(super) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let mailbox = self.clone();
        let guarded = move || {
            if panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
                mailbox.put(Input::Failed(Error::Internal("a thread met what it cannot handle")));
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(guarded).map_err(Error::System)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::files::ReceiveSpec;
    use crate::transfer::Stop;

    #[test]
    fn a_panic_in_a_thread_of_a_session_ends_the_session() {
        let (mailbox, inputs) = Mailbox::new();
        mailbox.spawn("panics", || panic!("on purpose")).unwrap();
        let ended = inputs.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(matches!(ended, Input::Failed(Error::Internal(_))));
    }

    #[test]
    fn what_ends_a_session_stops_its_files_whichever_comes_first() {
        for end_comes_first in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let target = Arc::new(Target::new(Arc::new(ReceiveSpec::into_directory(folder.path())), true).unwrap());
            let (mailbox, _inputs) = Mailbox::new();
            let put = |input| mailbox.put(input);
            if end_comes_first {
                put(Input::Stop(Stop::Terminated));
                mailbox.works_on(&target);
            } else {
                mailbox.works_on(&target);
                put(Input::Scanned);
                assert!(!target.is_stopped());
                put(Input::Gone);
            }
            assert!(target.is_stopped(), "{end_comes_first}");
        }
    }
}
