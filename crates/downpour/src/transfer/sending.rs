//! The sending side of a transfer: batches from the scan become manifests on the control stream and one object each,
//! made of the ranges that the receiver wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use net::{BlockDigest, Event};
use transport::Rate;

use super::TransferEvent;
use super::changed::{Again, Changed};
use super::checksums::{Checksums, List};
use super::lister::Lister;
use super::mailbox::Mailbox;
use super::removing::Removing;
use super::scanning::{BatchObject, Found, Scan};
use super::session::Session;
use super::step::Step;
use super::totals::{Counts, Totals};
use crate::error::Error;
use crate::files::{Batch, BatchSource, Entry, FailReason, IdName, Kind, Notice, SkipReason, Skipped, Voided, Wanted};
use crate::messages::{
    Complete, Digest, End, ListChunks, MAX_OPEN_BATCHES, ManifestPart, Message, RootHasher, Stored, Untouched, Void,
    Wants, manifest_parts,
};

/// Batches whose bytes are in transit at once: while the last blocks of one are sent, the first of the next are read.
const MAX_OPEN: usize = 2;
/// Batches begun, including those whose manifest is with the receiver: while it answers what it wants of one, the next
/// one's manifest is sent.
const MAX_BEGUN: usize = MAX_OPEN_BATCHES / 2;

/// Maximum number of ranges that a receiver may want of a batch, beyond two for each entry: for long files that it
/// holds in scattered parts.
const MAX_PIECES: usize = 65_536;

/// Bytes of a transfer up to which the sender does not wait to hear what is wanted: they fit in its first flight.
const NOT_WORTH_WAITING: u64 = 8 << 10;

/// A batch whose manifest is written.
struct Begun {
    batch: Arc<Batch>,
    /// What its object is made of.
    wanted: Wanted,
    /// What the receiver wants of it, if all of it is sent anyway, and whether that is all it wants.
    needed: Option<(Wanted, bool)>,
    /// Number of wanted ranges received.
    pieces: usize,
    /// Whether the receiver has asked for chunks.
    listed: bool,
    /// Whether its files have come before.
    again: bool,
    /// Entries whose files changed while they were read.
    voided: BTreeSet<u32>,
    phase: Phase,
}

/// State of a batch.
enum Phase {
    /// The receiver has not yet listed all that it wants.
    Asked,
    /// The wanted ranges are known, and other batches go first.
    Ready,
    /// Its object is being sent.
    Open {
        source: Arc<BatchSource>,
        /// Bytes whose digests are written.
        digested: u64,
        /// Whether the receiver has every byte.
        sent: bool,
    },
}

impl Begun {
    fn length(&self) -> u64 {
        self.wanted.length(self.batch.length)
    }

    /// Returns the source of its object, while that crosses.
    fn crossing(&self) -> Option<&BatchSource> {
        match &self.phase {
            Phase::Open { source, .. } => Some(source),
            Phase::Asked | Phase::Ready => None,
        }
    }

    /// Whether the whole object has arrived and all digests are written.
    fn is_done(&self) -> bool {
        let is_answered = self.needed.as_ref().is_none_or(|(_, is_all)| *is_all);
        is_answered && matches!(self.phase, Phase::Open { digested, sent: true, .. } if digested == self.length())
    }

    fn is_digested(&self) -> bool {
        matches!(self.phase, Phase::Open { digested, .. } if digested == self.length())
    }

    /// Whether the receiver can have stored it. The message that says so may overtake the acknowledgement of its bytes.
    fn may_be_stored(&self, dry_run: bool) -> bool {
        self.is_digested() || (matches!(self.phase, Phase::Ready) && (dry_run || self.length() == 0))
    }
}

/// A batch whose manifest is being written, and the first entry of the next part.
struct Opening {
    batch: Arc<Batch>,
    next_entry: usize,
    /// Whether its files have come before.
    again: bool,
}

/// The sender of one transfer.
pub(super) struct Sending {
    session: Session,
    scan: Scan,
    /// Whether to report only what would be sent.
    dry_run: bool,
    checksums: Option<Checksums>,
    lister: Lister,
    /// What is removed of the sources, if that is wanted.
    removing: Option<Removing>,
    all_scanned: bool,
    opening: Option<Opening>,
    begun: BTreeMap<u64, Begun>,
    changed: Changed,
    hasher: RootHasher,
    /// Messages not yet passed to the session, so that a burst of digests becomes one write.
    unwritten: Vec<u8>,
    /// Contents of the last message, which is sent when `ended`.
    totals: End,
    ended: bool,
    begin_said: bool,
    /// Regular files of batches that the receiver has, and the bytes of their objects.
    files_over: u64,
    bytes_over: u64,
    /// Bytes that need not be sent.
    present: u64,
    /// Files of which the receiver wanted nothing.
    unwanted: u64,
    /// The receiver's report of files it left as they were, if it has arrived.
    untouched: Option<Untouched>,
    /// Links that were left out because the user wanted it.
    links_left_out: u64,
    done: Totals,
}

impl Sending {
    /// Creates a sender of what `scan` finds.
    pub(super) fn new(session: Session, mailbox: Mailbox, scan: Scan, dry_run: bool, checksums: Option<List>) -> Self {
        let removing = scan.removes.then(|| Removing::new(Arc::clone(&scan.roots), scan.hard_links, dry_run));
        Self {
            removing,
            session,
            scan,
            dry_run,
            checksums: checksums.map(Checksums::new),
            lister: Lister::new(mailbox),
            all_scanned: false,
            opening: None,
            begun: BTreeMap::new(),
            changed: Changed::default(),
            hasher: RootHasher::new(),
            unwritten: Vec::new(),
            totals: End { batches: 0, entries: 0, bytes: 0, skipped: 0, root: RootHasher::new().root() },
            ended: false,
            begin_said: false,
            files_over: 0,
            bytes_over: 0,
            present: 0,
            unwanted: 0,
            untouched: None,
            links_left_out: 0,
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
                self.session.complete();
                // The confirmation may overtake the last acknowledgements.
                for begun in std::mem::take(&mut self.begun).into_values() {
                    self.tell_files(&begun);
                }
                if let Some(checksums) = &mut self.checksums {
                    checksums.save()?;
                }
                self.done.files = complete.files;
                self.done.bytes = complete.bytes;
                (self.done.present, self.done.unchecked) = (complete.present, complete.unchecked);
                // An older receiver does not report it: assume that it compared none of them.
                let at_worst = Untouched { unchanged: self.unwanted, kept: 0 };
                let Untouched { unchanged, kept } = self.untouched.unwrap_or(at_worst);
                (self.done.unchanged, self.done.kept) = (unchanged, kept);
                self.done.links_followed = self.scan.roots.followed();
                self.done.links_left_out = self.links_left_out;
                self.session.events.tell_links(self.links_left_out);
                // The receiver may have counted more than it reported.
                self.done.failed_count = self.done.failed_count.max(complete.failed);
                return Ok(());
            }
            if self.session.peer.address().is_some() {
                self.advance()?;
            }
            // No batch can begin before the scan has found its files.
            let is_scanning = !self.all_scanned && self.begun.is_empty() && self.opening.is_none();
            // A peer that takes no more of the lists is waited for.
            let is_listing = self.lister.is_busy() && !self.session.control.is_full(0);
            self.session.headway.set_busy(is_scanning || is_listing);
        }
    }

    fn take(&mut self, step: Step) -> Result<Option<Complete>, Error> {
        match step {
            Step::Message(message) => return self.message(message),
            Step::Network(Event::Digest(digest)) => self.digest(digest)?,
            Step::Network(Event::ObjectSent { tag }) => match &mut self.batch(tag)?.phase {
                Phase::Open { sent, .. } => *sent = true,
                Phase::Asked | Phase::Ready => return Err(Error::Internal("a batch was sent that was not open")),
            },
            Step::Network(Event::ObjectAnnounced(_)) => {
                return Err(Error::Violation("it sends files to a sender".to_owned()));
            }
            Step::Tick => {
                let counts = self.counts();
                self.session.report(counts);
            }
            Step::Limit(limit) => self.session.connection.set_limit(self.session.path.limit(limit)),
            Step::Network(_) | Step::Ready | Step::Verified(_) | Step::Settled(_) | Step::Accept | Step::Refuse => {}
        }
        Ok(None)
    }

    fn message(&mut self, message: Message) -> Result<Option<Complete>, Error> {
        match message {
            Message::Accepted => Ok(None),
            Message::Wants(wants) => self.wants(wants).map(|()| None),
            Message::ListChunks(asked) => self.list(asked).map(|()| None),
            Message::Notice(notice) => {
                self.notice(notice);
                Ok(None)
            }
            Message::Limit(limit) => {
                let limit = limit.map(|bits| Rate::from_bits_per_second(bits.get()));
                self.session.connection.set_limit(self.session.path.limit_by_peer(limit));
                Ok(None)
            }
            Message::Untouched(untouched) => {
                self.untouched = Some(untouched);
                Ok(None)
            }
            Message::Stored(stored) => self.stored(&stored).map(|()| None),
            Message::AllStored => self.all_stored().map(|()| None),
            Message::Complete(complete) if self.ended && self.removing.as_ref().is_none_or(Removing::is_over) => {
                Ok(Some(complete))
            }
            Message::Complete(_) => Err(Error::Violation("it reports an incomplete transfer as complete".to_owned())),
            _ => Err(Error::Violation("it sends messages that only senders send".to_owned())),
        }
    }

    fn wants(&mut self, wants: Wants) -> Result<(), Error> {
        let broken = |what: &str| Error::Violation(format!("it {what} batch {}", wants.batch));
        let begun = self.begun.get_mut(&wants.batch.into()).ok_or_else(|| broken("wants ranges of unknown"))?;
        let is_due = match &begun.needed {
            Some((_, is_all)) => !is_all,
            None => matches!(begun.phase, Phase::Asked),
        };
        if !is_due {
            return Err(broken("lists twice what it wants of"));
        }
        if self.lister.is_due(wants.batch) {
            return Err(broken("wants ranges ahead of the chunks that it asked for of"));
        }
        begun.pieces += wants.ranges.len();
        if begun.pieces > 2 * begun.batch.entries.len() + MAX_PIECES {
            return Err(broken("wants too many ranges of"));
        }
        for range in &wants.ranges {
            let wanted = begun.needed.as_mut().map_or(&mut begun.wanted, |(needed, _)| needed);
            let taken = wanted.push_received(range.clone(), begun.batch.length);
            taken.map_err(|_| broken("wants invalid ranges of"))?;
        }
        if let Some((_, is_all)) = &mut begun.needed {
            *is_all = wants.last;
        } else if wants.last {
            begun.phase = Phase::Ready;
            self.present += begun.batch.length - begun.length();
        }
        Ok(())
    }

    /// Lists the chunks of files of which the receiver has other versions.
    fn list(&mut self, asked: ListChunks) -> Result<(), Error> {
        let broken = |what: &str| Error::Violation(format!("it asks for chunks of {what} {}", asked.batch));
        let begun = self.begun.get_mut(&asked.batch.into()).ok_or_else(|| broken("unknown batch"))?;
        if !matches!(begun.phase, Phase::Asked) || begun.pieces > 0 || std::mem::replace(&mut begun.listed, true) {
            return Err(broken("what is no longer open of batch"));
        }
        let is_file = |entry: &u32| {
            begun.batch.entries.get(*entry as usize).is_some_and(|entry| matches!(entry.kind, Kind::File { .. }))
        };
        if self.dry_run {
            return Err(broken("batches in a dry run, as"));
        }
        if !asked.entries.iter().all(is_file) {
            return Err(broken("what is no file of batch"));
        }
        let source = self.scan.source(Arc::clone(&begun.batch), Wanted::all());
        self.lister.ask(asked.batch, source, asked.entries, self.session.line_rate())
    }

    /// Removes what the receiver has stored of a batch.
    fn stored(&mut self, stored: &Stored) -> Result<(), Error> {
        let Some(removing) = &mut self.removing else { return Err(unasked()) };
        let begun = self.begun.get(&stored.batch.into());
        if begun.is_some_and(|begun| !begun.may_be_stored(self.dry_run)) {
            return Err(Error::Violation(format!("it stores batch {} before that is sent", stored.batch)));
        }
        let notices = removing.take(stored)?;
        self.tell_removed(notices)
    }

    /// Removes the rest, and tells the receiver.
    fn all_stored(&mut self) -> Result<(), Error> {
        let Some(removing) = self.removing.as_mut().filter(|_| self.ended) else { return Err(unasked()) };
        let (notices, count) = removing.finish()?;
        self.tell_removed(notices)?;
        Ok(Message::Removed(count).encode(&mut self.unwritten)?)
    }

    /// Tells both users what became of sources.
    fn tell_removed(&mut self, notices: Vec<Notice>) -> Result<(), Error> {
        for notice in notices {
            Message::Notice(notice.clone()).encode(&mut self.unwritten)?;
            self.done.notice(notice, &self.session.events);
        }
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.checksums.iter_mut().for_each(|list| list.heed(&notice));
        self.done.notice(notice, &self.session.events);
    }

    fn batch(&mut self, tag: u64) -> Result<&mut Begun, Error> {
        self.begun.get_mut(&tag).ok_or(Error::Internal("an event of a batch that is not open"))
    }

    /// Sends the digest of a block that was read, preceded by the voids that the reading has revealed.
    fn digest(&mut self, block: BlockDigest) -> Result<(), Error> {
        let begun = self.batch(block.tag)?;
        let Phase::Open { source, digested, .. } = &mut begun.phase else {
            return Err(Error::Internal("a digest of a batch that is not open"));
        };
        *digested += block.range.end - block.range.start;
        let (batch, voided) = (Arc::clone(&begun.batch), source.take_voided());
        begun.voided.extend(voided.iter().map(|voided| voided.entry));
        for voided in voided {
            let Voided { entry, reason } = voided;
            self.say(&Message::Void(Void { batch: batch.number, entry, reason }))?;
            self.removing.iter_mut().for_each(|removing| removing.spoil(batch.number, entry));
            let Some(entry) = batch.entries.get(entry as usize) else { continue };
            self.checksums.iter_mut().for_each(|list| list.forget(&entry.path));
            if !self.session.peer.takes_again() || !self.changed.note(&batch, voided) {
                self.done.fail(&entry.path, FailReason::Voided(reason));
            }
        }
        self.say(&Message::Digest(Digest { batch: batch.number, block: block.block, digest: block.digest }))
    }

    /// Opens and closes batches as far as possible.
    fn advance(&mut self) -> Result<(), Error> {
        if !self.begin_said {
            self.begin_said = true;
            self.say(&Message::Begin(self.scan.id))?;
            let (top, id_names) = std::mem::take(&mut self.scan.top);
            top.map_or(Ok(()), |top| self.say(&Message::Top(top)))?;
            self.say_id_names(id_names)?;
        }
        self.forget_sent();
        while self.next_chunks()? || self.next_part()? {}
        self.open_objects();
        self.forget_sent();
        let all_digested = self.begun.values().all(Begun::is_digested);
        if self.all_scanned && self.opening.is_none() && all_digested && !self.ended && !self.repeat()? {
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

    /// Announces the files that have changed once more, as they are now. Returns false if there are none.
    fn repeat(&mut self) -> Result<bool, Error> {
        let scan = &self.scan;
        let Some(again) = self.changed.take(|batch| scan.source(batch, Wanted::all())) else { return Ok(false) };
        again.failed.iter().for_each(|(path, reason)| self.done.fail(path, *reason));
        let Again { entries, length, .. } = again;
        if entries.is_empty() {
            return Ok(false);
        }
        self.scan.grow(length);
        let files = if entries.len() == 1 { "file that has" } else { "files that have" };
        let note = format!("sending {} {files} changed meanwhile again", entries.len());
        self.session.events.tell(TransferEvent::Note(note));
        let number = self.totals.batches;
        let version = |entry: &Entry| if let Kind::File { version, .. } = entry.kind { version } else { 0 };
        let versions = if self.removing.is_some() { entries.iter().map(version).collect() } else { Vec::new() };
        let (skipped, id_names) = (Vec::new(), Vec::new());
        self.begin(Batch { number, entries, length, versions, skipped, id_names, is_last: false })?;
        while self.next_part()? {}
        self.open_objects();
        Ok(true)
    }

    /// Drops batches that the receiver has and whose digests are written, in order.
    fn forget_sent(&mut self) {
        while let Some(entry) = self.begun.first_entry() {
            if !entry.get().is_done() {
                return;
            }
            let begun = entry.remove();
            self.tell_files(&begun);
        }
    }

    /// Reports the files of a batch of which any part was sent, except those that did not stay the same.
    fn tell_files(&mut self, begun: &Begun) {
        let mut files = Vec::new();
        let mut start = 0;
        let needed = begun.needed.as_ref().map_or(&begun.wanted, |(needed, _)| needed);
        let mut wanted = needed.ranges(begun.batch.length).peekable();
        for (number, entry) in (0..).zip(&begun.batch.entries) {
            let Kind::File { size, .. } = entry.kind else { continue };
            let end = start + size;
            while wanted.next_if(|range| range.end <= start).is_some() {}
            if wanted.peek().is_some_and(|range| range.start < end) {
                if !begun.voided.contains(&number) {
                    files.push((entry.path.clone(), size));
                }
            } else if self.session.peer.may_hold_some() {
                self.unwanted += 1;
            }
            start = end;
        }
        self.files_over += begun.batch.regular_files();
        self.bytes_over += if self.dry_run { 0 } else { begun.length() };
        // The receiver's notices list what would be sent.
        if !self.dry_run {
            self.session.events.tell(TransferEvent::Files(files));
        }
    }

    /// Writes the next part of a manifest, of a new batch if none is being written; returns false if nothing more may
    /// be written.
    fn next_part(&mut self) -> Result<bool, Error> {
        if self.session.control.is_full(self.unwritten.len()) {
            return Ok(false);
        }
        let Some(Opening { batch, next_entry, again }) = self.opening.take() else { return self.next_batch() };
        let part = manifest_parts(batch.number, batch.length, &batch.entries[next_entry..]).next();
        let whole = self.is_sent_whole(&batch, again);
        let Some(part) = part.map(|part| ManifestPart { whole, again, ..part }) else {
            return Err(Error::Internal("a manifest without parts"));
        };
        let (last, next_entry) = (part.last, next_entry + part.entries.len());
        if last && batch.is_last {
            self.say(&Message::Scanned)?;
        }
        self.say(&Message::Manifest(part))?;
        if last {
            self.removing.iter_mut().for_each(|removing| removing.expect(&batch));
            let (wanted, phase) = match self.session.peer.may_hold_some() && !whole {
                true => (Wanted::none(), Phase::Asked),
                false => (Wanted::all(), Phase::Ready),
            };
            let needed = whole.then(|| (Wanted::none(), false));
            self.begun.insert(
                u64::from(batch.number),
                Begun { batch, wanted, needed, pieces: 0, listed: false, again, voided: BTreeSet::new(), phase },
            );
        } else {
            self.opening = Some(Opening { batch, next_entry, again });
        }
        Ok(true)
    }

    /// Whether all of a batch is sent without waiting to hear what is wanted of it.
    fn is_sent_whole(&self, batch: &Batch, again: bool) -> bool {
        let is_short = batch.number == 0 && batch.is_last && batch.length <= NOT_WORTH_WAITING;
        // What has changed once may do so again meanwhile.
        (again || is_short) && self.session.peer.takes_whole() && !self.dry_run
    }

    /// Writes the next chunks that the receiver has asked for; returns false if there are none, or no more may be written.
    fn next_chunks(&mut self) -> Result<bool, Error> {
        if self.session.control.is_full(self.unwritten.len()) {
            return Ok(false);
        }
        let Some(chunks) = self.lister.next() else { return Ok(false) };
        self.say(&Message::Chunks(chunks))?;
        Ok(true)
    }

    /// Takes the next batch of the scan; returns false if none is ready or too many are begun.
    fn next_batch(&mut self) -> Result<bool, Error> {
        if self.begun.len() >= MAX_BEGUN || self.all_scanned {
            return Ok(false);
        }
        match self.scan.next() {
            Some(Found::Batch(batch)) => {
                self.begin(batch)?;
                Ok(true)
            }
            Some(Found::All) => {
                self.all_scanned = true;
                Ok(false)
            }
            None => Ok(false),
        }
    }

    fn say_id_names(&mut self, names: Vec<IdName>) -> Result<(), Error> {
        names.into_iter().try_for_each(|name| self.say(&Message::IdName(name)))
    }

    fn begin(&mut self, mut batch: Batch) -> Result<(), Error> {
        self.say_id_names(std::mem::take(&mut batch.id_names))?;
        for skipped in &batch.skipped {
            self.skip(skipped)?;
        }
        self.totals.batches += 1;
        self.totals.entries += batch.entries.len() as u64;
        self.totals.bytes += batch.length;
        for entry in &batch.entries {
            match &entry.kind {
                Kind::File { hash, .. } => {
                    if let (Some(checksums), Some(hash)) = (&mut self.checksums, hash) {
                        checksums.add(&entry.path, hash)?;
                    }
                }
                Kind::HardLink { target } => self.changed.link(target),
                Kind::Special(_) => {}
                Kind::Directory => self.done.directories += 1,
                Kind::Symlink { .. } => self.done.symlinks += 1,
            }
        }
        self.opening = Some(Opening { batch: Arc::new(batch), next_entry: 0, again: self.changed.is_over() });
        Ok(())
    }

    fn skip(&mut self, skipped: &Skipped) -> Result<(), Error> {
        if skipped.reason == SkipReason::Link {
            self.links_left_out += 1;
        } else if skipped.reason.is_failure() {
            self.done.fail(&skipped.path, FailReason::Skipped(skipped.reason));
        } else {
            self.session.events.left_out(skipped);
        }
        if !skipped.reason.is_known_to_all() && !self.session.peer.knows_reasons() {
            return Ok(());
        }
        self.totals.skipped += 1;
        self.say(&Message::Skipped(skipped.clone()))
    }

    /// Opens the objects of batches whose wanted ranges are known, in order.
    fn open_objects(&mut self) {
        let crossing = |begun: &Begun| matches!(begun.phase, Phase::Open { sent: false, .. });
        let mut free = MAX_OPEN.saturating_sub(self.begun.values().filter(|begun| crossing(begun)).count());
        for (tag, begun) in &mut self.begun {
            match begun.phase {
                Phase::Open { .. } => continue,
                Phase::Asked => return,
                Phase::Ready if free == 0 => return,
                Phase::Ready => {}
            }
            let mut source = self.scan.source(Arc::clone(&begun.batch), begun.wanted.clone());
            if begun.again {
                source = source.with_ends(self.changed.take_ends());
            }
            let source = Arc::new(source);
            let length = begun.length();
            // Nothing wanted, or a dry run.
            let nothing = length == 0 || self.dry_run;
            if !nothing {
                free -= 1;
                let object = BatchObject(Arc::clone(&source));
                self.session.connection.send_object(*tag, length, Arc::new(object));
            }
            begun.phase = Phase::Open { source, digested: if nothing { length } else { 0 }, sent: nothing };
        }
    }

    /// Adds a message, and hashes it into the root if it determines the contents of the target.
    fn say(&mut self, message: &Message) -> Result<(), Error> {
        let start = self.unwritten.len();
        message.encode(&mut self.unwritten)?;
        if !matches!(message, Message::Scanned) {
            self.hasher.add(&self.unwritten[start..]);
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let stats = self.session.stats().map(|stats| stats.connection);
        let (done, underway) = stats.map_or((0, 0), |stats| (stats.bytes_acknowledged, stats.bytes_delivered));
        let sources = || self.begun.values().filter_map(Begun::crossing);
        // The objects cross one after the other.
        let mut arrived = (done + underway).saturating_sub(self.bytes_over);
        let within = sources().map(|source| {
            let of_this = arrived.min(source.length());
            arrived -= of_this;
            source.files_within(of_this)
        });
        let files_done = self.files_over + within.sum::<u64>();
        Counts {
            bytes_done: done,
            bytes_underway: underway,
            bytes_present: self.present,
            bytes_known: self.scan.bytes(),
            total_is_final: self.all_scanned,
            files_done,
            files_known: self.scan.files(),
            current: sources().filter_map(|source| source.current()).next_back().map(<[u8]>::to_vec),
        }
    }
}

fn unasked() -> Error {
    Error::Violation("it says what it has stored, which nobody has asked".to_owned())
}
