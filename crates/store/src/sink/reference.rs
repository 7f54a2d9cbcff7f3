//! Files that another tree has unchanged: they become names of the files there ([`ReceiveSpec::link_dest`](request::ReceiveSpec::link_dest)).

use std::io;

use rustix::io::Errno;

use super::entries::Admission;
use super::place::Place;
use crate::messages::Entry;
use crate::sandbox::errno;

impl Admission<'_> {
    /// Makes a file a name of one that another tree has unchanged; returns whether there was one.
    pub(super) fn link_reference(&self, place: &Place, path: &[u8], entry: &Entry) -> io::Result<bool> {
        for reference in &place.references {
            let unchanged = match self.judge(reference).unchanged(path, entry) {
                // What cannot be looked at is not known to be unchanged.
                Err(_) | Ok(None) => continue,
                Ok(Some(identity)) => identity,
            };
            let (folder, name) = reference.parent(path)?;
            match place.staging.make_link(&folder.fd, name) {
                Ok((name, found)) if found.identity == unchanged => {
                    place.put_made((name, found), path)?;
                    self.shared.note_change();
                    place.note_file(path)?;
                    self.shared.report.count(entry, true);
                    return Ok(true);
                }
                // Somebody has exchanged it since it was looked at.
                Ok(_) => place.staging.clear_moving()?,
                // On another file system, of another user where such links are protected, or with too many names.
                Err(error) if matches!(errno(&error), Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
