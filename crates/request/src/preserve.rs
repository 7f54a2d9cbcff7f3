//! The attributes of a file, beyond its content, mode and time, that are preserved at the target.

use serde::{Deserialize, Serialize};

/// Attributes preserved beyond content, mode and mtime. The default is none: files belong to the receiving user.
///
/// Its JSON is part of the protocol between releases: a field is only added, with a default that is not written
/// (`skip_serializing_if`), since earlier releases refuse a request with an unknown field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preserve {
    /// The owner, if the receiver is root; ignored by others.
    pub owner: bool,
    /// The group, if the receiver is root or a member of it.
    pub group: bool,
    /// Owners and groups keep their numbers. Otherwise they are those with the same names at the receiver, and only
    /// those without a name at the receiver keep their numbers. 0 is always root.
    pub numeric_ids: bool,
    /// POSIX ACLs.
    pub acls: bool,
    /// Extended attributes: those of users, and if both peers are root also `trusted.*` and, with owner and group, file
    /// capabilities.
    pub xattrs: bool,
    /// FIFOs and sockets, and devices if the receiver is root.
    pub specials: bool,
}

impl Default for Preserve {
    fn default() -> Self {
        Self::NOTHING
    }
}

impl Preserve {
    /// Nothing is preserved.
    pub const NOTHING: Self =
        Self { owner: false, group: false, numeric_ids: false, acls: false, xattrs: false, specials: false };

    /// Whether nothing is preserved.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        // A new field does not compile here before its permission is decided (`remote/rights.rs` of `downpour`).
        let Self { owner, group, numeric_ids: _, acls, xattrs, specials } = *self;
        !(owner || group || acls || xattrs || specials)
    }

    /// Whether owners or groups are requested.
    #[must_use]
    pub const fn ids(self) -> bool {
        self.owner || self.group
    }

    /// Whether set-id bits and capabilities are copied too, if the receiver is root: they are rights of owner and
    /// group.
    #[must_use]
    pub const fn rights(self) -> bool {
        self.owner && self.group
    }

    /// Whether extended attributes of any kind are requested; ACLs are such attributes.
    #[must_use]
    pub const fn any_xattrs(self) -> bool {
        self.acls || self.xattrs
    }
}

/// The permission bits that are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Modes {
    /// Those allowed by the user's umask, but not set-user-id and set-group-id. Existing names keep their modes, also
    /// replaced files, which lose these two bits.
    #[default]
    Masked,
    /// All, but set-user-id and set-group-id only if the receiver is root and sets both owner and group. Otherwise
    /// existing directories keep these bits.
    Exact,
}
