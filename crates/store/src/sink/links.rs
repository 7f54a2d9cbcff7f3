//! Hard links, created when all files are in place.

use std::collections::HashSet;
use std::io;

use request::{Existing, ReceiveRequest};
use rustix::io::Errno;

use super::super::disk_stack::Backwards;
use super::super::error::FilesError;
use super::super::metadata::Status;
use super::super::staged_id::path_hash;
use super::entry_action::{keeps_parent, look};
use super::shared::Shared;
use super::target::TargetDirectory;
use crate::lock::lock;
use crate::messages::NoticeKind;
use crate::sandbox::errno;

/// Bytes of link names processed at a time. The list of files is read once for each such group.
const GROUP_BYTES: usize = 16 << 20;

/// A hard link to be made.
struct PendingHardLink {
    path: Vec<u8>,
    /// Path of the file that it links to.
    target: Vec<u8>,
    /// Its batch, and its index in the batch.
    number: (u32, u32),
}

/// Returns the bytes that the list of links on disk holds for a link besides its path.
pub(super) fn link_bytes((batch, entry): (u32, u32), target: &[u8]) -> Vec<u8> {
    [&batch.to_be_bytes(), &entry.to_be_bytes(), target].concat()
}

impl PendingHardLink {
    fn from_bytes(path: Vec<u8>, rest: &[u8]) -> Option<Self> {
        let (batch, rest) = rest.split_first_chunk()?;
        let (entry, target) = rest.split_first_chunk()?;
        let number = (u32::from_be_bytes(*batch), u32::from_be_bytes(*entry));
        Some(Self { path, target: target.to_vec(), number })
    }
}

impl Shared {
    /// Creates the hard links.
    pub(super) fn make_links(&self, place: &TargetDirectory) -> Result<(), FilesError> {
        let failed = |error| FilesError::system(place.staging.path(), error);
        let mut links = lock(&place.staging.links);
        let mut links = links.backwards().map_err(failed)?;
        loop {
            self.phase.check_stopped()?;
            let group = next_group(&mut links).map_err(failed)?;
            if group.is_empty() {
                return Ok(());
            }
            let placed_targets = self.placed_targets(place, &group)?;
            for link in &group {
                self.phase.check_stopped()?;
                let path = &link.path;
                let made = self.make_link(place, link, placed_targets.contains(&path_hash(&link.target)));
                let kind = match made {
                    Ok(None) => continue,
                    Ok(Some(kind)) => kind,
                    Err(error) => match errno(&error) {
                        Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV => NoticeKind::NoLinks,
                        Errno::EXIST if place.is_guarded(path) => {
                            return Err(FilesError::TargetExists { names: vec![place.shown(path)] });
                        }
                        _ => place.refusal(path, error)?,
                    },
                };
                self.refused(&self.sent_as(path), kind);
            }
        }
    }

    /// Returns the 64-bit hashes of the link targets in `group` that are in place as they were sent.
    fn placed_targets(&self, place: &TargetDirectory, group: &[PendingHardLink]) -> Result<HashSet<u64>, FilesError> {
        let failed = |error| FilesError::system(place.staging.path(), error);
        let asked: HashSet<_> = group.iter().map(|link| path_hash(&link.target).to_be_bytes()).collect();
        let mut placed_targets = HashSet::new();
        let mut files = lock(&place.staging.files);
        let mut files = files.backwards().map_err(failed)?;
        while let Some((hash, _)) = files.next().map_err(failed)? {
            self.phase.check_stopped()?;
            if let Ok(hash) = <[u8; 8]>::try_from(hash)
                && asked.contains(&hash)
            {
                placed_targets.insert(u64::from_be_bytes(hash));
            }
        }
        Ok(placed_targets)
    }

    /// Creates one link; `is_placed` is whether its file is in place. Returns the reason if it cannot be created.
    fn make_link(
        &self,
        place: &TargetDirectory,
        link: &PendingHardLink,
        is_placed: bool,
    ) -> io::Result<Option<NoticeKind>> {
        let PendingHardLink { path, target, number } = link;
        // A file that was in place may have been removed in the meantime.
        let file = if is_placed { place.target.look(target)? } else { None };
        let file = file.filter(|file| file.is_file());
        let existing = match look(&place.target, path, self.spec.existing) {
            Err(error) if keeps_parent(self.spec.existing, &error) => {
                self.report.kept(path);
                return Ok(None);
            }
            looked => looked?,
        };
        let is_it = |file: &Status| existing.is_some_and(|existing| existing.identity == file.identity);
        let same = file.as_ref().is_some_and(is_it);
        if !same {
            if self.claims.is_excluded(target) || keeps(&self.spec, file.as_ref(), existing.as_ref()) {
                self.report.kept(path);
                return Ok(None);
            }
            if file.is_none() {
                return Ok(Some(NoticeKind::MissingLinkTarget));
            }
            if existing.is_some_and(|existing| existing.is_special()) && !self.spec.preserve.specials {
                return Ok(Some(NoticeKind::SpecialInTheWay));
            }
            let (directory, name) = place.target.parent(target)?;
            file.iter().for_each(|file| place.changes(file));
            place.put_made(place.staging.make_link(&directory.fd, name)?, path)?;
            self.phase.note_change();
        }
        self.report.update(|outcome| {
            outcome.files += 1;
            outcome.unchanged += u64::from(same);
        });
        if !same || self.spec.existing != Existing::Skip {
            self.note_stored(place, *number, path)?;
        }
        Ok(None)
    }
}

/// Returns the next group of links; empty at the end.
fn next_group(links: &mut Backwards<'_>) -> io::Result<Vec<PendingHardLink>> {
    let (mut group, mut bytes) = (Vec::new(), 0);
    while bytes < GROUP_BYTES
        && let Some((path, rest)) = links.next()?
    {
        bytes += path.len() + rest.len();
        group.push(PendingHardLink::from_bytes(path, &rest).ok_or(io::ErrorKind::InvalidData)?);
    }
    Ok(group)
}

/// Whether `existing`, the status of the link's name if it exists, is kept. `file` is the first name, if it is in place
/// as it was sent; the time of one is the time of all.
fn keeps(spec: &ReceiveRequest, file: Option<&Status>, existing: Option<&Status>) -> bool {
    match spec.existing {
        Existing::Refuse | Existing::Replace => false,
        Existing::Skip => existing.is_some(),
        // If the first name was kept, no file was received that could replace or create this one.
        Existing::KeepNewer => match (file, existing) {
            (Some(file), Some(existing)) => existing.is_file() && existing.is_newer(file.mtime, spec.modify_window),
            (Some(_), None) => false,
            (None, existing) => existing.is_some(),
        },
        Existing::UpdateOnly => existing.is_none(),
    }
}
