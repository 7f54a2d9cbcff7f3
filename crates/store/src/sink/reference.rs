//! Files that are unchanged in another tree: they become hard links to the files of that tree
//! ([`ReceiveRequest::link_dest`](request::ReceiveRequest::link_dest)).

use std::io;

use rustix::io::Errno;

use super::entries::Admission;
use super::target::TargetDirectory;
use crate::error::FilesError;
use crate::messages::{Entry, EntryKind};
use crate::sandbox::errno;

impl Admission<'_> {
    /// Makes a file a hard link to an unchanged one of another tree; returns whether there was one.
    pub(super) fn link_reference(&self, place: &TargetDirectory, path: &[u8], entry: &Entry) -> io::Result<bool> {
        for reference in self.shared.references().map_err(io::Error::other)? {
            let unchanged = match self.judge(reference).unchanged(path, entry) {
                // A file that cannot be inspected is not known to be unchanged.
                Err(_) | Ok(None) => continue,
                Ok(Some(identity)) => identity,
            };
            let (directory, name) = reference.parent(path)?;
            match place.staging.make_link(&directory.fd, name) {
                Ok((name, found)) if found.identity == unchanged => {
                    place.put_made((name, found), path)?;
                    self.shared.phase.note_change();
                    place.note_file(path)?;
                    self.shared.report.count(entry, true);
                    return Ok(true);
                }
                // Another program has exchanged it since it was inspected.
                Ok(_) => place.staging.clear_moving()?,
                // On another file system or one without links, of another user if such links are protected, or with too
                // many names.
                Err(error) if is_no_link(errno(&error)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Whether a file would become such a link.
    pub(super) fn has_reference(&self, path: &[u8], entry: &Entry) -> Result<bool, FilesError> {
        let is_unchanged = |reference| matches!(self.judge(reference).unchanged(path, entry), Ok(Some(_)));
        let is_file = matches!(entry.kind, EntryKind::File { .. });
        Ok(is_file && self.shared.references()?.iter().any(is_unchanged))
    }
}

/// Whether an error means that there can be no link to a file.
fn is_no_link(error: Errno) -> bool {
    matches!(
        error,
        Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK | Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS
    )
}
