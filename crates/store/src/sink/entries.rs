//! Turns the entries of a manifest into directories, links, and files to be received.

use std::io;

use request::names::link_leads_out;
use request::{Existing, NameError, is_staging_name};
use rustix::io::Errno;

use super::super::error::FilesError;
use super::super::folding::Folding;
use super::super::metadata::{Identity, Status, with_set_id};
use super::super::ranges::RangeSet;
use super::super::staged_id::{StagedId, path_hash};
use super::batch::{FileState, ReceivedFile};
use super::differences;
use super::entry_action::{EntryAction, Judge, Replacement, absent, is_excluded};
use super::links::link_bytes;
use super::manifest::{Intake, PartialManifest};
use super::shared::Shared;
use super::target::{DirectoryRemoval, FILLABLE, TargetDirectory};
use super::writer::WRITABLE;
use crate::attributes::SetResult;
use crate::lock::lock;
use crate::messages::{Attributes, Entry, EntryKind, ManifestPart, NoticeKind, Special};
use crate::refusal::refusal_of;
use crate::sandbox::{DirectorySandbox, errno};

/// The present staged state of a file.
struct StagedState {
    id: StagedId,
    /// Ranges that are present and verified.
    held: RangeSet,
    state: FileState,
    /// Its final mode.
    mode: u32,
    /// Whether it is the mode of the replaced file.
    keeps_mode: bool,
    /// Whether the target has another version, to be compared.
    compared: bool,
}

/// Admits entries: decides about each one by the existing names at the target.
pub(super) struct Admission<'a> {
    pub(super) shared: &'a Shared,
}

impl Admission<'_> {
    /// Processes the entries of a checked part.
    pub(super) fn take_entries(&self, intake: &mut Intake, part: &ManifestPart) -> Result<(), FilesError> {
        for entry in &part.entries {
            self.shared.phase.check_stopped()?;
            let path = self.shared.target_path(&entry.path, part.batch)?;
            let target = match &entry.kind {
                EntryKind::HardLink { target } => Some(self.shared.target_path(target, part.batch)?),
                _ => None,
            };
            let folding = self.shared.staged().map_or_else(Folding::default, |place| place.staging.folding);
            if let Some(sent) = &mut intake.sent {
                sent.fold(folding);
                sent.add(&path, matches!(entry.kind, EntryKind::Directory));
            }
            if let Some(place) = self.shared.staged().filter(|_| self.shared.spec.backup.is_some()) {
                let mut sent = lock(&place.sent);
                sent.fold(folding);
                sent.add(&path, matches!(entry.kind, EntryKind::Directory));
            }
            let is_other = intake.spellings.admit(&path, folding, |one, other| self.shared.equates(one, other));
            if part.again {
                if intake.repeat(part.batch, entry)? {
                    self.shared.report.forgive(&entry.path);
                } else {
                    let building = intake.batches.building(part);
                    self.skip_entry(building, &path, entry);
                    building.count(entry.size(), entry.name_bytes());
                    continue;
                }
            }
            let local;
            let mut entry = entry;
            if !entry.extra.is_empty() || self.shared.spec.chmod.is_some() {
                let mode = self.shared.changed_mode(entry.mode, matches!(entry.kind, EntryKind::Directory));
                local = Entry { extra: intake.ids.localize(&entry.extra), mode, ..entry.clone() };
                entry = &local;
            }
            let building = intake.batches.building(part);
            let number = (part.batch, building.entries);
            if matches!(entry.kind, EntryKind::Special(_)) && !self.shared.spec.preserve.specials {
                let reason = "announced a special file that was not requested";
                return Err(FilesError::Protocol { batch: part.batch, reason });
            }
            // Also in a directory: a later transfer into that would treat it as its own.
            if path.split(|byte| *byte == b'/').any(is_staging_name) {
                self.refuse(building, &path, entry, NoticeKind::Reserved);
            } else if !is_other {
                self.refuse(building, &path, entry, NoticeKind::NameCollision);
            } else if self.shared.spec.safe_links && leads_out(entry) {
                self.refuse(building, &path, entry, NoticeKind::UnsafeLink);
            } else if self.shared.spec.dry_run {
                let exists = target.as_deref().map(|target| intake.placed.get(&path_hash(target)).copied());
                // A file that would be replaced has none of its links yet.
                let target = target.as_deref().filter(|_| exists == Some(Some(true)));
                if let Some(is_placed) = self.plan(building, number, &path, entry, target, exists != Some(None))? {
                    intake.placed.insert(path_hash(&path), is_placed);
                }
            } else {
                self.take_entry(building, number, &path, entry, target.as_deref())?;
            }
            building.count(entry.size(), entry.name_bytes());
        }
        Ok(())
    }

    /// Does everything that can be done for an entry at once.
    fn take_entry(
        &self,
        building: &mut PartialManifest,
        number: (u32, u32),
        path: &[u8],
        entry: &Entry,
        target: Option<&[u8]>,
    ) -> Result<(), FilesError> {
        let place = self.shared.place()?;
        let action = match target {
            // The link is made later, when its file is in place.
            Some(target) => {
                let pushed = lock(&place.staging.links).push(path, &link_bytes(number, target));
                return pushed.map_err(|error| FilesError::system(place.staging.path(), error));
            }
            None => self.judge(&place.target).action(path, entry, None),
        };
        // The result is meaningless if hashing was stopped early.
        self.shared.phase.check_stopped()?;
        let exists = matches!(action, Ok(EntryAction::Same { .. }));
        let is_stored = self.is_stored(&entry.kind, &action);
        let staged = match (action, &entry.kind) {
            (Err(error), _) => Err(error),
            (Ok(EntryAction::Refused(kind)), _) => {
                self.refuse(building, path, entry, kind);
                return Ok(());
            }
            (Ok(EntryAction::Kept), _) => {
                self.keep(path, entry);
                Ok(None)
            }
            (Ok(action), EntryKind::Directory) => self.take_directory(place, path, entry, action).map(|()| None),
            (Ok(action), EntryKind::Symlink { target }) => {
                self.take_symlink(place, path, entry, target, action).map(|()| None)
            }
            (Ok(action), EntryKind::Special(special)) => {
                self.take_special(place, path, entry, *special, action).map(|()| None)
            }
            (Ok(EntryAction::Same { attributes, identity }), _) => {
                self.take_same(place, path, entry, attributes.then_some(identity)).map(|()| None)
            }
            (Ok(action), _) => match place.target.may_write(path) {
                Ok(true) => match self.link_reference(place, path, entry) {
                    Ok(true) => Ok(None),
                    Ok(false) => Ok(Some(self.stage(place, path, entry, action, self.waits(building))?)),
                    Err(error) => Err(error),
                },
                Ok(false) => {
                    self.refuse(building, path, entry, NoticeKind::Permission);
                    return Ok(());
                }
                Err(error) => Err(error),
            },
        };
        match staged {
            Ok(Some(staged)) => self.receive(building, path, entry, staged),
            Ok(None) => {
                if is_stored {
                    let noted = self.shared.note_stored(place, number, path);
                    noted.map_err(|error| FilesError::system(place.shown(path), error))?;
                }
                self.skip_entry(building, path, entry);
            }
            Err(error) => {
                let kind = match (&entry.kind, errno(&error)) {
                    // Linux returns these on a file system without links, such as FAT.
                    (EntryKind::Symlink { .. }, Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) if !exists => {
                        NoticeKind::NoLinks
                    }
                    (EntryKind::Special(_), Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) if !exists => {
                        NoticeKind::NoSpecials
                    }
                    _ => place.refusal(path, error)?,
                };
                self.refuse(building, path, entry, kind);
            }
        }
        Ok(())
    }

    /// Reports the action for an entry. For a hard link `exists` is whether its file would exist, and `target` the path
    /// of a file that already does. Returns for a possible file of hard links whether it exists.
    fn plan(
        &self,
        building: &mut PartialManifest,
        number: (u32, u32),
        path: &[u8],
        entry: &Entry,
        target: Option<&[u8]>,
        exists: bool,
    ) -> Result<Option<bool>, FilesError> {
        let action = match self.shared.seen()? {
            Some(seen) => self.plan_action(seen, path, entry, target, exists),
            None => Ok(absent(&self.shared.spec, entry)),
        };
        self.shared.phase.check_stopped()?;
        let action = match action {
            // Its directory would be created.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                absent(&self.shared.spec, entry)
            }
            Err(error) => match refusal_of(&error) {
                Some(kind) => EntryAction::Refused(kind),
                None => return Err(FilesError::system(&self.shared.destination().directory, error)),
            },
            Ok(action) => action,
        };
        let action = match &entry.kind {
            EntryKind::HardLink { target }
                if self.shared.claims.is_excluded(&self.shared.target_path(target, number.0)?) =>
            {
                EntryAction::Kept
            }
            _ if exists => action,
            _ => without_first_name(action, self.shared.spec.existing),
        };
        let kind = match action {
            EntryAction::Same { attributes: false, .. } => None,
            EntryAction::Same { attributes: true, .. } => Some(NoticeKind::Attributes),
            EntryAction::New => Some(NoticeKind::Create),
            EntryAction::Replace { .. } => Some(NoticeKind::Replace),
            EntryAction::Kept => {
                self.keep(path, entry);
                return Ok(None);
            }
            EntryAction::Refused(kind) => {
                self.shared.refused(&entry.path, kind);
                return Ok(None);
            }
        };
        if let Some(kind) = kind {
            self.shared.report.notice(kind, path);
        }
        if self.is_stored(&entry.kind, &Ok(action)) {
            self.shared.note_foreseen(number, path);
        }
        let is_placed = matches!(action, EntryAction::Same { .. }) || self.has_reference(path, entry)?;
        if !is_placed {
            building.wanted.push(building.length..building.length + entry.size());
        }
        self.shared.report.count(entry, is_placed);
        Ok(matches!(entry.kind, EntryKind::File { .. }).then_some(is_placed))
    }

    /// Decides about an entry, and reports the deletion of a directory that it would replace.
    fn plan_action(
        &self,
        seen: &DirectorySandbox,
        path: &[u8],
        entry: &Entry,
        target: Option<&[u8]>,
        exists: bool,
    ) -> io::Result<EntryAction> {
        let action = self.judge(seen).action(path, entry, target)?;
        if !matches!(action, EntryAction::Replace { .. }) || matches!(entry.kind, EntryKind::Directory) || !exists {
            return Ok(action);
        }
        let Shared { spec, report, .. } = self.shared;
        let renamed = self.shared.renaming();
        let clearing =
            DirectoryRemoval { target: seen, spec, report, renamed, created_meanwhile: None, is_sent: &|_| false };
        Ok(if clearing.plan(path)? { action } else { EntryAction::Refused(NoticeKind::DirectoryNotEmpty) })
    }

    /// Keeps an entry as it is at the target.
    fn keep(&self, path: &[u8], entry: &Entry) {
        self.shared.report.kept(path);
        if is_excluded(&self.shared.spec, entry) {
            self.shared.claims.exclude(path);
        }
    }

    /// Whether an entry with this action is in place as it was sent, if all goes well. With [`Existing::Skip`],
    /// existing names do not count: their state is unknown.
    fn is_stored(&self, kind: &EntryKind, action: &io::Result<EntryAction>) -> bool {
        let is_placed = match action {
            Ok(EntryAction::Same { .. }) => self.shared.spec.existing != Existing::Skip,
            Ok(EntryAction::New | EntryAction::Replace { .. }) => true,
            Ok(EntryAction::Kept | EntryAction::Refused(_)) | Err(_) => false,
        };
        is_placed && !matches!(kind, EntryKind::Directory)
    }

    pub(super) fn judge<'a>(&'a self, target: &'a DirectorySandbox) -> Judge<'a> {
        Judge {
            spec: &self.shared.spec,
            modes: self.shared.modes,
            extras: self.shared.extras,
            target,
            stopped: self.shared.phase.stopped(),
        }
    }

    fn take_directory(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        entry: &Entry,
        action: EntryAction,
    ) -> io::Result<()> {
        let inherited = place.target.inherited(path)?;
        let mut mode = self.shared.modes.apply_in(entry.mode, &inherited);
        let made = (mode | FILLABLE) & 0o777;
        let skips = self.shared.spec.existing == Existing::Skip;
        if let EntryAction::Same { identity, .. } = action {
            let found = look_again(place, path, identity)?;
            // A directory with the mode of new directories of an interrupted run was made by that run, and has not got
            // its final mode yet.
            let is_made = found.mode == with_set_id(self.shared.modes.as_made(made, &inherited), found.mode);
            if place.staging.is_new || !is_made {
                mode = self.shared.modes.apply_over(entry.mode, &found);
            }
            if found.mode & FILLABLE != FILLABLE && !skips {
                place.target.set_attributes(path, identity, Some(mode | FILLABLE), None)?;
            }
        } else {
            if matches!(action, EntryAction::Replace { .. }) {
                place.remove_name(path)?;
            }
            let found = if place.is_remembered(path) {
                place.put_made(place.staging.make_directory(made)?, path)?;
                place.target.enter_new(path)?
            } else {
                place.target.create_directory(path, made)?
            };
            self.shared.phase.note_change();
            mode = self.shared.modes.without(mode, made & !found.mode);
            if found.mode & FILLABLE != FILLABLE {
                place.target.set_attributes(path, found.identity, Some(found.mode | FILLABLE), None)?;
            }
        }
        if !(skips && matches!(action, EntryAction::Same { .. })) {
            let attributes = Attributes { mode, mtime: entry.mtime, extra: entry.extra.clone() };
            let bytes = attributes.to_bytes().map_err(io::Error::other)?;
            lock(&place.staging.directories).push(path, &bytes)?;
        }
        self.shared.report.count(entry, false);
        Ok(())
    }

    fn take_symlink(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        entry: &Entry,
        target: &[u8],
        action: EntryAction,
    ) -> io::Result<()> {
        match action {
            EntryAction::Same { attributes, identity } => {
                if attributes {
                    self.set(place, path, (identity, entry), None)?;
                }
            }
            // A link with an owner or other attributes gets them before other users can exchange it.
            EntryAction::New if !place.is_guarded(path) && !self.shared.extras.is_active() => {
                place.target.create_symlink(path, target)?;
                self.shared.phase.note_change();
                self.set_link_time(place, path, entry)?;
            }
            _ => {
                let made = place.staging.make_symlink(target)?;
                self.set_made(place, made.0, None, entry)?;
                place.put_made(made, path)?;
                self.shared.phase.note_change();
                if !self.shared.extras.is_active() {
                    self.set_link_time(place, path, entry)?;
                }
            }
        }
        self.shared.report.count(entry, false);
        Ok(())
    }

    /// Sets the time of a new link. Without it the link exists too, with the same target.
    fn set_link_time(&self, place: &TargetDirectory, path: &[u8], entry: &Entry) -> io::Result<()> {
        let set = place.target.set_link_time(path, entry.mtime);
        match set.map_err(|error| (refusal_of(&error), error)) {
            Ok(()) => {}
            Err((None, error)) => return Err(error),
            Err((Some(_), _)) => self.shared.refused(&entry.path, NoticeKind::MetadataLost),
        }
        Ok(())
    }

    fn take_special(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        entry: &Entry,
        special: Special,
        action: EntryAction,
    ) -> io::Result<()> {
        if let EntryAction::Same { attributes, identity } = action {
            if attributes {
                let found = look_again(place, path, identity)?;
                self.set(place, path, (identity, entry), Some(self.shared.modes.apply_over(entry.mode, &found)))?;
            }
        } else {
            let inherited = place.target.inherited(path)?;
            let mode = self.shared.modes.apply_in(entry.mode, &inherited);
            let made = place.staging.make_special(special, mode, entry.mtime)?;
            if inherited != *place.staging.inherited() && !self.shared.extras.sets_acls() {
                inherited.give(&place.staging.hold(made.0)?, mode)?;
            }
            self.set_made(place, made.0, Some(mode), entry)?;
            place.put_made(made, path)?;
            self.shared.phase.note_change();
        }
        self.shared.report.count(entry, matches!(action, EntryAction::Same { .. }));
        Ok(())
    }

    /// Sets the attributes of an existing file that was compared.
    fn set(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        (compared, entry): (Identity, &Entry),
        mode: Option<u32>,
    ) -> io::Result<()> {
        let held = place.target.hold(path, compared)?;
        let found = held.status()?;
        place.changes(&found);
        // A time within the window is not changed.
        let window = self.shared.spec.modify_window;
        let mtime = Some(entry.mtime).filter(|mtime| window == 0 || !found.has_time_within(*mtime, window));
        if !self.shared.extras.is_active() && !found.is_special() {
            return match (found.is_symlink(), mtime) {
                (true, Some(mtime)) => place.target.set_link_time(path, mtime),
                (true, None) => Ok(()),
                (false, mtime) => place.target.set_attributes(path, compared, mode, mtime),
            };
        }
        let applied = self.shared.extras.apply(&held, mode, mtime, &entry.extra)?;
        self.report_applied(applied, entry);
        Ok(())
    }

    /// Sets the attributes, other than mode and time, of a link or special file before it gets its name.
    fn set_made(&self, place: &TargetDirectory, name: &str, mode: Option<u32>, entry: &Entry) -> io::Result<()> {
        if self.shared.extras.is_active() {
            let held = place.staging.hold(name)?;
            let applied = self.shared.extras.apply(&held, mode, Some(entry.mtime), &entry.extra)?;
            self.report_applied(applied, entry);
        }
        Ok(())
    }

    fn report_applied(&self, applied: SetResult, entry: &Entry) {
        if let Some(kind) = applied.notice() {
            self.shared.refused(&entry.path, kind);
        }
    }

    /// Takes a file that exists; `outdated` has other attributes.
    fn take_same(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        entry: &Entry,
        outdated: Option<Identity>,
    ) -> io::Result<()> {
        if let Some(identity) = outdated {
            let found = look_again(place, path, identity)?;
            let mode = self.shared.modes.is_exact().then(|| self.shared.modes.apply_over(entry.mode, &found));
            self.set(place, path, (identity, entry), mode)?;
        }
        place.note_file(path)?;
        self.shared.report.count(entry, true);
        Ok(())
    }

    /// Whether the sender sends only the wanted ranges of a batch.
    fn waits(&self, building: &PartialManifest) -> bool {
        self.shared.may_have_data && !building.whole
    }

    /// Determines the staged state of a file. `waits` is whether the sender waits for the wanted ranges.
    fn stage(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        entry: &Entry,
        action: EntryAction,
        waits: bool,
    ) -> Result<StagedState, FilesError> {
        let id = StagedId::new(path, entry);
        if !self.shared.claims.claim(id.path()) {
            return Err(FilesError::bad_name(path, NameError::Duplicate));
        }
        let fresh = FileState::fresh(entry.size());
        let replaced = if let EntryAction::Replace { file } = action { file } else { None };
        let new_mode = || {
            let inherited = place.target.inherited(path).unwrap_or_default();
            self.shared.modes.apply_in(entry.mode, &inherited)
        };
        let mode = replaced.map_or_else(new_mode, |replaced| replaced.mode);
        let is_comparable = |replaced: Replacement| differences::is_comparable(entry.size(), replaced.size);
        let compared = waits && self.shared.compares() && replaced.is_some_and(is_comparable);
        let keeps_mode = replaced.is_some();
        let new = StagedState { id, held: RangeSet::default(), state: fresh, mode, keeps_mode, compared };
        // An unusable staging directory affects more than one name.
        let failed = |error| FilesError::system(place.staging.path(), error);
        match place.staging.claim(id).map_err(failed)? {
            true if waits => self.resume(place, entry, new),
            true => place.staging.remove_file(id).map(|()| new).map_err(failed),
            false => Ok(new),
        }
    }

    /// Resumes from the staged ranges of an earlier run that still match their records.
    fn resume(&self, place: &TargetDirectory, entry: &Entry, new: StagedState) -> Result<StagedState, FilesError> {
        let (size, id, staging) = (entry.size(), new.id, &place.staging);
        let failed = |error| FilesError::system(staging.path(), error);
        let recorded = staging.held().take(id);
        // It may already have its final mode.
        staging.set_mode(id, WRITABLE).map_err(failed)?;
        let held = self.shared.kept(staging, id, &recorded)?;
        if held.iter().next().is_none() {
            staging.remove_file(id).map_err(failed)?;
            return Ok(new);
        }
        // The content of gaps is unknown; holes are known to be zeros.
        let dense = held.gaps(size).any(|gap| staging.punch(id, gap).is_err());
        let left = held.gaps(size).map(|gap| gap.end - gap.start).sum();
        let state = FileState { left, made: true, short: true, dense, wrong_mode: true, ..new.state };
        Ok(StagedState { held, state, ..new })
    }

    /// Adds a file to be received.
    fn receive(&self, building: &mut PartialManifest, path: &[u8], entry: &Entry, staged: StagedState) {
        let base = building.length;
        // Too much if the file fails later; corrected in `ReceiveLog::outcome`.
        let held = entry.size() - staged.state.left;
        self.shared.report.update(|outcome| outcome.present += held);
        if staged.state.left > 0 {
            // The missing ranges are wanted; the whole file if the sender does not wait for wants.
            for gap in staged.held.gaps(entry.size()) {
                building.wanted.push(base + gap.start..base + gap.end);
            }
            if staged.compared {
                building.compared.push(building.files.len());
            }
        }
        self.push(building, path, entry, staged);
    }

    /// Adds the bytes of a file that is not received: they arrive anyway if the sender does not wait for wants.
    fn skip_entry(&self, building: &mut PartialManifest, path: &[u8], entry: &Entry) {
        if self.waits(building) || entry.size() == 0 {
            return;
        }
        let state = FileState { dropped: true, ..FileState::fresh(entry.size()) };
        let (id, mode) = (StagedId::new(path, entry), self.shared.modes.apply(entry.mode));
        let staged = StagedState { id, held: RangeSet::default(), state, mode, keeps_mode: false, compared: false };
        self.push(building, path, entry, staged);
    }

    fn push(&self, building: &mut PartialManifest, path: &[u8], entry: &Entry, staged: StagedState) {
        let file = ReceivedFile {
            path: path.into(),
            entry: building.entries,
            id: staged.id,
            start: building.length,
            size: entry.size(),
            mode: staged.mode,
            keeps_mode: staged.keeps_mode,
            mtime: entry.mtime,
            extra: entry.extra.clone(),
        };
        building.files.push((file, staged.state));
    }

    fn refuse(&self, building: &mut PartialManifest, path: &[u8], entry: &Entry, kind: NoticeKind) {
        self.shared.refused(&entry.path, kind);
        self.skip_entry(building, path, entry);
    }
}

/// Returns the status of an item that was compared before.
///
/// # Errors
/// `ESTALE` if something else has its name by now: other users with write access to its directory may have put it
/// there.
fn look_again(place: &TargetDirectory, path: &[u8], compared: Identity) -> io::Result<Status> {
    let found = place.target.look(path)?.filter(|found| found.identity == compared);
    found.ok_or_else(|| Errno::STALE.into())
}

/// Returns the action for a hard link whose file would not exist.
fn without_first_name(action: EntryAction, existing: Existing) -> EntryAction {
    match action {
        EntryAction::Same { .. } if existing == Existing::Skip => EntryAction::Kept,
        EntryAction::Same { .. } | EntryAction::Replace { .. } if existing == Existing::KeepNewer => EntryAction::Kept,
        EntryAction::Same { .. } | EntryAction::New | EntryAction::Replace { .. } => {
            EntryAction::Refused(NoticeKind::MissingLinkTarget)
        }
        // Judged later than the file, also by the run.
        EntryAction::Refused(NoticeKind::DirectoryNotEmpty | NoticeKind::SpecialInTheWay | NoticeKind::Exists) => {
            EntryAction::Refused(NoticeKind::MissingLinkTarget)
        }
        action => action,
    }
}

/// Whether an entry is a symbolic link that points out of the copied tree.
fn leads_out(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::Symlink { target } => link_leads_out(&entry.path, target),
        _ => false,
    }
}
