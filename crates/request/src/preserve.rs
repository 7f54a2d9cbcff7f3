//! What of a file, beyond its content, mode and time, is the same at the target.

use serde::{Deserialize, Serialize};

/// What is preserved beyond content, mode and mtime. The default is nothing: files belong to whoever receives them.
///
/// Its JSON is part of the protocol between releases: a field is only added, with a default that is not written
/// (`skip_serializing_if`), since earlier releases refuse a request with a field that they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preserve {
    /// The owner, where the receiver is root; ignored by others.
    pub owner: bool,
    /// The group, where the receiver is root or a member of it.
    pub group: bool,
    /// Owners and groups keep their numbers. Otherwise they are those with the same names at the receiver, and only
    /// those that have no name there keep their numbers. 0 is always root.
    pub numeric_ids: bool,
    /// POSIX ACLs.
    pub acls: bool,
    /// Extended attributes: those of users, and if both sides are root also `trusted.*` and, with owner and
    /// group, file capabilities.
    pub xattrs: bool,
    /// Pipes and sockets, and devices where the receiver is root.
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
        // A kind that is added does not compile here before it is decided who may ask for it (`remote/rights.rs` of `downpour`).
        let Self { owner, group, numeric_ids: _, acls, xattrs, specials } = *self;
        !(owner || group || acls || xattrs || specials)
    }

    /// Whether owners or groups are asked for.
    #[must_use]
    pub const fn ids(self) -> bool {
        self.owner || self.group
    }

    /// Whether set-id bits and capabilities come too, where the receiver is root: they are rights of owner and group.
    #[must_use]
    pub const fn rights(self) -> bool {
        self.owner && self.group
    }

    /// Whether extended attributes of any kind are asked for; ACLs are such attributes.
    #[must_use]
    pub const fn any_xattrs(self) -> bool {
        self.acls || self.xattrs
    }
}

/// Which permission bits are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Modes {
    /// Those that the user's umask allows, but not set-user-id and set-group-id. Existing names keep their modes,
    /// replaced files too, which lose these two bits.
    #[default]
    Masked,
    /// All, but set-user-id and set-group-id only if the receiver is root and takes both owner and group over.
    /// Otherwise existing directories keep these bits.
    Exact,
}
