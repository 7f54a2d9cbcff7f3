//! What a sender sends: batches from a walk through the sources, and the blocks of those that are open.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use super::step::Input;
use crate::driver::Storage;
use crate::error::Error;
use crate::files::{Attributes, Batch, BatchSource, Root, Roots, ScanOptions, Scanner, SourceId};

/// Where the blocks of the open batches are read.
#[derive(Debug, Default)]
pub(super) struct Sources {
    batches: RwLock<BTreeMap<u64, Arc<BatchSource>>>,
}

impl Sources {
    /// Lets a batch be read.
    pub(super) fn open(&self, tag: u64, source: Arc<BatchSource>) {
        self.batches.write().unwrap_or_else(PoisonError::into_inner).insert(tag, source);
    }

    /// Lets go of a batch.
    pub(super) fn close(&self, tag: u64) {
        self.batches.write().unwrap_or_else(PoisonError::into_inner).remove(&tag);
    }
}

impl Storage for Sources {
    fn read(&self, tag: u64, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let source = self.batches.read().unwrap_or_else(PoisonError::into_inner).get(&tag).cloned();
        source.ok_or(Error::Internal("a batch that is not open is read"))?.read(offset, out);
        Ok(())
    }

    fn write(&self, _: u64, _: u64, _: &[u8]) -> Result<(), Error> {
        Err(Error::Violation("it sends files to a sender".to_owned()))
    }
}

/// A thread that walks the sources, a little ahead of what is sent.
pub(super) struct Scan {
    /// Where the files are.
    pub(super) roots: Arc<Roots>,
    /// What is sent.
    pub(super) id: SourceId,
    /// Mode and time of the folder whose content is sent.
    pub(super) top: Option<Attributes>,
    batches: Receiver<Batch>,
    /// Bytes of all batches so far.
    found: Arc<AtomicU64>,
}

impl Scan {
    /// Starts to walk `roots`. Each batch that is ready is announced in `inputs`, and so is the end.
    ///
    /// # Errors
    /// What [`Scanner::new`] says; [`Error::System`] when there is no thread.
    pub(super) fn start(roots: Vec<Root>, options: ScanOptions, inputs: Sender<Input>) -> Result<Self, Error> {
        let scanner = Scanner::new(roots, options)?;
        let (roots, id, top) = (scanner.roots(), scanner.source_id(), scanner.top());
        let found = Arc::new(AtomicU64::new(0));
        // One batch waits here and one in the thread's hands: enough to keep ahead, little enough to hold.
        let (sender, batches) = sync_channel(1);
        let total = Arc::clone(&found);
        let work = move || {
            for batch in scanner {
                total.fetch_add(batch.length, Ordering::Relaxed);
                if sender.send(batch).is_err() || inputs.send(Input::Scanned).is_err() {
                    return;
                }
            }
            drop(sender);
            // Whether the session still listens is its own affair.
            let _ = inputs.send(Input::Scanned);
        };
        thread::Builder::new().name("downpour-scan".into()).spawn(work).map_err(Error::System)?;
        Ok(Self { roots, id, top, batches, found })
    }

    /// The next batch, if it is ready.
    ///
    /// # Errors
    /// When it is not, or never will be.
    pub(super) fn next(&self) -> Result<Batch, TryRecvError> {
        self.batches.try_recv()
    }

    /// Bytes of all batches so far.
    pub(super) fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }
}
