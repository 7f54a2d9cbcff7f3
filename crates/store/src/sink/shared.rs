//! State shared by the parts of a sink: the request, the target, the report, and whether the transfer is to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use request::{FirstItem, ReceiveRequest, TargetFacts, TargetPath};

use super::super::attributes::ExtraRule;
use super::super::error::FilesError;
use super::super::mode_rule::ModeRule;
use super::super::outputs::TargetOutput;
use super::super::sandbox::DirectorySandbox;
use super::aim::Aim;
use super::claims::Claims;
use super::phase::Phase;
use super::report::ReceiveLog;
use super::report::TOP;
use super::room::Room;
use super::stored_entries::StoredEntries;
use super::target::{TargetDirectory, open_references, open_target, sent_as};
use super::usable::{check_usable, holds_staging};
use crate::messages::{Entry, EntryKind, NoticeKind, SourceId};

/// State shared by the parts of a sink. Every change of the target goes through its [`TargetDirectory`], which follows
/// the spec.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: Arc<ReceiveRequest>,
    pub(super) modes: ModeRule,
    pub(super) extras: ExtraRule,
    /// See [`FileSink::may_have_data`](super::FileSink::may_have_data).
    pub(super) may_have_data: bool,
    pub(super) report: Arc<ReceiveLog>,
    /// Entries in place and not reported yet.
    pub(super) stored: StoredEntries,
    pub(super) aim: Aim,
    place: OnceLock<TargetDirectory>,
    /// The target as a dry run sees it, if it exists.
    seen: OnceLock<Option<DirectorySandbox>>,
    /// Trees to whose unchanged files hard links are made.
    references: OnceLock<Vec<DirectorySandbox>>,
    pub(super) claims: Claims,
    room: Room,
    pub(super) phase: Phase,
    /// Whether the sender lists the chunks of files.
    pub(super) sender_lists: AtomicBool,
}

impl Shared {
    /// Returns the sender's mode with the changes requested by the user.
    pub(super) fn changed_mode(&self, mode: u32, is_directory: bool) -> u32 {
        let chmod = self.spec.chmod.as_ref();
        chmod.map_or(mode, |chmod| chmod.apply(mode, is_directory, self.modes.mask()))
    }

    /// Whether the target's file system treats two names as equal. Without staging this is unknown, and they count as
    /// equal.
    pub(super) fn equates(&self, one: &[u8], other: &[u8]) -> bool {
        self.staged().is_none_or(|place| place.staging.equates(one, other).unwrap_or(true))
    }

    /// Examines the target without changing it.
    ///
    /// # Errors
    /// The same as for [`FileSink::new`](super::FileSink::new).
    pub(super) fn new(spec: Arc<ReceiveRequest>, target_is_directory: bool) -> Result<Self, FilesError> {
        let aim = Aim::new(target_is_directory);
        let may_have_data = match (spec.destination(&TargetFacts::before(target_is_directory)), spec.named()) {
            (Some(decided), _) => {
                let may_have_data = check_usable(&spec, &decided)?;
                aim.set(decided);
                may_have_data
            }
            // The items go into the target, or resume an earlier run in its parent.
            (None, Some(named)) if target_is_directory => {
                let may_continue = holds_staging(&named.directory).unwrap_or(false);
                check_usable(&spec, &spec.in_target())? || (may_continue && check_usable(&spec, &named).is_ok())
            }
            // The first item decides. A target that cannot be a directory is an error only if it then has to be one.
            (None, Some(named)) => {
                check_usable(&spec, &named)? || check_usable(&spec, &spec.in_target()).unwrap_or(false)
            }
            (None, None) => check_usable(&spec, &spec.in_target())?,
        };
        Ok(Self {
            modes: ModeRule::new(spec.modes, spec.preserve),
            extras: ExtraRule::new(spec.preserve),
            spec,
            may_have_data,
            report: Arc::default(),
            stored: StoredEntries::default(),
            aim,
            place: OnceLock::new(),
            seen: OnceLock::new(),
            references: OnceLock::new(),
            claims: Claims::default(),
            room: Room::default(),
            phase: Phase::default(),
            sender_lists: AtomicBool::new(false),
        })
    }

    /// See [`FileSink::destination`](super::FileSink::destination).
    pub(super) fn destination(&self) -> &TargetPath {
        self.aim.destination(&self.spec)
    }

    /// Returns the output files beneath the destination, relative to it.
    pub(super) fn outputs(&self) -> &[TargetOutput] {
        self.aim.outputs(&self.spec)
    }

    /// Uses the identity of the source: an earlier run of the same transfer may have created a target that is a
    /// directory. Opens the staging directory of such a run, if the destination is decided.
    pub(super) fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        if self.aim.target_is_directory && !self.aim.is_decided() {
            let is_own = Some(self.is_own_target(source));
            let evidence = TargetFacts { is_own, ..TargetFacts::before(true) };
            if let Some(decided) = self.spec.destination(&evidence) {
                self.aim.set(decided);
            }
        }
        match self.aim.decided() {
            Some(destination) => self.open_staging(destination, source),
            None => Ok(()),
        }
    }

    /// Decides the destination from the first item, and opens the staging directory of an earlier run in it. Returns
    /// whether it was undecided.
    pub(super) fn decide(&self, first: Option<&Entry>, source: Option<SourceId>) -> Result<bool, FilesError> {
        if self.aim.is_decided() {
            return Ok(false);
        }
        let first = first.map_or(FirstItem::Nothing, |entry| FirstItem::Item {
            path: &entry.path,
            is_directory: matches!(entry.kind, EntryKind::Directory),
        });
        let evidence = TargetFacts { is_directory: self.aim.target_is_directory, is_own: Some(false), first };
        let Some(decided) = self.spec.destination(&evidence) else { return Ok(false) };
        check_usable(&self.spec, &decided)?;
        if let Some(source) = source {
            self.open_staging(&decided, source)?;
        }
        self.aim.set(decided);
        Ok(true)
    }

    fn open_staging(&self, destination: &TargetPath, source: SourceId) -> Result<(), FilesError> {
        if !self.spec.dry_run
            && let Some(place) =
                TargetDirectory::open(&self.spec, destination, &self.aim.renamed, &self.report, source, false)?
        {
            // Files moved by the earlier run must be durable at the end of this one.
            self.phase.note_change();
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// Creates the target and the staging directory, unless they exist.
    pub(super) fn make_place(&self, source: SourceId) -> Result<(), FilesError> {
        if self.place.get().is_none() {
            // An invalid one is refused before anything is made.
            self.references()?;
            let place =
                TargetDirectory::open(&self.spec, self.destination(), &self.aim.renamed, &self.report, source, true)?
                    .ok_or(FilesError::Over)?;
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// Reports once that the wanted bytes exceed the room: `wanted` is the total of all files so far. They are written
    /// anyway, since holes need no room, and since other programs may free some.
    pub(super) fn check_room(&self, wanted: u64) {
        if !self.spec.compare_trees && self.room.is_exceeded(&self.destination().directory, wanted) {
            self.report.notice(NoticeKind::LowSpace, TOP);
        }
    }

    /// Whether files are compared with other versions at the target; the sender then waits for wants.
    pub(super) fn compares(&self) -> bool {
        self.spec.differences && self.sender_lists.load(Ordering::Relaxed)
    }

    /// Whether the target has to be a directory even if no entries are sent.
    pub(super) fn wants_target(&self) -> bool {
        let TargetPath { directory, rename } = self.destination();
        self.spec.requested.contents || (rename.is_none() && !directory.is_dir())
    }

    /// Returns the target and its staging directory, if that exists yet.
    pub(super) fn staged(&self) -> Option<&TargetDirectory> {
        self.place.get()
    }

    /// Returns the target and its staging directory.
    ///
    /// # Errors
    /// [`FilesError::Over`] if there is none yet.
    pub(super) fn place(&self) -> Result<&TargetDirectory, FilesError> {
        self.place.get().ok_or(FilesError::Over)
    }

    /// Returns the target as a dry run sees it; `None` if it does not exist.
    pub(super) fn seen(&self) -> Result<Option<&DirectorySandbox>, FilesError> {
        if self.seen.get().is_none() {
            let target = open_target(&self.destination().directory, &self.spec)?.map(DirectorySandbox::new);
            self.seen.get_or_init(|| target);
        }
        Ok(self.seen.get().and_then(Option::as_ref))
    }

    /// Returns the trees to whose unchanged files hard links are made.
    pub(super) fn references(&self) -> Result<&[DirectorySandbox], FilesError> {
        if self.references.get().is_none() {
            let opened = open_references(&self.destination().directory, &self.spec)?;
            self.references.get_or_init(|| opened);
        }
        Ok(self.references.get().map_or(&[], Vec::as_slice))
    }

    /// Returns the path of an entry beneath the target.
    pub(super) fn target_path(&self, path: &[u8], batch: u32) -> Result<Vec<u8>, FilesError> {
        self.aim.target_path(&self.spec, path, batch)
    }

    /// Returns the sender's name of a path beneath the target.
    pub(super) fn sent_as(&self, path: &[u8]) -> Vec<u8> {
        sent_as(self.renaming(), path)
    }

    /// Returns the item's local name and its name at the sender, if they differ.
    pub(super) fn renaming(&self) -> Option<(&[u8], &[u8])> {
        self.aim.renaming(&self.spec)
    }

    /// Counts a name that cannot be created.
    pub(super) fn refused(&self, sent: &[u8], kind: NoticeKind) {
        if kind == NoticeKind::Kept {
            // It appeared after the target was examined.
            return self.report.kept(&self.target_path(sent, 0).unwrap_or_else(|_| sent.to_vec()));
        }
        self.report.refused(sent, kind);
    }
}
