//! Attributes that new names inherit from a directory: its default ACL (`acl(5)`), in the place of the umask.
//!
//! Files are made in the staging directory and then moved, so that the attributes given by the system may differ from
//! those that it would have given them at their final place.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, getxattr, getxattr_query, removexattr, setxattr};
use rustix::io::Errno;

use super::metadata::is_unsupported;
use super::path_handle::{PathHandle, path_of};

/// Names of the attributes that hold ACLs.
const DEFAULT: &str = "system.posix_acl_default";
const ACCESS: &str = "system.posix_acl_access";

/// Maximum size of an ACL in bytes; ext4 allows less.
const LONGEST: usize = 64 << 10;

/// Whom an entry of an ACL is for (`linux/posix_acl.h`).
const OWNER: u16 = 0x01;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The default ACL of a directory, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InheritedAcl(Option<Vec<Grant>>);

/// An entry of an ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    to: u16,
    permissions: u16,
    id: u32,
}

impl InheritedAcl {
    /// Returns the default ACL of an open directory; none if the file system has no ACLs.
    pub(super) fn of(directory: impl AsFd) -> Self {
        // By a path, since it may be open as a path only.
        let path = path_of(directory.as_fd());
        match getxattr_query(&path, DEFAULT) {
            Ok(0) | Err(Errno::NODATA) => Self(None),
            // Without /proc there is no path.
            Err(error) if error == Errno::NOENT || is_unsupported(error) => Self(None),
            Err(_) => Self::unknown(),
            Ok(_) => {
                let mut bytes = vec![0; LONGEST];
                let length = getxattr(&path, DEFAULT, bytes.as_mut_slice()).unwrap_or_default();
                grants(&bytes[..length]).map_or_else(Self::unknown, |grants| Self(Some(grants)))
            }
        }
    }

    /// Represents an ACL that cannot be read, which may deny all others.
    fn unknown() -> Self {
        let grant = |to, permissions| Grant { to, permissions, id: u32::MAX };
        Self(Some(vec![grant(OWNER, 7), grant(GROUP, 0), grant(OTHERS, 0)]))
    }

    /// The permissions that a new name may have; `None` if the umask decides.
    pub(super) fn permitted(&self) -> Option<u32> {
        let grants = self.0.as_ref()?;
        let given = |to: u16| grants.iter().find(|grant| grant.to == to).map(|grant| u32::from(grant.permissions & 7));
        let group = given(MASK).or_else(|| given(GROUP));
        Some(given(OWNER)? << 6 | group? << 3 | given(OTHERS)?)
    }

    /// Gives a file made in another directory the ACL that it would have inherited here.
    ///
    /// # Errors
    /// Errors of setting an attribute.
    pub(super) fn give(&self, held: &PathHandle, mode: u32) -> io::Result<()> {
        let path = held.path();
        let has_names = |grants: &&Vec<Grant>| grants.iter().any(|grant| ![OWNER, GROUP, OTHERS].contains(&grant.to));
        let given = match self.0.as_ref().filter(has_names) {
            Some(grants) => setxattr(&path, ACCESS, &bytes(grants, mode), XattrFlags::empty()),
            None => removexattr(&path, ACCESS),
        };
        match given {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a file or directory has an ACL: the bits of its group then limit others too.
///
/// # Errors
/// Errors of reading an attribute.
pub(super) fn has_acl(held: &PathHandle) -> io::Result<bool> {
    match getxattr_query(held.path(), ACCESS) {
        Ok(length) => Ok(length > 0),
        Err(Errno::NODATA) => Ok(false),
        Err(error) if is_unsupported(error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads an ACL: a version of 4 bytes, then entries of 8 (`linux/posix_acl_xattr.h`).
fn grants(acl: &[u8]) -> Option<Vec<Grant>> {
    let entries = acl.strip_prefix(&2_u32.to_le_bytes())?;
    let (entries, rest) = entries.as_chunks::<8>();
    let grant = |[a, b, c, d, id @ ..]: &[u8; 8]| Grant {
        to: u16::from_le_bytes([*a, *b]),
        permissions: u16::from_le_bytes([*c, *d]),
        id: u32::from_le_bytes(*id),
    };
    (rest.is_empty() && !entries.is_empty()).then(|| entries.iter().map(grant).collect())
}

/// Returns the ACL of a name created with this mode; it grants no more than the mode does.
fn bytes(grants: &[Grant], mode: u32) -> Vec<u8> {
    let has_mask = grants.iter().any(|grant| grant.to == MASK);
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for Grant { to, permissions, id } in grants {
        let shift = match *to {
            OWNER => Some(6),
            MASK => Some(3),
            GROUP if !has_mask => Some(3),
            OTHERS => Some(0),
            _ => None,
        };
        // At most three bits.
        let granted = shift.map_or(*permissions, |shift| permissions & (mode >> shift & 7) as u16);
        acl.extend(to.to_le_bytes());
        acl.extend(granted.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user::rwx,user:7:rwx,group::r-x,mask::rwx,other::---`
    const ACL: [(u16, u16, u32); 5] = [(OWNER, 7, !0), (2, 7, 7), (GROUP, 5, !0), (MASK, 7, !0), (OTHERS, 0, !0)];

    fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |(to, permissions, id): &(u16, u16, u32)| {
            [&to.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        [&2_u32.to_le_bytes()[..], &entries.iter().map(entry).collect::<Vec<_>>().concat()].concat()
    }

    #[test]
    fn default_acl_limits_mode_as_in_kernel() {
        let named = InheritedAcl(grants(&acl(&ACL)));
        assert_eq!(named.permitted(), Some(0o770));
        let plain = InheritedAcl(grants(&acl(&[(OWNER, 7, !0), (GROUP, 5, !0), (OTHERS, 0, !0)])));
        assert_eq!(plain.permitted(), Some(0o750));
        assert_eq!(InheritedAcl::default().permitted(), None);
        let mut given = ACL;
        (given[0].1, given[3].1) = (6, 4);
        assert_eq!(bytes(&grants(&acl(&ACL)).unwrap(), 0o644), acl(&given), "the mask is the bits of the group");
    }

    #[test]
    fn invalid_acl_is_none() {
        for bytes in [&b""[..], &[2, 0, 0, 0], &[1, 0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 1, 0, 7]] {
            assert_eq!(grants(bytes), None);
        }
    }
}
