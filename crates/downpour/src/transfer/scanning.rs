//! The input of a sender: batches from a walk through the sources, and the blocks of open batches.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use net::Source;

use super::input::{Input, SideInput};
use super::mailbox::Mailbox;
use crate::error::Error;
use crate::files::{Attributes, Batch, IdName, SourceId, SourceOptions, TreeObject, TreeSource, Wanted};

/// The object of a batch, for the network.
#[derive(Clone, Debug)]
pub(super) struct BatchObject(pub(super) Arc<dyn TreeObject>);

impl Source for BatchObject {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // Unreadable files are voided, and read as zeros.
        self.0.read(offset, out);
        Ok(())
    }
}

/// Results of a scan.
#[derive(Debug)]
enum ScanResult {
    /// The next batch.
    Batch(Batch),
    /// There are no more.
    All,
}

/// The state of the scanning thread.
struct Walk {
    source: Arc<dyn TreeSource>,
    found: SyncSender<ScanResult>,
    bytes: Arc<AtomicU64>,
    files: Arc<AtomicU64>,
    session: Mailbox,
}

impl Walk {
    fn run(&self) {
        loop {
            let found = match self.source.next_batch() {
                Ok(Some(batch)) => {
                    self.bytes.fetch_add(batch.length, Ordering::Relaxed);
                    self.files.fetch_add(batch.regular_files(), Ordering::Relaxed);
                    ScanResult::Batch(batch)
                }
                Ok(None) => ScanResult::All,
                Err(error) => {
                    self.session.put(Input::End(error.into()));
                    return;
                }
            };
            let is_over = matches!(found, ScanResult::All);
            let is_heard = self.found.send(found).is_ok() && self.session.put(Input::Step(SideInput::Ready));
            if is_over || !is_heard {
                return;
            }
        }
    }
}

/// A thread that walks the sources, a little ahead of sending. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Scan {
    /// The tree of the files.
    source: Arc<dyn TreeSource>,
    /// Attributes of the directory whose contents are sent, and the names of its owner and group; taken by the session.
    pub(super) top: (Option<Attributes>, Vec<IdName>),
    /// Whether sources are removed once they are stored, and whether hard links are sent as such.
    pub(super) removes: bool,
    pub(super) hard_links: bool,
    found: Receiver<ScanResult>,
    /// Whether there are no more batches.
    is_over: bool,
    /// Total bytes, and regular files, of all batches so far.
    bytes: Arc<AtomicU64>,
    files: Arc<AtomicU64>,
}

impl Drop for Scan {
    fn drop(&mut self) {
        // Results from here on are dropped: a stopped walk has not seen everything.
        (_, self.found) = sync_channel(0);
        self.source.stop();
    }
}

impl Scan {
    /// Starts to walk a source. The session is informed of each ready batch, and of the end.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the thread cannot be spawned.
    pub(super) fn start(
        source: Arc<dyn TreeSource>,
        options: &SourceOptions,
        session: &Mailbox,
    ) -> Result<Self, Error> {
        let top = source.top();
        let [bytes, files] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        // One batch waits in the channel and one in the thread: enough to stay ahead, at little memory.
        let (sender, found) = sync_channel(1);
        let walk = Walk {
            source: Arc::clone(&source),
            found: sender,
            bytes: Arc::clone(&bytes),
            files: Arc::clone(&files),
            session: session.clone(),
        };
        session.spawn("downpour-scan", move || walk.run())?;
        let (removes, hard_links) = (options.remove_sources, options.hard_links);
        Ok(Self { source, top, removes, hard_links, found, is_over: false, bytes, files })
    }

    /// Returns the tree of the files.
    pub(super) const fn source(&self) -> &Arc<dyn TreeSource> {
        &self.source
    }

    /// Returns the identity of the source.
    pub(super) fn id(&self) -> SourceId {
        self.source.id()
    }

    /// Returns a batch's object. It stops comparing files when this scan is dropped.
    pub(super) fn object(&self, batch: Arc<Batch>, wanted: Wanted) -> Arc<dyn TreeObject> {
        self.source.object(batch, wanted, HashMap::new())
    }

    /// Returns the next batch, if it is ready. A thread that has panicked gives none; the session detects that by other
    /// means.
    pub(super) fn next(&mut self) -> Option<Batch> {
        match self.found.try_recv().ok()? {
            ScanResult::Batch(batch) => Some(batch),
            ScanResult::All => {
                self.is_over = true;
                None
            }
        }
    }

    /// Returns whether the last batch was returned.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds the bytes of resent files to the total.
    pub(super) fn grow(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the total bytes of all batches so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the regular files in all batches so far.
    pub(super) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::files::LocalSource;

    /// Waits until a scan's thread has ended: it alone holds another reference to the source.
    fn wait_for_end(source: &Arc<dyn TreeSource>, limit: Duration) {
        let begun = Instant::now();
        while Arc::strong_count(source) > 1 {
            assert!(begun.elapsed() < limit, "the thread still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn scan_dropped_stops_hashing_long_file() {
        let directory = tempfile::tempdir().unwrap();
        // A sparse file: hashing its zeros takes minutes.
        File::create(directory.path().join("file")).unwrap().set_len(1 << 40).unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let options = SourceOptions { hash: true, ..SourceOptions::default() };
        let source = LocalSource::new(vec![directory.path().join("file").into()], options.clone(), false).unwrap();
        let mut scan = Scan::start(Arc::new(source), &options, &mailbox).unwrap();
        assert!(scan.next().is_none());
        let source = Arc::clone(&scan.source);
        drop(scan);
        wait_for_end(&source, Duration::from_secs(5));
        assert!(inputs.try_recv().is_err(), "nothing was found");
    }

    #[test]
    fn scan_panicked_is_not_complete() {
        let directory = tempfile::tempdir().unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let options = SourceOptions::default();
        let source = LocalSource::new(vec![directory.path().to_owned().into()], options.clone(), false).unwrap();
        let mut scan = Scan::start(Arc::new(source), &options, &mailbox).unwrap();
        let (sender, found) = sync_channel(1);
        scan.found = found;
        drop(sender);
        assert!(scan.next().is_none() && !scan.is_over());
        drop(inputs);
    }
}
