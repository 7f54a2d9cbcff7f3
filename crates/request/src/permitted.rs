//! The names that a sender may announce: the part of the receive request against which its manifest is checked.

use serde::{Deserialize, Serialize};

use crate::base64;
use crate::filter::Filter;

/// The names that a sender may announce, and how much of them.
///
/// A hostile host answers a request for `report.pdf` with `.ssh/authorized_keys` (CVE-2019-6111, CVE-2022-29154). The
/// receiver therefore compares every name with what its user requested, and does not rely on the sender to apply
/// wildcards, filters and lists. A receiver by ticket learns the names from the offer; its default permits all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedNames {
    /// The requested items; `None` permits any name, as for the contents of a directory.
    pub items: Option<Vec<ItemName>>,
    /// The filter that every path must pass, and every directory that contains it.
    pub filter: Filter,
    /// The listed names, relative to the single item or to its contents. Their parent directories and all names beneath
    /// them are permitted too.
    #[serde(with = "base64::names")]
    pub files_from: Option<Vec<Vec<u8>>>,
    /// Maximum number of bytes in all regular files together.
    pub max_bytes: Option<u64>,
    /// Maximum number of entries: files, directories and links.
    pub max_entries: Option<u64>,
}

/// The name of a requested item, as far as the receiver knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ItemName {
    /// This name.
    Exact(Vec<u8>),
    /// Any name that matches these shell wildcards, which match no leading dot.
    Wildcard(String),
    /// One directory whose name only the remote host knows, as for `host:~` or `host:~user`. It must not exist at the
    /// target.
    NewDirectory,
}

/// Shell wildcards for one name. They match no leading dot, and bytes that are not UTF-8 one by one.
pub struct Wildcards {
    pattern: glob::Pattern,
    takes_dot: bool,
}

impl Wildcards {
    /// Reads a pattern; `None` if it is invalid.
    pub fn new(pattern: &[u8]) -> Option<Self> {
        let takes_dot = pattern.starts_with(b".");
        glob::Pattern::new(&text(pattern)).ok().map(|pattern| Self { pattern, takes_dot })
    }

    /// Whether they match a name.
    pub fn match_name(&self, name: &[u8]) -> bool {
        (self.takes_dot || !name.starts_with(b".")) && self.pattern.matches(&text(name))
    }
}

/// Returns a name as text: a byte that is not UTF-8 becomes a character of a plane for private use.
fn text(name: &[u8]) -> String {
    let private = |byte: &u8| char::from_u32(0x10_0000 + u32::from(*byte));
    name.utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars().chain(chunk.invalid().iter().filter_map(private)))
        .collect()
}

/// Whether a path contains shell wildcards.
pub fn has_wildcards(path: &[u8]) -> bool {
    path.iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a path means the contents of a directory, as in rsync: it ends in `/`, `.` or `..`, or is empty.
pub fn stands_for_contents(path: &[u8]) -> bool {
    matches!(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(), b"" | b"." | b"..")
}

impl AllowedNames {
    /// Whether the sender chooses the name of an item.
    #[must_use]
    pub fn lets_host_choose(&self) -> bool {
        self.items.as_ref().is_some_and(|items| items.contains(&ItemName::NewDirectory))
    }

    /// Whether the user named this item, by its name or by wildcards.
    #[must_use]
    pub fn names(&self, item: &[u8]) -> bool {
        self.items.as_ref().is_none_or(|items| items.iter().any(|name| name.matches(item)))
    }

    /// Whether every name is permitted.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl ItemName {
    /// Returns the name under which the item at `path` on a remote host is sent; `None` if any name is allowed, because
    /// the path means the contents of a directory.
    #[must_use]
    pub fn of(path: &[u8]) -> Option<Self> {
        // The home of a user is sent under its own name.
        if path.starts_with(b"~") && !path.contains(&b'/') && !has_wildcards(path) {
            return Some(Self::NewDirectory);
        }
        if stands_for_contents(path) {
            return None;
        }
        let last = path.split(|byte| *byte == b'/').rfind(|component| !component.is_empty()).unwrap_or_default();
        if has_wildcards(path) {
            // Requests contain wildcards as text.
            return Some(
                str::from_utf8(last)
                    .map_or_else(|_| Self::Exact(last.to_vec()), |last| Self::Wildcard(last.to_owned())),
            );
        }
        Some(Self::Exact(last.to_vec()))
    }

    /// Whether the user named the item `name`.
    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(own) => own == name,
            // A file may have the pattern itself as its name.
            Self::Wildcard(pattern) if pattern.as_bytes() == name => true,
            Self::Wildcard(pattern) => {
                Wildcards::new(pattern.as_bytes()).is_some_and(|wildcards| wildcards.match_name(name))
            }
            Self::NewDirectory => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_name_is_last_component_of_remote_path() {
        let exact = |name: &str| Some(ItemName::Exact(name.into()));
        for path in ["", ".", "..", "/", "a/", "a/.", "a/..", "~/", "~/."] {
            assert_eq!(ItemName::of(path.as_bytes()), None, "{path}");
        }
        assert_eq!(ItemName::of(b"a"), exact("a"));
        assert_eq!(ItemName::of(b"~/x"), exact("x"));
        assert_eq!(ItemName::of(b"/srv/.data"), exact(".data"));
        assert_eq!(ItemName::of(b"*/x"), Some(ItemName::Wildcard("x".into())));
        assert_eq!(ItemName::of(b"dir/a*"), Some(ItemName::Wildcard("a*".into())));
        // The contents of the matches, or of a directory with this name.
        assert_eq!(ItemName::of(b"d*/"), None);
        assert_eq!(ItemName::of(b"[1]/"), None);
        for home in ["~", "~user"] {
            assert_eq!(ItemName::of(home.as_bytes()), Some(ItemName::NewDirectory), "{home}");
        }
        assert_eq!(ItemName::of(b"~user/x"), exact("x"));
        assert_eq!(ItemName::of(b"~user/"), None);
        assert_eq!(ItemName::of(b"~*"), Some(ItemName::Wildcard("~*".into())));
    }

    #[test]
    fn wildcards_match_as_in_shell() {
        let wildcard = ItemName::Wildcard("*.csv".into());
        assert!(wildcard.matches(b"a.csv") && wildcard.matches(b"*.csv"));
        assert!(!wildcard.matches(b".csv") && !wildcard.matches(b".a.csv"), "a leading dot");
        assert!(!wildcard.matches(b"a.csv.sh") && !wildcard.matches(b".ssh"));
        assert!(!ItemName::Wildcard("[".into()).matches(b"a"), "no pattern");
        assert!(ItemName::Wildcard("*".into()).matches(b"\xff"), "no text");
        assert!(ItemName::Wildcard("a?.csv".into()).matches(b"a\xff.csv"));
        assert!(
            ItemName::Wildcard("?".into()).matches("ü".as_bytes())
                && !ItemName::Wildcard("?".into()).matches(b"\xff\xff")
        );
        assert!(ItemName::Exact(b"\xff".to_vec()).matches(b"\xff"));
    }
}
