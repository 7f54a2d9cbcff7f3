//! The folder of a receiving session, as the driver's workers and the settling thread see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::step::Input;
use crate::driver::Storage;
use crate::error::Error;
use crate::files::{ReceiveSettings, Receiving as Files, display_name};

/// Where received blocks are written.
#[derive(Debug)]
pub(super) struct Target {
    files: Files,
    started: AtomicBool,
}

impl Target {
    /// Looks at the folder; touches nothing.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub(super) fn new(settings: ReceiveSettings) -> Result<Self, Error> {
        Ok(Self { files: Files::new(settings)?, started: AtomicBool::new(false) })
    }

    /// Whether the sender is to wait for what is wanted of each batch.
    pub(super) fn may_hold_some(&self) -> bool {
        self.files.may_hold_some()
    }

    /// Starts a thread that settles files: once for each `()` it is sent, or once for several.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn start(self: &Arc<Self>, inputs: Sender<Input>) -> Result<Sender<()>, Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::Internal("a folder is opened twice"));
        }
        let (settle, requests) = channel();
        let target = Arc::clone(self);
        let work = move || settle_files(&target, &requests, &inputs);
        thread::Builder::new().name("downpour-settle".into()).spawn(work).map_err(Error::System)?;
        Ok(settle)
    }

    /// The files.
    pub(super) const fn files(&self) -> &Files {
        &self.files
    }
}

impl Storage for Target {
    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Internal("a receiver reads"))
    }

    fn write(&self, tag: u64, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.files.write(batch_number(tag)?, offset, bytes)?)
    }
}

/// Tags are batch numbers.
pub(super) fn batch_number(tag: u64) -> Result<u32, Error> {
    u32::try_from(tag).map_err(|_| Error::Violation(format!("it sends an object {tag}, which is no batch")))
}

/// Settles verified files, which waits for the disk, whenever there may be some.
fn settle_files(target: &Target, requests: &Receiver<()>, inputs: &Sender<Input>) {
    while requests.recv().is_ok() {
        // One call settles all there is.
        let count = 1 + requests.try_iter().count();
        // A session that has ended hears nothing, and the settling ends below.
        let tell = |path: &[u8], bytes| drop(inputs.send(Input::Verified { path: display_name(path), bytes }));
        let result = target.files.settle(tell).map_err(Error::from);
        let failed = result.is_err();
        if inputs.send(Input::Settled(result.map(|()| count))).is_err() || failed {
            return;
        }
    }
}
