//! The sender of a transfer: batches from the scan become manifests on the control stream and one object each, of the
//! ranges that the receiver wants.

mod batch;
mod batches;

use std::sync::Arc;

use net::{BlockDigest, Event};
use transport::Rate;

use batch::{Choice, SentBatch};
use batches::Batches;

use super::TransferEvent;
use super::announcements::Announcements;
use super::checksums::{Checksums, List};
use super::input::SideInput;
use super::lister::Lister;
use super::mailbox::Mailbox;
use super::removing::Removing;
use super::resend::{self, ResendList};
use super::scanning::{BatchObject, Scan};
use super::session::Session;
use super::totals::{SideProgress, Totals};
use crate::error::Error;
use crate::files::{Batch, EntryKind, FailReason, InvalidatedFile, Notice, SkipReason, Skipped, Wanted};
use crate::messages::{Complete, Digest, ListChunks, Message, Stored, UnverifiedFiles, Void};

/// Bytes of a transfer up to which the sender does not wait for the wanted ranges: they fit in its first flight.
const NOT_WORTH_WAITING: u64 = 8 << 10;

/// The sender of one transfer.
pub(super) struct Sending {
    session: Session,
    scan: Scan,
    /// Whether files are only reported, and not sent.
    dry_run: bool,
    batches: Batches,
    announcements: Announcements,
    lister: Lister,
    changed: ResendList,
    checksums: Option<Checksums>,
    /// The removal of the sources, if requested.
    removing: Option<Removing>,
    /// The receiver's report of files that it kept unchanged, if it has arrived.
    untouched: Option<UnverifiedFiles>,
    done: Totals,
}

impl Sending {
    /// Creates a sender of the files of `scan`.
    pub(super) fn new(session: Session, mailbox: Mailbox, scan: Scan, dry_run: bool, checksums: Option<List>) -> Self {
        let removing = scan.removes.then(|| Removing::new(Arc::clone(scan.source()), scan.hard_links));
        Self {
            session,
            scan,
            dry_run,
            batches: Batches::new(dry_run),
            announcements: Announcements::new(),
            lister: Lister::new(mailbox),
            changed: ResendList::default(),
            checksums: checksums.map(Checksums::new),
            removing,
            untouched: None,
            done: Totals::default(),
        }
    }

    /// Sends everything, up to the receiver's confirmation.
    pub(super) fn run(mut self) -> (Session, Result<Totals, Error>) {
        let result = self.drive();
        (self.session, result.map(|()| self.done))
    }

    fn drive(&mut self) -> Result<(), Error> {
        loop {
            let step = self.session.next()?;
            if let Some(complete) = self.take(step)? {
                return self.complete(&complete);
            }
            if self.session.peer.address().is_some() {
                self.advance()?;
            }
            // No batch can begin before the scan has found its files.
            let is_scanning = !self.scan.is_over() && self.batches.is_empty();
            // A peer that does not read the lists is waited for.
            let is_listing = self.lister.is_busy() && !self.session.control.is_full(0);
            self.session.headway.set_busy(is_scanning || is_listing);
        }
    }

    fn take(&mut self, step: SideInput) -> Result<Option<Complete>, Error> {
        match step {
            SideInput::Message(message) => return self.message(message),
            SideInput::Network(Event::Digest(digest)) => self.digest(digest)?,
            SideInput::Network(Event::ObjectSent { tag }) => self.batches.of_event(tag)?.on_sent()?,
            SideInput::Network(Event::ObjectAnnounced(_)) => {
                return Err(Error::ProtocolViolation("receiver sent files".to_owned()));
            }
            SideInput::Tick => {
                let counts = self.counts();
                self.session.report(counts);
            }
            SideInput::Limit(limit) => self.session.connection.set_limit(self.session.path.limit(limit)),
            SideInput::Network(_)
            | SideInput::Ready
            | SideInput::Verified(_)
            | SideInput::Settled(_)
            | SideInput::Accept
            | SideInput::Refuse => {}
        }
        Ok(None)
    }

    fn message(&mut self, message: Message) -> Result<Option<Complete>, Error> {
        match message {
            Message::Accepted => {}
            Message::Wants(wants) => self.batches.on_wants(&wants, self.lister.is_due(wants.batch))?,
            Message::ListChunks(asked) => self.list(asked)?,
            Message::Notice(notice) => {
                self.checksums.iter_mut().for_each(|list| list.heed(&notice));
                self.done.notice(notice, &self.session.events);
            }
            Message::Limit(limit) => {
                let limit = limit.map(|bits| Rate::from_bits_per_second(bits.get()));
                self.session.connection.set_limit(self.session.path.limit_by_peer(limit));
            }
            Message::Untouched(untouched) => self.untouched = Some(untouched),
            Message::Stored(stored) => self.stored(&stored)?,
            Message::AllStored => self.all_stored()?,
            Message::Complete(complete) => {
                let is_removed = self.removing.as_ref().is_none_or(Removing::is_over);
                if self.announcements.have_ended() && is_removed {
                    return Ok(Some(complete));
                }
                return Err(Error::ProtocolViolation("incomplete transfer confirmed as complete".to_owned()));
            }
            _ => return Err(Error::ProtocolViolation("receiver sent a sender's message".to_owned())),
        }
        Ok(None)
    }

    /// Ends the transfer with the receiver's confirmation.
    fn complete(&mut self, complete: &Complete) -> Result<(), Error> {
        self.session.complete();
        // The confirmation may overtake the last acknowledgements.
        for begun in self.batches.take_all() {
            self.report_files(&begun);
        }
        if let Some(checksums) = &mut self.checksums {
            checksums.save()?;
        }
        let done = &mut self.done;
        (done.names.files, done.bytes.total) = (complete.files, complete.bytes);
        (done.bytes.present, done.bytes.unverified) = (complete.present, complete.unchecked);
        // An older receiver does not report it: it is then assumed to have compared no file that it did not want.
        if let Some(UnverifiedFiles { unchanged, kept }) = self.untouched {
            (done.names.unchanged, done.names.kept) = (unchanged, kept);
        }
        done.names.links_followed = self.scan.source().followed();
        self.session.events.report_skipped_links(done.names.links_skipped);
        // The receiver may have counted more than it reported.
        done.failures.count = done.failures.count.max(complete.failed);
        Ok(())
    }

    /// Lists the chunks of files of which the receiver has other versions.
    fn list(&mut self, asked: ListChunks) -> Result<(), Error> {
        let object = self.scan.object(self.batches.on_list(&asked)?, Wanted::all());
        self.lister.ask(asked.batch, object, asked.entries, self.session.line_rate())
    }

    /// Removes what the receiver has stored of a batch.
    fn stored(&mut self, stored: &Stored) -> Result<(), Error> {
        let Some(removing) = &mut self.removing else { return Err(unasked()) };
        self.batches.on_stored(stored.batch)?;
        let notices = removing.take(stored)?;
        self.report_removed(notices)
    }

    /// Removes the remaining sources, and reports them to the receiver.
    fn all_stored(&mut self) -> Result<(), Error> {
        let has_ended = self.announcements.have_ended();
        let Some(removing) = self.removing.as_mut().filter(|_| has_ended) else { return Err(unasked()) };
        let (notices, count) = removing.finish()?;
        self.report_removed(notices)?;
        self.announcements.add_unhashed(&Message::Removed(count))
    }

    /// Reports the removed sources to both users.
    fn report_removed(&mut self, notices: Vec<Notice>) -> Result<(), Error> {
        for notice in notices {
            self.announcements.add_unhashed(&Message::Notice(notice.clone()))?;
            self.done.notice(notice, &self.session.events);
        }
        Ok(())
    }

    /// Sends the digest of a block that was read, preceded by the voids that the reading has revealed.
    fn digest(&mut self, block: BlockDigest) -> Result<(), Error> {
        let begun = self.batches.of_event(block.tag)?;
        let voided = begun.on_digest(block.range.end - block.range.start)?;
        let batch = Arc::clone(begun.batch());
        for voided in voided {
            let InvalidatedFile { entry, reason } = voided;
            self.announcements.add(&Message::Void(Void { batch: batch.number, entry, reason }))?;
            self.removing.iter_mut().for_each(|removing| removing.spoil(batch.number, entry));
            let Some(entry) = batch.entries.get(entry as usize) else { continue };
            self.checksums.iter_mut().for_each(|list| list.forget(&entry.path));
            if !self.session.peer.takes_again() || !self.changed.note(&batch, voided) {
                self.done.failures.add(&entry.path, FailReason::Voided(reason));
            }
        }
        let digest = Digest { batch: batch.number, block: block.block, digest: block.digest };
        self.announcements.add(&Message::Digest(digest))
    }

    /// Opens and closes batches as far as possible.
    fn advance(&mut self) -> Result<(), Error> {
        self.announcements.begin(self.scan.id(), &mut self.scan.top)?;
        self.forget_sent();
        while self.next_chunks()? || self.next_part()? {}
        self.open_objects();
        self.forget_sent();
        let is_read = self.scan.is_over() && self.batches.are_digested();
        if is_read && !self.announcements.have_ended() && !self.repeat()? {
            self.announcements.end()?;
        }
        if let Some(bytes) = self.announcements.take() {
            self.session.write(bytes);
        }
        Ok(())
    }

    /// Announces the changed files once more, in their current state. Returns false if there are none.
    fn repeat(&mut self) -> Result<bool, Error> {
        let scan = &self.scan;
        let Some(again) = self.changed.take(|batch| scan.object(batch, Wanted::all())) else { return Ok(false) };
        again.failed.iter().for_each(|(path, reason)| self.done.failures.add(path, *reason));
        if again.entries.is_empty() {
            return Ok(false);
        }
        self.scan.grow(again.length);
        let batch = again.into_batch(self.announcements.batches(), self.removing.is_some());
        self.session.events.emit(TransferEvent::UserNote(resend::note(batch.entries.len())));
        self.begin(batch)?;
        while self.next_part()? {}
        self.open_objects();
        Ok(true)
    }

    /// Drops batches that the receiver has and whose digests are written, in order.
    fn forget_sent(&mut self) {
        while let Some(begun) = self.batches.take_done() {
            self.report_files(&begun);
        }
    }

    /// Reports the files of a batch of which any part was sent, and counts those of which the receiver wanted nothing.
    fn report_files(&mut self, begun: &SentBatch) {
        let (files, unwanted) = begun.files();
        if self.session.peer.may_hold_some() {
            self.done.names.unchanged += unwanted;
        }
        // The receiver's notices list the files of a dry run.
        if !self.dry_run {
            self.session.events.emit(TransferEvent::Files(files));
        }
    }

    /// Writes the next requested chunks; returns false if there are none, or no more may be written.
    fn next_chunks(&mut self) -> Result<bool, Error> {
        if self.session.control.is_full(self.announcements.len()) {
            return Ok(false);
        }
        let Some(chunks) = self.lister.next() else { return Ok(false) };
        self.announcements.add(&Message::Chunks(chunks))?;
        Ok(true)
    }

    /// Writes the next part of a manifest, or begins a new batch if none is being written; returns false if nothing more
    /// may be written.
    fn next_part(&mut self) -> Result<bool, Error> {
        if self.session.control.is_full(self.announcements.len()) {
            return Ok(false);
        }
        let Some((part, batch)) = self.batches.next_part()? else { return self.next_batch() };
        if part.last {
            if batch.is_last {
                self.announcements.add_unhashed(&Message::Scanned)?;
            }
            self.removing.iter_mut().for_each(|removing| removing.expect(&batch));
        }
        self.announcements.add(&Message::Manifest(part))?;
        Ok(true)
    }

    /// Takes the next batch of the scan; returns false if none is ready or too many are begun.
    fn next_batch(&mut self) -> Result<bool, Error> {
        if !self.batches.has_room() {
            return Ok(false);
        }
        let Some(batch) = self.scan.next() else { return Ok(false) };
        self.begin(batch)?;
        Ok(true)
    }

    fn begin(&mut self, mut batch: Batch) -> Result<(), Error> {
        self.announcements.add_id_names(std::mem::take(&mut batch.id_names))?;
        for skipped in &batch.skipped {
            self.skip(skipped)?;
        }
        self.announcements.count(&batch);
        for entry in &batch.entries {
            match &entry.kind {
                EntryKind::File { hash, .. } => {
                    if let (Some(checksums), Some(hash)) = (&mut self.checksums, hash) {
                        checksums.add(&entry.path, hash)?;
                    }
                }
                EntryKind::HardLink { target } => self.changed.link(target),
                EntryKind::Special(_) => {}
                EntryKind::Directory => self.done.names.directories += 1,
                EntryKind::Symlink { .. } => self.done.names.symlinks += 1,
            }
        }
        let again = self.changed.is_over();
        let choice = self.choice(&batch, again);
        self.batches.begin(Arc::new(batch), choice, again);
        Ok(())
    }

    /// Returns who decides which bytes of a batch are sent.
    fn choice(&self, batch: &Batch, again: bool) -> Choice {
        let is_short = batch.number == 0 && batch.is_last && batch.length <= NOT_WORTH_WAITING;
        let peer = &self.session.peer;
        // A changed file may have changed again meanwhile.
        if (again || is_short) && peer.takes_whole() && !self.dry_run {
            Choice::Listed
        } else if peer.may_hold_some() {
            Choice::Receiver
        } else {
            Choice::None
        }
    }

    fn skip(&mut self, skipped: &Skipped) -> Result<(), Error> {
        if skipped.reason == SkipReason::Link {
            self.done.names.links_skipped += 1;
        } else if skipped.reason.is_failure() {
            self.done.failures.add(&skipped.path, FailReason::Skipped(skipped.reason));
        } else {
            self.session.events.report_skipped(skipped);
        }
        if !skipped.reason.is_known_to_all() && !self.session.peer.knows_reasons() {
            return Ok(());
        }
        self.announcements.count_skipped();
        self.announcements.add(&Message::Skipped(skipped.clone()))
    }

    /// Opens the objects of batches whose wanted ranges are known, in order.
    fn open_objects(&mut self) {
        while let Some(begun) = self.batches.next_to_open() {
            let (batch, wanted) = (Arc::clone(begun.batch()), begun.wanted().clone());
            let object = match begun.comes_again() {
                true => self.scan.source().object(batch, wanted, self.changed.take_ends()),
                false => self.scan.object(batch, wanted),
            };
            let (tag, length) = (begun.batch().number.into(), begun.length());
            // Nothing wanted, or a dry run.
            let is_nothing = length == 0 || self.dry_run;
            if !is_nothing {
                let object = BatchObject(Arc::clone(&object));
                self.session.connection.send_object(tag, length, Arc::new(object));
            }
            begun.open(object, is_nothing);
        }
    }

    fn counts(&self) -> SideProgress {
        let stats = self.session.stats().map(|stats| stats.connection);
        let (done, underway) = stats.map_or((0, 0), |stats| (stats.objects.acknowledged, stats.objects.delivered));
        SideProgress {
            bytes_done: done,
            bytes_underway: underway,
            bytes_present: self.batches.present(),
            bytes_known: self.scan.bytes(),
            total_is_final: self.scan.is_over(),
            files_done: self.batches.files_done(done + underway),
            files_known: self.scan.files(),
            current: self.batches.current(),
        }
    }
}

fn unasked() -> Error {
    Error::ProtocolViolation("stored entries reported without a request".to_owned())
}
