//! Owners, groups and extended attributes: reads them at a source, compares them at a receiver, and sets them. All of
//! this goes through [`ExtraRule`].

use std::io;

use request::Preserve;
use rustix::process::{Gid, Uid, geteuid};

use super::ids::UNCHANGED;
use super::metadata::{SET_ID, Status};
use super::path_handle::PathHandle;
use super::xattrs::{CAPABILITY, XattrRule, is_acl};
use crate::messages::{Extra, Mtime, NoticeKind, Owner, Xattr};

/// Result of setting attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetResult {
    All,
    /// Owner, group or extended attributes could not be set; everything else was.
    AttributesLost,
    /// Mode or time could not be set.
    MetadataLost,
}

impl SetResult {
    /// Returns the notice for the user.
    pub(super) const fn notice(self) -> Option<NoticeKind> {
        match self {
            Self::All => None,
            Self::AttributesLost => Some(NoticeKind::AttributesLost),
            Self::MetadataLost => Some(NoticeKind::MetadataLost),
        }
    }
}

/// Which owners, groups and extended attributes are read, and how they are applied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExtraRule {
    preserve: Preserve,
    xattrs: XattrRule,
    is_root: bool,
    /// Whether set-id bits and capabilities are copied with owner and group.
    gives_rights: bool,
}

impl ExtraRule {
    /// The rule for this process.
    pub(super) fn new(preserve: Preserve) -> Self {
        let is_root = geteuid().is_root();
        let gives_rights = preserve.rights() && is_root;
        Self { preserve, xattrs: XattrRule::new(preserve), is_root, gives_rights }
    }

    /// Whether any attributes besides modes and times are read or applied.
    pub(super) const fn is_active(self) -> bool {
        self.preserve.ids() || self.xattrs.is_active()
    }

    /// Whether ACLs are those of the sender.
    pub(super) const fn sets_acls(self) -> bool {
        self.preserve.acls
    }

    /// Whether the attributes in `found` differ from `extra`, whose numbers are local. `hold` opens the file if its
    /// extended attributes have to be read; attributes that this process cannot read count as equal.
    pub(super) fn differs(self, found: &Status, extra: &Extra, hold: impl FnOnce() -> io::Result<PathHandle>) -> bool {
        if extra.owner.is_some_and(|owner| is_other(found, owner)) {
            return true;
        }
        if !self.xattrs.is_active() {
            return false;
        }
        match hold().and_then(|held| self.xattrs.differs(&held, &extra.xattrs)) {
            Ok(differs) => differs,
            Err(error) => error.kind() != io::ErrorKind::PermissionDenied,
        }
    }

    /// Sets all given attributes of the held file; a symbolic link has no mode of its own.
    ///
    /// # Errors
    /// Errors of setting mode and time.
    pub(super) fn apply(
        self,
        held: &PathHandle,
        mode: Option<u32>,
        mtime: Option<Mtime>,
        extra: &Extra,
    ) -> io::Result<SetResult> {
        let found = held.status()?;
        let owner = extra.owner.filter(|_| self.preserve.ids());
        let changed = owner.filter(|owner| is_other(&found, *owner));
        // Takes the set-id bits away, and capabilities: both are set later.
        let owned = changed.map_or(Ok(()), |owner| held.set_owner(user(owner), group(owner)));
        let is_complete = owner.is_some_and(|owner| owner.user != UNCHANGED && owner.group != UNCHANGED);
        // No program of another user gets the rights of an owner and group, or keeps them with another owner.
        let are_sent = self.gives_rights && mode.is_some();
        let has_rights = owned.is_ok() && if are_sent { is_complete } else { changed.is_none() };
        let may_be_capable = self.gives_rights && owned.is_ok() && is_complete;
        let allows = |name: &[u8]| !is_acl(name) && (may_be_capable || name != CAPABILITY);
        let is_denied = self.gives_rights && !may_be_capable && has_capability(extra);
        let written = self.write_xattrs(held, &found, &extra.xattrs, allows);
        if !found.is_symlink() {
            // Also the mode of a file that was made writable for that.
            let mode = mode.unwrap_or(found.mode);
            held.set_mode(if has_rights || found.is_directory() { mode } else { mode & !SET_ID })?;
        }
        // Sets the mode's bits of the group, too, which are the same bits.
        let listed = self.xattrs.write(held, &extra.xattrs, is_acl);
        mtime.map_or(Ok(()), |mtime| held.set_mtime(mtime))?;
        let is_all = owned.is_ok() && written.is_ok() && listed.is_ok() && !is_denied;
        Ok(if is_all { SetResult::All } else { SetResult::AttributesLost })
    }

    fn write_xattrs(
        self,
        held: &PathHandle,
        found: &Status,
        wanted: &[Xattr],
        allows: impl Fn(&[u8]) -> bool + Copy,
    ) -> io::Result<()> {
        /// The owner may read and write, which attributes of users require.
        const OPEN: u32 = 0o600;
        match self.xattrs.write(held, wanted, allows) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && found.mode & OPEN != OPEN => {
                held.set_mode(found.mode & !SET_ID | OPEN)?;
                self.xattrs.write(held, wanted, allows)
            }
            result => result,
        }
    }

    /// Whether root must not change the attributes of an existing file `found` that is to get `mode` and `extra`.
    /// Another user may have created it with the size and time of the source file: its uncompared content would get the
    /// rights of an owner or group, or it may be a hard link to a third user's file.
    pub(super) fn distrusts(self, found: &Status, mode: u32, extra: &Extra, is_compared: bool) -> bool {
        let gets_rights = mode & SET_ID != 0 || has_capability(extra);
        let is_roots = found.owner == 0;
        self.is_root && !is_roots && (found.links > 1 || (self.gives_rights && gets_rights && !is_compared))
    }

    /// Returns the attributes of `found`, as they are sent or set on a copy. `hold` opens the file if more than its
    /// status has to be read.
    pub(super) fn read(self, found: &Status, hold: impl FnOnce() -> io::Result<PathHandle>) -> io::Result<Extra> {
        let mut extra = self.of_status(found);
        if self.xattrs.is_active() {
            extra.xattrs = self.xattrs.read(&hold()?)?;
        }
        Ok(extra)
    }

    /// Returns the attributes that a status alone contains: owner and group.
    pub(super) fn of_status(self, found: &Status) -> Extra {
        let owner = self.preserve.ids().then_some(Owner { user: found.owner, group: found.group });
        Extra { owner, xattrs: Vec::new() }
    }
}

fn has_capability(extra: &Extra) -> bool {
    extra.xattrs.iter().any(|xattr| xattr.name == CAPABILITY)
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
