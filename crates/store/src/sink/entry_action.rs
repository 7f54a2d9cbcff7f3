//! Decides the action for an entry, by the existing file under its name.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};

use request::{Compare, Existing, ReceiveRequest};
use rustix::io::Errno;

use super::super::attributes::ExtraRule;
use super::super::inheritance::has_acl;
use super::super::metadata::{Identity, Status};
use super::super::mode_rule::ModeRule;
use super::super::sandbox::{DirectorySandbox, errno};
use crate::messages::{Entry, EntryKind, NoticeKind};

/// Bytes read at a time to hash a file.
const CHUNK: usize = 256 << 10;

/// The action for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryAction {
    /// The entry exists, possibly with another mode, time, owner or other attributes.
    Same {
        /// Whether any of those differ.
        attributes: bool,
        /// The compared file.
        identity: Identity,
    },
    /// Nothing exists under its name.
    New,
    /// Something else exists and is replaced.
    Replace {
        /// The existing file, if a file replaces a file.
        file: Option<Replacement>,
    },
    /// The target is kept as it is: something else exists, or nothing.
    Kept,
    /// The entry cannot be created.
    Refused(NoticeKind),
}

/// A file that replaces an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replacement {
    /// Its final mode.
    pub(super) mode: u32,
    /// Length of the replaced file in bytes.
    pub(super) size: u64,
}

/// Returns the action for an entry whose name does not exist.
pub(super) fn absent(spec: &ReceiveRequest, entry: &Entry) -> EntryAction {
    if spec.existing == Existing::UpdateOnly || is_excluded(spec, entry) { EntryAction::Kept } else { EntryAction::New }
}

/// Whether an entry is a file excluded by its size or age.
pub(super) fn is_excluded(spec: &ReceiveRequest, entry: &Entry) -> bool {
    match entry.kind {
        EntryKind::File { size, .. } => !spec.eligible.takes(size, entry.mtime.seconds),
        EntryKind::Directory | EntryKind::Symlink { .. } | EntryKind::Special(_) | EntryKind::HardLink { .. } => false,
    }
}

/// Returns the status of an existing name.
pub(super) fn look(target: &DirectorySandbox, path: &[u8], existing: Existing) -> io::Result<Option<Status>> {
    match target.look(path) {
        // Its directory was not created.
        Err(error) if existing == Existing::UpdateOnly && error.kind() == io::ErrorKind::NotFound => Ok(None),
        looked => looked,
    }
}

/// Whether a look-up failed because a kept file exists in place of the parent directory.
pub(super) fn keeps_parent(existing: Existing, error: &io::Error) -> bool {
    existing == Existing::Skip && matches!(errno(error), Errno::NOTDIR | Errno::LOOP)
}

/// Inputs of the decision.
pub(super) struct Judge<'a> {
    pub(super) spec: &'a ReceiveRequest,
    pub(super) modes: ModeRule,
    pub(super) extras: ExtraRule,
    pub(super) target: &'a DirectorySandbox,
    /// Checked while a file is hashed.
    pub(super) stopped: &'a AtomicBool,
}

impl Judge<'_> {
    /// Decides about `entry`, whose path is `path`; for a hard link `target` is the path of its file.
    pub(super) fn action(&self, path: &[u8], entry: &Entry, target: Option<&[u8]>) -> io::Result<EntryAction> {
        if is_excluded(self.spec, entry) {
            return Ok(EntryAction::Kept);
        }
        let skips = self.spec.existing == Existing::Skip;
        let found = match look(self.target, path, self.spec.existing) {
            Err(error) if keeps_parent(self.spec.existing, &error) => return Ok(EntryAction::Kept),
            looked => looked?,
        };
        let Some(found) = found else { return Ok(absent(self.spec, entry)) };
        let is_content = matches!(entry.kind, EntryKind::File { .. } | EntryKind::HardLink { .. });
        if self.spec.existing == Existing::KeepNewer
            && is_content
            && found.is_file()
            && found.is_newer(entry.mtime, self.spec.modify_window)
        {
            return Ok(EntryAction::Kept);
        }
        if self.is_same(path, entry, target, &found)? {
            let attributes = !skips && self.has_other_attributes(path, entry, &found);
            let is_compared = self.spec.compare == Compare::Checksum;
            let mode = self.modes.apply(entry.mode);
            let distrusts = attributes
                && matches!(entry.kind, EntryKind::File { .. })
                && self.spec.existing.replaces()
                && self.extras.distrusts(&found, mode, &entry.extra, is_compared);
            if !distrusts {
                return Ok(EntryAction::Same { attributes, identity: found.identity });
            }
        }
        if skips {
            return Ok(EntryAction::Kept);
        }
        // An existing item has ended the transfer, unless an earlier run created it. Names that the earlier run created
        // beneath it cannot be distinguished from changes of other programs since.
        if self.spec.existing == Existing::Refuse && path.contains(&b'/') {
            return Ok(EntryAction::Refused(NoticeKind::Exists));
        }
        // Programs may be communicating through it, unless special files are copied.
        if found.is_special() && !self.spec.preserve.specials {
            return Ok(EntryAction::Refused(NoticeKind::SpecialInTheWay));
        }
        let blocked = found.is_directory() && (self.spec.delete.is_none() || self.spec.max_delete.is_some());
        if blocked && !self.target.list(path)?.is_empty() {
            return Ok(EntryAction::Refused(NoticeKind::DirectoryNotEmpty));
        }
        let stays = matches!(entry.kind, EntryKind::File { .. }) && found.is_file();
        let file = match stays {
            true => Some(Replacement { mode: self.replaced_mode(path, entry, &found)?, size: found.size }),
            false => None,
        };
        Ok(EntryAction::Replace { file })
    }

    /// Returns the file at `path` if it has the content of an entry, as far as contents are compared, and every
    /// attribute that the entry is to get.
    pub(super) fn unchanged(&self, path: &[u8], entry: &Entry) -> io::Result<Option<Identity>> {
        let Some(found) = self.target.look(path)?.filter(|found| found.is_file()) else { return Ok(None) };
        let is_same = self.is_same(path, entry, None, &found)? && !self.has_other_attributes(path, entry, &found);
        Ok(is_same.then_some(found.identity))
    }

    /// Returns the mode of a file that gets another content. Its ACL is lost with the old content; the bits of its
    /// group, which were the limit of the ACL, would then apply to the group itself.
    fn replaced_mode(&self, path: &[u8], entry: &Entry, found: &Status) -> io::Result<u32> {
        let mode = self.modes.replace(entry.mode, found.mode);
        let loses_acl = !self.modes.is_exact() && has_acl(&self.target.hold(path, found.identity)?)?;
        Ok(if loses_acl { mode & !0o070 } else { mode })
    }

    fn has_other_attributes(&self, path: &[u8], entry: &Entry, found: &Status) -> bool {
        let has_other_mode = match entry.kind {
            EntryKind::File { .. } | EntryKind::Directory | EntryKind::Special(_) => {
                found.mode != self.modes.apply_over(entry.mode, found)
            }
            EntryKind::Symlink { .. } => false,
            // A hard link has the attributes of its file.
            EntryKind::HardLink { .. } => return false,
        };
        let hold = || self.target.hold(path, found.identity);
        has_other_mode || self.has_other_time(entry, found) || self.extras.differs(found, &entry.extra, hold)
    }

    fn has_other_time(&self, entry: &Entry, found: &Status) -> bool {
        let is_omitted = self.spec.omit_directory_times && matches!(entry.kind, EntryKind::Directory);
        !is_omitted && !found.has_time_within(entry.mtime, self.spec.modify_window)
    }

    fn is_same(&self, path: &[u8], entry: &Entry, target: Option<&[u8]>, found: &Status) -> io::Result<bool> {
        Ok(match &entry.kind {
            EntryKind::Directory => found.is_directory(),
            EntryKind::Special(special) => found.special() == Some(*special),
            EntryKind::Symlink { target } => found.is_symlink() && self.target.read_link(path)? == *target,
            EntryKind::HardLink { .. } => match target.map(|target| self.target.look(target)).transpose()?.flatten() {
                Some(file) => file.identity == found.identity,
                None => false,
            },
            EntryKind::File { size, hash, .. } => {
                found.is_file()
                    && found.size == *size
                    && match (self.spec.compare, hash) {
                        (Compare::SizeAndTime, _) => found.has_time_within(entry.mtime, self.spec.modify_window),
                        (Compare::Size, _) => true,
                        (Compare::Never, _) => false,
                        (Compare::Checksum, Some(hash)) => {
                            match self.target.open(path).and_then(|file| self.digest(file)) {
                                Ok(own) => own == Some(*hash),
                                // The comparison has no result then.
                                Err(error) if self.spec.compare_trees && errno(&error) == Errno::ACCESS => {
                                    return Err(error);
                                }
                                // An unreadable file is not known to be the same.
                                Err(_) => false,
                            }
                        }
                        (Compare::Checksum, None) => false,
                    }
            }
        })
    }

    /// Returns the BLAKE3 hash of a file; `None` if the transfer is stopped meanwhile.
    fn digest(&self, mut file: File) -> io::Result<Option<[u8; 32]>> {
        let (mut hasher, mut chunk) = (blake3::Hasher::new(), vec![0; CHUNK]);
        while !self.stopped.load(Ordering::Relaxed) {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(Some(*hasher.finalize().as_bytes())),
                Ok(count) => drop(hasher.update(&chunk[..count])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
