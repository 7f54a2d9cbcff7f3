//! Owners, groups and extended attributes at a receiver: whether they differ, and setting them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, fchmod, fchown, fstat};
use rustix::process::{Gid, Uid};

use super::ids::UNCHANGED;
use super::metadata::{SET_ID, Status, mode_of, set_metadata};
use super::preserve::Preserve;
use super::xattrs::{XattrRule, is_acl};
use crate::messages::{Extra, Mtime, Owner};

/// Whether everything was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    All,
    /// Owner, group or extended attributes could not be set; everything else was.
    AttributesLost,
}

/// How owners, groups and extended attributes are applied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExtraRule {
    preserve: Preserve,
    xattrs: XattrRule,
}

impl ExtraRule {
    /// The rule for this process.
    pub(super) fn new(preserve: Preserve) -> Self {
        Self { preserve, xattrs: XattrRule::new(preserve) }
    }

    /// Whether there is anything to apply besides modes and times.
    pub(super) const fn is_active(self) -> bool {
        self.preserve.ids() || self.xattrs.is_active()
    }

    /// Whether what stands as `found` differs from `extra`, whose numbers are those of this machine. `open` opens it if
    /// its extended attributes have to be read; those that may not be read are taken for different.
    pub(super) fn differs(self, found: &Status, extra: &Extra, open: impl FnOnce() -> io::Result<File>) -> bool {
        if extra.owner.is_some_and(|owner| is_other(found, owner)) {
            return true;
        }
        let has_xattrs = self.xattrs.is_active() && (found.is_file() || found.is_directory());
        has_xattrs
            && !open().and_then(|file| self.xattrs.differs(file.as_fd(), &extra.xattrs)).is_ok_and(|other| !other)
    }

    /// Sets all attributes of an open file or folder, where given.
    ///
    /// # Errors
    /// Those of setting mode and time.
    pub(super) fn apply(
        self,
        file: &File,
        mode: Option<u32>,
        mtime: Option<Mtime>,
        extra: &Extra,
    ) -> io::Result<Applied> {
        if !self.is_active() {
            return set_metadata(file, mode, mtime).map(|()| Applied::All);
        }
        let found = Status::from(fstat(file)?);
        // Takes the set-id bits away, and capabilities: both are set later.
        let owned = extra
            .owner
            .filter(|owner| is_other(&found, *owner))
            .map_or(Ok(()), |owner| fchown(file, user(owner), group(owner)));
        let written = self.write_xattrs(file, &found, extra);
        // A mode of its own for whatever was made writable for that.
        let mode = mode.unwrap_or(found.mode);
        // Nobody else's program is to run with the rights of an owner that it has not got.
        set_metadata(file, Some(if owned.is_ok() { mode } else { mode & !SET_ID }), None)?;
        // Sets the mode's bits of the group, too, which are the same there.
        let listed = self.xattrs.write(file.as_fd(), &extra.xattrs, is_acl);
        set_metadata(file, None, mtime)?;
        Ok(if owned.is_ok() && written.is_ok() && listed.is_ok() { Applied::All } else { Applied::AttributesLost })
    }

    fn write_xattrs(self, file: &File, found: &Status, extra: &Extra) -> io::Result<()> {
        /// The owner may write, which attributes of users require.
        const OWNER_WRITES: u32 = 0o200;
        let write = || self.xattrs.write(file.as_fd(), &extra.xattrs, |name| !is_acl(name));
        match write() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && found.mode & OWNER_WRITES == 0 => {
                fchmod(file, mode_of(found.mode | OWNER_WRITES))?;
                write()
            }
            result => result,
        }
    }

    /// Sets the owner of a link or special file, opened as a mere path.
    pub(super) fn apply_owner(self, file: &OwnedFd, found: &Status, extra: &Extra) -> Applied {
        let owner = extra.owner.filter(|owner| self.preserve.ids() && is_other(found, *owner));
        let set =
            owner.map_or(Ok(()), |owner| rustix::fs::chownat(file, "", user(owner), group(owner), AtFlags::EMPTY_PATH));
        if set.is_ok() { Applied::All } else { Applied::AttributesLost }
    }

    /// Returns the attributes of an open file as they are to be set on a copy.
    pub(super) fn read(self, file: &File, found: &Status) -> io::Result<Extra> {
        if !self.is_active() {
            return Ok(Extra::default());
        }
        let owner = self.preserve.ids().then_some(Owner { user: found.owner, group: found.group });
        Ok(Extra { owner, xattrs: self.xattrs.read(file.as_fd())? })
    }
}

/// Whether something has another owner or group.
fn is_other(found: &Status, owner: Owner) -> bool {
    (owner.user != UNCHANGED && owner.user != found.owner) || (owner.group != UNCHANGED && owner.group != found.group)
}

fn user(owner: Owner) -> Option<Uid> {
    (owner.user != UNCHANGED).then(|| Uid::from_raw(owner.user))
}

fn group(owner: Owner) -> Option<Gid> {
    (owner.group != UNCHANGED).then(|| Gid::from_raw(owner.group))
}
