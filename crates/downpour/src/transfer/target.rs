//! The folder of a receiving session, as the driver's workers and the settling thread see it.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::step::Input;
use crate::driver::Storage;
use crate::error::Error;
use crate::files::{ReceiveSettings, Receiving as Files, display_name};

/// Where received blocks are written, once the files of a session are known.
#[derive(Debug, Default)]
pub(super) struct Target(OnceLock<Files>);

impl Target {
    /// Opens the folder, and starts a thread that settles files: once for each `()` it is sent, or once for several.
    ///
    /// # Errors
    /// A folder that cannot be used, or no thread.
    pub(super) fn open(self: &Arc<Self>, into: &Path, inputs: Sender<Input>) -> Result<Sender<()>, Error> {
        if self.0.set(Files::new(ReceiveSettings::new(into))?).is_err() {
            return Err(Error::Internal("a folder is opened twice"));
        }
        let (settle, requests) = channel();
        let target = Arc::clone(self);
        let work = move || settle_files(&target, &requests, &inputs);
        thread::Builder::new().name("downpour-settle".into()).spawn(work).map_err(Error::System)?;
        Ok(settle)
    }

    /// The files, once open.
    ///
    /// # Errors
    /// Before that.
    pub(super) fn files(&self) -> Result<&Files, Error> {
        self.0.get().ok_or(Error::Internal("bytes for a folder that is not open"))
    }
}

impl Storage for Target {
    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Internal("a receiver reads"))
    }

    fn write(&self, tag: u64, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.files()?.write(batch_number(tag)?, offset, bytes)?)
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
        let result = target.files().and_then(|files| Ok(files.settle(tell)?));
        let failed = result.is_err();
        if inputs.send(Input::Settled(result.map(|()| count))).is_err() || failed {
            return;
        }
    }
}
