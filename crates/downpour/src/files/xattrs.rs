//! Extended attributes of open files (`xattr(7)`), and ACLs, which Linux keeps in two of them (`acl(5)`).

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::preserve::Preserve;
use crate::messages::{IdKind, MAX_XATTR_NAME, Xattr};

/// What begins the names of ACLs: that of the file itself, and that which is passed on to new names in a folder.
const ACL: &[u8] = b"system.posix_acl_";

/// Which attributes are read at a sender, and which are set and removed at a receiver. Others are left as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct XattrRule {
    preserve: Preserve,
    is_root: bool,
}

impl XattrRule {
    /// The rule for this process.
    pub(super) fn new(preserve: Preserve) -> Self {
        Self { preserve, is_root: geteuid().is_root() }
    }

    /// Whether there may be any.
    pub(super) const fn is_active(self) -> bool {
        self.preserve.any_xattrs()
    }

    fn covers(self, name: &[u8]) -> bool {
        let is_in = |namespace: &[u8]| name.starts_with(namespace);
        if is_acl(name) {
            return self.preserve.acls;
        }
        // A capability is a right of whoever runs the file, as set-user-id is; overlayfs gives a meaning to its own.
        let is_for_root = (name == b"security.capability" && self.preserve.owner)
            || (is_in(b"trusted.") && !is_in(b"trusted.overlay."));
        self.preserve.xattrs && (is_in(b"user.") || (self.is_root && is_for_root))
    }

    /// Reads the attributes of a file, sorted by name. None where the file system has none.
    pub(super) fn read(self, file: BorrowedFd<'_>) -> io::Result<Vec<Xattr>> {
        let mut found = Vec::new();
        for name in names(file)?.split(|byte| *byte == 0) {
            if self.covers(name) && name.len() <= MAX_XATTR_NAME {
                match value(file, name) {
                    Ok(value) => found.push(Xattr { name: name.to_vec(), value }),
                    // It was removed since.
                    Err(Errno::NODATA) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Gives a file exactly the `wanted` attributes among those that the rule covers and `only` accepts. Tries all,
    /// whatever fails.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn write(self, file: BorrowedFd<'_>, wanted: &[Xattr], only: fn(&[u8]) -> bool) -> io::Result<()> {
        let covers = |xattr: &&Xattr| self.covers(&xattr.name) && only(&xattr.name);
        let found = self.read(file)?;
        let mut first = Ok(());
        for Xattr { name, value } in wanted.iter().filter(covers).filter(|xattr| !found.contains(xattr)) {
            first = first.and(fsetxattr(file, name.as_slice(), value, XattrFlags::empty()));
        }
        let is_wanted = |name: &[u8]| wanted.iter().any(|xattr| xattr.name == name);
        for Xattr { name, .. } in found.iter().filter(covers).filter(|xattr| !is_wanted(&xattr.name)) {
            first = first.and(fremovexattr(file, name.as_slice()));
        }
        Ok(first?)
    }

    /// Whether a file has other attributes than those of `wanted` that the rule covers.
    pub(super) fn differs(self, file: BorrowedFd<'_>, wanted: &[Xattr]) -> io::Result<bool> {
        let found = self.read(file)?;
        Ok(!found.iter().eq(wanted.iter().filter(|xattr| self.covers(&xattr.name))))
    }
}

/// Whether an attribute with this name is an ACL.
pub(super) fn is_acl(name: &[u8]) -> bool {
    name.starts_with(ACL)
}

/// Returns the names of all attributes, each followed by NUL.
fn names(file: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut names = vec![0; 1 << 10];
    loop {
        match flistxattr(file, names.as_mut_slice()) {
            Ok(length) => {
                names.truncate(length);
                return Ok(names);
            }
            // Linux returns no more than 64 KiB.
            Err(Errno::RANGE) if names.len() < 1 << 20 => names.resize(names.len() * 8, 0),
            Err(error) if super::metadata::is_unsupported(error) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn value(file: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
    let mut value = vec![0; 1 << 10];
    loop {
        match fgetxattr(file, name, value.as_mut_slice()) {
            Ok(length) => {
                value.truncate(length);
                return Ok(value);
            }
            // A value has at most 64 KiB.
            Err(Errno::RANGE) if value.len() < 1 << 20 => value.resize(value.len() * 8, 0),
            Err(error) => return Err(error),
        }
    }
}

/// Replaces the numbers of users and groups in an ACL; other attributes, and what is no ACL, are left as they are.
///
/// The value is a version, 2, and entries of a tag, permissions and a number, in little-endian order
/// (`linux/posix_acl_xattr.h`).
pub(super) fn map_acl(xattr: &mut Xattr, mut map: impl FnMut(IdKind, u32) -> u32) {
    const VERSION: [u8; 4] = 2_u32.to_le_bytes();
    const NAMED_USER: u16 = 2;
    const NAMED_GROUP: u16 = 8;
    if !is_acl(&xattr.name) {
        return;
    }
    let Some((VERSION, entries)) = xattr.value.split_first_chunk_mut::<4>().map(|(head, rest)| (*head, rest)) else {
        return;
    };
    for entry in entries.chunks_exact_mut(8) {
        let kind = match u16::from_le_bytes([entry[0], entry[1]]) {
            NAMED_USER => IdKind::User,
            NAMED_GROUP => IdKind::Group,
            _ => continue,
        };
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        entry[4..].copy_from_slice(&map(kind, id).to_le_bytes());
    }
}
