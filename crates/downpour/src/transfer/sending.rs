//! The sending side of a transfer: batches from the scan become manifests on the control stream and one object each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use super::TransferEvent;
use super::session::Session;
use super::step::{Counts, Input, Step, Yield};
use crate::driver::{BlockDigest, Storage};
use crate::error::Error;
use crate::files::{Batch, BatchSource, Kind, Roots, Scanner, Skipped, Voided, display_name};
use crate::messages::{Complete, Digest, End, MAX_OPEN_BATCHES, Message, RootHasher, Void, manifest_parts};

/// Batches on their way at once: while one's last blocks cross, the next one's first are read.
const MAX_OPEN: usize = 2;
const _: () = assert!(MAX_OPEN <= MAX_OPEN_BATCHES / 2);

/// Bytes of the control stream that may be on their way before another part of a manifest is added.
const MAX_BACKLOG: usize = 512 << 10;

/// Where the blocks of the open batches are read.
#[derive(Debug, Default)]
pub(super) struct Sources {
    batches: RwLock<BTreeMap<u64, Arc<BatchSource>>>,
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
    roots: Arc<Roots>,
    batches: Receiver<Batch>,
    /// Bytes of all batches so far.
    found: Arc<AtomicU64>,
}

impl Scan {
    /// Starts to walk `paths`. Each batch that is ready is announced in `inputs`, and so is the end.
    ///
    /// # Errors
    /// What [`Scanner::new`] says; [`Error::System`] when there is no thread.
    pub(super) fn start(paths: Vec<PathBuf>, inputs: Sender<Input>) -> Result<Self, Error> {
        let scanner = Scanner::new(paths)?;
        let roots = scanner.roots();
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
        Ok(Self { roots, batches, found })
    }
}

/// A batch whose object is open.
struct Open {
    batch: Arc<Batch>,
    source: Arc<BatchSource>,
    /// Bytes whose digests are written.
    digested: u64,
    /// The receiver has every byte.
    sent: bool,
}

/// A batch whose manifest is being written, and the first entry of the next part.
struct Opening {
    batch: Arc<Batch>,
    next_entry: usize,
}

/// The sender of one transfer.
pub(super) struct Sending {
    session: Session,
    sources: Arc<Sources>,
    scan: Scan,
    all_scanned: bool,
    opening: Option<Opening>,
    open: BTreeMap<u64, Open>,
    hasher: RootHasher,
    /// Messages not yet given to the session, so that a burst of digests becomes one write.
    unwritten: Vec<u8>,
    /// What the last message will say; it is sent when `ended`.
    totals: End,
    ended: bool,
    files_sent: u64,
    done: Yield,
}

impl Sending {
    /// A sender of what `scan` finds.
    pub(super) fn new(session: Session, sources: Arc<Sources>, scan: Scan) -> Self {
        Self {
            session,
            sources,
            scan,
            all_scanned: false,
            opening: None,
            open: BTreeMap::new(),
            hasher: RootHasher::new(),
            unwritten: Vec::new(),
            totals: End { batches: 0, entries: 0, bytes: 0, skipped: 0, root: RootHasher::new().root() },
            ended: false,
            files_sent: 0,
            done: Yield::default(),
        }
    }

    /// Sends everything, to the receiver's word that it is complete.
    pub(super) fn run(mut self) -> (Session, Result<Yield, Error>) {
        let result = self.drive();
        (self.session, result.map(|()| self.done))
    }

    fn drive(&mut self) -> Result<(), Error> {
        loop {
            let step = self.session.next()?;
            if let Some(complete) = self.take(step)? {
                self.session.complete();
                self.done.files = complete.files;
                self.done.bytes = complete.bytes;
                return Ok(());
            }
            if self.session.is_connected() {
                self.advance()?;
            }
        }
    }

    fn take(&mut self, step: Step) -> Result<Option<Complete>, Error> {
        match step {
            Step::Message(message) => return self.message(message),
            Step::Digest(digest) => self.digest(digest)?,
            Step::Sent { tag } => self.batch(tag)?.sent = true,
            Step::Announced { .. } | Step::Received { .. } => {
                return Err(Error::Violation("it sends files to a sender".to_owned()));
            }
            Step::Stats => {
                let counts = self.counts();
                self.session.report(counts);
            }
            Step::Connected
            | Step::ControlAcknowledged
            | Step::Scanned
            | Step::Verified { .. }
            | Step::Settled(_)
            | Step::Accept
            | Step::Refuse => {}
        }
        Ok(None)
    }

    fn message(&mut self, message: Message) -> Result<Option<Complete>, Error> {
        match message {
            Message::Accepted => Ok(None),
            Message::Complete(complete) if self.ended => Ok(Some(complete)),
            Message::Complete(_) => Err(Error::Violation("it says that a transfer is complete that is not".to_owned())),
            _ => Err(Error::Violation("it sends a sender's messages to a sender".to_owned())),
        }
    }

    fn batch(&mut self, tag: u64) -> Result<&mut Open, Error> {
        self.open.get_mut(&tag).ok_or(Error::Internal("news of a batch that is not open"))
    }

    /// Tells the digest of a block that was read, and before it what the reading has revealed.
    fn digest(&mut self, block: BlockDigest) -> Result<(), Error> {
        let open = self.batch(block.tag)?;
        open.digested += block.range.end - block.range.start;
        let (batch, source) = (Arc::clone(&open.batch), Arc::clone(&open.source));
        for Voided { entry, reason } in source.take_voided() {
            self.say(&Message::Void(Void { batch: batch.number, entry, reason }))?;
            if let Some(entry) = batch.entries.get(entry as usize) {
                self.done.failed.push((display_name(&entry.path), reason.to_string()));
            }
        }
        self.say(&Message::Digest(Digest { batch: batch.number, block: block.block, digest: block.digest }))
    }

    /// Opens what may be opened, and ends what is at its end.
    fn advance(&mut self) -> Result<(), Error> {
        self.forget_sent();
        while self.next_part()? {}
        let all_digested = self.open.values().all(|open| open.digested == open.batch.length);
        if self.all_scanned && self.opening.is_none() && all_digested && !self.ended {
            self.ended = true;
            self.totals.root = self.hasher.root();
            Message::End(self.totals).encode(&mut self.unwritten)?;
        }
        if !self.unwritten.is_empty() {
            let bytes = std::mem::take(&mut self.unwritten);
            self.session.write(bytes);
        }
        Ok(())
    }

    /// Lets go of batches that the receiver has and whose digests are told.
    fn forget_sent(&mut self) {
        while let Some(entry) = self.open.first_entry() {
            let open = entry.get();
            if !open.sent || open.digested < open.batch.length {
                return;
            }
            let tag = *entry.key();
            let open = entry.remove();
            self.sources.batches.write().unwrap_or_else(PoisonError::into_inner).remove(&tag);
            for entry in &open.batch.entries {
                if let Kind::File { size, .. } = entry.kind {
                    self.files_sent += 1;
                    self.session.events.tell(TransferEvent::File { path: display_name(&entry.path), bytes: size });
                }
            }
        }
    }

    /// Writes the next part of a manifest, of a new batch if none is being written; false when nothing more may be written.
    fn next_part(&mut self) -> Result<bool, Error> {
        if self.session.backlog() + self.unwritten.len() >= MAX_BACKLOG {
            return Ok(false);
        }
        let Some(Opening { batch, next_entry }) = self.opening.take() else { return self.next_batch() };
        let part = manifest_parts(batch.number, batch.length, &batch.entries[next_entry..]).next();
        let Some(part) = part else { return Err(Error::Internal("a manifest without parts")) };
        let (last, next_entry) = (part.last, next_entry + part.entries.len());
        if last && batch.is_last {
            self.say(&Message::Scanned)?;
        }
        self.say(&Message::Manifest(part))?;
        if last {
            self.open_object(batch);
        } else {
            self.opening = Some(Opening { batch, next_entry });
        }
        Ok(true)
    }

    /// Takes the next batch of the scan; false when there is none now, or too many are open.
    fn next_batch(&mut self) -> Result<bool, Error> {
        if self.open.len() >= MAX_OPEN || self.all_scanned {
            return Ok(false);
        }
        match self.scan.batches.try_recv() {
            Ok(batch) => {
                self.begin(batch)?;
                Ok(true)
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => {
                self.all_scanned = true;
                Ok(false)
            }
        }
    }

    fn begin(&mut self, batch: Batch) -> Result<(), Error> {
        for skipped in &batch.skipped {
            self.skip(skipped)?;
        }
        self.totals.batches += 1;
        self.totals.entries += batch.entries.len() as u64;
        self.totals.bytes += batch.length;
        for entry in &batch.entries {
            match entry.kind {
                Kind::File { .. } | Kind::HardLink { .. } => {}
                Kind::Directory => self.done.directories += 1,
                Kind::Symlink { .. } => self.done.symlinks += 1,
            }
        }
        self.opening = Some(Opening { batch: Arc::new(batch), next_entry: 0 });
        Ok(())
    }

    fn skip(&mut self, skipped: &Skipped) -> Result<(), Error> {
        let path = display_name(&skipped.path);
        if skipped.reason.is_failure() {
            self.done.failed.push((path, skipped.reason.to_string()));
        } else {
            self.session.events.tell(TransferEvent::Note(format!("left out: {path} {}", skipped.reason)));
        }
        self.totals.skipped += 1;
        self.say(&Message::Skipped(skipped.clone()))
    }

    fn open_object(&mut self, batch: Arc<Batch>) {
        let tag = u64::from(batch.number);
        let source = Arc::new(BatchSource::new(Arc::clone(&batch), Arc::clone(&self.scan.roots)));
        self.sources.batches.write().unwrap_or_else(PoisonError::into_inner).insert(tag, Arc::clone(&source));
        self.session.link.send_object(tag, batch.length);
        self.open.insert(tag, Open { batch, source, digested: 0, sent: false });
    }

    /// Adds a message, and the root over it if it decides which bytes stand where.
    fn say(&mut self, message: &Message) -> Result<(), Error> {
        let start = self.unwritten.len();
        message.encode(&mut self.unwritten)?;
        if !matches!(message, Message::Scanned) {
            self.hasher.add(&self.unwritten[start..]);
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        Counts {
            bytes_done: self.session.stats().map_or(0, |stats| stats.connection.bytes_acknowledged),
            bytes_known: self.scan.found.load(Ordering::Relaxed),
            total_is_final: self.all_scanned,
            files_done: self.files_sent,
        }
    }
}
