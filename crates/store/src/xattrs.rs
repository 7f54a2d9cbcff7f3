//! Extended attributes (`xattr(7)`), and ACLs, which Linux keeps in two of them (`acl(5)`).

use std::io;

use request::Preserve;
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::path_handle::PathHandle;
use crate::messages::{IdKind, MAX_XATTR_NAME, Xattr};

/// The rights of a file of its own (`capabilities(7)`).
pub(super) const CAPABILITY: &[u8] = b"security.capability";

/// Prefix of the names of ACLs: that of the file itself, and the default one of a directory.
const ACL: &[u8] = b"system.posix_acl_";

/// The attributes that a sender reads and a receiver sets and removes. Others are not changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct XattrRule {
    preserve: Preserve,
    is_root: bool,
}

impl XattrRule {
    /// Returns the rule for this process.
    pub(super) fn new(preserve: Preserve) -> Self {
        Self { preserve, is_root: geteuid().is_root() }
    }

    /// Whether the rule covers any attributes.
    pub(super) const fn is_active(self) -> bool {
        self.preserve.any_xattrs()
    }

    fn covers(self, name: &[u8]) -> bool {
        let is_in = |namespace: &[u8]| name.starts_with(namespace);
        if is_acl(name) {
            return self.preserve.acls;
        }
        // Overlayfs gives its own attributes a meaning, and those of XFS contain the ACLs again.
        let is_foreign = is_in(b"trusted.overlay.") || is_in(b"trusted.SGI_ACL_");
        // A capability is a right of any user who runs the file, like set-user-id.
        let is_for_root = (name == CAPABILITY && self.preserve.rights()) || (is_in(b"trusted.") && !is_foreign);
        self.preserve.xattrs && (is_in(b"user.") || (self.is_root && is_for_root))
    }

    /// Reads the attributes of a file, sorted by name. None where the file system has none.
    pub(super) fn read(self, held: &PathHandle) -> io::Result<Vec<Xattr>> {
        if !self.is_active() {
            return Ok(Vec::new());
        }
        let (path, mut found) = (held.path(), Vec::new());
        for name in names(&path)?.split(|byte| *byte == 0) {
            if self.covers(name) && name.len() <= MAX_XATTR_NAME {
                match value(&path, name) {
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
    pub(super) fn write(self, held: &PathHandle, wanted: &[Xattr], only: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let covers = |xattr: &&Xattr| self.covers(&xattr.name) && only(&xattr.name);
        let (path, found) = (held.path(), self.read(held)?);
        let mut first = Ok(());
        for Xattr { name, value } in wanted.iter().filter(covers).filter(|xattr| !found.contains(xattr)) {
            first = first.and(setxattr(&path, name.as_slice(), value, XattrFlags::empty()));
        }
        let is_wanted = |name: &[u8]| wanted.iter().any(|xattr| xattr.name == name);
        for Xattr { name, .. } in found.iter().filter(covers).filter(|xattr| !is_wanted(&xattr.name)) {
            first = first.and(removexattr(&path, name.as_slice()));
        }
        Ok(first?)
    }

    /// Whether the attributes that the rule covers differ from `wanted`.
    pub(super) fn differs(self, held: &PathHandle, wanted: &[Xattr]) -> io::Result<bool> {
        let found = self.read(held)?;
        Ok(!found.iter().eq(wanted.iter().filter(|xattr| self.covers(&xattr.name))))
    }
}

/// Whether an attribute with this name is an ACL.
pub(super) fn is_acl(name: &[u8]) -> bool {
    name.starts_with(ACL)
}

/// Returns the names of all attributes, each followed by NUL.
fn names(path: &str) -> io::Result<Vec<u8>> {
    let mut names = vec![0; 1 << 10];
    loop {
        match listxattr(path, names.as_mut_slice()) {
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

fn value(path: &str, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
    let mut value = vec![0; 1 << 10];
    loop {
        match getxattr(path, name, value.as_mut_slice()) {
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

/// Replaces the numbers of users and groups in an ACL; other attributes and invalid ACLs are not changed.
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
    let mut mapped: Vec<[u8; 8]> = entries.as_chunks().0.to_vec();
    for entry in &mut mapped {
        let kind = match u16::from_le_bytes([entry[0], entry[1]]) {
            NAMED_USER => IdKind::User,
            NAMED_GROUP => IdKind::Group,
            _ => continue,
        };
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        entry[4..].copy_from_slice(&map(kind, id).to_le_bytes());
    }
    // In the order of the kernel: by tag, then by number.
    let order = |entry: &[u8; 8]| {
        let [tag, tag_high, _, _, id @ ..] = *entry;
        (u16::from_le_bytes([tag, tag_high]), u32::from_le_bytes(id))
    };
    mapped.sort_by_key(order);
    entries.as_chunks_mut().0.copy_from_slice(&mapped);
}
