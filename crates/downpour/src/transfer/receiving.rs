//! The receiver of a transfer: offered, accepted and verified data.

mod batches;
mod consent;
mod ending;
mod listing;

use std::num::NonZeroU64;
use std::sync::Arc;

use net::{BlockDigest, Event, IncomingObject};

use batches::Batches;
use consent::{Consent, Deferral};
use listing::Listing;

use super::checksums::{Checksums, List};
use super::events::TransferEvent;
use super::input::SideInput;
use super::session::Session;
use super::summary::DisplayBytes;
use super::target::{BatchSink, Settler, Target, batch_number};
use super::totals::{SideProgress, Totals};
use crate::error::Error;
use crate::files::{Entry, EntryKind, FilesError, ManifestState, Notice, Wanted};
use crate::messages::{ListChunks, MAX_OPEN_BATCHES, ManifestPart, Message, stored, wants};

/// Bytes of partial data whose verification takes long enough to report.
const LONG_CHECK: u64 = 1_000_000_000;

/// The receiver of one transfer.
pub(super) struct Receiving {
    session: Session,
    target: Arc<Target>,
    /// Whether the user is asked before anything is written.
    asks: bool,
    consent: Consent,
    listing: Listing,
    batches: Batches,
    settler: Settler,
    checksums: Option<Checksums>,
    /// Whether the user was informed of a long verification.
    has_reported_check: bool,
    counts: SideProgress,
    /// Sources that the sender could not remove.
    unremoved: u64,
    done: Totals,
}

impl Receiving {
    /// Creates a receiver into `target`; if it `asks`, nothing is written before the user's consent.
    pub(super) fn new(
        mut session: Session,
        target: Arc<Target>,
        asks: bool,
        settler: Settler,
        checksums: Option<List>,
    ) -> Self {
        session.control.hold(true);
        Self {
            session,
            target,
            asks,
            consent: Consent::new(),
            listing: Listing::default(),
            batches: Batches::default(),
            settler,
            checksums: checksums.map(Checksums::new),
            has_reported_check: false,
            counts: SideProgress::default(),
            unremoved: 0,
            done: Totals::default(),
        }
    }

    /// Receives everything, publishes it, and confirms it to the sender.
    pub(super) fn run(mut self) -> (Session, Result<Totals, Error>) {
        let result = self.drive().map_err(|error| {
            let error = self.reason(error);
            self.abandon(error)
        });
        (self.session, result)
    }

    /// Returns the actual error, where the files only know that they were stopped.
    fn reason(&mut self, error: Error) -> Error {
        match error {
            Error::Files(FilesError::Over) if self.target.is_stopped() => self.session.end(),
            error => error,
        }
    }

    fn drive(&mut self) -> Result<Totals, Error> {
        loop {
            match self.session.next()? {
                // Not checked on arrival, since no message was pending then.
                SideInput::Message(message) if self.is_too_early(&message) => {
                    self.session.control.put_back(vec![message])
                }
                step => self.take(step)?,
            }
            self.report_notices()?;
            self.send_stored()?;
            let full = self.session.control.peek().is_some_and(|next| self.is_too_early(next));
            self.session.control.pause(full);
            self.session.headway.set_busy(!self.settler.is_idle());
            let has_arrived = |batches| batches == self.batches.arrived() && self.settler.is_idle();
            if let Some(end) = self.listing.end().filter(|end| has_arrived(end.batches)) {
                let outcome = self.target.files().finish(&end)?;
                // Deletions, performed or simulated, are known only now.
                self.report_notices()?;
                if self.target.files().spec().report_stored {
                    self.send_stored()?;
                    self.await_removal()?;
                }
                return self.confirm(&outcome);
            }
        }
    }

    /// Returns whether a message begins a batch while none may begin before another is verified. The sender, which does
    /// not see how slow the receiver's disk is, is held back because its messages are. It cannot wait for ever: the
    /// digests of a batch precede the manifest of the next but one. Further parts of a manifest, which may cause a
    /// notice for each name, are not processed either while the sender has not read the previous notices.
    fn is_too_early(&self, message: &Message) -> bool {
        let (Message::Manifest(part), true) = (message, self.consent.is_given()) else { return false };
        // Resent files replace voided ones, which have to be settled.
        let most = if part.again { 1 } else { MAX_OPEN_BATCHES as u64 };
        let full = self.target.files().unverified() >= most;
        (self.listing.begins(part) && full) || self.session.control.is_full(0)
    }

    fn take(&mut self, step: SideInput) -> Result<(), Error> {
        match step {
            // Needs no consent: it creates nothing.
            SideInput::Message(Message::Begin(source)) => {
                if self.session.peer.lists_chunks() {
                    self.target.files().sender_lists();
                }
                self.target.begin(source)?;
                self.report_check();
                Ok(())
            }
            SideInput::Message(message) => {
                if let Message::Manifest(part) = &message
                    && let Some(first) = part.entries.first()
                {
                    self.target.decide(Some(first))?;
                    self.report_check();
                    let name = self.target.files().destination().rename.as_deref();
                    self.checksums.iter_mut().for_each(|list| list.rename(name));
                }
                self.gather(message)
            }
            SideInput::Accept => self.begin(),
            SideInput::Refuse => Err(Error::Declined),
            SideInput::Network(Event::ObjectAnnounced(object)) => self.announced(object),
            SideInput::Network(Event::Digest(digest)) => self.digest(digest),
            SideInput::Network(Event::ObjectReceived { tag }) => self.batches.on_received(tag),
            SideInput::Verified(files) => {
                self.session.events.emit(TransferEvent::Files(files));
                Ok(())
            }
            SideInput::Settled(requests) => {
                self.settler.on_settled(requests);
                Ok(())
            }
            SideInput::Tick => {
                self.report();
                Ok(())
            }
            SideInput::Limit(limit) => {
                let bits = limit.and_then(|limit| NonZeroU64::new(limit.bits_per_second()));
                self.send(&Message::Limit(bits))
            }
            SideInput::Network(_) | SideInput::Ready => Ok(()),
        }
    }

    /// Processes a message, or buffers it until the user has consented.
    fn gather(&mut self, message: Message) -> Result<(), Error> {
        let is_decided = || self.target.files().is_decided();
        match self.consent.take(message, is_decided, self.session.control.held()) {
            Deferral::No(message) => self.message(message),
            Deferral::Enough => self.offer(),
            Deferral::Yes => Ok(()),
        }
    }

    /// Informs the user, once, of a long verification of partial data.
    fn report_check(&mut self) {
        let bytes = self.target.files().bytes_to_check();
        if bytes > LONG_CHECK && !std::mem::replace(&mut self.has_reported_check, true) {
            let note = format!("verifying {} of partial data from an earlier run", DisplayBytes(bytes));
            self.session.events.emit(TransferEvent::UserNote(note));
        }
    }

    /// Shows the offer to the user, and asks for consent.
    fn offer(&mut self) -> Result<(), Error> {
        // Names that are not allowed, or exist already, make the question pointless.
        self.target.files().check_offer(&mut self.consent.parts())?;
        let permitted = &self.target.files().spec().permitted;
        let limits = (permitted.max_bytes, permitted.max_entries);
        let Some(offer) = self.consent.ask(limits, self.target.files().destination().directory.clone()) else {
            return Ok(());
        };
        self.session.events.emit(TransferEvent::Offer(offer));
        self.session.stopwatch.on_asked(runtime::now());
        if self.asks { Ok(()) } else { self.begin() }
    }

    /// Proceeds after the user's consent, if it was requested: processes the buffered messages.
    fn begin(&mut self) -> Result<(), Error> {
        let Some(held) = self.consent.give() else { return Ok(()) };
        self.target.decide(None)?;
        self.report_check();
        self.session.stopwatch.on_answered(runtime::now());
        self.session.control.put_back(held);
        self.session.control.hold(false);
        self.send(&Message::Accepted)
    }

    fn message(&mut self, message: Message) -> Result<(), Error> {
        let files = self.target.files();
        self.listing.on_message(&message, |part| part.again && self.target.takes_again())?;
        match message {
            Message::Manifest(part) => self.manifest(&part)?,
            Message::Digest(digest) => {
                if files.expect_digest(&digest)? {
                    self.settler.request();
                }
            }
            Message::Void(void) => {
                if let Some(path) = files.void(&void)?
                    && let Some(checksums) = &mut self.checksums
                {
                    checksums.forget(&path);
                }
            }
            Message::Chunks(chunks) => {
                if let Some(wanted) = files.add_chunks(&chunks)? {
                    self.want(chunks.batch, &wanted, &wanted)?;
                }
            }
            Message::Skipped(skipped) => {
                files.skipped(&skipped)?;
                self.session.events.report_skipped(&skipped);
            }
            Message::Top(top) => files.top(top)?,
            Message::IdName(name) => files.id_name(&name)?,
            Message::Scanned => self.counts.total_is_final = true,
            Message::Notice(notice) => self.removed(notice)?,
            Message::End(end) if self.listing.end().is_none() => {
                files.check_end(&end)?;
                self.listing.on_end(end);
            }
            Message::Begin(_)
            | Message::End(_)
            | Message::Accepted
            | Message::Wants(_)
            | Message::ListChunks(_)
            | Message::Limit(_)
            | Message::Untouched(_)
            | Message::Stored(_)
            | Message::AllStored
            | Message::Removed(_)
            | Message::Complete(_)
            | Message::Strain(_) => {
                return Err(Error::ProtocolViolation(
                    "sender sent a receiver's message, or began or ended twice".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn manifest(&mut self, part: &ManifestPart) -> Result<(), Error> {
        let state = self.target.files().add_manifest_part(part)?;
        self.listing.on_part(part.batch, state == ManifestState::More);
        let bytes = part.entries.iter().map(Entry::size).fold(0, u64::saturating_add);
        self.counts.bytes_known = self.counts.bytes_known.saturating_add(bytes);
        let is_file = |entry: &&Entry| matches!(entry.kind, EntryKind::File { .. });
        self.counts.files_known += part.entries.iter().filter(is_file).count() as u64;
        self.list(part)?;
        self.batches.on_part(part.batch.into(), part.length)?;
        match state {
            ManifestState::More => Ok(()),
            ManifestState::Complete(wanted) => self.want(part.batch, &wanted, &wanted),
            ManifestState::Whole(wanted) => self.want(part.batch, &wanted, &Wanted::all()),
            ManifestState::Compare(entries) => {
                self.send(&Message::ListChunks(ListChunks { batch: part.batch, entries }))
            }
        }
    }

    /// Requests the wanted ranges of a batch from the sender, and waits for its object.
    fn want(&mut self, batch: u32, wanted: &Wanted, object: &Wanted) -> Result<(), Error> {
        let tag = u64::from(batch);
        let full = self.batches.full_length(tag)?;
        if self.target.may_hold_some() {
            for wants in wants(batch, wanted, full) {
                self.send(&Message::Wants(wants))?;
            }
        }
        let length = object.length(full);
        self.counts.bytes_present += full - length;
        // Empty files have no block to wait for.
        self.settler.request();
        if length == 0 || self.target.files().spec().dry_run {
            return self.batches.on_received(tag);
        }
        let object = self.batches.on_wanted(tag, length)?;
        object.map_or(Ok(()), |object| self.accept(object))
    }

    /// Adds files to the list of checksums.
    fn list(&mut self, part: &ManifestPart) -> Result<(), Error> {
        let Some(checksums) = &mut self.checksums else { return Ok(()) };
        for entry in &part.entries {
            if let EntryKind::File { hash: Some(hash), .. } = &entry.kind {
                checksums.add(&entry.path, hash)?;
            }
        }
        Ok(())
    }

    /// Reports changes of names to the sender and to the local user.
    fn report_notices(&mut self) -> Result<(), Error> {
        for notice in self.target.files().take_notices() {
            if let Some(kind) = self.session.peer.kind_for(notice.kind) {
                self.send(&Message::Notice(Notice { kind, path: notice.path.clone() }))?;
            }
            self.checksums.iter_mut().for_each(|list| list.heed(&notice));
            self.done.notice(notice, &self.session.events);
        }
        Ok(())
    }

    fn announced(&mut self, object: IncomingObject) -> Result<(), Error> {
        batch_number(object.tag())?;
        let object = self.batches.on_object(object)?;
        object.map_or(Ok(()), |object| self.accept(object))
    }

    /// Accepts the object of a batch.
    fn accept(&self, object: IncomingObject) -> Result<(), Error> {
        let batch = batch_number(object.tag())?;
        object.accept(Arc::new(BatchSink { target: Arc::clone(&self.target), batch }));
        Ok(())
    }

    fn digest(&mut self, found: BlockDigest) -> Result<(), Error> {
        if self.target.files().add_local_digest(batch_number(found.tag)?, found.block, found.range, found.digest)? {
            self.settler.request();
        }
        Ok(())
    }

    /// Reports to the sender which sources it may remove.
    fn send_stored(&mut self) -> Result<(), Error> {
        for (batch, entries) in self.target.files().take_stored() {
            stored(batch, &entries).try_for_each(|stored| self.send(&Message::Stored(stored)))?;
        }
        Ok(())
    }

    /// Reports progress.
    fn report(&mut self) {
        let stats = self.session.stats().map(|stats| stats.connection);
        let (done, underway) = stats.map_or((0, 0), |stats| (stats.objects.written, stats.objects.arriving));
        (self.counts.bytes_done, self.counts.bytes_underway) = (done, underway);
        // Hard links are published too, and are no files to wait for.
        self.counts.files_done = self.target.files().in_place().min(self.counts.files_known);
        self.counts.current = self.target.files().current();
        self.session.report(self.counts.clone());
    }

    /// Reports to the user which sources the sender has removed, or could not remove.
    fn removed(&mut self, notice: Notice) -> Result<(), Error> {
        if !self.target.files().spec().report_stored || !notice.kind.is_of_sender() {
            return Err(Error::ProtocolViolation("sender sent a receiver's notice".to_owned()));
        }
        self.unremoved += u64::from(notice.kind.is_failure());
        self.done.notice(notice, &self.session.events);
        Ok(())
    }

    fn send(&mut self, message: &Message) -> Result<(), Error> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes)?;
        self.session.write(bytes);
        Ok(())
    }
}
