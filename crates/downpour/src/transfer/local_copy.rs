//! A copy within the local host: from a source to a target in one process, without a connection. The kernel copies the
//! bytes where it can.
//!
//! ```text
//! scan thread ─ batches ─ this thread: manifest, wanted ranges, copy ─ settle thread: sync, final names
//! ```

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use net::PIPE_PEER;
use transport::ConnectionStats;

use super::Transfer;
use super::announcements::Announcements;
use super::checksums::Checksums;
use super::config::{Task, TransferConfig};
use super::connection_figures::ConnectionFigures;
use super::control::TransferControl;
use super::events::{Events, TransferEvent};
use super::input::{Input, SideInput};
use super::mailbox::Mailbox;
use super::pace::Pace;
use super::progress::{Meter, Progress};
use super::removing::Removing;
use super::resend::ResendList;
use super::scanning::Scan;
use super::summary::{ByteCounts, DisplayBytes, NameCounts, Summary};
use super::target::{Settler, Target};
use super::totals::{SideProgress, Totals};
use crate::error::{Context, Error};
use crate::files::{
    Batch, Compare, EntryKind, FailReason, FilesError, InvalidatedFile, LocalSource, ManifestState, Notice,
    ReceiveOutcome, ReceiveRequest, SkipReason, Skipped, TreeObject, TreeTarget, Wanted,
};
use crate::messages::{Digest, MAX_OPEN_BATCHES, ManifestPart, Message, Void, manifest_parts, stored};
use crate::ticket::Role;

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(200);

/// Bytes that are copied between two checks of the user's decisions, which take at most [`STEP_TIME`].
const SMALLEST_STEP: u64 = 1 << 20;
const LARGEST_STEP: u64 = 32 << 20;
const STEP_TIME: Duration = Duration::from_millis(100);

/// Bytes of the recorded blocks: those of a second under a rate limit, within these bounds.
const SMALLEST_BLOCK: u64 = 64 << 10;
const LARGEST_BLOCK: u64 = 4 << 20;

/// Time from which an interruption in the middle of an object costs more than its digests.
const WORTH_RECORDING: Duration = Duration::from_secs(2);

/// Starts to copy within the local host what the task of `config` sends. Its connection options are ignored, except for
/// its limits.
///
/// # Errors
/// A list that cannot be written, an unusable target.
pub(crate) fn start_within(config: TransferConfig, spec: ReceiveRequest) -> Result<Transfer, Error> {
    config.check()?;
    let target_is_directory = spec.target.is_dir();
    let target = Arc::new(Target::new(Arc::new(spec), target_is_directory, false)?);
    Transfer::run_by(move |events, switch| {
        let (mailbox, inputs) = Mailbox::new();
        let number = switch.add(&mailbox);
        let work = || run(&config, target, &events, (mailbox, inputs));
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        switch.remove(number);
        result.unwrap_or(Err(Error::Internal("a copy panicked"))).map_err(|error| stopped(error, &switch))
    })
}

/// Replaces an error that only states that the copy was stopped by the user's reason.
fn stopped(error: Error, switch: &TransferControl) -> Error {
    match (error, switch.stopped()) {
        (Error::Files(FilesError::Over), Some(why)) => why.into(),
        (error, _) => error,
    }
}

fn run(
    config: &TransferConfig,
    target: Arc<Target>,
    events: &Events,
    (mailbox, inputs): (Mailbox, Receiver<Input>),
) -> Result<Summary, Error> {
    let started = runtime::now();
    let settler = target.start(&mailbox)?;
    mailbox.on_end(target.stopper());
    let Task::Send { spec, dry_run } = &config.task else { return Err(Error::Internal("a copy without sources")) };
    let source = LocalSource::new(spec.roots.clone(), spec.scan.clone(), *dry_run)?;
    let scan = Scan::start(Arc::new(source), &spec.scan, &mailbox)?;
    let removing = scan.removes.then(|| Removing::new(Arc::clone(scan.source()), scan.hard_links));
    let profile = &config.options.engine.profile;
    let copy = LocalCopy {
        events: events.clone(),
        inputs,
        scan,
        dry_run: *dry_run,
        target,
        settler,
        announcements: Announcements::new(),
        changed: ResendList::default(),
        checksums: config.list.clone().map(Checksums::new),
        removing,
        pace: Pace::new(profile.limit, profile.fixed_rate()),
        counts: SideProgress::default(),
        meter: Meter::new(started),
        started,
        next_tick: started + TICK,
        has_reported_check: false,
        step: SMALLEST_STEP,
        block: Vec::new(),
        done: Totals::default(),
    };
    copy.run()
}

/// A running copy.
struct LocalCopy {
    events: Events,
    inputs: Receiver<Input>,
    scan: Scan,
    dry_run: bool,
    target: Arc<Target>,
    settler: Settler,
    announcements: Announcements,
    changed: ResendList,
    checksums: Option<Checksums>,
    removing: Option<Removing>,
    pace: Pace,
    counts: SideProgress,
    meter: Meter,
    started: Instant,
    next_tick: Instant,
    /// Whether the user was informed of a long verification.
    has_reported_check: bool,
    /// Bytes to copy at a time.
    step: u64,
    /// The block that is being recorded.
    block: Vec<u8>,
    done: Totals,
}

impl LocalCopy {
    fn run(mut self) -> Result<Summary, Error> {
        match self.drive() {
            Ok(outcome) => Ok(self.summary(&outcome)),
            Err(error) => Err(self.abandon(error)),
        }
    }

    fn drive(&mut self) -> Result<ReceiveOutcome, Error> {
        self.begin()?;
        while let Some(batch) = self.next_batch()? {
            self.copy_batch(batch, false)?;
        }
        self.counts.total_is_final = true;
        self.repeat()?;
        self.settle(0)?;
        let end = self.announcements.end()?;
        self.files().check_end(&end)?;
        let outcome = self.files().finish(&end)?;
        self.report_notices()?;
        self.remove_sources()?;
        if let Some(checksums) = &mut self.checksums {
            checksums.save()?;
        }
        Ok(outcome)
    }

    fn files(&self) -> &dyn TreeTarget {
        self.target.files()
    }

    fn begin(&mut self) -> Result<(), Error> {
        let (id, (top, names)) = (self.scan.id(), std::mem::take(&mut self.scan.top));
        self.target.begin(id)?;
        self.announcements.begin(id, &mut (top.clone(), names.clone()))?;
        top.map_or(Ok(()), |top| self.files().top(top))?;
        names.iter().try_for_each(|name| self.files().id_name(name))?;
        Ok(())
    }

    /// Returns the next batch of the scan; `None` at its end.
    fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            if let Some(batch) = self.scan.next() {
                return Ok(Some(batch));
            }
            if self.scan.is_over() {
                return Ok(None);
            }
            self.attend(TICK)?;
        }
    }

    /// Announces a batch to the target, and copies the wanted ranges.
    fn copy_batch(&mut self, mut batch: Batch, again: bool) -> Result<(), Error> {
        let most = if again { 0 } else { MAX_OPEN_BATCHES as u64 - 1 };
        self.settle(most)?;
        self.counts.total_is_final |= batch.is_last;
        let names = std::mem::take(&mut batch.id_names);
        names.iter().try_for_each(|name| self.files().id_name(name))?;
        self.announcements.add_id_names(names)?;
        for skipped in &batch.skipped {
            self.skip(skipped)?;
        }
        self.announcements.count(&batch);
        let batch = Arc::new(batch);
        self.removing.iter_mut().for_each(|removing| removing.expect(&batch));
        let wanted = self.announce(&batch, again)?;
        // By their names at the target, which are decided now.
        self.note_entries(&batch)?;
        self.report_notices()?;
        (self.counts.bytes_known, self.counts.files_known) = (self.scan.bytes(), self.scan.files());
        self.counts.bytes_present += batch.length - wanted.length(batch.length);
        let ends = if again { self.changed.take_ends() } else { Default::default() };
        let object = self.scan.source().object(Arc::clone(&batch), wanted, ends);
        if object.length() > 0 && !self.dry_run {
            self.copy_object(&batch, &*object, again)?;
        }
        // Empty files have no bytes to wait for.
        self.settler.request();
        self.report_notices()
    }

    /// Notes the entries of a batch in the list of checksums and for the final report.
    fn note_entries(&mut self, batch: &Batch) -> Result<(), Error> {
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
        Ok(())
    }

    /// Passes the manifest of a batch to the target; returns the wanted ranges.
    fn announce(&mut self, batch: &Batch, again: bool) -> Result<Wanted, Error> {
        let mut wanted = None;
        for part in manifest_parts(batch.number, batch.length, &batch.entries) {
            let part = ManifestPart { again, ..part };
            self.target.decide(part.entries.first())?;
            let rename = self.files().destination().rename.clone();
            self.checksums.iter_mut().for_each(|list| list.rename(rename.as_deref()));
            self.report_check();
            let state = self.files().add_manifest_part(&part)?;
            self.announcements.add(&Message::Manifest(part))?;
            // Messages are only hashed.
            self.announcements.take();
            match state {
                ManifestState::More => {}
                ManifestState::Complete(all) | ManifestState::Whole(all) => wanted = Some(all),
                ManifestState::Compare(_) => return Err(Error::Internal("chunks are compared within a host")),
            }
        }
        wanted.ok_or(Error::Internal("a manifest without an end"))
    }

    /// Informs the user, once, of a long verification of partial data.
    fn report_check(&mut self) {
        /// Bytes whose verification takes long enough to report.
        const LONG: u64 = 1_000_000_000;
        let bytes = self.files().bytes_to_check();
        if bytes > LONG && !std::mem::replace(&mut self.has_reported_check, true) {
            let note = format!("verifying {} of partial data from an earlier run", DisplayBytes(bytes));
            self.events.emit(TransferEvent::UserNote(note));
        }
    }

    /// Copies an object. Once that takes long, or with a rate limit, its blocks are read and recorded by their digests:
    /// a run after an interruption resumes in the middle of a file.
    fn copy_object(&mut self, batch: &Arc<Batch>, object: &dyn TreeObject, again: bool) -> Result<(), Error> {
        let begun = runtime::now();
        let (mut offset, mut block) = (0, 0);
        while offset < object.length() {
            let is_long = self.pace.is_limited() || runtime::since(begun) >= WORTH_RECORDING;
            // A growing file is compared as a whole where it is read a second time.
            let end = if is_long && !again {
                block += 1;
                self.copy_recorded(batch, object, (offset, block - 1))?
            } else {
                self.copy_step(batch, object, offset)?
            };
            self.counts.bytes_done += end - offset;
            self.counts.current = object.current().map(<[u8]>::to_vec);
            self.report_notices()?;
            self.wait(end - offset)?;
            offset = end;
        }
        Ok(())
    }

    /// Copies the next bytes of an object; returns where they end.
    fn copy_step(&mut self, batch: &Arc<Batch>, object: &dyn TreeObject, offset: u64) -> Result<u64, Error> {
        let begun = runtime::now();
        let end = (offset + self.step).min(object.length());
        self.files().copy(batch.number, offset..end, object)?;
        self.take_voided(batch, object)?;
        if self.files().copied(batch.number, offset..end)? {
            self.settler.request();
        }
        // The user's decisions are handled between two steps.
        self.step = match runtime::since(begun) {
            time if time < STEP_TIME / 2 => (self.step * 2).min(LARGEST_STEP),
            time if time > STEP_TIME => (self.step / 2).max(SMALLEST_STEP),
            _ => self.step,
        };
        Ok(end)
    }

    /// Reads the next block of an object, writes it, and records it; returns where it ends.
    fn copy_recorded(
        &mut self,
        batch: &Arc<Batch>,
        object: &dyn TreeObject,
        (offset, block): (u64, u32),
    ) -> Result<u64, Error> {
        let end = (offset + self.pace.step(SMALLEST_BLOCK, LARGEST_BLOCK)).min(object.length());
        self.block.resize(usize::try_from(end - offset).unwrap_or_default(), 0);
        object.read(offset, &mut self.block);
        self.take_voided(batch, object)?;
        self.files().write(batch.number, offset, &self.block)?;
        let digest = Digest { batch: batch.number, block, digest: *blake3::hash(&self.block).as_bytes() };
        self.announcements.add(&Message::Digest(digest))?;
        self.announcements.take();
        let is_expected = self.files().expect_digest(&digest)?;
        if self.files().add_local_digest(batch.number, block, offset..end, digest.digest)? || is_expected {
            self.settler.request();
        }
        Ok(end)
    }

    /// Drops the files that could not be read unchanged.
    fn take_voided(&mut self, batch: &Arc<Batch>, object: &dyn TreeObject) -> Result<(), Error> {
        for voided in object.take_voided() {
            let InvalidatedFile { entry, reason } = voided;
            let void = Void { batch: batch.number, entry, reason };
            self.files().void(&void)?;
            self.announcements.add(&Message::Void(void))?;
            self.removing.iter_mut().for_each(|removing| removing.spoil(batch.number, entry));
            let Some(entry) = batch.entries.get(entry as usize) else { continue };
            self.checksums.iter_mut().for_each(|list| list.forget(&entry.path));
            if !self.changed.note(batch, voided) {
                self.done.failures.add(&entry.path, FailReason::Voided(reason));
            }
        }
        Ok(())
    }

    /// Copies files that have changed meanwhile once more, in their current state.
    fn repeat(&mut self) -> Result<(), Error> {
        let scan = &self.scan;
        let Some(again) = self.changed.take(|batch| scan.object(batch, Wanted::all())) else { return Ok(()) };
        again.failed.iter().for_each(|(path, reason)| self.done.failures.add(path, *reason));
        if again.entries.is_empty() {
            return Ok(());
        }
        self.scan.grow(again.length);
        let batch = again.into_batch(self.announcements.batches(), self.removing.is_some());
        self.events.emit(TransferEvent::UserNote(super::resend::note(batch.entries.len())));
        self.copy_batch(batch, true)
    }

    fn skip(&mut self, skipped: &Skipped) -> Result<(), Error> {
        self.files().skipped(skipped)?;
        if skipped.reason == SkipReason::Link {
            self.done.names.links_skipped += 1;
        } else if skipped.reason.is_failure() {
            self.done.failures.add(&skipped.path, FailReason::Skipped(skipped.reason));
        } else {
            self.events.report_skipped(skipped);
        }
        self.announcements.count_skipped();
        self.announcements.add(&Message::Skipped(skipped.clone()))
    }

    /// Waits until at most `most` batches are unpublished, and if none may be, until everything is synced.
    fn settle(&mut self, most: u64) -> Result<(), Error> {
        while self.files().unverified() > most || (most == 0 && !self.settler.is_idle()) {
            self.attend(TICK)?;
            self.report_notices()?;
        }
        Ok(())
    }

    /// Reports changes of names to the user, and removes stored sources, if requested.
    fn report_notices(&mut self) -> Result<(), Error> {
        for notice in self.files().take_notices() {
            self.checksums.iter_mut().for_each(|list| list.heed(&notice));
            self.done.notice(notice, &self.events);
        }
        for (batch, entries) in self.files().take_stored() {
            for stored in stored(batch, &entries) {
                let Some(removing) = &mut self.removing else { continue };
                let notices = removing.take(&stored)?;
                self.report_removed(notices);
            }
        }
        Ok(())
    }

    /// Removes the sources whose removal waited for the end.
    fn remove_sources(&mut self) -> Result<(), Error> {
        let Some(removing) = &mut self.removing else { return Ok(()) };
        let (notices, _) = removing.finish()?;
        self.report_removed(notices);
        Ok(())
    }

    fn report_removed(&mut self, notices: Vec<Notice>) {
        notices.into_iter().for_each(|notice| self.done.notice(notice, &self.events));
    }

    /// Waits as long as the rate limit requires for `bytes`, and handles the user's decisions meanwhile.
    fn wait(&mut self, bytes: u64) -> Result<(), Error> {
        let until = self.pace.next(runtime::now(), bytes);
        loop {
            let left = until.saturating_duration_since(runtime::now());
            self.attend(left.min(TICK))?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Handles all inputs, and waits for the next one for at most `time` if there is none.
    fn attend(&mut self, time: Duration) -> Result<(), Error> {
        let mut wait = time;
        loop {
            let now = runtime::now();
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                self.report(now);
            }
            let input =
                match runtime::recv_timeout(&self.inputs, wait.min(self.next_tick.saturating_duration_since(now))) {
                    Ok(input) => input,
                    Err(RecvTimeoutError::Timeout) => return Ok(()),
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("a copy without an inbox")),
                };
            wait = Duration::ZERO;
            match input {
                Input::End(error) => return Err(error),
                Input::Step(SideInput::Verified(files)) => self.events.emit(TransferEvent::Files(files)),
                Input::Step(SideInput::Settled(requests)) => self.settler.on_settled(requests),
                Input::Step(SideInput::Limit(limit)) => self.pace.limit(limit),
                // The caller checks for ready batches itself. There is no offer, and no peer.
                Input::Step(
                    SideInput::Ready
                    | SideInput::Tick
                    | SideInput::Accept
                    | SideInput::Refuse
                    | SideInput::Message(_)
                    | SideInput::Network(_),
                )
                | Input::Takeover(_) => {}
            }
        }
    }

    fn report(&mut self, now: Instant) {
        self.counts.files_done = self.files().in_place().min(self.counts.files_known);
        let counts = &self.counts;
        self.events.try_emit(TransferEvent::Progress(Progress {
            bytes_done: counts.bytes_done + counts.bytes_present,
            bytes_present: counts.bytes_present,
            bytes_underway: 0,
            bytes_known: counts.bytes_known,
            total_is_final: counts.total_is_final,
            files_done: counts.files_done,
            files_known: counts.files_known,
            current: counts.current.clone(),
            goodput: self.meter.update(now, counts.bytes_done),
            rtt: None,
            loss: None,
            limited_by: None,
            elapsed: now.saturating_duration_since(self.started),
            connection: ConnectionStats::default(),
        }));
    }

    fn summary(&mut self, outcome: &ReceiveOutcome) -> Summary {
        let done = std::mem::take(&mut self.done);
        let by_time = self.files().spec().compare != Compare::Checksum;
        self.events.report_skipped_links(done.names.links_skipped);
        if let Some(left) = &outcome.staging_left {
            self.events.emit(TransferEvent::UserNote(left.to_string()));
        }
        let mut failures = done.failures;
        // The target may have counted more than it has reported.
        failures.count = failures.count.max(outcome.failed_count);
        let names = NameCounts {
            files: outcome.files,
            unchanged: if by_time { outcome.unchanged } else { 0 },
            kept: outcome.kept,
            links_followed: self.scan.source().followed(),
            ..done.names
        };
        let bytes = ByteCounts {
            total: outcome.bytes,
            present: outcome.present,
            unverified: outcome.unchecked,
            altered: Some(outcome.altered),
        };
        Summary {
            role: Role::Sender,
            peer: PIPE_PEER,
            into: None,
            names,
            bytes,
            elapsed: runtime::since(self.started),
            failures,
            wire_bytes: 0,
            connection: ConnectionFigures::default(),
            trace_lost: None,
        }
    }

    /// Keeps the copied data for a later run.
    fn abandon(&mut self, error: Error) -> Error {
        let error = match error {
            // The files only know that they were stopped.
            Error::Files(FilesError::Over) => self.end().unwrap_or(error),
            error => error,
        };
        let is_stopped = matches!(error, Error::Cancelled | Error::Terminated);
        // A notice may contain the cause.
        let _ = self.report_notices();
        // Data that cannot be synced now is copied again.
        let _ = self.files().flush();
        match self.files().abandon(false) {
            Ok(Some(staging)) if !is_stopped => error.within(Context::Kept { staging, by_ticket: false }),
            Ok(_) => error,
            Err(left) => {
                self.events.emit(TransferEvent::UserNote(left.to_string()));
                error
            }
        }
    }

    /// Returns the error that has ended the copy, if it is among the inputs.
    fn end(&self) -> Option<Error> {
        self.inputs.try_iter().find_map(|input| if let Input::End(error) = input { Some(error) } else { None })
    }
}
