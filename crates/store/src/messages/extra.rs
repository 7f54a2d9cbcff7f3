//! The description of a name beyond its mode and time: owner, group and extended attributes.

/// Maximum size of the extended attributes of an entry, as [`Extra::size`] counts it.
pub const MAX_XATTRS: usize = 128 << 10;
/// Maximum length of an attribute's name in bytes (Linux `XATTR_NAME_MAX`).
pub const MAX_XATTR_NAME: usize = 255;
/// Maximum length of a user's or group's name in bytes (Linux `LOGIN_NAME_MAX` less the NUL).
pub const MAX_ID_NAME: usize = 255;
/// Maximum number of [`IdName`]s in a transfer; further ids have no names.
pub const MAX_ID_NAMES: usize = 65_536;

/// Bytes that an attribute takes besides its name and value.
const PER_XATTR: usize = 64;

/// Attributes of a name beyond its mode and time; empty unless requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Owner and group.
    pub owner: Option<Owner>,
    /// Extended attributes, sorted by name.
    pub xattrs: Vec<Xattr>,
}

/// Owner and group by their numbers at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

/// An extended attribute (`xattr(7)`). ACLs are those that begin with `system.posix_acl_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Xattr {
    /// Name with its namespace, such as `user.comment`.
    pub name: Vec<u8>,
    /// Any bytes.
    pub value: Vec<u8>,
}

/// The name of a user or group at the sender, which precedes the first entry with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdName {
    /// User or group.
    pub kind: IdKind,
    /// The number at the sender.
    pub id: u32,
    /// The name, without NUL.
    pub name: Vec<u8>,
}

/// The kind of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdKind {
    /// A user.
    User = 1,
    /// A group.
    Group = 2,
}

impl Extra {
    /// Whether there are no attributes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owner.is_none() && self.xattrs.is_empty()
    }

    /// Returns the bytes that the attributes take in memory, counted against [`MAX_XATTRS`] and
    /// [`MAX_BATCH_NAMES`](super::MAX_BATCH_NAMES).
    #[must_use]
    pub fn size(&self) -> usize {
        self.xattrs.iter().map(|xattr| PER_XATTR + xattr.name.len() + xattr.value.len()).sum()
    }
}
