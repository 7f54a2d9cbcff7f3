//! The input of a sender: batches from a walk through the sources, and the blocks of open batches.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use net::Source;

use super::mailbox::Mailbox;
use super::step::{Input, Step};
use crate::error::Error;
use crate::files::{Attributes, Batch, BatchSource, IdName, Root, Roots, ScanOptions, Scanner, SourceId, Wanted};

/// The object of a batch, for the network.
#[derive(Clone, Debug)]
pub(super) struct BatchObject(pub(super) Arc<BatchSource>);

impl Source for BatchObject {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // Unreadable files are voided, and read as zeros.
        self.0.read(offset, out);
        Ok(())
    }
}

/// Results of a scan.
#[derive(Debug)]
enum Found {
    /// The next batch.
    Batch(Batch),
    /// There are no more.
    All,
}

/// A thread that walks the sources, a little ahead of sending. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Scan {
    /// Location of the files.
    pub(super) roots: Arc<Roots>,
    /// Identity of the source.
    pub(super) id: SourceId,
    /// Attributes of the folder whose contents are sent, and the names of its owner and group; taken by the session.
    pub(super) top: (Option<Attributes>, Vec<IdName>),
    /// Whether sources are removed once they are stored, and whether hard links are sent as such.
    pub(super) removes: bool,
    pub(super) hard_links: bool,
    found: Receiver<Found>,
    /// Whether there are no more batches.
    is_over: bool,
    /// Total bytes, and regular files, of all batches so far.
    bytes: Arc<AtomicU64>,
    files: Arc<AtomicU64>,
    /// Set when no more batches are needed.
    stopped: Arc<AtomicBool>,
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl Scan {
    /// Starts to walk `roots`. The session is informed of each batch that is ready, and of the end.
    ///
    /// # Errors
    /// Those of [`Scanner::new`]; [`Error::System`] if the thread cannot be spawned.
    pub(super) fn start(roots: Vec<Root>, options: ScanOptions, session: &Mailbox) -> Result<Self, Error> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (removes, hard_links) = (options.remove_sources, options.hard_links);
        let mut scanner = Scanner::new(roots, options)?.until(Arc::clone(&stopped));
        let (roots, id, top) = (scanner.roots(), scanner.source_id(), scanner.top());
        let [bytes, files] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        // One batch waits here and one in the thread: enough to stay ahead, at little memory.
        let (sender, found) = sync_channel(1);
        let (total, over, mailbox) = (Arc::clone(&bytes), Arc::clone(&stopped), session.clone());
        let all_files = Arc::clone(&files);
        let work = move || {
            for batch in scanner {
                total.fetch_add(batch.length, Ordering::Relaxed);
                all_files.fetch_add(batch.regular_files(), Ordering::Relaxed);
                if sender.send(Found::Batch(batch)).is_err() || !mailbox.put(Input::Step(Step::Ready)) {
                    return;
                }
            }
            // A stopped walk has not seen everything.
            if !over.load(Ordering::Relaxed) && sender.send(Found::All).is_ok() {
                mailbox.put(Input::Step(Step::Ready));
            }
        };
        session.spawn("downpour-scan", work)?;
        Ok(Self { roots, id, top, removes, hard_links, found, is_over: false, bytes, files, stopped })
    }

    /// Returns the source of a batch's object. It stops comparing files when this scan is dropped.
    pub(super) fn source(&self, batch: Arc<Batch>, wanted: Wanted) -> BatchSource {
        BatchSource::new(batch, Arc::clone(&self.roots), wanted).until(Arc::clone(&self.stopped))
    }

    /// Returns the next batch, if it is ready. A thread that has panicked gives none; the session learns of that by other
    /// means.
    pub(super) fn next(&mut self) -> Option<Batch> {
        match self.found.try_recv().ok()? {
            Found::Batch(batch) => Some(batch),
            Found::All => {
                self.is_over = true;
                None
            }
        }
    }

    /// Whether the last batch was returned.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds to the total bytes what comes again.
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

    /// Waits until a scan's thread has ended: it alone holds another reference to the sources' roots.
    fn wait_for_end(roots: &Arc<Roots>, limit: Duration) {
        let begun = Instant::now();
        while Arc::strong_count(roots) > 1 {
            assert!(begun.elapsed() < limit, "the thread goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_scan_ends_with_what_wanted_it_though_it_reads_a_long_file() {
        let folder = tempfile::tempdir().unwrap();
        // A sparse file: hashing its zeros takes minutes.
        File::create(folder.path().join("file")).unwrap().set_len(1 << 40).unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let options = ScanOptions { hash: true, ..ScanOptions::default() };
        let mut scan = Scan::start(vec![Root::from(folder.path().join("file"))], options, &mailbox).unwrap();
        assert!(scan.next().is_none());
        let roots = Arc::clone(&scan.roots);
        drop(scan);
        wait_for_end(&roots, Duration::from_secs(5));
        assert!(inputs.try_recv().is_err(), "nothing was found");
    }

    #[test]
    fn a_scan_that_dies_is_not_one_that_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (mailbox, inputs) = Mailbox::new();
        let mut scan =
            Scan::start(vec![Root::from(folder.path().to_owned())], ScanOptions::default(), &mailbox).unwrap();
        let (sender, found) = sync_channel(1);
        scan.found = found;
        drop(sender);
        assert!(scan.next().is_none() && !scan.is_over());
        drop(inputs);
    }
}
