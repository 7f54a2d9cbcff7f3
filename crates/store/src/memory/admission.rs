//! What becomes of an announced entry, by what stands under its name in the tree.

use request::names::link_leads_out;
use request::{Compare, Existing, Modes, NameError};

use super::disk::{Content, Node, Seen};
use super::target::MemoryTarget;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::{Entry, EntryKind, ManifestPart, NoticeKind};
use crate::sink::batch::{FileState, ReceivedFile};
use crate::sink::manifest::{Building, Intake};
use crate::staged_id::{StagedId, path_hash};

/// Permission bits of new names, where modes are not exact: those that the usual umask leaves.
const MASKED: u32 = 0o1755;
/// Those of names whose modes are exact: all but set-id bits, which would be an owner's rights.
const EXACT: u32 = 0o1777;

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// It stands, perhaps with another mode or time.
    Same {
        /// Its mode.
        mode: u32,
        /// Whether mode or time differ.
        attributes: bool,
    },
    /// Nothing stands under its name.
    New,
    /// Something else does, and is replaced.
    Replace {
        /// The mode of a file that a file replaces.
        file: Option<u32>,
    },
    /// The target is left as it is.
    Kept,
    /// It cannot be created.
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
                false => leave_out(building, entry),
            }
            building.count(entry.size(), entry.name_bytes());
        }
        Ok(())
    }

    fn take_entry(&self, building: &mut Building, batch: u32, entry: &Entry) -> Result<(), FilesError> {
        let fate = self.fate(batch, entry)?;
        let number = (batch, building.entries);
        match fate {
            Fate::Kept => self.report.kept(&entry.path),
            Fate::Refused(kind) => self.report.refused(&entry.path, kind),
            fate if self.spec.dry_run => return self.foresee(building, number, entry, &fate),
            fate => return self.act(building, number, entry, &fate),
        }
        leave_out(building, entry);
        Ok(())
    }

    /// Tells what would happen.
    fn foresee(
        &self,
        building: &mut Building,
        number: (u32, u32),
        entry: &Entry,
        fate: &Fate,
    ) -> Result<(), FilesError> {
        let is_there = matches!(fate, Fate::Same { .. });
        match fate {
            Fate::Same { attributes: true, .. } => self.report.notice(NoticeKind::Attributes, &entry.path),
            Fate::New => self.report.notice(NoticeKind::Create, &entry.path),
            Fate::Replace { .. } => self.report.notice(NoticeKind::Replace, &entry.path),
            Fate::Same { attributes: false, .. } | Fate::Kept | Fate::Refused(_) => {}
        }
        if !is_there {
            building.wanted.push(building.length..building.length + entry.size());
        }
        self.report.count(entry, is_there);
        if is_there { self.note_entry(number, entry, None) } else { Ok(()) }
    }

    /// Does everything for an entry that can be done before its bytes come.
    fn act(&self, building: &mut Building, number: (u32, u32), entry: &Entry, fate: &Fate) -> Result<(), FilesError> {
        let mode = match (fate, self.spec.modes) {
            (_, Modes::Exact) => entry.mode & EXACT,
            (Fate::Same { mode, .. } | Fate::Replace { file: Some(mode) }, Modes::Masked) => *mode,
            (_, Modes::Masked) => entry.mode & MASKED,
        };
        let published = match (&entry.kind, fate) {
            (_, Fate::Same { attributes, .. }) => {
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
        leave_out(building, entry);
        self.note_entry(number, entry, published.as_ref())
    }

    /// Notes an entry that stands, unless it is a directory or was to be left alone.
    fn note_entry(&self, number: (u32, u32), entry: &Entry, published: Option<&Node>) -> Result<(), FilesError> {
        if matches!(entry.kind, EntryKind::Directory) || self.spec.existing == Existing::Skip {
            return Ok(());
        }
        self.note_placed(number, &entry.path, published)
    }

    /// Adds a file to those that are to be received.
    fn receive(&self, building: &mut Building, entry: &Entry, mode: u32) -> Result<(), FilesError> {
        if !lock(&self.claimed).insert(path_hash(&entry.path)) {
            return Err(FilesError::bad_name(&entry.path, NameError::Duplicate));
        }
        if entry.size() > 0 {
            building.wanted.push(building.length..building.length + entry.size());
        }
        push(building, entry, mode, FileState::fresh(entry.size()));
        Ok(())
    }

    fn fate(&self, batch: u32, entry: &Entry) -> Result<Fate, FilesError> {
        match &entry.kind {
            EntryKind::HardLink { .. } => return Ok(Fate::Refused(NoticeKind::NoLinks)),
            EntryKind::Special(_) => {
                return Err(FilesError::Protocol { batch, reason: "it has a special file, which was not asked for" });
            }
            EntryKind::Symlink { target } if self.spec.safe_links && link_leads_out(&entry.path, target) => {
                return Ok(Fate::Refused(NoticeKind::UnsafeLink));
            }
            EntryKind::File { .. } | EntryKind::Directory | EntryKind::Symlink { .. } => {}
        }
        if let Some(fate) = self.fate_above(&entry.path)? {
            return Ok(fate);
        }
        let Some(found) = lock(&self.disk).look(&self.place(&entry.path))? else { return Ok(self.absent()) };
        let is_file = matches!(found.node.content, Content::File(_));
        let comes_as_file = matches!(entry.kind, EntryKind::File { .. });
        let is_newer = found.node.mtime > entry.mtime;
        if self.spec.existing == Existing::KeepNewer && comes_as_file && is_file && is_newer {
            return Ok(Fate::Kept);
        }
        let skips = self.spec.existing == Existing::Skip;
        if self.is_same(entry, &found) {
            let mode = found.node.mode;
            let wrong_mode = self.spec.modes == Modes::Exact
                && !matches!(entry.kind, EntryKind::Symlink { .. })
                && mode != entry.mode & EXACT;
            return Ok(Fate::Same { mode, attributes: !skips && (wrong_mode || found.node.mtime != entry.mtime) });
        }
        if skips {
            return Ok(Fate::Kept);
        }
        // Nothing tells what an earlier run has created beneath an item of its own.
        if self.spec.existing == Existing::Refuse && entry.path.contains(&b'/') {
            return Ok(Fate::Refused(NoticeKind::Exists));
        }
        if found.node.is_directory() && !lock(&self.disk).list(&self.place(&entry.path))?.is_empty() {
            return Ok(Fate::Refused(NoticeKind::DirectoryNotEmpty));
        }
        Ok(Fate::Replace { file: (comes_as_file && is_file).then_some(found.node.mode & EXACT) })
    }

    /// What happens to an entry because of what is above it, if that decides.
    fn fate_above(&self, path: &[u8]) -> Result<Option<Fate>, FilesError> {
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &path[..slash]);
        let found = lock(&self.disk).look(&self.place(above))?;
        Ok(match found {
            Some(found) if found.node.is_directory() => None,
            // It would be made.
            _ if self.spec.dry_run => Some(self.absent()),
            _ if matches!(self.spec.existing, Existing::Skip | Existing::UpdateOnly) => Some(Fate::Kept),
            _ => Some(Fate::Refused(NoticeKind::NoDirectory)),
        })
    }

    fn absent(&self) -> Fate {
        match self.spec.existing {
            Existing::UpdateOnly => Fate::Kept,
            Existing::Refuse | Existing::Replace | Existing::Skip | Existing::KeepNewer => Fate::New,
        }
    }

    fn is_same(&self, entry: &Entry, found: &Seen) -> bool {
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

/// Adds the bytes of a file that is not to be received: they come anyway where all of the batch does.
fn leave_out(building: &mut Building, entry: &Entry) {
    if building.whole && entry.size() > 0 {
        let mut state = FileState::fresh(entry.size());
        state.dropped = true;
        push(building, entry, entry.mode, state);
    }
}

fn push(building: &mut Building, entry: &Entry, mode: u32, state: FileState) {
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
