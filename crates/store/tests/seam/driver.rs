//! A session without a network: each end's messages are passed to the other, through the two traits alone.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use downpour_store::messages::{Chunks, Digest, ManifestPart, Message, RootHasher, TransferEnd, Void, manifest_parts};
use downpour_store::{
    Batch, Entry, FilesError, ManifestState, Notice, ReceiveOutcome, SourceOutcome, TreeObject, TreeSource, TreeTarget,
    Versions, Wanted,
};
use fastrand::Rng;

/// Odd, so that it does not coincide with other borders.
pub(crate) const BLOCK: usize = 1009;

/// The result of a transfer.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: ReceiveOutcome,
    /// Bytes wanted.
    pub(crate) wanted: u64,
    /// Names reported as in place while files were settled, with their lengths.
    pub(crate) placed: Vec<(Vec<u8>, u64)>,
    pub(crate) notices: Vec<Notice>,
    /// Outcomes of the sources to be removed.
    pub(crate) removed: Vec<(Vec<u8>, SourceOutcome)>,
}

/// An event between the announcement of a batch and its reading.
pub(crate) type Meanwhile<'a> = &'a mut dyn FnMut(&Batch);

/// One run, whose order of blocks and times of settling follow from a seed.
pub(crate) struct Session<'a> {
    pub(crate) source: &'a dyn TreeSource,
    pub(crate) target: &'a dyn TreeTarget,
    rng: Rng,
    root: RootHasher,
    end: TransferEnd,
    done: Done,
    sent: HashMap<u32, Arc<Batch>>,
    way: Way,
}

/// The transport of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In blocks, with digests.
    Blocks,
    /// By copying on one host.
    Copied,
}

/// Transfers everything. After an error the target is abandoned, as the contract demands.
pub(crate) fn transfer(source: &dyn TreeSource, target: &dyn TreeTarget, seed: u64) -> Result<Done, FilesError> {
    transfer_with(source, target, seed, &mut |_| {})
}

/// The same within one host.
pub(crate) fn copy(source: &dyn TreeSource, target: &dyn TreeTarget, seed: u64) -> Result<Done, FilesError> {
    run((source, target), Way::Copied, seed, &mut |_| {})
}

/// The same as [`transfer`], with an event meanwhile.
pub(crate) fn transfer_with(
    source: &dyn TreeSource,
    target: &dyn TreeTarget,
    seed: u64,
    meanwhile: Meanwhile<'_>,
) -> Result<Done, FilesError> {
    run((source, target), Way::Blocks, seed, meanwhile)
}

/// Transfers everything by one transport, with an event meanwhile.
pub(crate) fn run(
    (source, target): (&dyn TreeSource, &dyn TreeTarget),
    way: Way,
    seed: u64,
    meanwhile: Meanwhile<'_>,
) -> Result<Done, FilesError> {
    let result = Session { way, ..Session::new(source, target, seed) }.run(meanwhile);
    if result.is_err() {
        let _ = target.abandon(false);
    }
    result
}

impl<'a> Session<'a> {
    pub(crate) fn new(source: &'a dyn TreeSource, target: &'a dyn TreeTarget, seed: u64) -> Self {
        let root = RootHasher::new();
        let end = TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: root.root() };
        let outcome = ReceiveOutcome::default();
        let done = Done { outcome, wanted: 0, placed: Vec::new(), notices: Vec::new(), removed: Vec::new() };
        Self { source, target, rng: Rng::with_seed(seed), root, end, done, sent: HashMap::new(), way: Way::Blocks }
    }

    fn run(mut self, meanwhile: Meanwhile<'_>) -> Result<Done, FilesError> {
        self.begin()?;
        while let Some(batch) = self.source.next_batch()? {
            let batch = Arc::new(batch);
            let wanted = self.announce(&batch)?;
            meanwhile(&batch);
            if !self.target.spec().dry_run {
                let object = self.source.object(Arc::clone(&batch), wanted, HashMap::new());
                match self.way {
                    Way::Blocks => self.send_object(&batch, &*object)?,
                    Way::Copied => self.copy_object(&batch, &*object)?,
                }
            }
            self.settle()?;
        }
        self.finish()
    }

    pub(crate) fn finish(mut self) -> Result<Done, FilesError> {
        assert_eq!(self.target.unverified(), 0, "everything was received");
        let end = self.end();
        self.target.check_end(&end)?;
        self.done.outcome = self.target.finish(&end)?;
        self.hear();
        Ok(self.done)
    }

    /// Returns the totals so far, as the last message states them.
    pub(crate) fn end(&self) -> TransferEnd {
        TransferEnd { root: self.root.root(), ..self.end }
    }

    pub(crate) fn begin(&mut self) -> Result<(), FilesError> {
        let id = self.source.id();
        self.say(&Message::Begin(id));
        self.target.begin(id)?;
        let (top, names) = self.source.top();
        if let Some(top) = top {
            self.say(&Message::Top(top.clone()));
            self.target.top(top)?;
        }
        for name in names {
            self.say(&Message::IdName(name.clone()));
            self.target.id_name(&name)?;
        }
        self.target.sender_lists();
        Ok(())
    }

    /// Announces a batch; returns its wanted ranges.
    pub(crate) fn announce(&mut self, batch: &Arc<Batch>) -> Result<Wanted, FilesError> {
        let wanted = self.announce_as(batch, false, false)?;
        assert!(self.target.may_have_data() || wanted.is_all(), "without a question everything is wanted");
        Ok(wanted)
    }

    /// The same for a batch that is sent in full, whatever is wanted, or whose files are sent `again`.
    pub(crate) fn announce_as(&mut self, batch: &Arc<Batch>, whole: bool, again: bool) -> Result<Wanted, FilesError> {
        assert_eq!(batch.number, self.end.batches);
        assert_eq!(batch.length, batch.entries.iter().map(Entry::size).sum::<u64>());
        self.sent.insert(batch.number, Arc::clone(batch));
        for name in &batch.id_names {
            self.say(&Message::IdName(name.clone()));
            self.target.id_name(name)?;
        }
        for skipped in &batch.skipped {
            self.say(&Message::Skipped(skipped.clone()));
            self.target.skipped(skipped)?;
        }
        let mut wanted = None;
        for part in manifest_parts(batch.number, batch.length, &batch.entries) {
            let part = ManifestPart { whole, again, ..part };
            self.target.decide(part.entries.first())?;
            self.say(&Message::Manifest(part.clone()));
            wanted = match self.target.add_manifest_part(&part)? {
                ManifestState::More => None,
                ManifestState::Complete(wanted) | ManifestState::Whole(wanted) => Some(wanted),
                ManifestState::Compare(entries) => Some(self.send_chunks(batch, &entries)?),
            };
            assert_eq!(wanted.is_some(), part.last);
        }
        let wanted = wanted.expect("a manifest has parts");
        self.end.batches += 1;
        self.end.entries += batch.entries.len() as u64;
        self.end.bytes += batch.length;
        self.end.skipped += batch.skipped.len() as u64;
        self.done.wanted += wanted.length(batch.length);
        Ok(wanted)
    }

    fn send_chunks(&mut self, batch: &Arc<Batch>, entries: &[u32]) -> Result<Wanted, FilesError> {
        let object = self.source.object(Arc::clone(batch), Wanted::all(), HashMap::new());
        let mut wanted = None;
        for &entry in entries {
            let mut listed = Vec::new();
            object.list_chunks(entry, None, &mut |chunks, state| {
                listed.push(Chunks { batch: batch.number, entry, state, chunks });
                ControlFlow::Continue(())
            });
            for chunks in listed {
                self.say(&Message::Chunks(chunks.clone()));
                wanted = self.target.add_chunks(&chunks)?;
            }
        }
        Ok(wanted.expect("after the last list it is known"))
    }

    pub(crate) fn send_object(&mut self, batch: &Batch, object: &dyn TreeObject) -> Result<(), FilesError> {
        let blocks = object.length().div_ceil(BLOCK as u64);
        let mut order: Vec<u32> = (0..u32::try_from(blocks).unwrap()).collect();
        self.rng.shuffle(&mut order);
        for block in order {
            self.send_block(batch, object, block)?;
            if self.rng.u8(0..4) == 0 {
                self.settle()?;
            }
        }
        let within = batch.entries.iter().filter(|entry| entry.size() > 0).count() as u64;
        assert_eq!(object.files_within(object.length()), if blocks == 0 { 0 } else { within });
        Ok(())
    }

    /// Copies ranges of any length in their order.
    fn copy_object(&mut self, batch: &Batch, object: &dyn TreeObject) -> Result<(), FilesError> {
        let mut offset = 0;
        while offset < object.length() {
            let end = (offset + self.rng.u64(1..4 << 20)).min(object.length());
            self.target.copy(batch.number, offset..end, object)?;
            self.take_voided(batch, object)?;
            self.target.copied(batch.number, offset..end)?;
            offset = end;
        }
        Ok(())
    }

    fn take_voided(&mut self, batch: &Batch, object: &dyn TreeObject) -> Result<(), FilesError> {
        for voided in object.take_voided() {
            let void = Void { batch: batch.number, entry: voided.entry, reason: voided.reason };
            self.say(&Message::Void(void));
            self.target.void(&void)?;
        }
        Ok(())
    }

    /// Sends one block: bytes and digests in either order, and files voided by reading ahead of its digest.
    pub(crate) fn send_block(&mut self, batch: &Batch, object: &dyn TreeObject, block: u32) -> Result<(), FilesError> {
        let start = u64::from(block) * BLOCK as u64;
        let end = object.length().min(start + BLOCK as u64);
        let mut bytes = vec![0xaa; BLOCK];
        object.read(start, &mut bytes);
        let length = usize::try_from(end - start).unwrap();
        assert!(bytes[length..].iter().all(|byte| *byte == 0), "bytes behind the object are zeros");
        self.take_voided(batch, object)?;
        let digest = Digest { batch: batch.number, block, digest: *blake3::hash(&bytes[..length]).as_bytes() };
        let digest_first = self.rng.bool();
        if digest_first {
            self.expect(&digest)?;
        }
        self.target.write(batch.number, start, &bytes)?;
        self.target.add_local_digest(batch.number, block, start..end, digest.digest)?;
        if !digest_first {
            self.expect(&digest)?;
        }
        Ok(())
    }

    fn expect(&mut self, digest: &Digest) -> Result<(), FilesError> {
        self.say(&Message::Digest(*digest));
        self.target.expect_digest(digest).map(drop)
    }

    /// Lets the target publish, and removes the sources of the entries that it reports as stored.
    pub(crate) fn settle(&mut self) -> Result<(), FilesError> {
        let placed = &mut self.done.placed;
        self.target.publish_ready(&mut |path, bytes| placed.push((path.to_vec(), bytes)))?;
        self.hear();
        Ok(())
    }

    fn hear(&mut self) {
        self.done.notices.extend(self.target.take_notices());
        for (number, entries) in self.target.take_stored() {
            let batch = &self.sent[&number];
            for stored in entries {
                let entry = &batch.entries[stored.entry as usize];
                let versions = Versions { sent: batch.versions[stored.entry as usize], stored: stored.version };
                self.done.removed.push((entry.path.clone(), self.source.remove(entry, versions, false)));
            }
        }
    }

    fn say(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        self.root.add(&bytes);
    }
}
