//! The receiving side of a transfer: what is offered, accepted and verified.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use net::{BlockDigest, Event, IncomingObject};

use super::checksums::{Checksums, List};
use super::events::{Offer, TransferEvent};
use super::figures::Bytes;
use super::session::Session;
use super::step::Step;
use super::target::{BatchSink, Target, batch_number};
use super::totals::{Counts, Totals};
use crate::error::Error;
use crate::files::{
    Compare, Entry, FailReason, Failed, FilesError, Kind, ManifestState, Notice, ReceiveOutcome, Wanted,
};
use crate::messages::{Complete, End, ListChunks, MAX_OPEN_BATCHES, ManifestPart, Message, Untouched, stored, wants};

/// Bytes of messages after which the user is asked even if the first batch's manifest is not complete: well below the
/// amount that the driver buffers before it stops reading.
const ENOUGH_TO_ASK: usize = 256 << 10;

/// Number of batches after which the user is asked at the latest: a sender may then be waiting for the wanted ranges.
const BATCHES_TO_ASK: usize = MAX_OPEN_BATCHES / 2;

/// Maximum number of batches whose bytes have not all arrived: those that may be unverified, and as many without any
/// file.
const MAX_BATCHES: usize = 2 * MAX_OPEN_BATCHES;

/// Bytes kept from an earlier run whose check takes long enough to tell the user.
const LONG_CHECK: u64 = 1_000_000_000;

/// Maximum number of names shown at the top of an offer.
const MAX_NAMES: usize = 100;

/// How far the sender has announced what it sends. Scanned precedes the last part of the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listing {
    /// More batches may follow.
    #[default]
    Open,
    /// The batch that is being announced, or the next one, is the last.
    Ending,
    /// Everything has been announced.
    Complete,
}

impl Listing {
    /// The state after `message`.
    fn after(self, message: &Message) -> Self {
        match (self, message) {
            (Self::Open, Message::Scanned) => Self::Ending,
            (Self::Ending, Message::Manifest(part)) if part.last => Self::Complete,
            (_, Message::End(_)) => Self::Complete,
            _ => self,
        }
    }
}

/// A batch from its first manifest part, or its announcement, to its last byte.
#[derive(Debug, Default)]
struct Batch {
    /// Length of all its files, once the manifest has begun.
    full: u64,
    /// Length of its object, once it is known what is wanted.
    wanted: Option<u64>,
    /// The announced object, until it is accepted.
    object: Option<IncomingObject>,
    accepted: bool,
}

/// State of the user's consent.
enum Consent {
    /// Messages are buffered until there is enough to ask about.
    Gathering(Vec<Message>),
    /// The user was asked.
    Asked(Vec<Message>),
    Given,
}

/// The receiver of one transfer.
pub(super) struct Receiving {
    session: Session,
    target: Arc<Target>,
    ask: bool,
    checksums: Option<Checksums>,
    consent: Consent,
    batches: BTreeMap<u64, Batch>,
    settle: Sender<()>,
    /// Requests that the settling thread has not answered yet.
    settling: usize,
    /// The batch whose manifest has begun and not ended.
    building: Option<u32>,
    listing: Listing,
    /// Whether the user was told of a long check.
    check_told: bool,
    /// Batches of which every byte is written.
    arrived: u32,
    end: Option<End>,
    counts: Counts,
    /// Names that the sender was to remove and could not.
    unremoved: u64,
    done: Totals,
}

impl Receiving {
    /// Creates a receiver into `target`; with `ask` nothing is written before the user's consent.
    pub(super) fn new(
        mut session: Session,
        target: Arc<Target>,
        ask: bool,
        settle: Sender<()>,
        checksums: Option<List>,
    ) -> Self {
        session.control.hold(true);
        Self {
            session,
            target,
            ask,
            checksums: checksums.map(Checksums::new),
            done: Totals::default(),
            consent: Consent::Gathering(Vec::new()),
            batches: BTreeMap::new(),
            settle,
            settling: 0,
            building: None,
            listing: Listing::default(),
            check_told: false,
            arrived: 0,
            end: None,
            counts: Counts::default(),
            unremoved: 0,
        }
    }

    /// Receives everything, up to the final names and the confirmation to the sender.
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
                Step::Message(message) if self.is_too_early(&message) => self.session.control.put_back(vec![message]),
                step => self.take(step)?,
            }
            self.tell_notices()?;
            self.tell_stored()?;
            let full = self.session.control.peek().is_some_and(|next| self.is_too_early(next));
            self.session.control.pause(full);
            self.session.headway.set_busy(self.settling > 0);
            if let Some(end) = self.end.filter(|end| end.batches == self.arrived && self.settling == 0) {
                let outcome = self.target.files().finish(&end)?;
                // Deletions, or what would be deleted, are known only now.
                self.tell_notices()?;
                if self.target.files().spec().confirms {
                    self.tell_stored()?;
                    self.await_removal()?;
                }
                return self.confirm(&outcome);
            }
        }
    }

    /// Whether a message begins a batch while none may begin before another is verified. The sender, which does not see
    /// how slow this side's disk is, is held back because its messages are. It cannot wait for ever: the digests of a
    /// batch precede the manifest of the next but one. Further parts of a manifest, which may cause a notice for each
    /// name, are not processed either while the sender has not read the previous notices.
    fn is_too_early(&self, message: &Message) -> bool {
        let (Message::Manifest(part), Consent::Given) = (message, &self.consent) else { return false };
        let begins = self.building != Some(part.batch);
        // What comes again takes the place of what was voided, which has to be settled.
        let most = if part.again { 1 } else { MAX_OPEN_BATCHES as u64 };
        let full = self.target.files().unverified() >= most;
        (begins && full) || self.session.control.is_full(0)
    }

    fn take(&mut self, step: Step) -> Result<(), Error> {
        match step {
            // Needs no consent: it creates nothing.
            Step::Message(Message::Begin(source)) => {
                if self.session.peer.lists_chunks() {
                    self.target.files().sender_lists();
                }
                self.target.begin(source)?;
                self.tell_check();
                Ok(())
            }
            Step::Message(message) => {
                if let Message::Manifest(part) = &message
                    && let Some(first) = part.entries.first()
                {
                    self.target.decide(Some(first))?;
                    self.tell_check();
                    let name = self.target.files().destination().rename.as_deref();
                    self.checksums.iter_mut().for_each(|list| list.rename(name));
                }
                self.gather(message)
            }
            Step::Accept => match &self.consent {
                Consent::Asked(_) => self.begin(),
                Consent::Gathering(_) | Consent::Given => Ok(()),
            },
            Step::Refuse => Err(Error::Declined),
            Step::Network(Event::ObjectAnnounced(object)) => self.announced(object),
            Step::Network(Event::Digest(digest)) => self.digest(digest),
            Step::Network(Event::ObjectReceived { tag }) => self.received(tag),
            Step::Verified(files) => {
                self.session.events.tell(TransferEvent::Files(files));
                Ok(())
            }
            Step::Settled(requests) => {
                self.settling -= requests;
                Ok(())
            }
            Step::Tick => {
                self.report();
                Ok(())
            }
            Step::Limit(limit) => {
                let bits = limit.and_then(|limit| NonZeroU64::new(limit.bits_per_second()));
                self.say(&Message::Limit(bits))
            }
            Step::Network(_) | Step::Ready => Ok(()),
        }
    }

    /// Processes a message, or buffers it until the user has consented.
    fn gather(&mut self, message: Message) -> Result<(), Error> {
        match &mut self.consent {
            Consent::Given => self.message(message),
            Consent::Asked(held) => {
                held.push(message);
                Ok(())
            }
            Consent::Gathering(held) => {
                let enough = match &message {
                    // A batch without entries does not decide the destination of the others.
                    Message::Manifest(part) => {
                        part.last && (self.target.files().is_decided() || ends(held) + 1 >= BATCHES_TO_ASK)
                    }
                    Message::End(_) => true,
                    _ => false,
                };
                held.push(message);
                if enough || self.session.control.held() >= ENOUGH_TO_ASK { self.offer() } else { Ok(()) }
            }
        }
    }

    /// Tells the user, once, that a check of what an earlier run has left will take a while.
    fn tell_check(&mut self) {
        let bytes = self.target.files().bytes_to_check();
        if bytes > LONG_CHECK && !std::mem::replace(&mut self.check_told, true) {
            let note = format!("checking {} that an earlier run has left", Bytes(bytes));
            self.session.events.tell(TransferEvent::Note(note));
        }
    }

    /// Shows the user what is offered, and asks for consent.
    fn offer(&mut self) -> Result<(), Error> {
        let Consent::Gathering(held) = &mut self.consent else { return Ok(()) };
        let held = std::mem::take(held);
        let parts =
            || held.iter().filter_map(|message| if let Message::Manifest(part) = message { Some(part) } else { None });
        // What is not permitted, or exists already, makes the question pointless.
        self.target.files().check_offer(parts())?;
        let permitted = &self.target.files().spec().permitted;
        let mut offer = Offer {
            names: Vec::new(),
            entries: 0,
            bytes: 0,
            is_all: held.iter().fold(Listing::default(), Listing::after) == Listing::Complete,
            limits: (permitted.max_bytes, permitted.max_entries),
            into: self.target.files().destination().directory.clone(),
        };
        for part in parts() {
            offer.entries += part.entries.len() as u64;
            offer.bytes = part.entries.iter().fold(offer.bytes, |bytes, entry| bytes.saturating_add(entry.size()));
            let tops = part.entries.iter().filter(|entry| !entry.path.contains(&b'/'));
            offer.names.extend(tops.map(|entry| entry.path.clone()).take(MAX_NAMES - offer.names.len()));
        }
        self.session.events.tell(TransferEvent::Offer(offer));
        self.consent = Consent::Asked(held);
        self.session.stopwatch.on_asked(Instant::now());
        if self.ask { Ok(()) } else { self.begin() }
    }

    /// Proceeds after the user's consent: processes the buffered messages.
    fn begin(&mut self) -> Result<(), Error> {
        let Consent::Asked(held) = std::mem::replace(&mut self.consent, Consent::Given) else { return Ok(()) };
        self.target.decide(None)?;
        self.tell_check();
        self.session.stopwatch.on_answered(Instant::now());
        self.session.control.put_back(held);
        self.session.control.hold(false);
        self.say(&Message::Accepted)
    }

    fn message(&mut self, message: Message) -> Result<(), Error> {
        let files = self.target.files();
        let again = |part: &ManifestPart| part.again && self.target.takes_again();
        if self.listing == Listing::Complete && matches!(&message, Message::Manifest(part) if !again(part)) {
            // The user may have been shown a complete list, and agreed to that.
            return Err(Error::Violation("it announces more after the end of its list".to_owned()));
        }
        self.listing = self.listing.after(&message);
        match message {
            Message::Manifest(part) => self.manifest(&part)?,
            Message::Digest(digest) => {
                if files.expect_digest(&digest)? {
                    self.settle();
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
                self.session.events.left_out(&skipped);
            }
            Message::Top(top) => files.top(top)?,
            Message::IdName(name) => files.id_name(&name)?,
            Message::Scanned => self.counts.total_is_final = true,
            Message::Notice(notice) => self.removed(notice)?,
            Message::End(end) if self.end.is_none() => {
                files.check_end(&end)?;
                self.end = Some(end);
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
                return Err(Error::Violation("it sends a receiver's message, or begins or ends twice".to_owned()));
            }
        }
        Ok(())
    }

    fn manifest(&mut self, part: &ManifestPart) -> Result<(), Error> {
        let state = self.target.files().add_manifest_part(part)?;
        self.building = (state == ManifestState::More).then_some(part.batch);
        let bytes = part.entries.iter().map(Entry::size).fold(0, u64::saturating_add);
        self.counts.bytes_known = self.counts.bytes_known.saturating_add(bytes);
        let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File { .. });
        self.counts.files_known += part.entries.iter().filter(is_file).count() as u64;
        self.list(part)?;
        self.begun(part.batch.into())?.full = part.length;
        match state {
            ManifestState::More => Ok(()),
            ManifestState::Complete(wanted) => self.want(part.batch, &wanted, &wanted),
            ManifestState::Whole(wanted) => self.want(part.batch, &wanted, &Wanted::all()),
            ManifestState::Compare(entries) => {
                self.say(&Message::ListChunks(ListChunks { batch: part.batch, entries }))
            }
        }
    }

    /// Tells the sender what is wanted of a batch, and waits for its object.
    fn want(&mut self, batch: u32, wanted: &Wanted, object: &Wanted) -> Result<(), Error> {
        let tag = u64::from(batch);
        let full = self.begun(tag)?.full;
        if self.target.may_hold_some() {
            for wants in wants(batch, wanted, full) {
                self.say(&Message::Wants(wants))?;
            }
        }
        let length = object.length(full);
        self.counts.bytes_present += full - length;
        // Empty files have no block to wait for.
        self.settle();
        if length == 0 || self.target.files().spec().dry_run {
            return self.received(tag);
        }
        self.begun(tag)?.wanted = Some(length);
        self.open(tag)
    }

    /// Adds files to the list of checksums.
    fn list(&mut self, part: &ManifestPart) -> Result<(), Error> {
        let Some(checksums) = &mut self.checksums else { return Ok(()) };
        for entry in &part.entries {
            if let Kind::File { hash: Some(hash), .. } = &entry.kind {
                checksums.add(&entry.path, hash)?;
            }
        }
        Ok(())
    }

    /// Reports to the sender, and to this side's user, what happens to single names.
    fn tell_notices(&mut self) -> Result<(), Error> {
        for notice in self.target.files().take_notices() {
            let kind = match self.session.peer.hears_untouched() {
                true if self.session.peer.knows_reasons() => Some(notice.kind),
                true => Some(notice.kind.known_to_all()),
                false => notice.kind.for_older_sender(),
            };
            if let Some(kind) = kind {
                self.say(&Message::Notice(Notice { kind, path: notice.path.clone() }))?;
            }
            self.checksums.iter_mut().for_each(|list| list.heed(&notice));
            self.done.notice(notice, &self.session.events);
        }
        Ok(())
    }

    fn announced(&mut self, object: IncomingObject) -> Result<(), Error> {
        let tag = object.tag();
        batch_number(tag)?;
        let batch = self.begun(tag)?;
        if batch.accepted || batch.object.replace(object).is_some() {
            return Err(Error::Violation(format!("it opens batch {tag} twice")));
        }
        self.open(tag)
    }

    /// Returns a batch that has begun, with its manifest or its object.
    fn begun(&mut self, tag: u64) -> Result<&mut Batch, Error> {
        if self.batches.len() >= MAX_BATCHES && !self.batches.contains_key(&tag) {
            return Err(Error::Violation("it opens too many batches".to_owned()));
        }
        Ok(self.batches.entry(tag).or_default())
    }

    /// Accepts a batch's object once it is known what is wanted.
    fn open(&mut self, tag: u64) -> Result<(), Error> {
        let Some(batch) = self.batches.get_mut(&tag) else { return Ok(()) };
        let Some(wanted) = batch.wanted else { return Ok(()) };
        let Some(object) = batch.object.take() else { return Ok(()) };
        let length = object.length();
        if length != wanted {
            return Err(Error::Violation(format!("batch {tag} is {length} bytes long and should be {wanted}")));
        }
        batch.accepted = true;
        object.accept(Arc::new(BatchSink { target: Arc::clone(&self.target), batch: batch_number(tag)? }));
        Ok(())
    }

    fn digest(&mut self, found: BlockDigest) -> Result<(), Error> {
        if self.target.files().found_digest(batch_number(found.tag)?, found.block, found.range, found.digest)? {
            self.settle();
        }
        Ok(())
    }

    fn received(&mut self, tag: u64) -> Result<(), Error> {
        self.batches.remove(&tag).ok_or(Error::Internal("bytes of a batch that is not open"))?;
        self.arrived += 1;
        Ok(())
    }

    fn settle(&mut self) {
        self.settling += 1;
        // The thread ends only after an error, which it has reported.
        let _ = self.settle.send(());
    }

    /// Tells the sender what it may remove.
    fn tell_stored(&mut self) -> Result<(), Error> {
        for (batch, entries) in self.target.files().take_stored() {
            stored(batch, &entries).try_for_each(|stored| self.say(&Message::Stored(stored)))?;
        }
        Ok(())
    }

    /// Waits until the sender has removed what it may, of which it tells one by one.
    fn await_removal(&mut self) -> Result<(), Error> {
        self.say(&Message::AllStored)?;
        loop {
            match self.session.next()? {
                Step::Message(Message::Notice(notice)) => self.removed(notice)?,
                // What it has told is what its user hears too.
                Step::Message(Message::Removed(_)) => return Ok(()),
                Step::Message(_) => return Err(Error::Violation("it says more after the end".to_owned())),
                Step::Tick => self.report(),
                _ => {}
            }
        }
    }

    /// Reports progress.
    fn report(&mut self) {
        let stats = self.session.stats().map(|stats| stats.connection);
        let (done, underway) = stats.map_or((0, 0), |stats| (stats.bytes_written, stats.bytes_arriving));
        (self.counts.bytes_done, self.counts.bytes_underway) = (done, underway);
        // Hard links are in place too, and are no files to come.
        self.counts.files_done = self.target.files().in_place().min(self.counts.files_known);
        self.counts.current = self.target.files().current();
        self.session.report(self.counts.clone());
    }

    /// Tells the user what the sender has removed, or could not remove.
    fn removed(&mut self, notice: Notice) -> Result<(), Error> {
        if !self.target.files().spec().confirms || !notice.kind.is_of_sender() {
            return Err(Error::Violation("it sends a receiver's notice".to_owned()));
        }
        self.unremoved += u64::from(notice.kind.is_failure());
        self.done.notice(notice, &self.session.events);
        Ok(())
    }

    /// Confirms to the sender that everything is in place.
    fn confirm(&mut self, outcome: &ReceiveOutcome) -> Result<Totals, Error> {
        self.session.complete();
        // Files compared by content and found equal do not count as unchanged, since their content was compared.
        let by_time = self.target.files().spec().compare != Compare::Checksum;
        let untouched = Untouched { unchanged: if by_time { outcome.unchanged } else { 0 }, kept: outcome.kept };
        let is_recent = self.session.peer.hears_untouched();
        if is_recent {
            self.say(&Message::Untouched(untouched))?;
        }
        self.say(&Message::Complete(Complete {
            files: outcome.files,
            bytes: outcome.bytes,
            present: outcome.present,
            failed: outcome.failed_count,
            // An older sender takes no such field, and would end a transfer that is complete.
            unchecked: if is_recent { outcome.unchecked } else { 0 },
        }))?;
        if let Some(checksums) = &mut self.checksums {
            checksums.save()?;
        }
        let mut done = std::mem::take(&mut self.done);
        done.into = Some(self.target.files().destination().directory.clone());
        (done.files, done.bytes) = (outcome.files, outcome.bytes);
        (done.directories, done.symlinks) = (outcome.directories, outcome.symlinks);
        (done.present, done.unchecked) = (outcome.present, outcome.unchecked);
        if outcome.altered > 0 {
            let note = format!("{} kept from an earlier run had changed, and came again", Bytes(outcome.altered));
            self.session.events.tell(TransferEvent::Note(note));
        }
        (done.unchanged, done.kept, done.deleted) = (untouched.unchanged, untouched.kept, outcome.deleted);
        let links_left_out = outcome.links_left_out + outcome.unsafe_links;
        (done.altered, done.links_left_out) = (Some(outcome.altered), links_left_out);
        self.session.events.tell_links(outcome.links_left_out);
        if let Some(left) = &outcome.staging_left {
            self.session.events.tell(TransferEvent::Note(left.to_string()));
        }
        // Refused names have been reported already.
        for Failed { path, reason } in outcome.listed.iter().filter(|f| !matches!(f.reason, FailReason::Refused(_))) {
            done.fail(path, *reason);
        }
        // More names may have failed than are listed.
        (done.failed_count, done.vanished_count) = (outcome.failed_count + self.unremoved, outcome.vanished_count);
        Ok(done)
    }

    fn say(&mut self, message: &Message) -> Result<(), Error> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes)?;
        self.session.write(bytes);
        Ok(())
    }

    /// Keeps what has arrived for a later run, unless it is unwanted.
    fn abandon(&self, error: Error) -> Error {
        let files = self.target.files();
        let remove = matches!(error, Error::Declined);
        if !remove {
            // Data that cannot be made durable now is sent again.
            let _ = files.flush();
        }
        match files.abandon(remove) {
            Ok(Some(staging)) => {
                Error::Kept { error: Box::new(error), staging, by_ticket: self.session.config.by_ticket() }
            }
            Ok(None) => error,
            Err(left) => {
                self.session.events.tell(TransferEvent::Note(left.to_string()));
                error
            }
        }
    }
}

/// Counts the batches whose manifests end among `messages`.
fn ends(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message, Message::Manifest(part) if part.last)).count()
}
