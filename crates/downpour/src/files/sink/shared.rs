//! What the parts of a sink share: the request, the target, the report, and whether the transfer is to end.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::super::error::FilesError;
use super::super::metadata::ModeRule;
use super::super::names::check_path;
use super::super::sandbox::DirectorySandbox;
use super::super::spec::{Destination, Evidence, First, ReceiveSpec};
use super::before::{check_usable, holds_staging};
use super::lock;
use super::place::{Place, open_target, sent_as};
use super::report::{FailReason, Report};
use crate::messages::{Entry, NoticeKind, SourceId};

/// What the parts of a sink share. Every change of the target goes through its [`Place`], as its spec says.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: Arc<ReceiveSpec>,
    pub(super) modes: ModeRule,
    /// See [`FileSink::may_hold_some`](super::FileSink::may_hold_some).
    pub(super) may_hold_some: bool,
    pub(super) report: Report,
    /// The target was a directory when the transfer started.
    target_is_directory: bool,
    destination: OnceLock<Destination>,
    place: OnceLock<Place>,
    /// The target as a dry run sees it, if there is one.
    seen: OnceLock<Option<DirectorySandbox>>,
    /// What the sender calls the item that has another name here.
    pub(super) renamed: Arc<OnceLock<Vec<u8>>>,
    /// Hashes of the paths of files that are being received and not yet in place.
    claimed: Mutex<HashSet<u64>>,
    /// Something was created, moved or deleted that has to be durable at the end.
    changed: AtomicBool,
    /// Nothing more is accepted.
    over: AtomicBool,
    /// Long operations end at once.
    pub(super) stopped: AtomicBool,
}

impl Shared {
    /// Looks at the target and changes nothing.
    ///
    /// # Errors
    /// As [`FileSink::new`](super::FileSink::new)'s.
    pub(super) fn new(spec: Arc<ReceiveSpec>, target_is_directory: bool) -> Result<Self, FilesError> {
        let destination = OnceLock::new();
        let may_hold_some = match (spec.destination(&Evidence::before(target_is_directory)), spec.named()) {
            (Some(decided), _) => {
                let may_hold_some = check_usable(&spec, &decided)?;
                destination.get_or_init(|| decided);
                may_hold_some
            }
            // Either the items go into the target, or they continue in its parent what an earlier run has begun there.
            (None, Some(named)) if target_is_directory => {
                let may_continue = holds_staging(&named.directory).unwrap_or(false);
                check_usable(&spec, &spec.in_target())? || (may_continue && check_usable(&spec, &named).is_ok())
            }
            // The first item decides. A target that cannot be a directory is an error only if it has to be one then.
            (None, Some(named)) => {
                check_usable(&spec, &named)? || check_usable(&spec, &spec.in_target()).unwrap_or(false)
            }
            (None, None) => check_usable(&spec, &spec.in_target())?,
        };
        Ok(Self {
            modes: ModeRule::new(spec.modes),
            spec,
            may_hold_some,
            report: Report::default(),
            target_is_directory,
            destination,
            place: OnceLock::new(),
            seen: OnceLock::new(),
            renamed: Arc::default(),
            claimed: Mutex::default(),
            changed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// See [`FileSink::destination`](super::FileSink::destination).
    pub(super) fn destination(&self) -> &Destination {
        self.destination.get_or_init(|| match self.spec.named() {
            Some(named) if !self.target_is_directory => named,
            _ => self.spec.in_target(),
        })
    }

    /// Whether it is decided where the items go.
    pub(super) fn is_decided(&self) -> bool {
        self.destination.get().is_some()
    }

    /// The source is known: an earlier run of the same transfer may have created a target that is a directory. Opens the staging folder
    /// that such a run has left, if it is decided where that is.
    pub(super) fn begin(&self, source: SourceId) -> Result<(), FilesError> {
        if self.target_is_directory && !self.is_decided() {
            let is_own = Some(self.is_own_target(source)?);
            let evidence = Evidence { is_own, ..Evidence::before(true) };
            if let Some(decided) = self.spec.destination(&evidence) {
                self.destination.get_or_init(|| decided);
            }
        }
        match self.destination.get() {
            Some(destination) => self.open_staging(destination, source),
            None => Ok(()),
        }
    }

    /// Decides where the items go by the first of them, and opens the staging folder that an earlier run has left there. Says whether it
    /// was undecided.
    pub(super) fn decide(&self, first: Option<&Entry>, source: Option<SourceId>) -> Result<bool, FilesError> {
        if self.is_decided() {
            return Ok(false);
        }
        let first = first.map_or(First::Nothing, First::Item);
        let evidence = Evidence { is_directory: self.target_is_directory, is_own: Some(false), first };
        let Some(decided) = self.spec.destination(&evidence) else { return Ok(false) };
        check_usable(&self.spec, &decided)?;
        if let Some(source) = source {
            self.open_staging(&decided, source)?;
        }
        self.destination.get_or_init(|| decided);
        Ok(true)
    }

    fn open_staging(&self, destination: &Destination, source: SourceId) -> Result<(), FilesError> {
        if !self.spec.dry_run
            && let Some(place) = Place::open(&self.spec, destination, &self.renamed, source, false)?
        {
            // What the earlier run has moved is to be durable at the end of this one.
            self.note_change();
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// Creates the staging folder, and the target, unless they exist.
    pub(super) fn make_place(&self, source: SourceId) -> Result<(), FilesError> {
        if self.place.get().is_none() {
            let place =
                Place::open(&self.spec, self.destination(), &self.renamed, source, true)?.ok_or(FilesError::Over)?;
            self.place.get_or_init(|| place);
        }
        Ok(())
    }

    /// The target and its staging folder, if that exists yet.
    pub(super) fn staged(&self) -> Option<&Place> {
        self.place.get()
    }

    /// The target and its staging folder.
    ///
    /// # Errors
    /// [`FilesError::Over`] before there is one.
    pub(super) fn place(&self) -> Result<&Place, FilesError> {
        self.place.get().ok_or(FilesError::Over)
    }

    /// The target as a dry run sees it; `None` if it does not exist.
    pub(super) fn seen(&self) -> Result<Option<&DirectorySandbox>, FilesError> {
        if self.seen.get().is_none() {
            let target = open_target(&self.destination().directory)?.map(DirectorySandbox::new);
            self.seen.get_or_init(|| target);
        }
        Ok(self.seen.get().and_then(Option::as_ref))
    }

    /// The path of an entry beneath the target.
    pub(super) fn goes_to(&self, path: &[u8], batch: u32) -> Result<Vec<u8>, FilesError> {
        let Some(name) = &self.destination().rename else { return Ok(path.to_vec()) };
        let top = check_path(path).map_err(|reason| FilesError::bad_name(path, reason))?;
        if self.renamed.get_or_init(|| top.to_vec()) != top {
            return Err(FilesError::Protocol { batch, reason: "it has several items for one name" });
        }
        Ok([name, &path[top.len()..]].concat())
    }

    /// What the sender calls a path beneath the target.
    pub(super) fn sent_as(&self, path: &[u8]) -> Vec<u8> {
        sent_as(self.destination().rename.as_deref().zip(self.renamed.get().map(Vec::as_slice)), path)
    }

    /// Claims a path, by its hash, for a file that is received; false if another file of the transfer has it.
    pub(super) fn claim(&self, path: u64) -> bool {
        lock(&self.claimed).insert(path)
    }

    /// Gives up a claim: the file is in place, or will not be.
    pub(super) fn release(&self, path: u64) {
        lock(&self.claimed).remove(&path);
    }

    /// Counts a name that cannot be here.
    pub(super) fn refused(&self, sent: &[u8], kind: NoticeKind) {
        if kind == NoticeKind::Kept {
            // What stands there appeared after this was asked.
            return self.report.kept(&self.goes_to(sent, 0).unwrap_or_else(|_| sent.to_vec()));
        }
        self.report.fail(sent, FailReason::Refused(kind));
        self.report.notice(kind, sent);
    }

    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Accepts nothing more.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    pub(super) fn check_going(&self) -> Result<(), FilesError> {
        if self.over.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }

    pub(super) fn check_stopped(&self) -> Result<(), FilesError> {
        if self.stopped.load(Ordering::Acquire) { Err(FilesError::Over) } else { Ok(()) }
    }
}
