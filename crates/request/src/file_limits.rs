//! The files that take part, selected by the sender's size and time.

use serde::{Deserialize, Serialize};

/// Limits for the transferred files. Regular files beyond them are kept at the target, and are not deleted: to the
/// target they are files that the source has. Directories, links and special files take part.
///
/// Its JSON is part of the protocol between releases: fields are only added, with a default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileLimits {
    /// The fewest bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    /// The most bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// Seconds since 1970: files modified before are too old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_since: Option<i64>,
}

impl FileLimits {
    /// Whether a file of this size, modified at this second, takes part.
    #[must_use]
    pub fn takes(&self, size: u64, modified: i64) -> bool {
        self.min_size.is_none_or(|least| size >= least)
            && self.max_size.is_none_or(|most| size <= most)
            && self.modified_since.is_none_or(|since| modified >= since)
    }

    /// Whether all files take part.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eligible_limits_are_inclusive() {
        let bounds = FileLimits { min_size: Some(2), max_size: Some(4), modified_since: Some(-7) };
        let taken = |size, modified| bounds.takes(size, modified);
        assert_eq!([1, 2, 4, 5].map(|size| taken(size, 0)), [false, true, true, false]);
        assert_eq!([-8, -7, i64::MAX].map(|modified| taken(3, modified)), [false, true, true]);
        assert!(FileLimits::default().takes(0, i64::MIN) && FileLimits::default().is_everything());
    }
}
