//! The action for an announced entry, by the existing node under its name.

use request::names::link_leads_out;
use request::{Compare, Existing, Modes, NameError};

use super::disk::{Content, Node, NodeStatus};
use super::target::MemoryTarget;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::{Entry, EntryKind, ManifestPart, NoticeKind};
use crate::sink::batch::{FileState, ReceivedFile};
use crate::sink::manifest::{Intake, PartialManifest};
use crate::staged_id::{StagedId, path_hash};

/// Permission bits of new names if modes are not exact: those that the usual umask permits.
const MASKED: u32 = 0o1755;
/// Permission bits of names whose modes are exact: all but set-id bits, which would give away an owner's rights.
const EXACT: u32 = 0o1777;

/// The action for an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EntryAction {
    /// The entry exists, perhaps with another mode or time.
    Same {
        /// Its mode.
        mode: u32,
        /// Whether mode or time differ.
        attributes: bool,
    },
    /// Its name does not exist.
    New,
    /// Something else exists and is replaced.
    Replace {
        /// The mode of the replaced file, if a file replaces a file.
        file: Option<u32>,
    },
    /// The target is kept as it is.
    Kept,
    /// The entry cannot be created.
    Refused(NoticeKind),
}

impl MemoryTarget {
    /// Processes the entries of a checked part.
    pub(super) fn take_entries(&self, intake: &mut Intake, part: &ManifestPart) -> Result<(), FilesError> {
        for entry in &part.entries {
            self.check_stopped()?;
            if let Some(sent) = &mut intake.sent {
                sent.add(&entry.path, matches!(entry.kind, EntryKind::Directory));
            }
            let is_due = !part.again || intake.repeat(part.batch, entry)?;
            if part.again && is_due {
                self.report.forgive(&entry.path);
            }
            let building = intake.batches.building(part);
            match is_due {
                true => self.take_entry(building, part.batch, entry)?,
                false => skip_entry(building, entry),
            }
            building.count(entry.size(), entry.name_bytes());
        }
        Ok(())
    }

    fn take_entry(&self, building: &mut PartialManifest, batch: u32, entry: &Entry) -> Result<(), FilesError> {
        let action = self.action(batch, entry)?;
        let number = (batch, building.entries);
        match action {
            EntryAction::Kept => self.report.kept(&entry.path),
            EntryAction::Refused(kind) => self.report.refused(&entry.path, kind),
            action if self.spec.dry_run => return self.plan(building, number, entry, &action),
            action => return self.act(building, number, entry, &action),
        }
        skip_entry(building, entry);
        Ok(())
    }

    /// Reports what would happen.
    fn plan(
        &self,
        building: &mut PartialManifest,
        number: (u32, u32),
        entry: &Entry,
        action: &EntryAction,
    ) -> Result<(), FilesError> {
        let is_placed = matches!(action, EntryAction::Same { .. });
        match action {
            EntryAction::Same { attributes: true, .. } => self.report.notice(NoticeKind::Attributes, &entry.path),
            EntryAction::New => self.report.notice(NoticeKind::Create, &entry.path),
            EntryAction::Replace { .. } => self.report.notice(NoticeKind::Replace, &entry.path),
            EntryAction::Same { attributes: false, .. } | EntryAction::Kept | EntryAction::Refused(_) => {}
        }
        if !is_placed {
            building.wanted.push(building.length..building.length + entry.size());
        }
        self.report.count(entry, is_placed);
        if is_placed { self.note_entry(number, entry, None) } else { Ok(()) }
    }

    /// Does everything for an entry that does not need its bytes.
    fn act(
        &self,
        building: &mut PartialManifest,
        number: (u32, u32),
        entry: &Entry,
        action: &EntryAction,
    ) -> Result<(), FilesError> {
        let mode = match (action, self.spec.modes) {
            (_, Modes::Exact) => entry.mode & EXACT,
            (EntryAction::Same { mode, .. } | EntryAction::Replace { file: Some(mode) }, Modes::Masked) => *mode,
            (_, Modes::Masked) => entry.mode & MASKED,
        };
        let published = match (&entry.kind, action) {
            (_, EntryAction::Same { attributes, .. }) => {
                if *attributes {
                    lock(&self.disk).set_attributes(&self.place(&entry.path), mode, entry.mtime)?;
                }
                None
            }
            (EntryKind::File { .. }, _) => return self.receive(building, entry, mode),
            (EntryKind::Symlink { target }, _) => Some(Node::symlink(target.clone(), entry.mtime)),
            (EntryKind::Directory, _) => Some(Node::directory(mode, entry.mtime)),
            // Refused before.
            (EntryKind::HardLink { .. } | EntryKind::Special(_), _) => None,
        };
        if let Some(node) = &published {
            self.publish(&entry.path, node.clone())?;
        }
        self.report.count(entry, matches!(entry.kind, EntryKind::File { .. }));
        skip_entry(building, entry);
        self.note_entry(number, entry, published.as_ref())
    }

    /// Notes an entry that is in place, unless it is a directory or was to be kept.
    fn note_entry(&self, number: (u32, u32), entry: &Entry, published: Option<&Node>) -> Result<(), FilesError> {
        if matches!(entry.kind, EntryKind::Directory) || self.spec.existing == Existing::Skip {
            return Ok(());
        }
        self.note_placed(number, &entry.path, published)
    }

    /// Adds a file to be received.
    fn receive(&self, building: &mut PartialManifest, entry: &Entry, mode: u32) -> Result<(), FilesError> {
        if !lock(&self.claimed).insert(path_hash(&entry.path)) {
            return Err(FilesError::bad_name(&entry.path, NameError::Duplicate));
        }
        if entry.size() > 0 {
            building.wanted.push(building.length..building.length + entry.size());
        }
        push(building, entry, mode, FileState::fresh(entry.size()));
        Ok(())
    }

    fn action(&self, batch: u32, entry: &Entry) -> Result<EntryAction, FilesError> {
        match &entry.kind {
            EntryKind::HardLink { .. } => return Ok(EntryAction::Refused(NoticeKind::NoLinks)),
            EntryKind::Special(_) => {
                return Err(FilesError::Protocol { batch, reason: "announced a special file that was not requested" });
            }
            EntryKind::Symlink { target } if self.spec.safe_links && link_leads_out(&entry.path, target) => {
                return Ok(EntryAction::Refused(NoticeKind::UnsafeLink));
            }
            EntryKind::File { .. } | EntryKind::Directory | EntryKind::Symlink { .. } => {}
        }
        if let Some(action) = self.action_above(&entry.path)? {
            return Ok(action);
        }
        let Some(found) = lock(&self.disk).look(&self.place(&entry.path))? else { return Ok(self.absent()) };
        let is_file = matches!(found.node.content, Content::File(_));
        let comes_as_file = matches!(entry.kind, EntryKind::File { .. });
        let is_newer = found.node.mtime > entry.mtime;
        if self.spec.existing == Existing::KeepNewer && comes_as_file && is_file && is_newer {
            return Ok(EntryAction::Kept);
        }
        let skips = self.spec.existing == Existing::Skip;
        if self.is_same(entry, &found) {
            let mode = found.node.mode;
            let wrong_mode = self.spec.modes == Modes::Exact
                && !matches!(entry.kind, EntryKind::Symlink { .. })
                && mode != entry.mode & EXACT;
            return Ok(EntryAction::Same {
                mode,
                attributes: !skips && (wrong_mode || found.node.mtime != entry.mtime),
            });
        }
        if skips {
            return Ok(EntryAction::Kept);
        }
        // Names that an earlier run has created beneath its own item cannot be recognised.
        if self.spec.existing == Existing::Refuse && entry.path.contains(&b'/') {
            return Ok(EntryAction::Refused(NoticeKind::Exists));
        }
        if found.node.is_directory() && !lock(&self.disk).list(&self.place(&entry.path))?.is_empty() {
            return Ok(EntryAction::Refused(NoticeKind::DirectoryNotEmpty));
        }
        Ok(EntryAction::Replace { file: (comes_as_file && is_file).then_some(found.node.mode & EXACT) })
    }

    /// Returns the action for an entry if its parent directories decide it.
    fn action_above(&self, path: &[u8]) -> Result<Option<EntryAction>, FilesError> {
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &path[..slash]);
        let found = lock(&self.disk).look(&self.place(above))?;
        Ok(match found {
            Some(found) if found.node.is_directory() => None,
            // It would be made.
            _ if self.spec.dry_run => Some(self.absent()),
            _ if matches!(self.spec.existing, Existing::Skip | Existing::UpdateOnly) => Some(EntryAction::Kept),
            _ => Some(EntryAction::Refused(NoticeKind::NoDirectory)),
        })
    }

    fn absent(&self) -> EntryAction {
        match self.spec.existing {
            Existing::UpdateOnly => EntryAction::Kept,
            Existing::Refuse | Existing::Replace | Existing::Skip | Existing::KeepNewer => EntryAction::New,
        }
    }

    fn is_same(&self, entry: &Entry, found: &NodeStatus) -> bool {
        match (&entry.kind, &found.node.content) {
            (EntryKind::Directory, Content::Directory) => true,
            (EntryKind::Symlink { target }, Content::Symlink(own)) => target == own,
            (EntryKind::File { size, hash, .. }, Content::File(bytes)) => {
                let is_equal = match self.spec.compare {
                    Compare::SizeAndTime => found.node.mtime == entry.mtime,
                    Compare::Size => true,
                    Compare::Never => false,
                    Compare::Checksum => hash.is_some_and(|hash| *blake3::hash(bytes).as_bytes() == hash),
                };
                bytes.len() as u64 == *size && is_equal
            }
            (
                EntryKind::Directory
                | EntryKind::Symlink { .. }
                | EntryKind::File { .. }
                | EntryKind::HardLink { .. }
                | EntryKind::Special(_),
                Content::Directory | Content::Symlink(_) | Content::File(_),
            ) => false,
        }
    }
}

/// Adds the bytes of a file that is not received: they arrive anyway if the whole batch does.
fn skip_entry(building: &mut PartialManifest, entry: &Entry) {
    if building.whole && entry.size() > 0 {
        let mut state = FileState::fresh(entry.size());
        state.dropped = true;
        push(building, entry, entry.mode, state);
    }
}

fn push(building: &mut PartialManifest, entry: &Entry, mode: u32, state: FileState) {
    let file = ReceivedFile {
        path: entry.path.as_slice().into(),
        entry: building.entries,
        id: StagedId::new(&entry.path, entry),
        start: building.length,
        size: entry.size(),
        mode,
        keeps_mode: false,
        mtime: entry.mtime,
        extra: entry.extra.clone(),
    };
    building.files.push((file, state));
}
